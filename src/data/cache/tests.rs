use std::fs;

use tempfile::{TempDir, tempdir};

use super::*;
use crate::data::{Format, OnBad, Packed};

/// A corpus of three files, 60 documents.
fn corpus() -> (TempDir, CorpusSpec) {
    let folder = tempdir().unwrap();
    let line = |i: usize| format!("document {i} says {}", "word ".repeat(i % 7));
    let text: Vec<String> = (0..20).map(line).collect();
    fs::write(folder.path().join("a.txt"), text.join("\n\n")).unwrap();
    let json: Vec<String> = (20..40)
        .map(|i| serde_json::json!({ "text": line(i) }).to_string())
        .collect();
    fs::write(folder.path().join("b.jsonl"), json.join("\n")).unwrap();
    let csv: Vec<String> = (40..60).map(line).collect();
    fs::write(folder.path().join("c.csv"), format!("text\n{}\n", csv.join("\n"))).unwrap();
    (folder, CorpusSpec::new(["."]))
}

fn open(
    spec: &CorpusSpec,
    base: &Path,
    tokenizer: &Tokenizer,
    n: usize,
    cache: &Path,
) -> Result<Cached, DataError> {
    spec.cached(base, tokenizer, n, cache, &mut |_| {})
}

fn all(sequences: &dyn Sequences) -> Vec<u32> {
    sequences.range(0..sequences.len())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_same_tokens_as_in_memory() {
    let (folder, spec) = corpus();
    let cache = tempdir().unwrap();
    let tokenizer = Tokenizer::bytes();
    let (packed, report) = spec.pack(folder.path(), &tokenizer, 16).unwrap();
    let mut told = CacheProgress {
        documents: 0,
        tokens: 0,
    };
    let first = spec
        .cached(folder.path(), &tokenizer, 16, cache.path(), &mut |progress| {
            told = progress
        })
        .unwrap();
    assert_eq!(first.state, CacheState::Built);
    assert_eq!(told.documents, 60);
    assert_eq!((told.tokens / 16) as usize, packed.len());
    assert_eq!(first.report, report);
    assert_eq!(all(&first.sequences), packed.tokens());

    // Another length reads the same file.
    let again = open(&spec, folder.path(), &tokenizer, 5, cache.path()).unwrap();
    assert_eq!(again.state, CacheState::Found);
    let (packed, _) = spec.pack(folder.path(), &tokenizer, 5).unwrap();
    assert_eq!(all(&again.sequences), packed.tokens());
    let (train, held_out) = again.sequences.hold_out(0.3).unwrap();
    let (packed_train, packed_held_out) = packed.hold_out(0.3).unwrap();
    assert_eq!(all(&train), packed_train.tokens());
    assert_eq!(all(&held_out), packed_held_out.tokens());
    assert_eq!(names(cache.path()).len(), 1);
}

#[test]
fn what_was_read_decides_which_file() {
    let (folder, spec) = corpus();
    let cache = tempdir().unwrap();
    let bytes = Tokenizer::bytes();
    let key = |spec: &CorpusSpec, tokenizer: &Tokenizer| {
        open(spec, folder.path(), tokenizer, 8, cache.path())
            .unwrap()
            .path
    };
    let first = key(&spec, &bytes);
    // Another name is the same content.
    fs::rename(folder.path().join("a.txt"), folder.path().join("aa.txt")).unwrap();
    assert_eq!(key(&spec, &bytes), first);
    let texts = ["some letters"].map(Ok::<_, DataError>);
    let others = [
        key(&spec, &Tokenizer::characters(texts, 8).unwrap()),
        key(&CorpusSpec::new(["b.jsonl"]), &bytes),
        key(
            &CorpusSpec {
                format: Some(Format::Text),
                ..CorpusSpec::new(["b.jsonl"])
            },
            &bytes,
        ),
        {
            fs::write(folder.path().join("c.csv"), "text\nother").unwrap();
            key(&spec, &bytes)
        },
    ];
    assert!(!others.contains(&first));
    assert_eq!(names(cache.path()).len(), 5);
}

#[test]
fn a_vocabulary_beyond_two_bytes() {
    let folder = tempdir().unwrap();
    let text: String = (0x1_0000..0x2_2000).filter_map(char::from_u32).collect();
    fs::write(folder.path().join("a.txt"), &text).unwrap();
    let tokenizer = Tokenizer::characters([Ok(text.as_str())], 0x1_2000).unwrap();
    assert!(tokenizer.vocabulary().size > 1 << 16);
    let cached = open(
        &CorpusSpec::new(["a.txt"]),
        folder.path(),
        &tokenizer,
        64,
        folder.path(),
    )
    .unwrap();
    assert_eq!(tokenizer.decode(&all(&cached.sequences)).unwrap(), text);
}

#[test]
fn damage_is_found_and_mended() {
    let (folder, spec) = corpus();
    let cache = tempdir().unwrap();
    let tokenizer = Tokenizer::bytes();
    let open = || open(&spec, folder.path(), &tokenizer, 16, cache.path());
    let first = open().unwrap();
    let tokens = all(&first.sequences);
    let whole = fs::read(&first.path).unwrap();
    drop(first.sequences);
    let json_ends = whole.iter().rposition(|&byte| byte == b'}').unwrap();
    let mut damaged = Vec::new();
    for at in [9, 12, 40, json_ends, whole.len() - 1, whole.len() - 700] {
        let mut content = whole.clone();
        content[at] ^= 0x55;
        damaged.push(content);
    }
    for length in [0, 8, 11, 600, whole.len() / 2, whole.len() - 1] {
        damaged.push(whole[..length].to_vec());
    }
    damaged.push([&whole[..], &[0, 0]].concat());
    for (case, content) in damaged.into_iter().enumerate() {
        fs::write(&first.path, content).unwrap();
        let again = open().unwrap();
        assert!(
            matches!(again.state, CacheState::Rebuilt { .. }),
            "case {case}: {:?}",
            again.state
        );
        assert_eq!(all(&again.sequences), tokens, "case {case}");
    }

    // What was never a cache is nobody's to replace.
    fs::write(&first.path, "a letter").unwrap();
    let error = open().unwrap_err().to_string();
    assert!(error.contains("no token cache has its place"), "{error}");
    assert_eq!(fs::read(&first.path).unwrap(), b"a letter");
}

#[test]
fn several_at_once_make_it_once() {
    let (folder, spec) = corpus();
    let cache = tempdir().unwrap();
    let tokenizer = Tokenizer::bytes();
    let opened: Vec<Cached> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| open(&spec, folder.path(), &tokenizer, 16, cache.path()).unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let built = opened
        .iter()
        .filter(|cached| cached.state == CacheState::Built)
        .count();
    assert_eq!(built, 1);
    for cached in &opened {
        assert_eq!(all(&cached.sequences), all(&opened[0].sequences));
    }
    assert_eq!(names(cache.path()).len(), 1);
}

#[test]
fn nothing_is_left_of_what_failed_or_was_killed() {
    let (folder, spec) = corpus();
    let cache = tempdir().unwrap();
    let tokenizer = Tokenizer::bytes();
    fs::write(folder.path().join("d.jsonl"), "{\"text\": 3}").unwrap();
    let error = open(&spec, folder.path(), &tokenizer, 16, cache.path()).unwrap_err();
    assert!(matches!(error, DataError::Record { .. }), "{error}");
    assert!(names(cache.path()).is_empty());

    let skip = CorpusSpec {
        on_bad: OnBad::Skip,
        ..spec
    };
    let key = key::Key::new(skip.sha256(folder.path()).unwrap(), &tokenizer).unwrap();
    let unfinished = format!("{}.Xyz.unfinished", key.name());
    fs::write(cache.path().join(unfinished), "half").unwrap();
    fs::write(cache.path().join("another.unfinished"), "half").unwrap();
    let built = open(&skip, folder.path(), &tokenizer, 16, cache.path()).unwrap();
    assert_eq!(built.report.bad_records, 1);
    assert_eq!(names(cache.path()).len(), 2);
    // What was passed over is said again by those who find the cache.
    let found = open(&skip, folder.path(), &tokenizer, 16, cache.path()).unwrap();
    assert_eq!((found.state, found.report), (CacheState::Found, built.report));

    let short = open(&skip, folder.path(), &tokenizer, 1 << 20, cache.path());
    assert!(matches!(short, Err(DataError::TooFewTokens { .. })));
    let no_folder = open(&skip, folder.path(), &tokenizer, 16, &folder.path().join("a.txt")).unwrap_err();
    assert!(
        no_folder.to_string().contains("name another folder for caches"),
        "{no_folder}"
    );
}

/// Reasons longer than the room for the header cost the reasons, never the tokens.
#[test]
fn a_long_report_fits() {
    let folder = tempdir().unwrap();
    // Six bytes for each character in a reason.
    let field = "\u{1}".repeat(1000);
    let bad = serde_json::json!({ &field: 3 });
    let good = serde_json::json!({ &field: "good text" });
    let lines = format!("{}{good}", format!("{bad}\n").repeat(30));
    fs::write(folder.path().join("a.jsonl"), lines).unwrap();
    let spec = CorpusSpec {
        on_bad: OnBad::Skip,
        field: Some(field),
        ..CorpusSpec::new(["a.jsonl"])
    };
    let tokenizer = Tokenizer::bytes();
    let cached = open(&spec, folder.path(), &tokenizer, 9, folder.path()).unwrap();
    assert_eq!(tokenizer.decode(&all(&cached.sequences)).unwrap(), "good text");
    assert_eq!(cached.report.bad_records, 30);
    let packed = Packed::new(spec.documents(folder.path()).unwrap(), &tokenizer, 9).unwrap();
    assert_eq!(packed.tokens(), all(&cached.sequences));
}
