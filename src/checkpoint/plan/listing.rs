//! What a file holds, for those who have to describe it.

use std::collections::BTreeMap;

use super::Store;
use crate::checkpoint::format::Short;

/// The distinct parameter names of a file that look like attention, numbers left open, for error messages.
pub(in crate::checkpoint) fn attention_like(store: &Store) -> String {
    const WORDS: [&str; 11] = [
        "attn",
        "attention",
        "q_proj",
        "k_proj",
        "query",
        "key",
        "qkv",
        "q_lin",
        "k_lin",
        "wq",
        "wk",
    ];
    const SHOWN: usize = 8;
    let mut found: BTreeMap<(String, &[usize]), usize> = BTreeMap::new();
    for name in store.names() {
        let Some(info) = store.info(name).filter(|info| info.shape.len() == 2) else {
            continue;
        };
        let lower = name.to_ascii_lowercase();
        if WORDS.iter().any(|word| lower.contains(word)) {
            let open: Vec<_> = name
                .split('.')
                .map(|part| if part.parse::<u32>().is_ok() { "{l}" } else { part })
                .collect();
            *found.entry((open.join("."), &info.shape)).or_default() += 1;
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let shown: Vec<_> = found
        .iter()
        .take(SHOWN)
        .map(|((name, shape), count)| format!("{} {shape:?} x{count}", Short(name)))
        .collect();
    let more = if found.len() > SHOWN {
        format!(" and {} more", found.len() - SHOWN)
    } else {
        String::new()
    };
    format!("it holds {}{more}; ", shown.join(", "))
}
