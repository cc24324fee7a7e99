//! `wqk train --check` as the dry run that is trusted before a long one: it passes where training would start.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use wqk::train::RunFolder;

/// A text of 64 KB in two files, a recipe on it, and the command in its folder.
struct Place(tempfile::TempDir);

const RECIPE: &str = r#"
seeds = [1, 2]
model = { kind = "text", d_model = 16, n_layers = 1, n_heads = 2, max_positions = 32 }
objective = { kind = "masked", rate = 0.15 }
data = { kind = "text", paths = ["text/*.txt"], length = 32, held_out = 0.1 }
tokenizer = { kind = "file", path = "vocab.txt" }
train = { steps = 6, batch_size = 4, accumulation = 2, learning_rate = 1e-3, warmup_steps = 2, eval_every = 3 }
checkpoint = { every = 2 }
[[arms]]
name = "encoder"
[[arms]]
name = "decoder"
objective = { kind = "autoregressive" }
init = { scheme = "tied" }
"#;

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.path("text")).unwrap();
        for name in ["a", "b"] {
            let text = "attention compares tokens through one matrix\n\n".repeat(200);
            fs::write(place.path(&format!("text/{name}.txt")), text).unwrap();
        }
        let words = "attention compares tokens through one matrix";
        let vocabulary = format!("[PAD] [UNK] [CLS] [SEP] [MASK] {words}").replace(' ', "\n");
        fs::write(place.path("vocab.txt"), vocabulary).unwrap();
        fs::write(place.path("recipe.toml"), RECIPE).unwrap();
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn train(&self, args: &[&str]) -> Output {
        Command::new(assert_cmd::cargo::cargo_bin("wqk"))
            .args(["train", "recipe.toml", "--threads", "1"])
            .args(args)
            .current_dir(self.0.path())
            .env("WQK_CACHE", self.path("cache"))
            .output()
            .unwrap()
    }

    /// What a check prints that passes.
    fn passes(&self, args: &[&str]) -> (String, String) {
        let output = self.train(&[&["--check"], args].concat());
        let (out, error) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{out}{error}");
        (out, error)
    }

    /// What a check says that does not pass: one line for each fault. Training says the first of them.
    fn fails(&self, args: &[&str]) -> Vec<String> {
        let output = self.train(&[&["--check"], args].concat());
        let (out, error) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{error}");
        let lines: Vec<String> = error.lines().map(str::to_owned).collect();
        for line in &lines {
            assert!(line.starts_with("wqk: error: "), "{error}");
        }
        let output = self.train(&[args, &["--quiet"]].concat());
        let (_, of_training) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{of_training}");
        assert!(
            lines.contains(&of_training.trim_end().to_owned()),
            "{of_training} is not in {error}"
        );
        lines
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// The row of a table that begins with a name, its columns apart.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name));
    let cells = line.unwrap_or_else(|| panic!("no {name} in {table}")).split("  ");
    cells.map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn it_says_what_would_be_run() {
    let place = Place::new();
    let (out, error) = place.passes(&[]);
    for (run, arm, seed) in [
        ("encoder-seed1", "encoder", "1"),
        ("encoder-seed2", "encoder", "2"),
        ("decoder-seed1", "decoder", "1"),
        ("decoder-seed2", "decoder", "2"),
    ] {
        assert_eq!(row(&out, run), [run, arm, seed, "new", &format!("runs/{run}")]);
    }
    // Embeddings 11 · 16 and 32 · 16, norms 2 · 16 after them, in the block and in the head; projections 4 · (16² + 16),
    // feed-forward 16 · 64 + 64 + 64 · 16 + 16, head 16² + 16, bias 11.
    let parameters = (11 + 32) * 16 + 4 * 32 + 5 * 272 + 2 * 1024 + 80 + 11;
    let parameters = format!("{},{:03}", parameters / 1000, parameters % 1000);
    let settings = [
        parameters.as_str(),
        "4 × 2",
        "8 sequences, 256 tokens",
        "6",
        "1e-3 after 2, linear",
    ];
    let encoder = [&["encoder", "masked", "independent"][..], &settings].concat();
    assert_eq!(row(&out, "encoder"), encoder);
    assert_eq!(row(&out, "decoder")[..3], ["decoder", "autoregressive", "tied"]);
    let bytes = fs::metadata(place.path("text/a.txt")).unwrap().len();
    let size = format!("{:.2} kB", bytes as f64 / 1000.0);
    assert_eq!(row(&out, "text/a.txt"), ["text/a.txt", &size]);
    assert_eq!(row(&out, "text/b.txt"), ["text/b.txt", &size]);
    assert!(row(&out, "vocab.txt")[1].ends_with(" B"), "{out}");
    assert!(error.contains("begin 4 of 4 runs and go on with 0"), "{error}");
    // Nothing was written.
    assert!(!place.path("runs").exists() && !place.path("cache").exists());
    let (_, error) = texts(&place.train(&["--quiet"]));
    assert_eq!(error, "");
    let run = RunFolder::open(place.path("runs/encoder-seed1")).unwrap();
    assert_eq!(run.info().parameters.to_string(), parameters.replace(',', ""));
}

fn of<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["--arm", "encoder"], args].concat()
}

fn resume<'a>(args: &[&'a str]) -> Vec<&'a str> {
    of(&[&["--resume", "runs"], args].concat())
}

#[test]
fn it_says_how_far_runs_are() {
    let place = Place::new();
    assert!(place.train(&of(&["--seed", "1"])).status.success());
    let (out, error) = place.passes(&of(&[]));
    assert_eq!(row(&out, "encoder-seed1")[3], "finished");
    assert_eq!(row(&out, "encoder-seed2")[3], "new");
    assert!(
        error.contains("with --resume runs would begin 1 of 2 runs and go on with 0"),
        "{error}"
    );

    // As if it had been killed after its fifth update.
    let run = place.path("runs/encoder-seed1");
    fs::remove_dir_all(run.join("checkpoints/step-000000006")).unwrap();
    let info = run.join("run.json");
    let running = fs::read_to_string(&info)
        .unwrap()
        .replace("\"finished\"", "\"running\"");
    fs::write(&info, running).unwrap();
    for args in [&[][..], &["--resume", "runs"]] {
        let (out, error) = place.passes(&of(args));
        assert_eq!(row(&out, "encoder-seed1")[3], "to resume at 4 of 6");
        assert!(error.contains("go on with 1"), "{error}");
    }
    let errors = place.fails(&resume(&["--set", "train.learning_rate=2e-3"]));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("train.learning_rate = 0.001"), "{errors:?}");
    #[cfg(all(feature = "flex", feature = "ndarray"))]
    {
        let errors = place.fails(&resume(&["--backend", "ndarray"]));
        assert!(
            errors[0].contains("another backend: flex, now ndarray"),
            "{errors:?}"
        );
    }
    fs::write(run.join("steps.csv"), "").unwrap();
    let errors = place.fails(&resume(&[]));
    assert!(errors[0].contains("steps.csv: it has 0 bytes"), "{errors:?}");
}

#[test]
fn what_would_stop_a_run_fails_it() {
    let place = Place::new();
    let set = |field| ["--arm", "encoder", "--seed", "1", "--set", field];
    for (field, said) in [
        (
            "data.paths=['text/a.txt', 'absent.txt']",
            "absent.txt: cannot be read",
        ),
        ("data.paths='no/*.txt'", "no file matches this glob"),
        ("tokenizer.path='absent.json'", "absent.json: cannot be read"),
        (
            "tokenizer.path='recipe.toml'",
            "recipe.toml: not a usable tokenizer",
        ),
        (
            "data={ kind = 'text', paths = 'vocab.txt', format = 'parquet', length = 32 }",
            "vocab.txt: not readable as Parquet",
        ),
        (
            "model.d_model=262144",
            "choose a smaller d_model, n_layers or vocabulary",
        ),
        ("model.vocab_size=5", "set vocab_size to at least 11"),
    ] {
        let errors = place.fails(&set(field));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains(said), "{said} in: {errors:?}");
    }
    // Half of a vocabulary: nothing to mask with.
    fs::write(place.path("short.txt"), "[UNK]\nattention\n").unwrap();
    let errors = place.fails(&set("tokenizer.path='short.txt'"));
    assert!(errors[0].contains("mask"), "{errors:?}");
    fs::write(place.path("file"), "").unwrap();
    let output = place.train(&["--check", "--out", "file/runs"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.contains("file: cannot be written"), "{output:?}");
}

/// A pipe would be waited for, a device has no end.
#[cfg(unix)]
#[test]
fn only_files_are_read() {
    let place = Place::new();
    let made = Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    assert!(made.success());
    for (field, said) in [
        (
            "data.paths='pipe'",
            "pipe: cannot be read (it is a pipe, not a regular file)",
        ),
        (
            "data.paths='/dev/zero'",
            "/dev/zero: cannot be read (it is a device",
        ),
        ("tokenizer.path='pipe'", "it is a pipe"),
        ("tokenizer.path='/dev/zero'", "it is a device"),
    ] {
        let errors = place.fails(&["--set", field]);
        assert!(errors.len() == 1 && errors[0].contains(said), "{errors:?}");
    }
    let wqk = |args: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("wqk"));
        texts(&command.args(args).current_dir(place.0.path()).output().unwrap()).1
    };
    for path in ["pipe", "/dev/zero"] {
        for args in [
            &["compare", ".", "--published", path][..],
            &["train", path],
            &["theory", "tail", "--text", path],
        ] {
            let said = wqk(args);
            assert!(said.contains("not a regular file"), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let place = Place::new();
    let errors = place.fails(&["--device", "99", "--backend", "flex"]);
    assert!(
        errors[0].contains("'flex' has no device 99: 1 can be chosen"),
        "{errors:?}"
    );
    place.passes(&["--device", "0", "--backend", "flex"]);
}

/// Images as CIFAR-10 has them, in folders of two classes.
#[test]
fn images_are_counted() {
    let place = Place::new();
    let recipe = "name = 'vit'\nmodel = { kind = 'vision', size = 'cifar10' }\ntrain = { epochs = 3.0, batch_size = 2, accumulation = 1 }\n\
                  data = { kind = 'images', train = 'train', validation = 'val', shorter_side = 32 }\n";
    fs::write(place.path("recipe.toml"), recipe).unwrap();
    let picture = |path: &Path, side: u32| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        image::RgbImage::from_fn(side, side, |x, y| image::Rgb([x as u8, y as u8, 0]))
            .save(path)
            .unwrap();
    };
    for (folder, n) in [("train", 3), ("val", 1)] {
        for class in ["cat", "dog"] {
            for i in 0..n {
                picture(&place.path(&format!("{folder}/{class}/{i}.png")), 40);
            }
        }
    }
    let (out, _) = place.passes(&[]);
    assert_eq!(row(&out, "train"), ["train", "6 images"]);
    assert_eq!(row(&out, "val"), ["val", "2 images"]);
    let vit = row(&out, "vit");
    // Three epochs of three batches.
    assert_eq!((vit[1], vit[5], vit[6]), ("classification", "2 images", "9"));
    fs::remove_dir_all(place.path("val/dog")).unwrap();
    let errors = place.fails(&[]);
    assert!(errors[0].contains("2 classes to train on and 1"), "{errors:?}");
}
