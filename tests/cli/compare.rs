//! Runs trained and compared as a user does it: text with a bad line, event files, tables and the report.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn wqk(folder: &Path, args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin("wqk"))
        .args(args)
        .current_dir(folder)
        .env("WQK_CACHE", folder.join("cache"))
        .output()
        .unwrap()
}

fn said(output: &Output, code: i32) -> (String, String) {
    let (out, error) = (
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    );
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    (out, error)
}

const RECIPE: &str = r#"
seeds = [0, 1]
model = { kind = "text", d_model = 16, n_layers = 2, n_heads = 2, max_positions = 32 }
objective = { kind = "masked", rate = 0.15 }
data = { kind = "text", paths = ["wikipedia/*.jsonl"], on_bad = "skip", length = 32, held_out = 0.1 }
tokenizer = { kind = "bytes" }
train = { steps = 20, batch_size = 4, accumulation = 1, learning_rate = 1e-3, warmup_steps = 2, eval_every = 10 }
score = { every = 5, heads = true }
updates = { every = 10 }
log = { tensorboard = true }
[[arms]]
name = "independent"
[[arms]]
name = "symmetric"
init = { scheme = "tied" }
"#;

/// The messages in a file of records, each after its length and before its checksum.
fn records(content: &[u8]) -> Vec<&[u8]> {
    let (mut at, mut records) = (0, Vec::new());
    while at < content.len() {
        let length = u64::from_le_bytes(content[at..at + 8].try_into().unwrap()) as usize;
        records.push(&content[at + 12..at + 12 + length]);
        at += 12 + length + 4;
    }
    assert_eq!(at, content.len());
    records
}

#[test]
fn runs_are_trained_and_compared() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("wikipedia")).unwrap();
    let line = |i: usize| {
        format!(
            "{{\"text\": \"article {i} on {}\"}}\n",
            "words and words ".repeat(i % 5)
        )
    };
    let text: String = (0..120).map(line).collect();
    fs::write(folder.join("wikipedia/a.jsonl"), text + "{\"text\": \n").unwrap();
    fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
    let train = wqk(
        folder,
        &[
            "train",
            "recipe.toml",
            "--out",
            "runs",
            "--quiet",
            "--threads",
            "1",
        ],
    );
    let (_, error) = said(&train, 0);
    assert!(
        error.contains("wqk: note: 120 documents from 1 file, passed over 1 bad record"),
        "{error}"
    );
    assert_eq!(
        fs::read_dir(folder.join("cache"))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().unwrap() == "tokens")
            .count(),
        1
    );

    // 20 updates and 2 evaluations, and 5 scorings of 2 layers by 2 scores with their medians; likewise the updates 1,
    // 10 and 20.
    let run = folder.join("runs/symmetric-seed1");
    let events: Vec<_> = fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("tfevents"))
        .collect();
    let content = fs::read(&events[0]).unwrap();
    let records = records(&content);
    assert_eq!(
        (events.len(), records.len()),
        (1, 1 + 20 * 3 + 2 + (5 + 3) * 2 * 3)
    );
    let has = |tag: &str| {
        let tag = tag.as_bytes();
        records
            .iter()
            .any(|record| record.windows(tag.len()).any(|part| part == tag))
    };
    assert!(has("train/loss") && has("held_out/loss") && has("symmetry/layer_01"));
    assert!(has("update_symmetry/median") && has("update_cosine/layer_00"));

    let compare = wqk(
        folder,
        &["compare", "runs", "runs/symmetric-seed0", "-o", "report"],
    );
    let (table, error) = said(&compare, 0);
    assert!(table.contains("2-layer encoder  Wikipedia  symmetric"), "{table}");
    assert!(table.contains("symmetric - independent"), "{table}");
    assert!(
        error.contains("runs/symmetric-seed0: the same folder as"),
        "{error}"
    );
    let page = fs::read_to_string(folder.join("report/index.html")).unwrap();
    assert!(page.contains("Supplementary Figure 5a") && page.contains("the same folder as"));
    assert!(page.contains("<h2>Updates: 2 layers on Wikipedia</h2>"));
    let updates = fs::read_to_string(folder.join("report/updates_2_layers_on_wikipedia.svg")).unwrap();
    assert!(updates.contains("encoder, symmetric") && updates.contains("Symmetry of the weights"));
    // A report is replaced by a newer one.
    said(&wqk(folder, &["compare", "runs", "-o", "report", "--quiet"]), 0);

    let (csv, _) = said(
        &wqk(folder, &["compare", "runs", "--table", "runs", "--format", "csv"]),
        0,
    );
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = rows.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 4);
    // Symmetric in every head at the start, and after 20 small steps still nearly so.
    let symmetry: f64 = rows[2][10].parse().unwrap();
    assert!(&rows[2][3] == "symmetric" && symmetry > 0.5, "{csv}");
    let (latex, _) = said(&wqk(folder, &["compare", "runs", "--format", "latex"]), 0);
    assert_eq!(latex.matches("\\begin{tabular}").count(), 4);
}

#[test]
fn nothing_to_compare_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (_, error) = said(&wqk(folder.path(), &["compare", "nowhere", "."]), 1);
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 1, "{error}");
    assert!(
        lines[0].starts_with("wqk: error: no run to compare: nowhere: "),
        "{error}"
    );
    assert!(lines[0].contains("; .: neither the folder of a run"), "{error}");
    fs::write(folder.path().join("p.json"), "{}").unwrap();
    let (_, error) = said(&wqk(folder.path(), &["compare", ".", "--published", "p.json"]), 1);
    assert!(
        error.contains("p.json: `loss_csv` and `scores`: both absent"),
        "{error}"
    );
}

#[test]
fn a_run_is_exported_and_scored_as_what_it_is() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(
        folder.join("recipe.toml"),
        "name = 'decoder'\n[model]\nkind = 'text'\nn_layers = 1\nd_model = 16\nn_heads = 2\nmax_positions = 16\n\
         [objective]\nkind = 'autoregressive'\n[data]\nkind = 'bundled'\nlength = 16\n\
         [tokenizer]\nkind = 'characters'\nalphabet = 40\n\
         [train]\nsteps = 2\nbatch_size = 2\naccumulation = 1\n",
    )
    .unwrap();
    let (_, _) = said(
        &wqk(folder, &["train", "recipe.toml", "--quiet", "--threads", "1"]),
        0,
    );
    let run = "runs/decoder-seed0";
    // Weights lie as Burn has them: to score them as they are would be wrong without a word.
    for path in [run.to_owned(), format!("{run}/checkpoints/step-000000002")] {
        let (_, error) = said(&wqk(folder, &["score", &path]), 1);
        assert!(error.contains(&format!("wqk export {run} --to")), "{error}");
    }
    let (_, error) = said(&wqk(folder, &["export", run, "--step", "1", "--to", "none"]), 1);
    assert!(error.contains("no checkpoint of step 1: choose of 2"), "{error}");
    said(&wqk(folder, &["export", run, "--to", "bert"]), 0);
    let (scores, _) = said(&wqk(folder, &["score", "bert", "--format", "csv", "--quiet"]), 0);
    let stacks: Vec<&str> = scores
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(3).unwrap())
        .collect();
    assert_eq!(stacks, ["decoder"]);
}
