//! The fuzz targets' bodies over mutated seeds: a little of what `fuzz/` does at length, on every test run.

use std::path::Path;

use rand_chacha::rand_core::Rng;

use crate::checkpoint::format::fuzz;
use crate::random;

/// Mutants of each seed, if the environment's `WQK_MUTANTS` says nothing else.
const MUTANTS: usize = 400;

/// Changes a few bytes, or cuts, repeats or moves a stretch, as fuzzers do.
fn mutate(bytes: &mut Vec<u8>, rng: &mut impl Rng) {
    for _ in 0..=rng.next_u32() % 3 {
        if bytes.is_empty() {
            return;
        }
        let at = rng.next_u32() as usize % bytes.len();
        let length = (rng.next_u32() as usize % 16).min(bytes.len() - at);
        match rng.next_u32() % 6 {
            0 => bytes[at] ^= 1 << (rng.next_u32() % 8),
            1 => bytes[at] = rng.next_u32() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let stretch = bytes[at..at + length].to_vec();
                let to = rng.next_u32() as usize % bytes.len();
                bytes.splice(to..to, stretch);
            }
            // Lengths and counts at their limits.
            _ => {
                let limit = [0, 0x7f, 0x80, 0xff][rng.next_u32() as usize % 4];
                bytes[at..at + length.min(8)].fill(limit);
            }
        }
    }
}

fn check(target: fn(&[u8]), folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    if !folder.exists() {
        println!("skipped: {} is not part of a packaged crate", folder.display());
        return;
    }
    let asked = std::env::var("WQK_MUTANTS")
        .ok()
        .and_then(|text| text.parse().ok());
    let mutants: usize = asked.unwrap_or(MUTANTS);
    let mut seeds = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "py") {
            continue;
        }
        seeds += 1;
        let seed = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut rng = random::stream(0, ["mutants", name.as_str()]);
        target(&seed);
        for _ in 0..mutants {
            let mut mutant = seed.clone();
            mutate(&mut mutant, &mut rng);
            target(&mutant);
        }
    }
    assert!(seeds > 0, "no seeds in {}", folder.display());
}

#[test]
fn no_mutant_breaks_a_reader() {
    check(fuzz::safetensors, "fuzz/seeds/safetensors");
    check(fuzz::index, "fuzz/seeds/index");
    check(fuzz::pickle, "fuzz/seeds/pickle");
    check(fuzz::zip, "tests/fixtures/torch");
    check(fuzz::legacy, "tests/fixtures/torch");
    check(fuzz::legacy, "fuzz/seeds/legacy");
}
