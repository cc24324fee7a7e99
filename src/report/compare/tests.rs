//! Runs with losses in closed form, written as `wqk train` writes them.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::train::{HeldOutRow, RunStatus, StepRow, sha256};

const STEPS: usize = 4000;

/// A run with the loss `floor + e^{−rate · t}` and, in every layer, the symmetry `t/STEPS · end`.
struct Fake {
    name: &'static str,
    seed: u64,
    scheme: &'static str,
    objective: &'static str,
    rate: f64,
    floor: f64,
    end: f64,
    status: RunStatus,
    done: usize,
    extra: &'static str,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            name: "run",
            seed: 0,
            scheme: "independent",
            objective: "masked",
            rate: 1e-3,
            floor: 1.0,
            end: 0.5,
            status: RunStatus::Finished,
            done: STEPS,
            extra: "",
        }
    }
}

const LAYERS: usize = 3;

impl Fake {
    fn loss(&self, step: usize) -> f64 {
        self.floor + (-self.rate * step as f64).exp()
    }

    fn write(&self, folder: &Path) -> PathBuf {
        let folder = folder.join(format!("{}-seed{}", self.name, self.seed));
        fs::create_dir_all(&folder).unwrap();
        let recipe = format!(
            "name = '{}'\nseeds = [{}]\n{}\n[model]\nkind = 'text'\nn_layers = {LAYERS}\n[objective]\nkind = '{}'\n[init]\nscheme = '{}'\n[data]\nkind = 'text'\npaths = ['wikipedia/*.parquet']\n",
            self.name, self.seed, self.extra, self.objective, self.scheme
        );
        fs::write(folder.join("recipe.toml"), &recipe).unwrap();
        let info = RunInfo {
            format: RunInfo::FORMAT,
            program: "wqk test".to_owned(),
            arm: self.name.to_owned(),
            seed: self.seed,
            backend: "flex".to_owned(),
            device: "cpu".to_owned(),
            devices: 1,
            threads: 1,
            recipe_sha256: sha256(recipe.as_bytes()),
            data_sha256: "data".to_owned(),
            data: Vec::new(),
            tokenizer_sha256: None,
            parameters: 1,
            steps: STEPS,
            status: self.status,
            step: self.done,
            seconds: 10.0,
            scoring_seconds: 0.0,
            updates_seconds: 0.0,
            resumed: Vec::new(),
            error: (self.status == RunStatus::Failed).then(|| "the disk is full".to_owned()),
        };
        info.write(&folder).unwrap();
        let mut steps = csv::Writer::from_path(folder.join("steps.csv")).unwrap();
        for step in 1..=self.done {
            steps
                .serialize(StepRow {
                    step,
                    loss: self.loss(step),
                    learning_rate: 1e-3,
                    gradient_norm: 1.0,
                    tokens: 8,
                    seconds: step as f64,
                    waited: 0.0,
                })
                .unwrap();
        }
        steps.flush().unwrap();
        let mut held_out = csv::Writer::from_path(folder.join("held_out.csv")).unwrap();
        for step in (1000..=self.done).step_by(1000) {
            held_out
                .serialize(HeldOutRow {
                    step,
                    loss: self.loss(step) + 0.125,
                    accuracy: None,
                    averaged_loss: None,
                    averaged_accuracy: None,
                })
                .unwrap();
        }
        held_out.flush().unwrap();
        let mut scores =
            "step,layer,head,symmetry,directionality_excess,directionality_definition,gamma,d_model,n_heads,n_kv_heads,head_dim\n"
                .to_owned();
        for step in (0..=self.done).step_by(500) {
            for layer in 0..LAYERS {
                let symmetry = self.end * step as f64 / STEPS as f64 + 0.01 * layer as f64;
                scores += &format!("{step},{layer},,{symmetry},{},0,2,8,2,2,4\n", -symmetry);
            }
        }
        fs::write(folder.join("scores.csv"), scores).unwrap();
        folder
    }
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} against {b}");
}

/// Three seeds; the symmetric run of seed s falls 1 + (s + 1)/2 times as fast, so that it saves the share
/// `1 − 1/(1 + (s + 1)/2)`: a third, a half, three fifths.
#[test]
fn speed_up_losses_and_tests_in_closed_form() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..3 {
        let faster = 1.0 + (seed + 1) as f64 / 2.0;
        Fake {
            name: "a",
            seed,
            ..Fake::default()
        }
        .write(folder.path());
        let symmetric = Fake {
            name: "b",
            seed,
            scheme: "tied",
            rate: 1e-3 * faster,
            ..Fake::default()
        };
        symmetric.write(folder.path());
    }
    let comparison = Comparison::read(&[folder.path().to_owned()]);
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    let [group] = &comparison.groups[..] else {
        panic!("one group")
    };
    assert_eq!(group.setting.label(), "3-layer encoder on Wikipedia");
    let names: Vec<&str> = group.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["independent", "symmetric"]);

    let [effect] = &group.effects()[..] else {
        panic!("one effect")
    };
    assert_eq!(effect.seeds, [0, 1, 2]);
    // A window is 20 updates of 4,000.
    for (saved, expected) in effect.speed_ups.iter().zip([1.0 / 3.0, 0.5, 0.6]) {
        close(saved.unwrap(), expected, 0.006);
    }
    close(effect.speed_up().unwrap().median, 0.5, 0.006);
    // Evaluations every 1,000 updates, joined by lines, which lie above a convex curve.
    for (saved, expected) in effect.held_out_speed_ups.iter().zip([1.0 / 3.0, 0.5, 0.6]) {
        let saved = saved.unwrap();
        assert!((expected - 0.1..=expected + 1e-9).contains(&saved), "{saved}");
    }
    let loss = effect.loss.as_ref().unwrap();
    // e^{−4f} − e^{−4} at the last update, exactly what the logs hold.
    let differences = [1.5, 2.0, 2.5].map(|faster: f64| (-4.0 * faster).exp() - (-4.0_f64).exp());
    assert!(effect.held_out);
    close(loss.mean, differences.iter().sum::<f64>() / 3.0, 1e-12);
    assert_eq!((loss.n, loss.below), (3, 3));
    assert_eq!(loss.p_sign_flip, Some(0.25));
    assert_eq!(loss.smallest_p(), 0.25);

    // The independent runs are the same: no spread. Their last window is 20 updates.
    let baseline = group.baseline().unwrap();
    let expected = 1.0
        + (STEPS - 19..=STEPS)
            .map(|t| (-1e-3 * t as f64).exp())
            .sum::<f64>()
            / 20.0;
    close(
        baseline.summary(|run| run.loss.last()).unwrap().median,
        expected,
        1e-12,
    );
    close(baseline.final_score(Score::Symmetry).unwrap().median, 0.51, 1e-12);

    let losses = comparison.table(TableKind::Losses);
    let rows = losses.table.rows();
    assert_eq!(
        rows[0],
        [
            "3-layer encoder",
            "Wikipedia",
            "independent",
            "3",
            "1.018",
            "",
            "1.143",
            ""
        ]
    );
    assert_eq!(rows[1][2..4], ["symmetric", "3"]);
    assert!(rows[1][5].starts_with("50 ["), "{}", rows[1][5]);
    let tests = comparison.table(TableKind::Tests);
    assert_eq!(tests.table.rows()[0][2], "symmetric - independent");
    assert!(tests.table.rows()[0].contains(&"0.250".to_owned()));
    assert!(comparison.table(TableKind::Vision).table.rows().is_empty());
    assert_eq!(comparison.table(TableKind::Runs).table.rows().len(), 6);
}

#[test]
fn what_cannot_be_compared_is_said_in_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    for seed in 0..3 {
        Fake {
            name: "a",
            seed,
            ..Fake::default()
        }
        .write(&runs);
    }
    let tied = |seed, status, done| Fake {
        name: "b",
        seed,
        scheme: "tied",
        status,
        done,
        ..Fake::default()
    };
    tied(0, RunStatus::Finished, STEPS).write(&runs);
    tied(1, RunStatus::Stopped, 1500).write(&runs);
    tied(2, RunStatus::Failed, 700).write(&runs);
    tied(7, RunStatus::Finished, STEPS).write(&runs);
    tied(8, RunStatus::Running, 0).write(&runs);
    // The same recipe and seed under another name.
    Fake {
        name: "again",
        ..Fake::default()
    }
    .write(&runs);
    // Another length, and another objective without a baseline.
    Fake {
        name: "short",
        scheme: "tied",
        extra: "train = { steps = 50 }",
        ..Fake::default()
    }
    .write(&runs);
    Fake {
        name: "d",
        scheme: "control",
        objective: "autoregressive",
        ..Fake::default()
    }
    .write(&runs);
    let broken = Fake {
        name: "broken",
        seed: 5,
        ..Fake::default()
    }
    .write(&runs);
    fs::write(broken.join("steps.csv"), "step,loss\nx,y\n").unwrap();
    let no_run = folder.path().join("empty");
    fs::create_dir(&no_run).unwrap();

    let comparison = Comparison::read(&[
        runs.clone(),
        runs.join("a-seed0"),
        no_run,
        folder.path().join("none"),
    ]);
    let said = comparison.notes.join("\n");
    for expected in [
        "a-seed0: the same folder as",
        "again-seed0: the same recipe and seed as",
        "b-seed1: stopped after 1500 of 4000 updates: its curves are drawn, it counts in no table",
        "b-seed2: failed (the disk is full) after 700 of 4000 updates",
        "b-seed8: no update is logged yet: it is left out",
        "broken-seed5",
        "empty",
        "none",
        "they differ in train.steps (not set against 50)",
        "no run with independent initialisation to compare with (control only)",
        "seed 7 finished as symmetric and not as independent: no pair",
        "seeds 1, 2 finished as independent and not as symmetric: no pair",
    ] {
        assert!(said.contains(expected), "{expected:?} in:\n{said}");
    }
    for note in &comparison.notes {
        assert!(!note.contains('\n') && note.len() < 500, "{note}");
    }
    assert_eq!(comparison.groups.len(), 3);
    let effect = &comparison.groups[0].effects()[0];
    assert_eq!(effect.seeds, [0]);
    let loss = effect.loss.as_ref().unwrap();
    assert_eq!((loss.p_sign_flip, loss.t), (None, None));
}

#[test]
fn the_report_stands_alone_and_draws_in_what_was_published() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    for objective in ["masked", "autoregressive"] {
        for scheme in ["independent", "tied"] {
            let name = if objective == "masked" { "e" } else { "d" };
            let name: &'static str = match (name, scheme) {
                ("e", "tied") => "e-tied",
                ("d", "tied") => "d-tied",
                ("e", _) => "e",
                _ => "d",
            };
            Fake {
                name,
                scheme,
                objective,
                rate: 2e-3,
                ..Fake::default()
            }
            .write(&runs);
        }
    }
    let comparison = Comparison::read(&[runs]);
    let published = published::tests::shared();
    let out = folder.path().join("report");
    fs::create_dir(&out).unwrap();
    write(
        &out,
        &comparison,
        published.as_ref(),
        &[("program".to_owned(), "wqk".to_owned())],
    )
    .unwrap();
    let html = fs::read_to_string(out.join("index.html")).unwrap();
    for part in [
        "Figure 3a and b",
        "Supplementary Figure 5a",
        "exact sign-flip",
        "3-layer decoder",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script") && !html.contains("<img src=\"http"));
    if published.is_some() {
        assert!(html.contains("training done (%)") && html.contains("encoder, published (12 layers)"));
    }
    let figures: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".svg"))
        .collect();
    // Medians and layers of two scores, and three figures for each of two groups.
    assert_eq!(figures.len(), 4 + 2 * 3, "{figures:?}");
    for name in [
        "losses.csv",
        "losses.md",
        "losses.tex",
        "tests.tex",
        "scores.csv",
        "runs.csv",
        "curves.csv",
    ] {
        assert!(out.join(name).exists(), "{name}");
    }
    let losses = fs::read_to_string(out.join("losses.csv")).unwrap();
    assert!(
        losses.starts_with("model,data,initialisation,runs,loss,loss_q25,loss_q75,speed_up"),
        "{losses}"
    );
    assert!(losses.contains("3-layer encoder,Wikipedia,symmetric,1,"));
}

/// Every file of a finished run, changed as a full disk, a bad copy or an editor would change it.
#[test]
fn damaged_runs_are_left_out_by_name() {
    type Change = fn(String) -> String;
    let half: Change = |text| {
        let lines: Vec<&str> = text.lines().collect();
        lines[..lines.len() / 2].join("\n") + "\n"
    };
    let none: Change = |_| String::new();
    let cases: [(&str, Change, &str); 9] = [
        ("recipe.toml", none, "recipe.toml is not the one that it ran"),
        ("steps.csv", half, "steps.csv lacks the end"),
        ("held_out.csv", half, "held_out.csv lacks the end"),
        ("held_out.csv", none, "held_out.csv lacks the end"),
        ("scores.csv", half, "scores.csv lacks the end"),
        ("scores.csv", none, "scores.csv lacks the end"),
        (
            "steps.csv",
            |text| text.replacen("\n2,", "\n3,", 1),
            "steps.csv is damaged at update 3",
        ),
        (
            "held_out.csv",
            |text| text.replacen("\n4000,", "\n18446744073709551615,", 1),
            "held_out.csv is damaged",
        ),
        (
            "scores.csv",
            |text| text.replacen("\n500,2,", "\n500,4000000000,", 1),
            "scores.csv is damaged at layer",
        ),
    ];
    for (file, change, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let run = Fake::default().write(folder.path());
        let whole = Comparison::read(std::slice::from_ref(&run));
        assert_eq!(whole.n_runs(), 1, "{:?}", whole.notes);
        let text = fs::read_to_string(run.join(file)).unwrap();
        fs::write(run.join(file), change(text)).unwrap();
        let comparison = Comparison::read(&[run]);
        assert_eq!(comparison.n_runs(), 0, "{file}");
        let said = comparison.notes.join("\n");
        assert!(said.contains(expected), "{expected:?} in:\n{said}");
    }
}
