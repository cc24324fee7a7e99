//! The `wqk` command as a user meets it: help, formats, outputs, and errors.

#[path = "cli/check.rs"]
mod check;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/models.rs"]
mod models;
#[path = "cli/train.rs"]
mod train;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

/// Paragraphs of words in an order that does not repeat soon.
fn paragraphs(n: usize) -> String {
    const WORDS: [&str; 8] = [
        "attention",
        "compares",
        "tokens",
        "through",
        "one",
        "matrix",
        "a",
        "layer",
    ];
    let line = |i: usize| {
        (0..12)
            .map(|j| WORDS[(i * i + 3 * j * (i + 1)) % 8])
            .collect::<Vec<_>>()
    };
    (0..n).map(|i| line(i).join(" ")).collect::<Vec<_>>().join("\n\n")
}

fn wqk() -> Command {
    Command::cargo_bin("wqk").expect("the command is built with the tests")
}

/// A folder with a LLaMA of two layers in which `W_k = W_q`: symmetric in every head.
fn llama(folder: &Path) -> PathBuf {
    const D: usize = 8;
    let model = folder.join("tiny-llama");
    fs::create_dir_all(&model).unwrap();
    let config = r#"{"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
        "num_key_value_heads": 2, "num_hidden_layers": 2}"#;
    fs::write(model.join("config.json"), config).unwrap();
    // Any invertible matrix does: ones on the diagonal, a few entries off it.
    let entry = |i: usize, j: usize| {
        if i == j {
            1.0
        } else {
            0.1 * ((i * 3 + j) % 5) as f32
        }
    };
    let weight: Vec<u8> = (0..D * D)
        .flat_map(|e| entry(e / D, e % D).to_le_bytes())
        .collect();
    let mut tensors = Vec::new();
    for layer in 0..2 {
        for name in ["q_proj", "k_proj"] {
            let name = format!("model.layers.{layer}.self_attn.{name}.weight");
            tensors.push((name, TensorView::new(Dtype::F32, vec![D, D], &weight).unwrap()));
        }
    }
    safetensors::serialize_to_file(tensors, None, &model.join("model.safetensors")).unwrap();
    model
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

/// The one line of an error.
fn error_line(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.stdout.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&output.stdout)
    );
    stderr
}

#[test]
fn help_names_every_subcommand() {
    let help = stdout(wqk().arg("--help"));
    for name in [
        "score",
        "families",
        "theory",
        "--backend",
        "--threads",
        "--seed",
        "--quiet",
    ] {
        assert!(help.contains(name), "{name}");
    }
    assert!(stdout(wqk().args(["score", "--help"])).contains("--as-published"));
    assert!(stdout(wqk().arg("--version")).starts_with("wqk "));
}

#[test]
fn wrong_use_exits_with_2() {
    let wrong: [&[&str]; 9] = [
        &[],
        &["score"],
        &["score", "x", "--format", "yaml"],
        &["score", "x", "--plot", "x.pdf"],
        &["score", "x", "--gamma", "nan"],
        &["score", "x", "--diff"],
        &["score", "final", "--series"],
        &["score", "x", "y", "--plot", "heads=x.svg"],
        &["score", "x", "--backend", "abacus"],
    ];
    for arguments in wrong {
        wqk().args(arguments).assert().code(2);
    }
}

#[test]
fn a_missing_checkpoint_is_one_line_and_exit_code_1() {
    let error = error_line(wqk().args(["score", "no/such/model"]), 1);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.starts_with("wqk: error: ") && error.contains("no/such/model"),
        "{error}"
    );
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent/scores.csv");
    // The checkpoint is missing too: the output comes first.
    let error = error_line(wqk().args(["score", "no/such/model", "-o"]).arg(&absent), 1);
    assert!(error.contains("absent"), "{error}");
    assert!(!error.contains("no/such/model"), "{error}");
}

#[test]
fn json_reads_back_with_the_exact_scores_of_a_symmetric_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let json = stdout(wqk().args(["score", "--heads", "--format", "json"]).arg(&model));
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["settings"]["gamma"], 2.0);
    assert!(report["version"].as_str().unwrap().starts_with("wqk "));
    let model = &report["models"][0];
    assert_eq!(model["name"], "tiny-llama");
    assert_eq!(model["digest"].as_str().unwrap().len(), 64);
    let layers = model["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 2);
    for layer in layers {
        // W_k = W_q: symmetric in every head, up to the rounding of f32 sums of 64 terms.
        let exact = |score: &Value| (score.as_f64().unwrap() - 1.0).abs() < 1e-5;
        assert!(exact(&layer["symmetry"]), "{layer}");
        assert!(
            layer["heads"]
                .as_array()
                .unwrap()
                .iter()
                .all(|head| exact(&head["symmetry"]))
        );
    }
    assert!(
        (model["summary"]["decoder"]["symmetry"]["median"]
            .as_f64()
            .unwrap()
            - 1.0)
            .abs()
            < 1e-5
    );
}

#[test]
fn csv_has_a_row_a_layer_and_a_row_a_head() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let text = stdout(wqk().args(["score", "--heads", "--format", "csv"]).arg(&model));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == "head")
        .unwrap();
    let heads: Vec<String> = reader
        .records()
        .map(|row| row.unwrap()[head].to_owned())
        .collect();
    assert_eq!(heads, ["", "0", "1", "", "0", "1"]);
}

#[test]
fn markdown_and_latex_have_a_row_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let markdown = stdout(wqk().args(["score", "--format", "markdown"]).arg(&model));
    assert!(
        markdown.contains("| tiny-llama | decoder | 256 | 2 | 1.00 ± \\[0.00, 0.00\\] |"),
        "{markdown}"
    );
    let latex = stdout(wqk().args(["score", "--format", "latex"]).arg(&model));
    assert!(
        latex.contains("tiny-llama & decoder & 256 & 2 & 1.00 $\\pm$ [0.00, 0.00] &"),
        "{latex}"
    );
    assert!(latex.contains("\\end{tabular}"));
}

#[test]
fn what_is_scored_is_kept_when_another_checkpoint_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let good = llama(folder.path());
    let broken = folder.path().join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
    fs::write(broken.join("model.safetensors"), b"").unwrap();
    let file = folder.path().join("scores.json");
    let mut command = wqk();
    command
        .arg("score")
        .args([&broken, &good, &folder.path().join("absent")])
        .arg("-o")
        .arg(&file);
    let stderr = error_line(&mut command, 1);
    assert!(stderr.contains("broken") && stderr.contains("absent"), "{stderr}");
    assert!(
        stderr.lines().all(|line| line.starts_with("wqk: error: ")),
        "{stderr}"
    );
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["models"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_left_behind_when_all_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (file, plot) = (folder.path().join("scores.json"), folder.path().join("plot.svg"));
    let mut command = wqk();
    command
        .args(["score", "no/such/model", "-o"])
        .arg(&file)
        .arg("--plot")
        .arg(&plot);
    error_line(&mut command, 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn figures_of_every_kind_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let mut command = wqk();
    command
        .arg("score")
        .arg(&model)
        .arg("-o")
        .arg(folder.path().join("scores.csv"));
    for name in ["layers.svg", "heads.svg", "size.svg", "matrix.svg"] {
        let kind = name.strip_suffix(".svg").unwrap();
        command
            .arg("--plot")
            .arg(format!("{kind}={}", folder.path().join(name).display()));
    }
    if cfg!(feature = "png") {
        command.arg("--plot").arg(folder.path().join("plain.png"));
    }
    stdout(&mut command);
    for name in ["layers.svg", "heads.svg", "size.svg", "matrix.svg"] {
        let svg = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(svg.contains("tiny-llama") && svg.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn what_the_papers_tables_have_no_column_for_is_refused() {
    for flag in ["--as-published", "--significance"] {
        for format in ["markdown", "latex"] {
            let output = wqk()
                .args(["score", "nowhere", flag, "--format", format])
                .output()
                .unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(
                said.contains(flag) && said.contains("table, json or csv"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_difference_is_after_minus_before() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let (before, after) = (llama(&a), llama(&b));
    let text = stdout(
        wqk()
            .args(["score", "--diff", "--format", "json"])
            .args([&before, &after]),
    );
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["difference"]["layers"].as_array().unwrap().len(), 2);
    assert_eq!(report["difference"]["missing"], 0);
    let table = stdout(wqk().args(["score", "--diff"]).args([&before, &after]));
    assert!(table.contains("tiny-llama minus tiny-llama"), "{table}");
    // The CSV holds numbers as they are, not as the screen shows them: it parses back to what JSON says.
    let csv = stdout(
        wqk()
            .args(["score", "--diff", "--format", "csv"])
            .args([&before, &after]),
    );
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let at = |name| columns.iter().position(|column| column == name).unwrap();
    let row = reader.records().next().unwrap().unwrap();
    let number = |name| row[at(name)].parse::<f64>().unwrap();
    let json = &report["difference"]["layers"][0]["symmetry"];
    assert_eq!(number("symmetry_before"), json[0].as_f64().unwrap());
    assert_eq!(
        number("directionality_definition_change"),
        number("directionality_definition_after") - number("directionality_definition_before")
    );
}

#[test]
fn a_series_is_ordered_by_step() {
    let folder = tempfile::tempdir().unwrap();
    let revisions: Vec<PathBuf> = ["step200", "step100"]
        .iter()
        .map(|name| {
            let model = llama(&folder.path().join(format!("in-{name}")));
            let named = folder.path().join(name);
            fs::rename(model, &named).unwrap();
            named
        })
        .collect();
    let plot = folder.path().join("course.svg");
    let text = stdout(
        wqk()
            .args(["score", "--series", "--plot"])
            .arg(&plot)
            .args(&revisions),
    );
    let table = text.split("by training step").nth(1).unwrap();
    assert!(
        table.find(" 100 ").unwrap() < table.find(" 200 ").unwrap(),
        "{table}"
    );
    assert!(fs::read_to_string(&plot).unwrap().contains("training step"));
    let json = stdout(
        wqk()
            .args(["score", "--series", "--format", "json"])
            .args(&revisions),
    );
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["models"][0]["step"], 200.0);
    let csv = stdout(
        wqk()
            .args(["score", "--series", "--format", "csv"])
            .args(&revisions),
    );
    assert!(csv.lines().nth(1).unwrap().ends_with(",200"), "{csv}");
}

#[test]
fn weights_without_a_config_are_described_by_flags() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    fs::remove_file(model.join("config.json")).unwrap();
    let file = model.join("model.safetensors");
    let error = error_line(wqk().arg("score").arg(&file), 1);
    assert!(
        error.contains("--q-pattern") && error.contains("self_attn.q_proj"),
        "{error}"
    );
    let mut command = wqk();
    command
        .arg("score")
        .arg(&file)
        .args(["--format", "csv", "--n-heads", "2"]);
    command.args(["--q-pattern", "model.layers.{l}.self_attn.q_proj.weight"]);
    command.args(["--k-pattern", "model.layers.{l}.self_attn.k_proj.weight"]);
    assert_eq!(stdout(&mut command).lines().count(), 3);
}

#[test]
fn families_are_listed_with_layout_and_source() {
    let all = stdout(wqk().arg("families"));
    for name in ["bert", "gpt_neox", "deepseek_v3", "whisper"] {
        assert!(all.contains(name), "{name}");
    }
    let some = stdout(wqk().args(["families", "whisper"]));
    assert!(
        some.contains("encoder") && some.contains("decoder") && !some.contains("gpt_neox"),
        "{some}"
    );
    error_line(wqk().args(["families", "no such family"]), 1);
}

#[test]
fn what_config_json_says_wrongly_is_not_taken_for_missing() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let config = |heads: &str| {
        let text = format!(r#"{{"model_type": "llama", "hidden_size": 8, "num_attention_heads": {heads}}}"#);
        fs::write(model.join("config.json"), text).unwrap();
    };
    for bad in ["-2", "\"2\"", "2.5", "[2]", "true"] {
        config(bad);
        let error = error_line(wqk().arg("score").arg(&model), 1);
        let said = format!("num_attention_heads = {bad}");
        assert!(error.contains(&said) && error.contains("--n-heads"), "{error}");
        // A flag takes the value's place.
        stdout(wqk().args(["score", "--n-heads", "2"]).arg(&model));
    }
    // Some programs write whole numbers so.
    config("2.0");
    stdout(wqk().arg("score").arg(&model));
    let number = format!("\"{}\"", "9".repeat(100_000));
    config(&number);
    assert!(error_line(wqk().arg("score").arg(&model), 1).len() < 1000);
}

#[test]
fn errors_stay_short_whatever_a_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let text = format!(r#"{{"model_type": "{}"}}"#, "x".repeat(100_000));
    fs::write(model.join("config.json"), text).unwrap();
    let error = error_line(wqk().arg("score").arg(&model), 1);
    assert!(
        error.len() < 2000 && error.contains("xxx\"…") && error.contains("--q-pattern"),
        "{error}"
    );
}

#[test]
fn a_description_named_in_place_of_its_folder_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let error = error_line(wqk().arg("score").arg(model.join("config.json")), 1);
    assert!(
        error.contains("holds no weights") && error.contains("folder"),
        "{error}"
    );
}

#[test]
fn outputs_say_what_to_do_and_never_their_temporary_names() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    let error = error_line(
        wqk()
            .arg("score")
            .arg(&model)
            .arg("-o")
            .arg(folder.path().join("no/such/scores.csv")),
        1,
    );
    assert!(error.contains("mkdir -p") && !error.contains(".wqk-"), "{error}");
    // What stands there is replaced by a part of what was asked for: said, as are files that stay.
    let file = folder.path().join("scores.csv");
    fs::write(&file, "older").unwrap();
    let absent = folder.path().join("absent");
    let error = error_line(
        wqk().arg("score").args([&absent, &absent]).arg("-o").arg(&file),
        1,
    );
    assert!(error.contains("is the older file"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "older");
    let error = error_line(wqk().arg("score").args([&model, &absent]).arg("-o").arg(&file), 1);
    assert!(error.contains("was replaced and holds the other 1"), "{error}");
}

#[test]
fn negative_numbers_are_values() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    stdout(wqk().args(["score", "--gamma", "-1"]).arg(&model));
    let error = error_line(wqk().args(["score", "--n-heads", "-1"]).arg(&model), 2);
    assert!(
        error.contains("whole number") && !error.contains("tip:"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_an_error() {
    let program = assert_cmd::cargo::cargo_bin("wqk");
    let sh = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(&program).output().unwrap()
    };
    let closed = sh("exec \"$0\" families >&-");
    assert_eq!(closed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&closed.stderr).contains("standard output is closed"));
    assert!(sh("exec \"$0\" families >/dev/null").status.success());
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_no_draft() {
    let folder = tempfile::tempdir().unwrap();
    let model = llama(folder.path());
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let out = folder.path().join("out");
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join("scores.json"), "older").unwrap();
        // So many draws take far longer than this test.
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("wqk"))
            .args(["score", "--quiet", "--significance", "--draws", "20000000", "-o"])
            .arg(out.join("scores.json"))
            .arg("--plot")
            .arg(out.join("scores.svg"))
            .arg(&model)
            .spawn()
            .unwrap();
        let drafts = || fs::read_dir(&out).unwrap().count() - 1;
        for _ in 0..600 {
            if drafts() == 2 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(drafts(), 2, "the outputs were never opened");
        let id = child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(drafts(), 0);
        assert_eq!(fs::read_to_string(out.join("scores.json")).unwrap(), "older");
    }
}

/// A LLaMA with one key head, so many layers of width 1024 and cheap to score; the bytes of a layer's queries and keys in f32.
#[cfg(target_os = "linux")]
fn deep_llama(folder: &Path, layers: usize) -> (PathBuf, u64) {
    const D: usize = 1024;
    const KEY: usize = 64;
    let model = folder.join(format!("llama-{layers}"));
    fs::create_dir_all(&model).unwrap();
    let config = r#"{"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 1}"#;
    fs::write(model.join("config.json"), config).unwrap();
    // Any finite halves do: bits below 0x7c00.
    let weight: Vec<u8> = (0..D * D)
        .flat_map(|i| (((i * 2_654_435_761) >> 7) as u16 & 0x3fff).to_le_bytes())
        .collect();
    let mut tensors = Vec::new();
    for layer in 0..layers {
        for (name, rows) in [("q_proj", D), ("k_proj", KEY)] {
            let name = format!("model.layers.{layer}.self_attn.{name}.weight");
            let view = TensorView::new(Dtype::F16, vec![rows, D], &weight[..rows * D * 2]).unwrap();
            tensors.push((name, view));
        }
    }
    safetensors::serialize_to_file(tensors, None, &model.join("model.safetensors")).unwrap();
    (model, ((D + KEY) * D * 4) as u64)
}

/// The largest private memory of the command while it scores a model.
#[cfg(target_os = "linux")]
fn private_memory(model: &Path) -> u64 {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("wqk"))
        .args(["score", "--heads", "--quiet", "--threads", "2", "--format", "csv"])
        .arg(model)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) * 1024);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded_by_three_layers_whatever_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let (model, layer) = deep_llama(folder.path(), 48);
    let idle = private_memory(&llama(folder.path()));
    let allowed = idle + (64 << 20) + 3 * layer;
    // All layers together would take far more: the test can fail.
    assert!(48 * layer > 2 * allowed, "{allowed}");
    let peak = private_memory(&model);
    println!(
        "idle {} MB, peak {} MB, allowed {} MB",
        idle >> 20,
        peak >> 20,
        allowed >> 20
    );
    assert!(peak <= allowed, "{peak} bytes, {allowed} allowed");
}

/// A probe of the theory's own model, small.
fn probe(arguments: &[&str]) -> Command {
    let mut command = wqk();
    command.args(["probe", "--model", "bare", "--width", "32", "--heads", "2"]);
    command.args(["--length", "12", "--vocabulary", "200", "--seeds", "2"]);
    command.args(arguments);
    command
}

#[test]
fn a_probe_tells_rank_collapse_by_verdict_and_exit_code() {
    // Queries and keys of 0 keep attention uniform and so the theory exact, though norms grow 4000-fold.
    let deep = probe(&["--layers", "24", "--query-key-std", "0", "--format", "json"])
        .assert()
        .code(3)
        .get_output()
        .clone();
    let report: Value = serde_json::from_slice(&deep.stdout).unwrap();
    assert_eq!(report["schema"], 2);
    assert_eq!(report["verdict"]["propagates"], false);
    let finding = &report["verdict"]["findings"][0];
    assert_eq!(finding["symptom"], "rank-collapse");
    let text = finding["text"].as_str().unwrap();
    assert!(text.contains("after layer 23") && text.contains("1/√L"), "{text}");
    let last = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| {
            row["place"] == "after layer 23" && row["layer"] == 23 && row["quantity"] == "token cosine"
        })
        .unwrap();
    let (predicted, measured) = (&last["predicted"], &last["measured"]["mean"]);
    assert!(predicted.as_f64().unwrap() > 0.9 && measured.as_f64().unwrap() > 0.9);

    let scaled = ["--layers", "24", "--residual", "1/sqrt(L)"];
    let table = stdout(&mut probe(&scaled));
    assert!(
        table.contains("the signal propagates") && table.contains("cosine predicted"),
        "{table}"
    );
    let predicted = stdout(probe(&scaled).arg("--predict-only"));
    assert!(
        predicted.contains("cosine predicted") && !predicted.contains("cosine measured"),
        "{predicted}"
    );
}

#[test]
fn a_probe_writes_files_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, svg) = (folder.path().join("probe.csv"), folder.path().join("norms.svg"));
    probe(&["--layers", "2", "--plot"])
        .arg(format!("norms={}", svg.display()))
        .arg("-o")
        .arg(&csv)
        .assert()
        .success();
    let csv = fs::read_to_string(csv).unwrap();
    assert!(
        csv.starts_with("place,layer,quantity,predicted,measured_mean"),
        "{csv}"
    );
    assert!(csv.lines().count() > 20);
    assert!(fs::read_to_string(svg).unwrap().contains("</svg>"));
}

#[test]
fn a_probe_of_what_cannot_be_says_so() {
    for (arguments, named) in [
        (&["--layers", "0"][..], "n_layers is 0"),
        (&["--length", "1"], "length is 1"),
        (&["--length", "600"], "length is 600"),
        (&["--residual", "1,2"], "attention_strength"),
        (&["--model", "bare", "--init-std", "1e30"], "layer"),
        (&["--causal", "--predict-only"], "no closed form because"),
        (&["no/such/recipe.toml"], "no/such/recipe.toml"),
    ] {
        let mut command = wqk();
        command.args(["probe", "--seeds", "1"]);
        let error = error_line(command.args(arguments), 1);
        assert!(
            error.lines().count() == 1 && error.contains(named),
            "{arguments:?}: {error}"
        );
    }
    for arguments in [
        &["--residual", "strong"][..],
        &["--plot", "x.pdf"],
        &["--figure", "none"],
        &["--norm", "middle"],
    ] {
        wqk().arg("probe").args(arguments).assert().code(2);
    }
}

#[test]
fn nothing_that_was_asked_for_is_dropped_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (llama(&folder.path().join("a")), llama(&folder.path().join("b")));
    for format in ["markdown", "latex"] {
        let plain = stdout(wqk().args(["score", "--format", format]).arg(&before));
        let heads = stdout(wqk().args(["score", "--heads", "--format", format]).arg(&before));
        assert!(
            !plain.contains("of heads") && heads.contains("Symmetry of heads"),
            "{heads}"
        );
    }
    // The file holds no norms.
    let folded = stdout(wqk().args(["score", "--fold-norm"]).arg(&before));
    assert!(folded.contains("no norm gain to fold in"), "{folded}");
    let csv = stdout(
        wqk()
            .args(["score", "--fold-norm", "--format", "csv"])
            .arg(&before),
    );
    assert!(csv.contains(",false,") && !csv.contains(",true,"), "{csv}");
    let plot = folder.path().join("change.svg");
    let diff = stdout(
        wqk()
            .args(["score", "--diff", "--gamma", "1.5", "--plot"])
            .arg(&plot)
            .args([&before, &after]),
    );
    assert!(diff.contains("γ = 1.5; wqk "), "{diff}");
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(
        svg.contains("(before)") && svg.contains("(after)") && svg.contains("by layer"),
        "{svg}"
    );
}

#[test]
fn what_may_be_a_model_of_the_hub_is_said_to_be_fetchable() {
    let error = error_line(wqk().args(["score", "org/no-such-model"]), 1);
    assert!(
        error.contains("hf download org/no-such-model") && error.contains("hf://"),
        "{error}"
    );
    if !cfg!(feature = "hub") {
        let error = error_line(wqk().args(["score", "hf://org/model"]), 1);
        assert!(error.contains("--features hub"), "{error}");
    }
    error_line(wqk().args(["score", "hf://../model"]), 1);
}

#[test]
fn claims_are_listed_and_tried_with_a_code_for_each_verdict() {
    let list = stdout(wqk().arg("theory"));
    assert_eq!(list.matches("\n    ").count(), 12, "{list}");
    let holds = stdout(wqk().args(["theory", "likelihood"]));
    assert!(holds.contains("Verdict: holds."), "{holds}");
    let fails = wqk()
        .args(["theory", "tail"])
        .assert()
        .code(4)
        .get_output()
        .clone();
    let fails = String::from_utf8(fails.stdout).unwrap();
    assert!(
        fails.contains("Verdict: assumptions met, conclusion fails."),
        "{fails}"
    );
    let unknown = error_line(wqk().args(["theory", "fermat"]), 2);
    assert!(
        unknown.contains("no claim 'fermat'") && unknown.contains("rank-one"),
        "{unknown}"
    );
    error_line(wqk().args(["theory", "tail", "--trained", "--synthetic"]), 2);
}

#[test]
fn claims_are_reported_as_json_and_in_a_folder() {
    let here = tempfile::tempdir().unwrap();
    let report = here.path().join("theory");
    let output = wqk()
        .args([
            "theory",
            "directionality",
            "--format",
            "json",
            "--seed",
            "3",
            "--out",
        ])
        .arg(&report)
        .assert()
        .code(4)
        .get_output()
        .clone();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let claim = &json["claims"][0];
    assert_eq!(claim["verdict"], "conclusion_fails");
    assert_eq!(json["settings"]["seed"], 3);
    // The case of the proof: rows dominate, where the theorem says columns.
    let conclusions = claim["parts"][0]["conclusions"].as_array().unwrap();
    assert!(conclusions[1]["value"].as_f64().unwrap() > 0.5, "{claim}");
    for file in [
        "index.html",
        "settings.json",
        "directionality.svg",
        "directionality.csv",
        "directionality.json",
    ] {
        assert!(fs::metadata(report.join(file)).unwrap().len() > 30, "{file}");
    }
    // A folder that is no report is left alone.
    let other = here.path().join("thesis");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("chapter.tex"), "years").unwrap();
    let line = error_line(wqk().args(["theory", "tail", "--out"]).arg(&other), 1);
    assert!(line.contains("no earlier report"), "{line}");
}

#[test]
fn a_claim_is_tried_on_a_text_of_ones_own() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("mine.txt");
    let line =
        "It is a truth universally acknowledged that a short text is enough to train a small model on. ";
    fs::write(&path, line.repeat(60)).unwrap();
    let run = |claim: &str| {
        let mut command = wqk();
        command
            .args(["theory", claim, "--steps", "3", "--quiet", "--text"])
            .arg(&path);
        command
    };
    let text = stdout(&mut run("context"));
    assert!(
        text.contains("On mine.txt") && text.contains("Verdict: holds."),
        "{text}"
    );
    fs::write(&path, "too short").unwrap();
    let line = error_line(&mut run("context"), 1);
    assert!(line.contains("tokens"), "{line}");
    let missing = error_line(
        wqk()
            .args(["theory", "tail", "--text"])
            .arg(here.path().join("none.txt")),
        1,
    );
    assert!(missing.contains("none.txt"), "{missing}");
}
