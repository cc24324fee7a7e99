//! The second pass: lines put in order.

/// Sections that hold no prose, by their English titles.
const LISTS: [&str; 14] = [
    "see also",
    "references",
    "external links",
    "further reading",
    "notes",
    "notes and references",
    "references and notes",
    "footnotes",
    "citations",
    "bibliography",
    "sources",
    "works cited",
    "gallery",
    "explanatory notes",
];

/// Arranges the lines of a page from which the markup inside lines has been taken.
pub(super) fn arrange(text: &str) -> String {
    let mut arranged = String::with_capacity(text.len());
    // Headings that wait for a line of text below them, and the level of a section that is passed over.
    let mut waiting: Vec<(usize, String)> = Vec::new();
    let mut passed_over: Option<usize> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some((level, title)) = heading(line) {
            waiting.retain(|&(above, _)| above < level);
            if passed_over.is_none_or(|above| level <= above) {
                passed_over = LISTS.contains(&title.to_lowercase().as_str()).then_some(level);
            }
            if passed_over.is_none() && !title.is_empty() {
                waiting.push((level, tidy(title)));
            }
            continue;
        }
        if passed_over.is_some() || line.starts_with(['|', '{']) || line.starts_with("----") {
            continue;
        }
        let line = tidy(line.trim_start_matches(['*', '#', ':', ';', ' ']));
        let line = line.strip_prefix(". ").unwrap_or(&line);
        if !line.chars().any(char::is_alphanumeric) {
            continue;
        }
        for (_, title) in waiting.drain(..) {
            arranged.push_str(&title);
            arranged.push('\n');
        }
        arranged.push_str(line);
        arranged.push('\n');
    }
    arranged.truncate(arranged.trim_end().len());
    arranged
}

/// The level and the title of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|&byte| byte == b'=').count();
    let closing = line.bytes().rev().take_while(|&byte| byte == b'=').count();
    let level = level.min(closing);
    (level >= 1 && line.len() > 2 * level).then(|| (level, line[level..line.len() - level].trim()))
}

/// One space between words, and none of the traces that dropped templates leave: `( , 1901)`, `word ,`,
/// `()`.
fn tidy(line: &str) -> String {
    let mut tidied = String::with_capacity(line.len());
    let mut space = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{ad}' | '\u{feff}' | '\u{2060}' => continue,
            _ if character.is_whitespace() || character.is_control() => {
                space = true;
                continue;
            }
            _ => {}
        }
        let after_opening = tidied.ends_with(['(', '[']);
        match character {
            ')' | ']' if after_opening => {
                tidied.pop();
                // The space before the bracket stands for the one after it.
                space = tidied.ends_with(' ');
                tidied.truncate(tidied.trim_end().len());
                continue;
            }
            ',' | ';' | ':' if after_opening => continue,
            ')' | ']' => {
                let kept = tidied.trim_end_matches([' ', ',', ';']).len();
                tidied.truncate(kept);
                if tidied.ends_with(['(', '[']) {
                    tidied.pop();
                    space = tidied.ends_with(' ');
                    tidied.truncate(tidied.trim_end().len());
                    continue;
                }
            }
            ',' | ';' if space => {}
            '.' if space && characters.peek().is_none_or(|next| next.is_whitespace()) => {}
            _ if space && !after_opening && !tidied.is_empty() => tidied.push(' '),
            _ => {}
        }
        space = false;
        tidied.push(character);
    }
    tidied
}
