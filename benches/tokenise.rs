//! From text to batches: `cargo bench --bench tokenise`.
//!
//! Tokens a second, from a compressed file into the cache and into memory, and the time of a batch. Text and
//! vocabulary are those of the environment's `WQK_TEXT` and `WQK_VOCAB`; without them, the bundled dump's.

use std::path::{Path, PathBuf};
use std::time::Instant;

use wqk::data::{Batches, CorpusSpec, Documents, Packed, Sequences, Tokenizer, bundled};

const LENGTH: usize = 512;
const BATCH: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let text = set("WQK_TEXT").unwrap_or_else(|| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/wikipedia/enwiki-2016-extract.xml.bz2")
    });
    let tokenizer = match set("WQK_VOCAB") {
        Some(file) => Tokenizer::from_file(file)?,
        None => bundled::tokenizer()?,
    };
    println!("{}, {}", text.display(), tokenizer.name().display());

    let begin = Instant::now();
    let mut characters = 0;
    for document in Documents::open(&text)? {
        characters += document?.with_title().chars().count();
    }
    let reading = begin.elapsed().as_secs_f64();
    println!("read     {reading:8.3} s  {characters} characters");

    let begin = Instant::now();
    let packed = Packed::new(Documents::open(&text)?, &tokenizer, LENGTH)?;
    let report = |what: &str, tokens: usize, seconds: f64| {
        println!(
            "{what:8} {seconds:8.3} s  {tokens} tokens  {:.2} million tokens/s",
            tokens as f64 / seconds / 1e6
        );
    };
    report("memory", packed.tokens().len(), begin.elapsed().as_secs_f64());

    let folder = tempfile::tempdir()?;
    let spec = CorpusSpec::new([text.to_string_lossy()]);
    for what in ["build", "open"] {
        let begin = Instant::now();
        let cached = spec.cached(Path::new(""), &tokenizer, LENGTH, folder.path(), &mut |_| {})?;
        report(
            what,
            cached.sequences.len() * LENGTH,
            begin.elapsed().as_secs_f64(),
        );
        if what == "open" {
            let batches = Batches::new(&cached.sequences, BATCH, 0)?;
            const STEPS: u64 = 1000;
            let begin = Instant::now();
            let mut sum = 0_u64;
            for step in 0..STEPS {
                sum += u64::from(batches.batch(step)[0]);
            }
            let each = begin.elapsed().as_secs_f64() / STEPS as f64;
            println!(
                "batch    {:8.3} ms of {BATCH} × {LENGTH} tokens (check {sum})",
                1e3 * each
            );
        }
    }
    Ok(())
}
