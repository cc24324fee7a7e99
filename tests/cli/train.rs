//! `wqk train` as a user meets it: killed, interrupted, resumed, on folders that refuse to be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wqk::random;
use wqk::train::{RunFolder, RunStatus};

const STEPS: usize = 60;

/// Folders of a test: text, and a recipe on it with dropout, accumulation and everything that is logged.
struct Place {
    folder: tempfile::TempDir,
    recipe: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.txt");
        fs::write(&text, crate::paragraphs(150)).unwrap();
        let recipe = folder.path().join("recipe.toml");
        let content = format!(
            r#"
            name = "tiny"
            seeds = [5]
            model = {{ kind = "text", d_model = 16, n_layers = 2, n_heads = 2, max_positions = 32 }}
            objective = {{ kind = "masked", rate = 0.15 }}
            data = {{ kind = "text", paths = ["{}"], length = 32, held_out = 0.05 }}
            tokenizer = {{ kind = "characters" }}
            score = {{ every = 5, heads = true }}
            updates = {{ every = 4 }}
            checkpoint = {{ every = 7, keep_last = 2, keep_best = true }}
            average = {{ decay = 0.9, every = 3, from = 10 }}
            [train]
            steps = {STEPS}
            batch_size = 4
            accumulation = 2
            learning_rate = 1e-3
            warmup_steps = 5
            eval_every = 10
            "#,
            text.display()
        );
        fs::write(&recipe, content).unwrap();
        Self { folder, recipe }
    }

    fn train(&self) -> Command {
        self.command(assert_cmd::cargo::cargo_bin("wqk"))
    }

    fn command(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        // One thread: two of a backend's own may add up in another order.
        command.args(["train", "--threads", "1", "--quiet"]);
        command.env("WQK_CACHE", self.path("cache"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `wqk train RECIPE --resume OUT`, which begins what is missing.
    fn go_on(&self, out: &Path, backend: &str) -> Command {
        let mut command = self.train();
        command
            .arg(&self.recipe)
            .arg("--resume")
            .arg(out)
            .args(["--backend", backend]);
        command
    }
}

/// Runs a command to its end, which must be this exit code, and returns what it said on standard error.
fn ends(mut command: Command, code: i32) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The one line of an error.
fn refused(command: Command) -> String {
    let said = ends(command, 1);
    assert!(
        said.starts_with("wqk: error: ") && said.trim_end().lines().count() == 1,
        "{said}"
    );
    said
}

/// The content of a log without its times.
fn timeless(run: &Path) -> [String; 5] {
    let text = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    let steps: String = text("steps.csv")
        .lines()
        .map(|line| line.rsplitn(3, ',').last().unwrap().to_owned() + "\n")
        .collect();
    let events: String = text("log.jsonl")
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            for time in ["seconds", "waited"] {
                event.as_object_mut().unwrap().shift_remove(time);
            }
            event.to_string() + "\n"
        })
        .collect();
    [
        steps,
        text("held_out.csv"),
        text("scores.csv"),
        text("updates.csv"),
        events,
    ]
}

/// Two runs are the same: their logs but for the times, and their last checkpoints to the byte.
fn assert_same(a: &Path, b: &Path) {
    assert_eq!(timeless(a), timeless(b));
    let last = |run: &Path| {
        RunFolder::open(run)
            .unwrap()
            .checkpoint(None)
            .unwrap()
            .path()
            .to_owned()
    };
    let (a, b) = (last(a), last(b));
    for file in [
        "model.safetensors",
        "optimiser.safetensors",
        "average.safetensors",
        "updates.safetensors",
    ] {
        assert!(
            fs::read(a.join(file)).unwrap() == fs::read(b.join(file)).unwrap(),
            "{file} differs"
        );
    }
}

/// A run that is killed by signal 9 again and again, at random moments, ends as one that never was.
#[cfg(unix)]
fn survives_being_killed(backend: &str) {
    use rand::RngExt as _;
    let place = Place::new();
    let whole = place.path("whole");
    ends(place.go_on(&whole, backend), 0);

    let killed = place.path("killed");
    let logged =
        || fs::read_to_string(killed.join("tiny-seed5/steps.csv")).map_or(0, |log| log.lines().count());
    let mut rng = random::stream(0, ["moments to kill at"]);
    let mut kills = 0;
    // At some moment of each quarter of the run, as its log tells, however fast the machine is.
    for quarter in 0..4 {
        let moment = STEPS / 4 * quarter + rng.random_range(1..STEPS / 6);
        let mut child = place.go_on(&killed, backend).spawn().unwrap();
        while logged() < moment && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    ends(place.go_on(&killed, backend), 0);
    assert!(kills >= 2, "the run was over before it could be killed");

    let (whole, killed) = (whole.join("tiny-seed5"), killed.join("tiny-seed5"));
    assert_same(&whole, &killed);
    let folder = RunFolder::open(&killed).unwrap();
    assert_eq!(
        (folder.info().status, folder.info().step),
        (RunStatus::Finished, STEPS)
    );
    // The last two and the best are left, and nothing half-written.
    let left = fs::read_dir(killed.join("checkpoints")).unwrap().count();
    assert!((2..=3).contains(&left), "{left} checkpoints");
    let run = folder.read().unwrap();
    assert_eq!(
        run.steps.iter().map(|row| row.step).collect::<Vec<_>>(),
        (1..=STEPS).collect::<Vec<_>>()
    );
    assert_eq!(run.held_out.len(), STEPS / 10);
    assert_eq!(run.scores.len(), 2 * (1 + STEPS / 5));
    assert_eq!(run.scores[0].scores.heads.as_ref().unwrap().len(), 2);
    // The first update and every fourth; what they have added is the change of the weights since the first.
    assert_eq!(run.updates.len(), 2 * (1 + STEPS / 4));
    let end = run.updates.last().unwrap();
    assert!(end.accumulation_error < 1e-4, "{end:?}");
}

#[cfg(all(unix, feature = "flex"))]
#[test]
fn survives_being_killed_on_flex() {
    survives_being_killed("flex");
}

#[cfg(all(unix, feature = "ndarray"))]
#[test]
fn survives_being_killed_on_ndarray() {
    survives_being_killed("ndarray");
}

#[cfg(all(unix, feature = "tch"))]
#[test]
fn survives_being_killed_on_tch() {
    survives_being_killed("tch");
}

/// A run of many more updates, stopped by the signals that Ctrl-C and job schedulers send once it has done some.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_checkpoint() {
    // 128 and the number of the signal, as shells have it.
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        interrupted(signal, code);
    }
}

#[cfg(unix)]
fn interrupted(signal: &str, code: i32) {
    let place = Place::new();
    let out = place.path("out");
    let mut command = place.train();
    command
        .arg(&place.recipe)
        .arg("--out")
        .arg(&out)
        .args(["--set", "train.steps=1000000"]);
    let mut child = command.spawn().unwrap();
    let run = out.join("tiny-seed5");
    wait_for(|| fs::metadata(run.join("steps.csv")).is_ok_and(|meta| meta.len() > 0));
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    wait_for(|| child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(code));
    let folder = RunFolder::open(&run).unwrap();
    assert_eq!(folder.info().status, RunStatus::Stopped);
    let checkpoint = folder.checkpoint(None).unwrap();
    assert_eq!(checkpoint.info().step, folder.info().step);
    assert_eq!(folder.steps().unwrap().len(), folder.info().step);
}

#[cfg(unix)]
fn wait_for(mut what: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "nothing happened for a minute"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_differs_or_is_damaged_is_not_resumed() {
    let place = Place::new();
    let out = place.path("out");
    ends(place.go_on(&out, "flex"), 0);
    let run = out.join("tiny-seed5");

    // Finished: nothing is done, and another run is not begun over it.
    ends(place.go_on(&out, "flex"), 0);
    let mut again = place.train();
    again.arg(&place.recipe).arg("--out").arg(&out);
    assert!(refused(again).contains("--resume"));

    let mut other = place.go_on(&out, "flex");
    other.args(["--set", "train.learning_rate=2e-3"]);
    let error = refused(other);
    assert!(
        error.contains("train.learning_rate = 0.001") && error.contains("0.002"),
        "{error}"
    );

    // As if it had been stopped: now it would go on.
    let info = run.join("run.json");
    let text = fs::read_to_string(&info)
        .unwrap()
        .replace("\"finished\"", "\"stopped\"");
    fs::write(&info, text).unwrap();
    let folder = RunFolder::open(&run).unwrap();
    let last = folder.checkpoint(None).unwrap().path().to_owned();
    let steps = folder.checkpoints().steps().unwrap();
    let before = folder.checkpoints().path(steps[steps.len() - 2]);
    let weights = last.join("model.safetensors");
    let mut content = fs::read(&weights).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&weights, content).unwrap();
    let resume = || {
        let mut command = place.train();
        command.arg("--resume").arg(&run);
        command
    };
    let error = refused(resume());
    for said in ["step-000000060", "model.safetensors", before.to_str().unwrap()] {
        assert!(error.contains(said), "{said} in: {error}");
    }
    // What the error says helps.
    fs::remove_dir_all(&last).unwrap();
    ends(resume(), 0);
    assert_eq!(RunFolder::open(&run).unwrap().steps().unwrap().len(), STEPS);

    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    let mut command = place.train();
    command.arg("--resume").arg(&empty);
    assert!(refused(command).contains("wqk train"));
}

/// A folder that becomes read-only while the run goes on: one line, and what was there can be resumed.
#[cfg(unix)]
#[test]
fn a_read_only_folder_stops_the_run_and_leaves_its_checkpoints() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let place = Place::new();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (out, cache) = (place.path("out"), place.path("cache"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&cache).unwrap();
    // Permissions do not bind root: as root, the run is somebody else's.
    let is_root = [&out, &cache]
        .iter()
        .all(|folder| chown(folder, Some(NOBODY), Some(NOBODY)).is_ok());
    mode(place.folder.path(), 0o755);
    let program = place.path("wqk");
    let built = assert_cmd::cargo::cargo_bin("wqk");
    if fs::hard_link(&built, &program).is_err() {
        fs::copy(&built, &program).unwrap();
    }
    let spawn = |args: &[&str]| {
        let mut command = place.command(program.clone());
        command
            .arg(&place.recipe)
            .args(args)
            .current_dir(place.folder.path());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().unwrap()
    };
    let long = ["--set", "train.steps=1000000", "--resume", "out"];
    let child = spawn(&long);
    let checkpoints = out.join("tiny-seed5/checkpoints");
    wait_for(|| checkpoints.join("step-000000014").exists());
    mode(&checkpoints, 0o555);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot write") && said.contains("checkpoints") && said.lines().count() == 1,
        "{said}"
    );
    let folder = RunFolder::open(out.join("tiny-seed5")).unwrap();
    assert_eq!(folder.info().status, RunStatus::Failed);
    let last = folder.checkpoint(None).unwrap().info().step;
    assert!(last >= 14);

    mode(&checkpoints, 0o755);
    let mut child = spawn(&long);
    wait_for(|| checkpoints.join(format!("step-{:09}", last + 14)).exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn several_arms_and_seeds_side_by_side() {
    let place = Place::new();
    let mut text = fs::read_to_string(&place.recipe)
        .unwrap()
        .replace("seeds = [5]", "seeds = [5, 6]");
    text.push_str(
        "\n[[arms]]\nname = 'encoder'\n[[arms]]\nname = 'decoder'\nobjective = { kind = 'autoregressive' }\n",
    );
    fs::write(&place.recipe, text).unwrap();
    let run = |out: &str, jobs: &str| {
        let out = place.path(out);
        let mut command = place.train();
        command
            .arg(&place.recipe)
            .arg("--out")
            .arg(&out)
            .args(["--jobs", jobs, "--set", "train.steps=12"]);
        ends(command, 0);
        out
    };
    let (one, two) = (run("one", "1"), run("two", "2"));
    let names = ["decoder-seed5", "decoder-seed6", "encoder-seed5", "encoder-seed6"];
    let found: Vec<String> = RunFolder::find(&two)
        .unwrap()
        .iter()
        .map(|folder| folder.path().file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(found, names);
    for name in names {
        assert_same(&one.join(name), &two.join(name));
    }
    // What is in the folder of a run is a recipe that runs.
    let mut command = place.train();
    let again = place.path("again");
    command
        .arg(two.join("decoder-seed6/recipe.toml"))
        .arg("--out")
        .arg(&again);
    ends(command, 0);
    assert_same(&again.join("decoder-seed6"), &one.join("decoder-seed6"));
}

/// CIFAR-10's layout: a byte for the class and 3072 for the pixels of each image, here drawn at random.
fn cifar10(folder: &Path) {
    use rand::RngExt as _;
    fs::create_dir_all(folder).unwrap();
    let mut rng = random::stream(0, ["images"]);
    let names = (1..=5)
        .map(|i| format!("data_batch_{i}.bin"))
        .chain(["test_batch.bin".to_owned()]);
    for name in names {
        let records: Vec<u8> = (0..8u8)
            .flat_map(|i| {
                let pixels: Vec<u8> = (0..3072).map(|_| rng.random()).collect();
                [vec![i % 10], pixels].concat()
            })
            .collect();
        fs::write(folder.join(name), records).unwrap();
    }
}

#[test]
fn images_are_trained_on_and_resumed() {
    let place = Place::new();
    cifar10(&place.path("cifar10"));
    let recipe = format!(
        r#"
        name = "vit"
        model = {{ kind = "vision", size = "cifar10", d_model = 16, n_layers = 1, n_heads = 2, patch_size = 8 }}
        data = {{ kind = "cifar10", path = "{}" }}
        augmentation = {{ label_smoothing = 0.01 }}
        train = {{ epochs = 3.0, batch_size = 8, accumulation = 1, warmup_epochs = 1.0, eval_every = 5 }}
        average = {{ decay = 0.5, every = 2 }}
        updates = {{ every = 4 }}
        checkpoint = {{ every = 5, keep_last = 9 }}
        "#,
        place.path("cifar10").display()
    );
    fs::write(&place.recipe, recipe).unwrap();
    let (whole, resumed) = (place.path("whole"), place.path("resumed"));
    for out in [&whole, &resumed] {
        ends(place.go_on(out, "flex"), 0);
    }
    let (whole, resumed) = (whole.join("vit-seed0"), resumed.join("vit-seed0"));
    let run = RunFolder::open(&whole).unwrap().read().unwrap();
    // Three epochs of 40 images in batches of 8.
    assert_eq!(run.steps.len(), 15);
    assert_eq!(
        run.held_out.iter().map(|row| row.step).collect::<Vec<_>>(),
        [5, 10, 15]
    );
    for row in &run.held_out {
        for accuracy in [row.accuracy, row.averaged_accuracy] {
            // Eight images.
            assert!((accuracy.unwrap() * 8.0).fract() == 0.0);
        }
        assert!(row.averaged_loss.is_some());
    }
    // As if the second run had been killed after its update 5.
    for step in [10, 15] {
        fs::remove_dir_all(resumed.join(format!("checkpoints/step-{step:09}"))).unwrap();
    }
    let info = resumed.join("run.json");
    let text = fs::read_to_string(&info)
        .unwrap()
        .replace("\"finished\"", "\"running\"");
    fs::write(&info, text).unwrap();
    ends(place.go_on(resumed.parent().unwrap(), "flex"), 0);
    assert_eq!(RunFolder::open(&resumed).unwrap().info().resumed, [5]);
    assert_same(&whole, &resumed);

    let mut other = place.go_on(&place.path("other"), "flex");
    other.args(["--set", "tokenizer={ kind = 'bytes' }"]);
    assert!(refused(other).contains("tokenizer"));
    exported(&place, &whole);
}

/// The folder for `transformers` has names of the classes, and how pixels are normalised.
fn exported(place: &Place, run: &Path) {
    // The mean of red over all images to train on.
    let (mut sum, mut count) = (0.0, 0.0);
    for i in 1..=5 {
        let records = fs::read(place.path(&format!("cifar10/data_batch_{i}.bin"))).unwrap();
        for record in records.chunks_exact(3073) {
            sum += record[1..=1024].iter().map(|&red| f64::from(red)).sum::<f64>();
            count += 1024.0;
        }
    }
    let export = |to: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("wqk"));
        command.arg("export").arg(run).arg("--to").arg(place.path(to));
        let said = ends(command, 0);
        let json = |name: &str| {
            let content = fs::read(place.path(to).join(name)).ok()?;
            serde_json::from_slice::<Value>(&content).ok()
        };
        (
            said,
            json("config.json").unwrap(),
            json("preprocessor_config.json"),
        )
    };
    let (said, config, processor) = export("vit");
    assert!(!said.contains("note"), "{said}");
    assert_eq!(
        (&config["id2label"]["0"], &config["label2id"]["truck"]),
        (&"airplane".into(), &9.into())
    );
    let processor = processor.unwrap();
    assert_eq!(processor["size"]["shortest_edge"], 32);
    assert_eq!(processor["crop_size"]["height"], 32);
    // f32 has seven digits.
    let mean = processor["image_mean"][0].as_f64().unwrap();
    assert!((mean - sum / count / 255.0).abs() < 1e-6, "{mean}");

    // As an older program left its runs: the data still tell.
    fs::remove_file(run.join("images.json")).unwrap();
    let (_, again, same) = export("from-data");
    assert_eq!((again, same), (config, Some(processor)));
    fs::remove_dir_all(place.path("cifar10")).unwrap();
    let (said, config, processor) = export("without");
    assert!(
        said.contains("note: the run has no images.json") && processor.is_none(),
        "{said}"
    );
    assert_eq!(config["id2label"]["0"], "LABEL_0");
}

#[test]
fn what_a_run_has_lost_is_restored_or_named() {
    let place = Place::new();
    let out = place.path("out");
    ends(place.go_on(&out, "flex"), 0);
    let run = out.join("tiny-seed5");
    // As if it had been stopped.
    let info = run.join("run.json");
    let stopped = fs::read_to_string(&info)
        .unwrap()
        .replace("\"finished\"", "\"stopped\"");
    fs::write(&info, &stopped).unwrap();

    // The tokenizer is known from the recipe, and is written anew.
    let tokenizer = run.join("tokenizer.json");
    let whole = fs::read(&tokenizer).unwrap();
    fs::write(&tokenizer, &whole[..whole.len() / 2]).unwrap();
    // What a kill between writing and renaming leaves.
    let draft = run.join(".wqk-a1B2c3");
    fs::write(&draft, &stopped[..stopped.len() / 2]).unwrap();
    ends(place.go_on(&out, "flex"), 0);
    assert_eq!(fs::read(&tokenizer).unwrap(), whole);
    assert!(!draft.exists());

    // A log that is shorter than at the checkpoint cannot be gone on with.
    fs::write(&info, &stopped).unwrap();
    let steps = run.join("steps.csv");
    let rows = fs::read(&steps).unwrap();
    fs::write(&steps, &rows[..rows.len() / 2]).unwrap();
    let error = refused(place.go_on(&out, "flex"));
    assert!(
        error.contains("steps.csv") && error.contains("restore it, or begin a run in another folder"),
        "{error}"
    );
    fs::write(&steps, &rows).unwrap();

    // Nor one of that length that holds something else, which is found before any update is done.
    for name in ["steps.csv", "held_out.csv", "scores.csv", "log.jsonl"] {
        fs::write(&info, &stopped).unwrap();
        let log = run.join(name);
        let whole = fs::read(&log).unwrap();
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 12].fill(b'#');
        fs::write(&log, &damaged).unwrap();
        let error = refused(place.go_on(&out, "flex"));
        assert!(
            error.contains(name) && error.contains("not the log of a run"),
            "{error}"
        );
        assert_eq!(fs::read(&log).unwrap(), damaged);
        fs::write(&log, &whole).unwrap();
    }

    // A tokenizer that is not the run's would export other words than it has learnt.
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut swapped = whole.clone();
    swapped.swap(text.rfind('a').unwrap(), text.rfind('c').unwrap());
    assert_ne!(swapped, whole);
    fs::write(&tokenizer, &swapped).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("wqk"));
    command
        .arg("export")
        .arg(&run)
        .arg("--to")
        .arg(place.path("exported"));
    let error = refused(command);
    assert!(
        error.contains("tokenizer.json") && error.contains("SHA-256"),
        "{error}"
    );
    assert!(!place.path("exported").exists());
    fs::write(&tokenizer, &whole).unwrap();

    // Without its checkpoints it would begin anew over logs that are all that is left of it.
    fs::write(&info, &stopped).unwrap();
    let (there, away) = (run.join("checkpoints"), place.path("away"));
    fs::rename(&there, &away).unwrap();
    let error = refused(place.go_on(&out, "flex"));
    assert!(error.contains("no checkpoint is there"), "{error}");
    assert_eq!(fs::read(&steps).unwrap(), rows);
}

/// The products of a run in bf16 are rounded, and nothing else: its first loss is that of f32 but for rounding, and its
/// weights stay f32.
#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn precision_is_that_of_the_products() {
    let place = Place::new();
    let begin = |backend: &str, precision: &str| {
        let mut command = place.go_on(&place.path(precision), backend);
        command.args([
            "--set",
            &format!("train.precision={precision}"),
            "--set",
            "train.steps=5",
        ]);
        command
    };
    let said = refused(begin("ndarray", "bf16"));
    assert!(
        said.contains("train.precision") && said.contains("ndarray"),
        "{said}"
    );

    let losses = ["f32", "bf16"].map(|precision| {
        ends(begin("flex", precision), 0);
        let run = RunFolder::open(place.path(precision).join("tiny-seed5")).unwrap();
        let weights = fs::read(run.checkpoint(None).unwrap().path().join("model.safetensors")).unwrap();
        assert!(!String::from_utf8_lossy(&weights).contains("BF16"));
        run.read()
            .unwrap()
            .steps
            .iter()
            .map(|row| row.loss)
            .collect::<Vec<_>>()
    });
    // Logits at the start are far below 1 in size, so that a relative rounding by 2⁻⁹ at each of a few products moves
    // the loss, about ln 95, by less than 2⁻⁸.
    let off = (losses[0][0] - losses[1][0]).abs();
    assert!(off < 1.0 / 256.0 && losses[0] != losses[1], "{losses:?}");
}
