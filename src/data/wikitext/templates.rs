//! The few templates that stand inside sentences and would be missed.

/// The text of a template, given what is between its braces; `None` for all that are dropped.
pub(super) fn text(content: &str) -> Option<String> {
    let mut parts = content.split('|').map(str::trim);
    let name = parts.next()?.replace('_', " ").to_lowercase();
    // Positional arguments; those given by number count too.
    let arguments: Vec<&str> = parts
        .filter_map(|part| match part.split_once('=') {
            None => Some(part),
            Some((key, value)) if key.trim().parse::<u8>().is_ok() => Some(value.trim()),
            // A link's address may hold an equals sign, a named argument has a plain name.
            Some((key, _)) if key.contains(['/', '?', ' ']) => Some(part),
            Some(_) => None,
        })
        .collect();
    let argument = |i: usize| arguments.get(i).copied().filter(|text| !text.is_empty());
    let first = || argument(0).map(str::to_owned);
    match name.as_str() {
        "nowrap" | "nobr" | "nowiki" | "small" | "big" | "smaller" | "larger" | "resize" | "abbr" | "sc"
        | "smallcaps" | "em" | "strong" | "math" | "mvar" | "var" | "val" | "unicode" | "nihongo" | "ill"
        | "interlanguage link" | "quote" | "blockquote" | "cquote" | "quotation" | "quote box"
        | "poemquote" | "formatnum" | "tooltip" | "linktext" | "vanchor" | "visible anchor"
        | "not a typo" | "notatypo" | "title case" | "angle bracket" | "okina" | "bce" | "u" | "nee" => {
            first()
        }
        "lang" | "rtl-lang" | "script" | "font" | "color" | "wikt-lang" => argument(1).map(str::to_owned),
        "transl" | "transliteration" => arguments.last().map(|&text| text.to_owned()),
        "convert" | "cvt" => convert(&arguments),
        "frac" | "sfrac" | "fraction" => match arguments.as_slice() {
            [below] => Some(format!("1/{below}")),
            [above, below] => Some(format!("{above}/{below}")),
            [whole, above, below] => Some(format!("{whole} {above}/{below}")),
            _ => None,
        },
        "chem" | "chem2" | "gaps" | "sub" | "sup" | "su" => Some(arguments.concat()),
        "e" => argument(0).map(|exponent| format!("×10^{exponent}")),
        "as of" => argument(0).map(|date| format!("As of {date}")),
        "circa" | "c." => argument(0).map(|date| format!("c. {date}")),
        "nbsp" | "space" | "spaces" => Some(" ".to_owned()),
        "ndash" | "en dash" | "–" => Some("–".to_owned()),
        "mdash" | "em dash" | "—" => Some("—".to_owned()),
        "spaced ndash" | "spaced en dash" | "snd" | "spnd" | "sndash" | "spndash" => Some(" – ".to_owned()),
        "dot" | "·" | "middot" => Some(" · ".to_owned()),
        "'" | "apos" => Some("'".to_owned()),
        "'s" => Some("'s".to_owned()),
        "\"" | "''" => Some("\"".to_owned()),
        "=" => Some("=".to_owned()),
        "!" => Some("|".to_owned()),
        "sic" => argument(0).map(str::to_owned),
        _ => {
            let of_language = name.starts_with("lang-") && !arguments.is_empty();
            of_language.then(first).flatten().or_else(|| {
                content
                    .trim()
                    .strip_prefix("formatnum:")
                    .map(|n| n.trim().to_owned())
            })
        }
    }
}

/// `{{convert|10|km|mi}}` reads "10 km", `{{convert|10|to|12|km}}` "10 to 12 km".
fn convert(arguments: &[&str]) -> Option<String> {
    let (first, rest) = arguments.split_first()?;
    match rest {
        [] => Some((*first).to_owned()),
        [joint, second, unit, ..] if is_joint(joint) => {
            let joint = if matches!(*joint, "-" | "–") {
                "–".to_owned()
            } else {
                format!(" {} ", joint.trim_matches(['(', ')']))
            };
            Some(format!("{first}{joint}{second} {unit}"))
        }
        [unit, ..] => Some(format!("{first} {unit}")),
    }
}

fn is_joint(word: &str) -> bool {
    matches!(
        word,
        "-" | "–" | "to" | "and" | "or" | "by" | "x" | "×" | "to(-)" | "+/-" | "±"
    )
}
