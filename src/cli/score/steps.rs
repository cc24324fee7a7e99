//! Revisions of one model: which training step each checkpoint is of.

use std::path::{Path, PathBuf};

use crate::checkpoint::ModelReport;
use crate::cli::Usage;
use crate::report::scores::steps_table;

/// The steps of the checkpoints: as given, or the last number in each name.
pub(super) fn of(paths: &[PathBuf], given: &[f64]) -> Result<Vec<f64>, Usage> {
    if !given.is_empty() && given.len() != paths.len() {
        return Err(Usage(format!(
            "--steps gives {} numbers for {} checkpoints",
            given.len(),
            paths.len()
        )));
    }
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    paths
        .iter()
        .map(|path| {
            last_number(path).ok_or_else(|| {
                Usage(format!(
                    "the name of '{}' holds no training step: give --steps N,N,…",
                    path.display()
                ))
            })
        })
        .collect()
}

fn last_number(path: &Path) -> Option<f64> {
    let name = path.file_name()?.to_str()?;
    let digits = name
        .split(|c: char| !c.is_ascii_digit())
        .rfind(|run| !run.is_empty())?;
    digits.parse().ok()
}

/// A line a revision: the medians at each step.
pub(super) fn table(steps: &[f64], models: &[(usize, ModelReport)]) -> String {
    let revisions: Vec<_> = models
        .iter()
        .filter_map(|(i, model)| steps.get(*i).map(|&step| (step, model)))
        .collect();
    steps_table(&revisions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_last_number_of_the_name() {
        let number = |name: &str| last_number(Path::new(name));
        assert_eq!(number("run7/checkpoint-5000"), Some(5000.0));
        assert_eq!(number("pythia-70m-step143000"), Some(143_000.0));
        assert_eq!(number("step1000/"), Some(1000.0));
        assert_eq!(number("run7/final"), None);
    }

    #[test]
    fn steps_given_must_be_as_many_as_the_checkpoints() {
        let paths = [PathBuf::from("a1"), PathBuf::from("a2")];
        assert_eq!(of(&paths, &[]).unwrap(), [1.0, 2.0]);
        assert_eq!(of(&paths, &[10.0, 20.0]).unwrap(), [10.0, 20.0]);
        assert!(of(&paths, &[10.0]).is_err());
    }
}
