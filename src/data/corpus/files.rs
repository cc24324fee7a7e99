//! From paths, folders and globs to files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{CorpusSpec, Format};
use crate::data::DataError;

/// The files of a corpus in reading order, each once.
pub(super) fn resolve(spec: &CorpusSpec, base: &Path) -> Result<Vec<PathBuf>, DataError> {
    if spec.paths.is_empty() {
        return Err(no_files("paths", "names no file: name at least one"));
    }
    let mut files = Vec::new();
    let mut met = HashSet::new();
    for named in &spec.paths {
        let path = base.join(named);
        let found = if path.exists() {
            below(&path, spec.format)?
        } else if named.contains(['*', '?', '[']) {
            globbed(&path, spec.format)?
        } else {
            // Opening it says why it cannot be read.
            vec![path]
        };
        for file in found {
            let whole = std::fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
            if met.insert(whole) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// A file itself, or the files below a folder.
fn below(path: &Path, format: Option<Format>) -> Result<Vec<PathBuf>, DataError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    walk(path, format, 0, &mut files)?;
    if files.is_empty() {
        let problem = "no file below this folder has a name that says its format (.txt, .jsonl, .json, .parquet, .csv or .xml, perhaps with .gz, .bz2, .zst or .xz): name the files, or set `format`";
        return Err(no_files(path, problem));
    }
    Ok(files)
}

/// Folders deeper than this are links in a circle.
const DEEPEST: usize = 64;

fn walk(
    folder: &Path,
    format: Option<Format>,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), DataError> {
    let failed = |source| DataError::Unreadable {
        path: folder.to_owned(),
        source,
    };
    if depth > DEEPEST {
        return Err(no_files(
            folder,
            "lies in too many folders: remove the circle of links",
        ));
    }
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort();
    for path in entries {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, format, depth + 1, files)?;
        } else if format.is_some() || Format::of_name(&path).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

fn globbed(pattern: &Path, format: Option<Format>) -> Result<Vec<PathBuf>, DataError> {
    let Some(text) = pattern.to_str() else {
        return Err(no_files(
            pattern,
            "is a glob that is not UTF-8: rename the folder",
        ));
    };
    let options = glob::MatchOptions {
        require_literal_leading_dot: true,
        require_literal_separator: true,
        ..glob::MatchOptions::default()
    };
    let matches = glob::glob_with(text, options).map_err(|error| {
        no_files(
            pattern,
            format!("is not a glob ({error}): write it as `shards/*.jsonl`"),
        )
    })?;
    let mut files = Vec::new();
    for path in matches {
        let path = path.map_err(|error| DataError::Unreadable {
            path: error.path().to_owned(),
            source: error.into(),
        })?;
        if path.is_file() {
            files.push(path);
        } else if path.is_dir() {
            walk(&path, format, 0, &mut files)?;
        }
    }
    if files.is_empty() {
        return Err(no_files(pattern, "no file matches this glob: check the path"));
    }
    Ok(files)
}

fn no_files(path: impl Into<PathBuf>, problem: impl Into<String>) -> DataError {
    DataError::NoFiles {
        path: path.into(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(spec: &CorpusSpec, base: &Path) -> Result<Vec<String>, String> {
        let name = |path: PathBuf| path.strip_prefix(base).unwrap().display().to_string();
        resolve(spec, base)
            .map(|files| files.into_iter().map(name).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn files_folders_and_globs_in_order_each_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("s/deep")).unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        for name in [
            "s/b.jsonl.gz",
            "s/a.txt",
            "s/deep/c.parquet",
            "s/README.md",
            "s/.hidden.txt",
            "x[1].txt",
        ] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let of = |paths: &[&str]| names(&CorpusSpec::new(paths.iter().copied()), folder.path());
        assert_eq!(
            of(&["s"]).unwrap(),
            ["s/a.txt", "s/b.jsonl.gz", "s/deep/c.parquet"]
        );
        assert_eq!(
            of(&["s/b.jsonl.gz", "s/*.txt", "./s"]).unwrap(),
            ["s/b.jsonl.gz", "s/a.txt", "s/deep/c.parquet"]
        );
        assert_eq!(of(&["**/*.parquet"]).unwrap(), ["s/deep/c.parquet"]);
        assert_eq!(of(&["s/README.md"]).unwrap(), ["s/README.md"]);
        // What exists is no glob.
        assert_eq!(of(&["x[1].txt"]).unwrap(), ["x[1].txt"]);
        let any = CorpusSpec {
            format: Some(Format::Text),
            ..CorpusSpec::new(["s"])
        };
        assert_eq!(names(&any, folder.path()).unwrap().len(), 4);
        for (paths, said) in [
            (&["*.jsonl"][..], "no file matches this glob"),
            (&["a/***"], "is not a glob"),
            (&["empty"], "no file below this folder"),
            (&[], "name at least one"),
        ] {
            let error = of(paths).unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
        assert_eq!(of(&["absent.txt"]).unwrap(), ["absent.txt"]);
    }
}
