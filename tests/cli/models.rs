//! `wqk score`, `probe` and `theory` on models and names that a user may have: no rotary positions, names that act on a
//! terminal, trained runs and real text.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

use super::{error_line, llama, stdout, wqk};

/// A folder with the queries and keys of a BERT of one layer, whose positions do not rotate anything.
fn bert(folder: &Path) -> PathBuf {
    const D: usize = 8;
    let model = folder.join("tiny-bert");
    fs::create_dir_all(&model).unwrap();
    let config =
        r#"{"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}"#;
    fs::write(model.join("config.json"), config).unwrap();
    // Any matrices that are not each other's transpose do.
    let weights = [7, 5].map(|step: usize| -> Vec<u8> {
        let entry = |e: usize| ((e * step) % 11) as f32 - 5.0;
        (0..D * D).flat_map(|e| entry(e).to_le_bytes()).collect()
    });
    let tensors = ["query", "key"].iter().zip(&weights).map(|(name, weight)| {
        let name = format!("bert.encoder.layer.0.attention.self.{name}.weight");
        (name, TensorView::new(Dtype::F32, vec![D, D], weight).unwrap())
    });
    safetensors::serialize_to_file(tensors, None, &model.join("model.safetensors")).unwrap();
    model
}

fn stderr(command: &mut Command, code: i32) -> String {
    String::from_utf8(command.assert().code(code).get_output().stderr.clone()).unwrap()
}

#[test]
fn an_offset_without_rotary_positions_is_said_to_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (bert, llama) = (bert(folder.path()), llama(folder.path()));
    let scores = |model: &Path, offset: &str| {
        let mut command = wqk();
        command.args(["score", "--format", "json", "--offset", offset]);
        let report: Value = serde_json::from_str(&stdout(command.arg(model))).unwrap();
        report["models"][0]["layers"][0]["symmetry"].as_f64().unwrap()
    };
    assert_eq!(scores(&bert, "-3"), scores(&bert, "0"));
    // That of a rotary model changes: the flag is not passed over.
    assert_ne!(scores(&llama, "-3"), scores(&llama, "0"));
    let table = stdout(wqk().args(["score", "--offset", "-3"]).arg(&bert));
    assert!(
        table.contains("note: ") && table.contains("in no layer: --offset has no effect"),
        "{table}"
    );
    let table = stdout(wqk().args(["score", "--offset", "-3"]).arg(&llama));
    assert!(!table.contains("no effect"), "{table}");
}

#[test]
fn wrong_use_shows_the_usage_of_its_subcommand() {
    for (arguments, usage) in [
        (&["score", "x", "--diff"][..], "Usage: wqk score "),
        (&["score", "x", "-o", "x.pdf"], "Usage: wqk score "),
        (&["probe", "--max-cosine", "nan"], "Usage: wqk probe "),
        (&["probe", "-o", "x.pdf"], "Usage: wqk probe "),
        (&["theory", "fermat"], "Usage: wqk theory "),
    ] {
        let said = error_line(wqk().args(arguments), 2);
        assert!(said.contains(usage), "{said}");
    }
    let said = error_line(wqk().args(["score", "x", "-o", "x.pdf"]), 2);
    assert!(said.contains("'x.pdf'") && said.contains(".json, .csv"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn no_output_is_refused_by_the_name_of_its_draft_or_after_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let model = bert(folder.path());
    for arguments in [
        &["score", "no/such/model", "-o", "/proc/x.csv"][..],
        &["score", "no/such/model", "--plot", "/proc/x.svg"],
        &["probe", "no/such.toml", "-o", "/proc/x.csv"],
        &["theory", "tail", "--text", "no/such.txt", "--out", "/proc/x"],
        &["demo", "--out", "/proc/x"],
        &["export", "no/such/run", "--to", "/proc/x"],
    ] {
        let said = error_line(wqk().args(arguments), 1);
        assert!(
            said.contains("/proc") && !said.contains(".wqk") && !said.contains("no/such"),
            "{arguments:?}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    stdout(wqk().arg("score").arg(model).args(["-o", "/dev/null"]));
}

#[cfg(unix)]
#[test]
fn names_cannot_act_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("evil\u{1b}[2J\nwqk: all is well\u{202e}");
    fs::rename(bert(folder.path()), &named).unwrap();
    let table = stdout(wqk().arg("score").arg(&named));
    assert!(!table.contains(['\u{1b}', '\u{202e}']), "{table}");
    assert!(
        table.contains("[2J") && table.lines().next().unwrap().contains("all is well\\u{202e} · "),
        "{table}"
    );
    fs::write(named.join("model.safetensors"), "broken").unwrap();
    let said = error_line(wqk().arg("score").arg(&named), 1);
    assert!(
        !said.contains(['\u{1b}', '\u{202e}']) && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn a_difference_of_other_models_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let (bert, llama) = (bert(folder.path()), llama(folder.path()));
    // A BERT's layers are of another stack: read it as a decoder.
    let mut command = wqk();
    command.args(["score", "--diff"]).args([&bert, &llama]);
    let said = error_line(&mut command, 1);
    assert!(said.contains("no layer in common"), "{said}");
    let narrow = folder.path().join("narrow");
    fs::create_dir(&narrow).unwrap();
    let config = r#"{"model_type": "mistral", "hidden_size": 8, "num_attention_heads": 4,
        "num_key_value_heads": 4, "num_hidden_layers": 2}"#;
    fs::write(narrow.join("config.json"), config).unwrap();
    fs::copy(llama.join("model.safetensors"), narrow.join("model.safetensors")).unwrap();
    let table = stdout(wqk().args(["score", "--diff"]).args([&llama, &narrow]));
    assert!(
        table.contains("note: they are of different families")
            && table.contains("note: their layers differ in shape"),
        "{table}"
    );
    let csv = stderr(
        wqk()
            .args(["score", "--diff", "--format", "csv"])
            .args([&llama, &narrow]),
        0,
    );
    assert!(csv.contains("note: they are of different families"), "{csv}");
    let same = stdout(wqk().args(["score", "--diff"]).args([&llama, &llama]));
    assert!(!same.contains("note:"), "{same}");
}

#[test]
fn each_column_says_which_score_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let table = stdout(wqk().args(["score", "--as-published"]).arg(bert(folder.path())));
    assert!(
        table.contains("as published: symmetry  as published: d (excess)  its faults"),
        "{table}"
    );
    // Signs are ASCII on a terminal and in files for programs.
    assert!(!table.contains('−') && table.contains('-'), "{table}");
}

#[test]
fn what_cannot_be_probed_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    fs::write(&file, [0; 9]).unwrap();
    let vision = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/vit6-cifar10.toml");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let llama = llama(folder.path());
    for (path, remedy) in [
        (&vision, "vision model"),
        (&file, "name a recipe (.toml)"),
        (&empty, "name the folder of one"),
        (&llama, "load a BERT"),
    ] {
        let said = error_line(wqk().arg("probe").arg(path), 1);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(remedy), "{said}");
        // Nothing is said twice.
        let name = path.display().to_string();
        assert_eq!(said.matches(&name).count(), 1, "{said}");
    }
}

/// Two runs of three updates, an encoder and a decoder.
fn runs(folder: &Path) -> PathBuf {
    let text = folder.join("text.txt");
    fs::write(&text, crate::paragraphs(120)).unwrap();
    let recipe = folder.join("recipe.toml");
    let content = format!(
        r#"
        seeds = [5]
        model = {{ kind = "text", d_model = 16, n_layers = 2, n_heads = 2, max_positions = 16 }}
        data = {{ kind = "text", paths = ["{}"], length = 16, held_out = 0.05 }}
        tokenizer = {{ kind = "characters" }}
        [train]
        steps = 3
        batch_size = 4
        [[arms]]
        name = "encoder"
        objective = {{ kind = "masked", rate = 0.15 }}
        [[arms]]
        name = "decoder"
        objective = {{ kind = "autoregressive" }}
        "#,
        text.display()
    );
    fs::write(&recipe, content).unwrap();
    let out = folder.join("runs");
    let mut command = wqk();
    command.env("WQK_CACHE", folder.join("cache"));
    command.args(["train", "--quiet", "--out"]).arg(&out).arg(&recipe);
    command.assert().success();
    out
}

#[test]
fn trained_models_are_probed_and_tried_on_real_text() {
    let folder = tempfile::tempdir().unwrap();
    let runs = runs(folder.path());
    let (encoder, decoder) = (runs.join("encoder-seed5"), runs.join("decoder-seed5"));
    let text = folder.path().join("text.txt");

    // A folder of several runs, and a part of one.
    for (path, remedy) in [
        (&runs, "name one of"),
        (&encoder.join("checkpoints"), "is a part of the run"),
    ] {
        for command in [&["probe"][..], &["theory", "tail", "--run"]] {
            let said = error_line(wqk().args(command).arg(path), 1);
            assert!(said.contains(remedy) && said.lines().count() == 1, "{said}");
        }
    }

    let probe = |more: &[&str]| {
        let mut command = wqk();
        command
            .args(["probe", "--format", "json", "--seeds", "2"])
            .arg(&encoder)
            .args(more);
        let output = command.output().unwrap();
        // Whether a model of three updates propagates is not the question.
        // Trained weights are not judged.
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let path = text.to_str().unwrap();
    let (random, real) = (probe(&[]), probe(&["--text", path]));
    assert!(random["settings"]["text"].is_null());
    assert!(random["notes"].to_string().contains("--text FILE"), "{random}");
    assert_eq!(real["settings"]["text"]["sha256"].as_str().unwrap().len(), 64);
    assert!(real["title"].as_str().unwrap().contains("tokens of "), "{real}");
    let cosine = |report: &Value| report["rows"][0]["measured"]["mean"].as_f64().unwrap();
    assert_eq!(real["rows"][0]["place"], "input");
    // Ten letters and a space, again and again, against tokens of the whole alphabet.
    assert!(
        cosine(&real) > cosine(&random),
        "{} {}",
        cosine(&real),
        cosine(&random)
    );
    // Seeds draw other sequences.
    let input = &real["rows"][0]["measured"];
    assert_ne!(input["low"], input["high"]);

    // The identity of the gradient holds in any layer of any model.
    let theory = |model: &Path, claim: &str| {
        let mut command = wqk();
        command
            .args(["theory", claim, "--format", "json", "--batch", "4", "--run"])
            .arg(model);
        command.arg("--text").arg(&text);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{said}");
        // Progress.
        assert!(said.contains(&format!("trying {claim} (1 of 1)")), "{said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["claims"][0].clone()
    };
    let verdicts = |claim: &Value| -> Vec<String> {
        let parts = claim["parts"].as_array().unwrap();
        parts
            .iter()
            .map(|part| part["verdict"].as_str().unwrap().to_owned())
            .collect()
    };
    let exported = folder.path().join("bert");
    wqk()
        .args(["export", "--quiet", "--to"])
        .arg(&exported)
        .arg(&encoder)
        .assert()
        .success();
    for model in [&encoder, &decoder, &exported] {
        let claim = theory(model, "rank-one");
        assert_eq!(verdicts(&claim)[0], "holds", "{claim}");
        assert!(claim["data"].as_str().unwrap().contains("text.txt"), "{claim}");
    }
    // A claim of decoders says nothing of an encoder.
    assert_eq!(
        verdicts(&theory(&encoder, "directionality")),
        ["assumptions_not_met"]
    );
    assert_eq!(verdicts(&theory(&decoder, "directionality")).len(), 2);
    // Where the start is known, its heads are tried; a folder of transformers does not tell it.
    assert_eq!(verdicts(&theory(&encoder, "symmetry-score")).len(), 5);
    assert_eq!(verdicts(&theory(&exported, "symmetry-score")).len(), 3);
    // The run is shown its own text where none is named.
    let mut command = wqk();
    command
        .args(["theory", "likelihood", "--quiet", "--run"])
        .arg(&decoder);
    let words = stdout(&mut command);
    assert!(
        words.contains("the text that it was trained on") && words.contains("Verdict: holds."),
        "{words}"
    );
}
