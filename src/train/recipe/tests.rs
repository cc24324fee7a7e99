//! Recipes as people write them, right and wrong.

use std::path::{Path, PathBuf};

use super::*;

const WHOLE: &str = r#"
seeds = [3, 4]
[model]
kind = "text"
size = "mini"
d_model = 64
n_layers = 2
dropout = 0
[objective]
kind = "masked"
rate = 0.15
[data]
kind = "bundled"
length = 64
[tokenizer]
kind = "characters"
[train]
steps = 100
[[arms]]
name = "encoder"
[[arms]]
name = "decoder"
objective = { kind = "autoregressive" }
init = { scheme = "tied" }
[small]
seeds = [7]
train = { steps = 10 }
"#;

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recipe.toml");
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

fn runs(text: &str, options: &Options) -> Result<Vec<Recipe>, TrainError> {
    let (_folder, file) = written(text);
    RecipeFile::load(&file, options)?.runs()
}

#[test]
fn arms_by_seeds_each_a_recipe_of_its_own() {
    let runs = runs(WHOLE, &Options::default()).unwrap();
    let names: Vec<String> = runs.iter().map(Recipe::folder_name).collect();
    assert_eq!(
        names,
        ["encoder-seed3", "encoder-seed4", "decoder-seed3", "decoder-seed4"]
    );
    assert_eq!(runs[0].objective, Some(ObjectiveMode::masked(0.15).unwrap()));
    assert_eq!(runs[2].objective, Some(ObjectiveMode::Autoregressive));
    assert_eq!(runs[2].init, crate::attention::SymmetricInit::tied().into());
    // The size's own fields, but for those that are set; whole numbers do for floats.
    let model = runs[0].text_model(100, Path::new("x")).unwrap();
    assert_eq!(
        (model.vocab_size, model.d_model, model.n_layers, model.n_heads),
        (100, 64, 2, 4)
    );
    assert_eq!((model.dropout, model.attention_dropout), (0.0, 0.1));
    // What stands in the folder of a run is that run.
    for run in &runs {
        let again = Recipe::from_toml(&run.to_toml(), Path::new("recipe.toml")).unwrap();
        assert_eq!(&again, run);
        assert_eq!(again.sha256(), run.sha256());
        let (_folder, file) = written(&run.to_toml());
        assert_eq!(
            RecipeFile::load(&file, &Options::default())
                .unwrap()
                .runs()
                .unwrap(),
            std::slice::from_ref(run)
        );
    }
}

#[test]
fn small_set_and_arms_are_laid_over() {
    let options = Options {
        small: true,
        set: vec![
            ("train.learning_rate".into(), "1e-3".into()),
            ("tokenizer".into(), "{ kind = 'file', path = 'vocab.txt' }".into()),
            ("train.decay".into(), "cosine".into()),
        ],
        arms: vec!["decoder".into()],
    };
    let runs = runs(WHOLE, &options).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(
        (runs[0].seed, runs[0].train.steps, runs[0].train.learning_rate),
        (7, Some(10), 1e-3)
    );
    assert_eq!(runs[0].train.decay, crate::train::Decay::Cosine);
    assert_eq!(
        runs[0].tokenizer,
        Some(TokenizerSection::File {
            path: "vocab.txt".into()
        })
    );
}

#[test]
fn a_recipe_extends_another_beside_it() {
    let (folder, _) = written(WHOLE);
    let child = folder.path().join("child.toml");
    std::fs::write(
        &child,
        "extends = 'recipe.toml'\nabout = 'more'\n[train]\nbatch_size = 8\n",
    )
    .unwrap();
    let runs = RecipeFile::load(&child, &Options::default())
        .unwrap()
        .runs()
        .unwrap();
    assert_eq!(
        (runs.len(), runs[0].train.steps, runs[0].train.batch_size),
        (4, Some(100), 8)
    );
    std::fs::write(&child, "extends = 'child.toml'").unwrap();
    let error = RecipeFile::load(&child, &Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("circle"), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_file_and_field() {
    let with = |from: &str, to: &str| {
        assert!(WHOLE.contains(from), "{from}");
        WHOLE.replacen(from, to, 1)
    };
    for (text, said) in [
        (with("steps = 100", "stepz = 100"), ["train", "stepz"]),
        (with("rate = 0.15", "rate = 15"), ["objective", "masking rate 15"]),
        (
            with("rate = 0.15", "rate = 0.15\nspan = 3"),
            ["objective.span", "no such field"],
        ),
        (
            with("size = \"mini\"", "size = \"huge\""),
            ["model.size", "mini, base or large"],
        ),
        (
            with("d_model = 64", "width = 64"),
            ["model.width", "no such field"],
        ),
        (
            with("d_model = 64", "d_model = \"64\""),
            ["model.d_model", "\"64\", but must be a whole number"],
        ),
        (
            with("d_model = 64", "attention_init = 1"),
            ["model.attention_init", "[init]"],
        ),
        (with("dropout = 0", "dropout = 1.5"), ["model", "dropout is 1.5"]),
        (with("seeds = [3, 4]", "seeds = 3"), ["seeds", "list"]),
        (
            with("seeds = [3, 4]", "seeds = [3, 3]"),
            ["name", "encoder-seed3"],
        ),
        (with("seeds = [3, 4]", "seeds = []"), ["seeds", "at least one"]),
        (
            with("length = 64", "length = 1024"),
            ["data.length", "512 positions"],
        ),
        (
            with("length = 64", "length = 64\nheld_out = 1"),
            ["data.held_out", "share"],
        ),
        (
            with("[train]\nsteps = 100", "[train]\nsteps = 0"),
            ["train.steps", "at least 1"],
        ),
        (
            with("steps = 100", "steps = 100\nepochs = 2.0"),
            ["train.epochs", "one of them"],
        ),
        (
            with("steps = 100", "precision = \"f16\""),
            ["train.precision", "bf16"],
        ),
        (
            with("steps = 100", "devices = 3"),
            ["train.devices", "accumulation"],
        ),
        (
            with("name = \"decoder\"", "name = \"../decoder\""),
            ["name", "folder"],
        ),
        (with("name = \"decoder\"", "nane = \"decoder\""), ["arms", "name"]),
        (
            with("name = \"decoder\"", "name = \"a\\u001b[2Jb\\u0000\""),
            ["name", "a\\u{1b}[2Jb\\0"],
        ),
        (
            with("length = 64", "length = 64.0"),
            ["data.length", "64.0, but must be a whole number"],
        ),
        (
            with(
                "kind = \"bundled\"\nlength = 64",
                "kind = \"text\"\npaths = 64\nlength = 64",
            ),
            ["data.paths", "64, but must be a path, or a list of paths"],
        ),
        (
            with("kind = \"bundled\"", "kind = \"bundle\""),
            ["data.kind", "'bundle', but must be one of bundled, text"],
        ),
        (with("length = 64", ""), ["data.length", "not set"]),
        (
            with("length = 64", "length = 64\npaths = []"),
            ["data.paths", "which has length, held_out"],
        ),
        (
            with(
                "kind = \"bundled\"\nlength = 64",
                "kind = \"cifar10\"\npath = \"x\"\ntrain_images = 0",
            ),
            ["data.train_images", "at least 1"],
        ),
        (with("scheme = \"tied\"", "scheme = \"tight\""), ["init", "tight"]),
        (
            with("[tokenizer]\nkind = \"characters\"", ""),
            ["tokenizer", "needs it"],
        ),
        (
            with("[train]", "[updates]\nevery = 0\n[train]"),
            ["updates.every", "leave the section out"],
        ),
        (
            with("[train]", "[updates]\nevrey = 10\n[train]"),
            ["updates", "evrey"],
        ),
        (with("[train]", "[train"), ["line 17", "not TOML"]),
    ] {
        let error = runs(&text, &Options::default()).unwrap_err().to_string();
        assert!(error.contains("recipe.toml") && !error.contains('\n'), "{error}");
        for said in said {
            assert!(error.contains(said), "{said:?} in: {error}");
        }
    }
    let error = |options| runs(WHOLE, &options).unwrap_err().to_string();
    let unknown = Options {
        arms: vec!["both".into()],
        ..Options::default()
    };
    assert!(error(unknown).contains("choose of encoder, decoder"));
    let misspelt = Options {
        set: vec![("train.stepz".into(), "1".into())],
        ..Options::default()
    };
    assert!(error(misspelt).contains("stepz"));
    let absent = RecipeFile::load(Path::new("absent.toml"), &Options::default()).unwrap_err();
    assert!(absent.to_string().contains("absent.toml"), "{absent}");
}

#[test]
fn what_was_set_outside_is_named_there() {
    let error = |path: &str, value: &str| {
        let options = Options {
            set: vec![(path.into(), value.into())],
            ..Options::default()
        };
        runs(WHOLE, &options).unwrap_err().to_string()
    };
    for (path, value, said) in [
        ("train.steps", "many", "\"many\", but must be a whole number"),
        ("train.stepz", "1", "no such field here"),
        ("data.paths", "a.txt", "where data.kind is bundled"),
        // What is left of data.paths=["a.txt"] in a shell.
        ("data.paths", "[a.txt]", "--set 'data.paths=[\"a.txt\"]'"),
        ("data", "{ kind = text }", "quotes for the shell"),
    ] {
        let error = error(path, value);
        assert!(
            error.starts_with(&format!("--set: {path}: ")) && error.contains(said),
            "{error}"
        );
    }
    // A kind begins its section anew, wherever it stands.
    let options = Options {
        set: [
            ("data.paths", "a.txt"),
            ("data.length", "9"),
            ("data.kind", "text"),
        ]
        .map(|(path, value)| (path.into(), value.into()))
        .to_vec(),
        ..Options::default()
    };
    let run = &runs(WHOLE, &options).unwrap()[0];
    let want = DataSection::Text {
        corpus: crate::data::CorpusSpec::new(["a.txt"]),
        length: 9,
        held_out: None,
        validation: None,
    };
    assert_eq!(run.data, want);
}

/// What is known of the data's fields is what there is.
#[test]
fn unknown_fields_of_data_are_told_of_the_known_ones() {
    let corpus = crate::data::CorpusSpec {
        format: Some(crate::data::Format::Text),
        field: Some("a".into()),
        title: Some("b".into()),
        ..crate::data::CorpusSpec::new(["c"])
    };
    for data in [
        DataSection::Bundled {
            length: 2,
            held_out: Some(0.1),
        },
        DataSection::Text {
            corpus: corpus.clone(),
            length: 2,
            held_out: Some(0.1),
            validation: Some(corpus),
        },
        DataSection::Cifar10 {
            path: "a".into(),
            train_images: Some(1),
            test_images: Some(1),
        },
        DataSection::Images {
            train: "a".into(),
            validation: "b".into(),
            shorter_side: 1,
        },
    ] {
        let mut table = Table::try_from(&data).unwrap();
        let kind = table.remove("kind").unwrap();
        let said = data.unknown_field();
        let named: std::collections::BTreeSet<&str> = said
            .split_once("which has ")
            .and_then(|(_, fields)| Some(fields.split_once(':')?.0.split(", ").collect()))
            .unwrap();
        assert!(said.contains(kind.as_str().unwrap()));
        assert_eq!(named, table.keys().map(String::as_str).collect());
    }
}

/// To compare all pairs of names, or to copy the list for each run, takes minutes.
#[test]
fn a_hundred_thousand_seeds_are_no_work() {
    let seeds: Vec<String> = (0..100_000).map(|seed| seed.to_string()).collect();
    let options = Options {
        set: vec![("seeds".into(), format!("[{}]", seeds.join(",")))],
        arms: vec!["encoder".into()],
        ..Options::default()
    };
    let begin = std::time::Instant::now();
    let runs = runs(WHOLE, &options).unwrap();
    assert_eq!((runs.len(), runs[99_999].seed), (100_000, 99_999));
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
fn epochs_become_updates() {
    let section = TrainSection {
        epochs: Some(500.0),
        warmup_epochs: Some(30.0),
        batch_size: 128,
        accumulation: 1,
        ..TrainSection::default()
    };
    // CIFAR-10: 50,000 images are 390.6 batches of 128.
    let config = section.config(50_000, 0);
    assert_eq!((config.steps, config.warmup_steps), (500 * 391, 30 * 391));
}

#[test]
fn recipes_that_differ_name_the_field() {
    let runs = runs(WHOLE, &Options::default()).unwrap();
    assert_eq!(runs[0].difference(&runs[0]), None);
    let (field, one, other) = runs[0].difference(&runs[1]).unwrap();
    assert_eq!(
        (field.as_str(), one.as_str(), other.as_str()),
        ("seeds", "[3]", "[4]")
    );
}

/// Every recipe that comes with the library, whole and small, and the hyper-parameters of the structure paper
/// (appendix, training settings and tables of configurations).
#[test]
fn the_papers_recipes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.is_dir() {
            continue;
        }
        seen += 1;
        for small in [false, true] {
            let options = Options {
                small,
                ..Options::default()
            };
            let runs = RecipeFile::load(&file, &options).unwrap().runs().unwrap();
            assert!(!runs.is_empty());
            for run in runs {
                let is_text = run.data.is_text();
                if small {
                    continue;
                }
                let config = run.config(50_000);
                if !is_text {
                    the_papers_vision(&run, &config, &file);
                    continue;
                }
                let want = crate::train::TrainConfig {
                    seed: run.seed,
                    eval_every: 1000,
                    ..crate::train::TrainConfig::default()
                };
                assert_eq!(config, want, "{}", file.display());
                assert_eq!(run.data.length(), Some(512));
            }
        }
    }
    assert_eq!(seen, 11);
}

/// Of 50,000 images, as CIFAR-10 has.
fn the_papers_vision(run: &Recipe, config: &crate::train::TrainConfig, file: &Path) {
    let cifar = file.ends_with("vit6-cifar10.toml");
    let (epochs, batch, accumulation, layers, smoothing) = if cifar {
        (500, 128, 1, 6, 0.01)
    } else {
        (200, 256, 2, 12, 0.11)
    };
    let per_epoch = 50_000usize.div_ceil(batch * accumulation);
    assert_eq!(
        (config.steps, config.warmup_steps),
        (epochs * per_epoch, 30 * per_epoch)
    );
    assert_eq!((config.batch_size, config.accumulation), (batch, accumulation));
    assert_eq!((config.learning_rate, config.warmup_from), (3e-3, Some(0.033)));
    assert_eq!((config.beta_1, config.beta_2), (0.9, 0.999));
    assert_eq!(config.decay, crate::train::Decay::Cosine);
    let average = config.average.unwrap();
    assert_eq!((average.every, average.from), (32, config.warmup_steps));
    // Adjusted as by torchvision: 1 − 2e-5 · batch · 32 / epochs.
    let decay = 1.0 - 2e-5 * (batch * accumulation * 32) as f64 / epochs as f64;
    assert!(
        (average.decay - decay).abs() < 1e-6,
        "{} against {decay}",
        average.decay
    );
    let augmentation = run.augmentation.unwrap();
    assert_eq!(
        (
            augmentation.mixup,
            augmentation.cutmix,
            augmentation.label_smoothing
        ),
        (0.2, 1.0, smoothing)
    );
    assert_eq!(run.vision_model(10, file).unwrap().n_layers, layers);
}

#[test]
fn the_papers_arms() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/mini-wikipedia.toml");
    let runs = RecipeFile::load(&file, &Options::default())
        .unwrap()
        .runs()
        .unwrap();
    let names: Vec<&str> = runs.iter().step_by(3).map(|run| run.name.as_str()).collect();
    let inits = ["independent", "symmetric", "control"];
    let want: Vec<String> = ["encoder", "decoder"]
        .iter()
        .flat_map(|side| inits.map(|init| format!("{side}-{init}")))
        .collect();
    assert_eq!(names, want);
    for run in &runs {
        let masked = ObjectiveMode::masked(0.15).unwrap();
        let objective = if run.name.starts_with("encoder") {
            masked
        } else {
            ObjectiveMode::Autoregressive
        };
        assert_eq!(run.objective, Some(objective));
        let init = match run.name.rsplit_once('-').unwrap().1 {
            "independent" => AttentionInit::default(),
            "symmetric" => crate::attention::SymmetricInit::tied().into(),
            _ => crate::attention::ControlInit::new().into(),
        };
        assert_eq!(run.init, init);
    }
}
