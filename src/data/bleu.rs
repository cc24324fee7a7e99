//! BLEU, as sacreBLEU computes it.

use std::collections::HashMap;

/// The longest n-gram.
const ORDER: usize = 4;

/// The BLEU score of a system's translations, and what it is made of.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Bleu {
    /// From 0 to 100.
    pub score: f64,
    /// Precisions of n-grams of one to four words, in percent.
    pub precisions: [f64; ORDER],
    /// The penalty for translations that are shorter than the references.
    pub brevity_penalty: f64,
    /// Words of the translations.
    pub system_length: usize,
    /// Words of the references.
    pub reference_length: usize,
}

impl Bleu {
    /// The signature under which sacreBLEU gives the same score.
    pub const SIGNATURE: &'static str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

    /// The score of a corpus: pairs of a translation and its reference.
    ///
    /// Mixed case, one reference, tokenizer 13a, exponential smoothing; the defaults of sacreBLEU.
    ///
    /// # Source
    /// Papineni et al. 2002; Post 2018; mteval-v13a for tokenizer and smoothing.
    ///
    /// # Examples
    /// ```
    /// use wqk::data::Bleu;
    /// let bleu = Bleu::of_corpus([("the cat sat on the mat .", "the cat sat on the mat .")]);
    /// assert_eq!(bleu.score.round(), 100.0);
    /// ```
    pub fn of_corpus<S: AsRef<str>>(pairs: impl IntoIterator<Item = (S, S)>) -> Self {
        let (mut correct, mut total) = ([0_usize; ORDER], [0_usize; ORDER]);
        let (mut system_length, mut reference_length) = (0, 0);
        for (system, reference) in pairs {
            let [system, reference] = [system, reference].map(|text| tokenize_13a(text.as_ref()));
            let (system, reference) = (words(&system), words(&reference));
            system_length += system.len();
            reference_length += reference.len();
            for n in 1..=ORDER {
                let counts = ngrams(&reference, n);
                for (ngram, count) in ngrams(&system, n) {
                    total[n - 1] += count;
                    correct[n - 1] += count.min(counts.get(ngram).copied().unwrap_or(0));
                }
            }
        }
        Self::of_counts(correct, total, system_length, reference_length)
    }

    fn of_counts(
        correct: [usize; ORDER],
        total: [usize; ORDER],
        system_length: usize,
        reference_length: usize,
    ) -> Self {
        let brevity_penalty = if system_length >= reference_length {
            1.0
        } else if system_length > 0 {
            (1.0 - reference_length as f64 / system_length as f64).exp()
        } else {
            0.0
        };
        let mut precisions = [0.0; ORDER];
        let mut score = 0.0;
        if correct.iter().any(|&count| count > 0) {
            let mut smoothing = 1.0;
            for n in 0..ORDER {
                if total[n] == 0 {
                    break;
                }
                precisions[n] = if correct[n] == 0 {
                    smoothing *= 2.0;
                    100.0 / (smoothing * total[n] as f64)
                } else {
                    100.0 * correct[n] as f64 / total[n] as f64
                };
            }
            // A precision of 0, where no translation has n words, makes the score 0.
            let logs: f64 = precisions.iter().map(|p| p.ln()).sum();
            score = brevity_penalty * (logs / ORDER as f64).exp();
        }
        Self {
            score,
            precisions,
            brevity_penalty,
            system_length,
            reference_length,
        }
    }
}

fn ngrams<'a, 'b>(words: &'b [&'a str], n: usize) -> HashMap<&'b [&'a str], usize> {
    let mut counts = HashMap::new();
    for ngram in words.windows(n) {
        *counts.entry(ngram).or_insert(0) += 1;
    }
    counts
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').filter(|word| !word.is_empty()).collect()
}

/// The tokenizer of mteval-v13a: words and punctuation apart by single spaces, periods and commas within numbers kept.
pub fn tokenize_13a(text: &str) -> String {
    let text = text.trim_end_matches(is_space);
    let mut text = text
        .replace("<skipped>", "")
        .replace("-\n", "")
        .replace('\n', " ");
    if text.contains('&') {
        for (entity, character) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
            text = text.replace(entity, character);
        }
    }
    let digit = |c: char| c.is_ascii_digit();
    let mark = |c: char| matches!(c, '.' | ',');
    // Each rule runs over the whole line before the next does.
    let mut line: Vec<char> = Vec::with_capacity(text.len() + 2);
    line.push(' ');
    for c in text.chars() {
        if matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/') {
            line.extend([' ', c, ' ']);
        } else {
            line.push(c);
        }
    }
    line.push(' ');
    let line = pairs(&line, |a, b| !digit(a) && mark(b), |a, b| vec![a, ' ', b, ' ']);
    let line = pairs(&line, |a, b| mark(a) && !digit(b), |a, b| vec![' ', a, ' ', b]);
    let line = pairs(&line, |a, b| digit(a) && b == '-', |a, b| vec![a, ' ', b, ' ']);
    let line: String = line.into_iter().collect();
    let words: Vec<&str> = line.split(is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Replaces pairs of characters from left to right, none of which overlap.
fn pairs(
    line: &[char],
    applies: impl Fn(char, char) -> bool,
    replacement: impl Fn(char, char) -> Vec<char>,
) -> Vec<char> {
    let mut out = Vec::with_capacity(line.len() * 2);
    let mut i = 0;
    while i < line.len() {
        match line.get(i + 1) {
            Some(&next) if applies(line[i], next) => {
                out.extend(replacement(line[i], next));
                i += 2;
            }
            _ => {
                out.push(line[i]);
                i += 1;
            }
        }
    }
    out
}

/// White space as Python's `str.split` knows it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Case {
        pairs: Vec<(String, String)>,
        tokens: Vec<(String, String)>,
        score: f64,
        precisions: [f64; ORDER],
        brevity_penalty: f64,
        lengths: [usize; 2],
    }

    /// Values of sacreBLEU 2.6.0, written by `bleu/make.py`.
    #[test]
    fn scores_are_those_of_sacrebleu() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("bleu/sacrebleu.json")).unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            for ((system, reference), (a, b)) in case.pairs.iter().zip(&case.tokens) {
                assert_eq!(&tokenize_13a(system), a);
                assert_eq!(&tokenize_13a(reference), b);
            }
            let got = Bleu::of_corpus(case.pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())));
            // Both compute in f64, from the same counts.
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b} in {:?}", case.pairs);
            close(got.score, case.score);
            close(got.brevity_penalty, case.brevity_penalty);
            for (a, b) in got.precisions.iter().zip(case.precisions) {
                close(*a, b);
            }
            assert_eq!([got.system_length, got.reference_length], case.lengths);
        }
    }

    #[test]
    fn nothing_scores_0() {
        assert_eq!(Bleu::of_corpus::<&str>([]).score, 0.0);
        assert_eq!(Bleu::of_corpus([("", "a reference")]).score, 0.0);
    }
}
