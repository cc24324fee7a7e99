//! Recipe files: what they extend, their small variant, settings laid over them, and their runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::table::{KINDS, merge, set};
use super::{Recipe, unknown_field};
use crate::files;
use crate::train::config::TrainError;

/// What is laid over a recipe when it is read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Lays the section `[small]` over it.
    pub small: bool,
    /// Fields by their paths, with values in TOML: `("train.steps", "100")`. What is no TOML is a string.
    pub set: Vec<(String, String)>,
    /// Keeps these arms only; empty keeps all.
    pub arms: Vec<String>,
}

/// A recipe as it lies on disk, with all that it extends: several arms, several seeds.
#[derive(Debug, Clone)]
pub struct RecipeFile {
    file: PathBuf,
    table: Table,
    arms: Vec<Table>,
    /// The paths of the fields that were set from outside.
    set: Vec<String>,
}

/// What a recipe file has beside the sections of a run.
const EXTENDS: &str = "extends";
const SMALL: &str = "small";
const ARMS: &str = "arms";
const SEEDS: &str = "seeds";
const ABOUT: &str = "about";
/// What stands for the file where a field was set on the command line.
const SET: &str = "--set";
/// What an arm may lay over the recipe.
const OF_AN_ARM: [&str; 6] = ["name", "model", "objective", "init", "train", "average"];

/// Recipes that extend each other further than this go in a circle.
const DEEPEST: usize = 16;

impl RecipeFile {
    /// Reads a recipe.
    ///
    /// # Errors
    /// [`TrainError::Recipe`] where a file cannot be read, is no TOML, or has no arm of a name that was asked for.
    /// The settings of each run are checked by [`runs`](Self::runs).
    pub fn load(file: &Path, options: &Options) -> Result<Self, TrainError> {
        let refuse = |field: &str, text: String| problem(file, field, &text);
        let mut table = read(file, 0)?;
        table.remove(ABOUT);
        let small = table.remove(SMALL);
        if options.small {
            match small {
                Some(Value::Table(small)) => merge(&mut table, &small),
                _ => {
                    return Err(refuse(
                        SMALL,
                        "the recipe has no small variant: run it without --small".into(),
                    ));
                }
            }
        }
        // A kind first, which begins its section anew.
        let (kinds, others): (Vec<_>, Vec<_>) = options
            .set
            .iter()
            .partition(|(path, _)| path.rsplit('.').next().is_some_and(|key| KINDS.contains(&key)));
        for (path, value) in kinds.into_iter().chain(others) {
            parse(value)
                .and_then(|value| set(&mut table, path, value))
                .map_err(|text| problem(Path::new(SET), path, &text))?;
        }
        let arms = match table.remove(ARMS) {
            None => Vec::new(),
            Some(Value::Array(arms)) => arms
                .into_iter()
                .map(|arm| match arm {
                    Value::Table(arm) => check_arm(file, &arm).map(|()| arm),
                    _ => Err(refuse(ARMS, "must be tables: write each as [[arms]]".into())),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(refuse(ARMS, "must be tables: write each as [[arms]]".into())),
        };
        let mut recipe = Self {
            file: file.to_owned(),
            table,
            arms,
            set: options.set.iter().map(|(path, _)| path.clone()).collect(),
        };
        recipe.keep(&options.arms)?;
        Ok(recipe)
    }

    /// Names of the arms, in their order.
    pub fn arms(&self) -> Vec<String> {
        let names = self.arms.iter().filter_map(|arm| arm.get("name")?.as_str());
        names.map(str::to_owned).collect()
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The recipe of each run: arms in order, within an arm the seeds in order, each checked.
    ///
    /// # Errors
    /// [`TrainError::Recipe`] with the file, the field, its value and what to do.
    pub fn runs(&self) -> Result<Vec<Recipe>, TrainError> {
        self.checked_runs().map_err(|error| self.blame(error))
    }

    fn checked_runs(&self) -> Result<Vec<Recipe>, TrainError> {
        let seeds = self.seeds()?;
        let whole = [Table::new()];
        let arms = if self.arms.is_empty() {
            &whole[..]
        } else {
            &self.arms
        };
        let mut shared = self.table.clone();
        shared.insert(SEEDS.to_owned(), Value::Array(vec![Value::Integer(0)]));
        let mut runs: Vec<Recipe> = Vec::new();
        let mut names = HashSet::new();
        for arm in arms {
            let mut table = shared.clone();
            merge(&mut table, arm);
            // The seed is all that differs between the runs of an arm.
            let of_arm = Recipe::from_table(&table, &self.file)?;
            for &seed in &seeds {
                let run = Recipe {
                    seed,
                    ..of_arm.clone()
                };
                if !names.insert(run.folder_name()) {
                    let text = format!(
                        "{} stands for two runs: name arms and seeds apart",
                        run.folder_name()
                    );
                    return Err(problem(&self.file, "name", &text));
                }
                runs.push(run);
            }
        }
        Ok(runs)
    }

    /// An error of the recipe with `--set` in place of the file, where the field was set by it.
    fn blame(&self, error: TrainError) -> TrainError {
        let below = |one: &str, other: &str| {
            let rest = one.strip_prefix(other);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match error {
            TrainError::Recipe { field, problem, .. }
                if self
                    .set
                    .iter()
                    .any(|path| below(&field, path) || below(path, &field)) =>
            {
                TrainError::Recipe {
                    file: SET.into(),
                    field,
                    problem,
                }
            }
            other => other,
        }
    }

    fn seeds(&self) -> Result<Vec<u64>, TrainError> {
        let refuse = |text: &str| problem(&self.file, SEEDS, text);
        let seeds = match self.table.get(SEEDS) {
            None => return Ok(vec![0]),
            Some(Value::Array(seeds)) => seeds,
            Some(other) => {
                return Err(refuse(&format!(
                    "{other}, but must be a list: write it as seeds = [0, 1, 2]"
                )));
            }
        };
        let seeds: Option<Vec<u64>> = seeds
            .iter()
            .map(|seed| u64::try_from(seed.as_integer()?).ok())
            .collect();
        match seeds {
            Some(seeds) if !seeds.is_empty() => Ok(seeds),
            _ => Err(refuse(
                "must be at least one whole number that is not negative, as in seeds = [0, 1, 2]",
            )),
        }
    }

    fn keep(&mut self, names: &[String]) -> Result<(), TrainError> {
        let known = self.arms();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            let text = match known.as_slice() {
                [] => format!("has none, so also not '{unknown}': run it without --arm"),
                known => format!("has no '{unknown}': choose of {}", known.join(", ")),
            };
            return Err(problem(&self.file, ARMS, &text));
        }
        if !names.is_empty() {
            let is_kept = |arm: &Table| {
                let name = arm.get("name").and_then(Value::as_str);
                names.iter().any(|kept| Some(kept.as_str()) == name)
            };
            self.arms.retain(is_kept);
        }
        Ok(())
    }
}

fn check_arm(file: &Path, arm: &Table) -> Result<(), TrainError> {
    if !matches!(arm.get("name"), Some(Value::String(_))) {
        return Err(problem(file, ARMS, "an arm has no name: set name = \"…\""));
    }
    match arm.keys().find(|key| !OF_AN_ARM.contains(&key.as_str())) {
        Some(key) => {
            let known = OF_AN_ARM.map(str::to_owned);
            Err(problem(file, &format!("{ARMS}.{key}"), &unknown_field(&known)))
        }
        None => Ok(()),
    }
}

/// A file laid over those that it extends.
fn read(file: &Path, depth: usize) -> Result<Table, TrainError> {
    if depth > DEEPEST {
        return Err(problem(
            file,
            EXTENDS,
            "extends itself by way of others, or too many of them: remove the circle",
        ));
    }
    /// Bytes that no recipe needs.
    const LARGEST: u64 = 1 << 20;
    if std::fs::metadata(file).is_ok_and(|about| about.is_file() && about.len() > LARGEST) {
        return Err(problem(
            file,
            "recipe",
            "is larger than 1 MiB, which no recipe is: give a TOML file",
        ));
    }
    let text = files::read_to_string(file).map_err(|source| match source.kind() {
        _ if file.is_dir() => problem(file, "recipe", "is a folder: give a TOML file"),
        _ => problem(
            file,
            "recipe",
            &format!("cannot be read ({source}): check the path and its permissions"),
        ),
    })?;
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let place = line.map_or("recipe".to_owned(), |line| format!("line {line}"));
        problem(file, &place, &format!("not TOML: {}", error.message()))
    })?;
    match table.remove(EXTENDS) {
        None => Ok(table),
        Some(Value::String(other)) => {
            let other = file.parent().unwrap_or(Path::new("")).join(other);
            let mut under = read(&other, depth + 1)?;
            merge(&mut under, &table);
            Ok(under)
        }
        Some(other) => Err(problem(
            file,
            EXTENDS,
            &format!("{other}, but must be the name of a file"),
        )),
    }
}

/// A value as it stands in TOML, or else as a string.
fn parse(text: &str) -> Result<Value, String> {
    let as_toml = format!("x = {text}")
        .parse::<Table>()
        .ok()
        .filter(|table| table.len() == 1);
    match as_toml.and_then(|mut table| table.remove("x")) {
        Some(value) => Ok(value),
        // A list or a table whose own quotes the shell has taken.
        None if text.starts_with(['[', '{']) && text.ends_with([']', '}']) => Err(format!(
            "{text} is neither a list nor a table of TOML: put texts in quotes, and all of it in quotes for the \
                 shell, as in --set 'data.paths=[\"a.txt\"]'"
        )),
        None => Ok(Value::String(text.to_owned())),
    }
}

pub(super) fn problem(file: &Path, field: &str, text: &str) -> TrainError {
    TrainError::Recipe {
        file: file.to_owned(),
        field: if field.is_empty() {
            "recipe".to_owned()
        } else {
            field.to_owned()
        },
        problem: text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}
