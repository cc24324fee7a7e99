//! Trains the bundled word pieces on the bundled text, and prints them, one a line, as BERT's `vocab.txt`.
//!
//! `cargo run --release --example bundled_tokenizer > assets/wikipedia/vocab.txt`

use std::collections::BTreeMap;

use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, Result, Trainer,
};
use wqk::data::bundled;

const PIECES: usize = 4096;
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
/// A word with a character that occurs less often than this in the whole text is left out.
const RARE: usize = 50;

/// Where characters inside a word are moved, to tell them from those that begin one: a private plane. The
/// trainer numbers its alphabet by code point, so the result is the same at every run; `##` prefixes it
/// would number in the order of a hash map, and by these numbers break ties.
const INSIDE: u32 = 0xf_0000;

fn main() -> Result<()> {
    let mut counts = BTreeMap::new();
    let mut texts = Vec::new();
    for document in bundled::documents()? {
        let words = words(&document?.with_title())?;
        for character in words.iter().flat_map(|word| word.chars()) {
            *counts.entry(character).or_insert(0) += 1;
        }
        texts.push(words);
    }
    let mut trainer = BpeTrainer::builder()
        .vocab_size(PIECES - SPECIAL.len())
        .show_progress(false)
        .build();
    trainer.feed(texts.iter().flatten(), |word| {
        let is_common = word.chars().all(|character| counts[&character] >= RARE);
        Ok(is_common.then(|| mark(word)).into_iter().collect())
    })?;
    let mut model = BPE::default();
    trainer.train(&mut model)?;

    let pieces: BTreeMap<u32, String> = model
        .get_vocab()
        .into_iter()
        .map(|(piece, id)| (id, piece))
        .collect();
    for name in SPECIAL {
        println!("{name}");
    }
    for piece in pieces.values() {
        println!("{}", unmark(piece));
    }
    Ok(())
}

/// Moves all characters but the first to the private plane.
fn mark(word: &str) -> String {
    let inside = |character: char| char::from_u32(character as u32 + INSIDE).unwrap_or(character);
    let mut characters = word.chars();
    characters
        .next()
        .into_iter()
        .chain(characters.map(inside))
        .collect()
}

/// The piece that a marked one stands for.
fn unmark(piece: &str) -> String {
    let is_inside = |character: char| character as u32 >= INSIDE;
    let plain = piece.chars().map(|character| {
        let moved_back = (character as u32).checked_sub(INSIDE).and_then(char::from_u32);
        moved_back.unwrap_or(character)
    });
    let prefix = if piece.starts_with(is_inside) { "##" } else { "" };
    prefix.chars().chain(plain).collect()
}

/// The words of a text as BERT parts them: lower case, no accents, punctuation apart.
fn words(text: &str) -> Result<Vec<String>> {
    let mut parted = PreTokenizedString::from(text);
    parted.normalize(|part| BertNormalizer::default().normalize(part))?;
    BertPreTokenizer.pre_tokenize(&mut parted)?;
    Ok(parted
        .get_splits(OffsetReferential::Normalized, OffsetType::None)
        .into_iter()
        .map(|(word, ..)| word.to_owned())
        .collect())
}
