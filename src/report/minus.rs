//! The minus sign of negative numbers: ASCII where a text is read in a terminal or by a program (tables, CSV, JSON,
//! Markdown), typographic where it is set (figures, HTML, LaTeX).
//!
//! Numbers are written with the ASCII sign everywhere; what sets a text calls [`typeset`].

use std::borrow::Cow;

/// The text with the sign of each negative number as `−`; hyphens in names, dates and ranges stay.
pub(crate) fn typeset(text: &str) -> Cow<'_, str> {
    if !text.contains('-') {
        return text.into();
    }
    let mut set = String::with_capacity(text.len() + 2);
    // The character before, and the one before that.
    let (mut last, mut second) = (None, None);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let of_number = rest.peek().is_some_and(char::is_ascii_digit);
        let is_sign = c == '-' && of_number && may_precede_sign(second, last);
        set.push(if is_sign { '−' } else { c });
        (second, last) = (last, Some(c));
    }
    set.into()
}

/// Whether what stands before a hyphen lets it be a sign: nothing, a space, a bracket or operator, or the `e` of an exponent.
fn may_precede_sign(second: Option<char>, last: Option<char>) -> bool {
    match last {
        None => true,
        Some('e' | 'E') => second.is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_whitespace() || "([{,;=<>≤≥≈±×·|/".contains(c),
    }
}

/// A text that was written to be set, such as a formula, with ASCII signs.
#[cfg(feature = "cli")]
pub(crate) fn ascii(text: &str) -> String {
    text.replace('−', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_set_and_hyphens_stay() {
        for (text, set) in [
            ("-0.08", "−0.08"),
            ("-0.4 [-0.5, -0.3]", "−0.4 [−0.5, −0.3]"),
            ("1.90e-6", "1.90e−6"),
            ("s in (-1, 1), d=-2", "s in (−1, 1), d=−2"),
            (
                "gpt-2 of 2024-01-05, 3-4 layers",
                "gpt-2 of 2024-01-05, 3-4 layers",
            ),
            ("a-b - c, step-100, re-1", "a-b - c, step-100, re-1"),
        ] {
            assert_eq!(typeset(text), set);
            #[cfg(feature = "cli")]
            assert_eq!(ascii(&typeset(text)), text);
        }
    }
}
