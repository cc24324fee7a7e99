use super::*;

fn stripped(markup: &str) -> String {
    strip(markup, &Namespaces::default())
}

/// Markup and what a reader of the page sees of it, piece by piece.
#[test]
fn inline_markup() {
    for (markup, text) in [
        (
            "'''Bold''' and ''italic'' and '''''both'''''.",
            "Bold and italic and both.",
        ),
        ("the ''dogs''' tails, l''''a'''", "the dogs tails, l'a"),
        ("[[Bus]]es and [[Tram (rail)|trams]]", "Buses and trams"),
        (
            "[[:Category:Ships]] [[Category:Ships]]shown",
            "Category:Ships shown",
        ),
        ("a [[File:x.jpg|thumb|with [[links]] and {{templates}}]] b", "a b"),
        ("text [[fr:Texte]][[zh-min-nan:X]][[simple:Text]]", "text"),
        (
            "[[wikt:word|word]] and [[Star Wars: Episode I]]",
            "word and Star Wars: Episode I",
        ),
        (
            "see [http://example.org/a?b=c the page] or [http://example.org]",
            "see the page or",
        ),
        ("an array[0] of [sic] things", "an array[0] of [sic] things"),
        (
            "one<ref>hidden [[x]]</ref> two<ref name=\"a\" /> three<REF group=n>y</REF >.",
            "one two three.",
        ),
        (
            "H<sub>2</sub>O, <span style=\"x\">kept</span>, a < b",
            "H2O, kept, a < b",
        ),
        (
            "<nowiki>''[[not]] {{markup}}''</nowiki>",
            "''[[not]] {{markup}}''",
        ),
        (
            "where <math>x + y</math> and <math>\\frac{1}{2}</math>.",
            "where x + y and.",
        ),
        ("a<!-- hidden -->b <!-- never closed", "ab"),
        (
            "caf&eacute; &amp; T&#233;l&#xE9;, 5&nbsp;km, AT&T; &bogus;",
            "café & Télé, 5 km, AT&T; &bogus;",
        ),
        ("__NOTOC__text with __two__ bars", "text with __two__ bars"),
        (
            "born (, {{x}}; 1901) and ({{x}}) and [ ] here , there",
            "born (1901) and and here, there",
        ),
        ("the values <math>\\bar x</math> . Next", "the values. Next"),
        ("soft\u{ad}hyphen \u{200e}left", "softhyphen left"),
    ] {
        assert_eq!(stripped(markup), text, "{markup}");
    }
}

#[test]
fn templates() {
    for (markup, text) in [
        ("a {{cite|x={{nested|{{deep}}}}}} b", "a b"),
        (
            "{{lang|fr|mot}}, {{lang-de|Wort}}, {{transl|ru|slovo}}",
            "mot, Wort, slovo",
        ),
        (
            "{{convert|10|km|mi|abbr=on}}, {{convert|3|to|5|ft}}, {{cvt|1|-|2|m}}",
            "10 km, 3 to 5 ft, 1–2 m",
        ),
        ("{{nowrap|[[A|B]] {{frac|1|2}}}} {{Chem|H|2|O}}", "B 1/2 H2O"),
        (
            "1{{ndash}}2 {{formatnum:1234}} {{as of|2010}}",
            "1–2 1234 As of 2010",
        ),
    ] {
        assert_eq!(stripped(markup), text, "{markup}");
    }
}

#[test]
fn blocks() {
    let page = "{{Infobox\n| a = b\n}}\nLead.\n\n\n== History ==\n=== Early ===\n* one\n** two\n#three\n:four\n\
                ; term : meaning\n----\n== Empty ==\n{|\n! head\n|-\n| {{x|}}\n{| \n| nested\n|}\n|}\n\
                == See also ==\n* [[Other]]\n=== Sub ===\nalso passed over\n== Last==\nEnd.\n";
    assert_eq!(
        stripped(page),
        "Lead.\nHistory\nEarly\none\ntwo\nthree\nfour\nterm : meaning\nLast\nEnd."
    );
}

#[test]
fn namespaces_of_the_wiki() {
    let mut namespaces = Namespaces::default();
    assert!(!namespaces.begin("0"));
    assert!(namespaces.begin("6"));
    namespaces.name("Фа");
    namespaces.name("йл");
    assert_eq!(
        strip("а [[Файл:x.jpg|мини]] [[Image:y.png]] б", &namespaces),
        "а б"
    );
}

#[test]
fn redirects() {
    assert!(is_redirect(" #REDIRECT [[A]]"));
    assert!(is_redirect("#redirect[[A]]"));
    assert!(!is_redirect("A #redirect"));
    assert!(!is_redirect("#редирект"));
}

/// What is never closed, or never opened, loses its brackets and no text.
#[test]
fn unbalanced_markup_keeps_the_text() {
    for (markup, text) in [
        ("a {{b c", "a b c"),
        ("a }} b ]] c |} d", "a b c |} d"),
        ("a [[b {{c|d]] }} e", "a b e"),
        ("{{a [[b}} c]]", "c"),
        ("a <ref>b", "a b"),
        ("a <", "a <"),
        ("a &", "a &"),
        ("[http://x y\nz", "http://x y\nz"),
    ] {
        assert_eq!(stripped(markup), text, "{markup}");
    }
}

/// Runs of openings and endings that would make a scanner look back, or ahead, at all of them each time.
/// A quadratic one takes minutes for these; a tenth of a second is plenty for a linear one.
#[test]
fn hostile_pages_take_linear_time() {
    let n = 200_000;
    for unit in [
        "{{",
        "[[",
        "}}",
        "]]",
        "[[}}",
        "[http://x ",
        "<ref>",
        "<b",
        "</ref",
        "<ref></ref",
        "<!--",
        "&",
        "''",
        "{|\n",
        "|}\n",
        "(",
        "( ) ",
        "=",
    ] {
        let page = unit.repeat(n);
        let start = std::time::Instant::now();
        stripped(&page);
        assert!(start.elapsed().as_secs() < 5, "{unit}: {:?}", start.elapsed());
    }
    for (open, close) in [("{{", "]]"), ("[[", "}}"), ("{{[[", "}}"), ("[[[http://x ", "]")] {
        let page = open.repeat(n) + &close.repeat(n);
        let start = std::time::Instant::now();
        stripped(&page);
        assert!(
            start.elapsed().as_secs() < 5,
            "{open}{close}: {:?}",
            start.elapsed()
        );
    }
}

proptest::proptest! {
    /// Whatever is thrown at it, no line is blank or padded, and nothing panics.
    #[test]
    fn any_text_gives_tidy_lines(page in "([a-z ]|\\{\\{|\\}\\}|\\[\\[|\\]\\]|\\{\\||\\|\\}|\\||''|<ref>|</ref>|<|>|&|;|=|\n|é|http://|\\(|\\)|,){0,60}") {
        for line in stripped(&page).lines() {
            proptest::prop_assert!(!line.trim().is_empty() && line.trim() == line, "{line:?}");
        }
    }
}
