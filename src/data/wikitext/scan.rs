//! The first pass: markup taken apart, text left.

use super::{Namespaces, entities, templates};

/// Elements whose content is no text of the article.
const DROPPED: [&str; 20] = [
    "ref",
    "references",
    "math",
    "chem",
    "ce",
    "gallery",
    "timeline",
    "score",
    "syntaxhighlight",
    "source",
    "imagemap",
    "templatestyles",
    "mapframe",
    "maplink",
    "hiero",
    "graph",
    "inputbox",
    "table",
    "style",
    "script",
];

/// Elements that end a line.
const BREAKING: [&str; 12] = [
    "br",
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "dl",
    "dd",
    "dt",
    "hr",
    "center",
    "blockquote",
];

/// Elements that are only taken off their content.
const INLINE: [&str; 38] = [
    "nowiki",
    "noinclude",
    "includeonly",
    "onlyinclude",
    "section",
    "poem",
    "span",
    "small",
    "big",
    "sub",
    "sup",
    "i",
    "b",
    "u",
    "s",
    "em",
    "strong",
    "font",
    "tt",
    "code",
    "cite",
    "abbr",
    "del",
    "ins",
    "kbd",
    "samp",
    "var",
    "q",
    "dfn",
    "strike",
    "pre",
    "ruby",
    "rt",
    "rp",
    "bdi",
    "bdo",
    "mark",
    "time",
];

/// How deep markup may be nested; what would open more is left out. Pages nest a handful of levels, and
/// text is copied once a level when it closes.
const DEEPEST: usize = 100;

/// What is open, and the text gathered in it so far.
struct Frame {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Template,
    Table,
    Link,
    External,
}

struct Scanner<'a> {
    markup: &'a str,
    at: usize,
    /// Never empty: the page lies at the bottom.
    frames: Vec<Frame>,
    open_templates: usize,
    open_tables: usize,
    /// Elements of which no end is left further on (`>` where no tag ends any more), so that it is not
    /// looked for again and again.
    unclosed: Vec<&'static str>,
    namespaces: &'a Namespaces,
}

/// The text of a page with its markup taken out, lines not yet arranged.
pub(super) fn scan(markup: &str, namespaces: &Namespaces) -> String {
    let mut scanner = Scanner {
        markup,
        at: 0,
        frames: vec![Frame {
            kind: Kind::Page,
            text: String::with_capacity(markup.len() / 2),
        }],
        open_templates: 0,
        open_tables: 0,
        unclosed: Vec::new(),
        namespaces,
    };
    scanner.run();
    while scanner.frames.len() > 1 {
        scanner.abandon();
    }
    scanner.frames.pop().map(|page| page.text).unwrap_or_default()
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        while self.at < self.markup.len() {
            let rest = self.rest();
            let plain = rest
                .bytes()
                .position(|byte| {
                    matches!(
                        byte,
                        b'<' | b'&' | b'{' | b'|' | b'}' | b'[' | b']' | b'\'' | b'_' | b'\n'
                    )
                })
                .unwrap_or(rest.len());
            if plain > 0 {
                self.push(&rest[..plain]);
                self.at += plain;
            } else {
                self.special();
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.markup[self.at..]
    }

    fn top(&self) -> Kind {
        self.frames.last().map_or(Kind::Page, |frame| frame.kind)
    }

    fn push(&mut self, text: &str) {
        if let Some(frame) = self.frames.last_mut() {
            frame.text.push_str(text);
        }
    }

    /// Takes `length` bytes of markup as text.
    fn literal(&mut self, length: usize) {
        let text = &self.rest()[..length];
        self.push(text);
        self.at += length;
    }

    fn open(&mut self, kind: Kind, length: usize) {
        self.at += length;
        if self.frames.len() > DEEPEST {
            return;
        }
        self.open_templates += usize::from(kind == Kind::Template);
        self.open_tables += usize::from(kind == Kind::Table);
        self.frames.push(Frame {
            kind,
            text: String::new(),
        });
    }

    /// Takes the innermost frame off; the page stays.
    fn take(&mut self) -> Option<Frame> {
        if self.frames.len() < 2 {
            return None;
        }
        let frame = self.frames.pop()?;
        self.open_templates -= usize::from(frame.kind == Kind::Template);
        self.open_tables -= usize::from(frame.kind == Kind::Table);
        Some(frame)
    }

    /// Gives up on the innermost frame: it was never closed, so its content is text.
    fn abandon(&mut self) {
        if let Some(frame) = self.take() {
            self.push(&frame.text);
        }
    }

    /// Closes the innermost frame of a kind that is known to be open, giving up on those inside it.
    fn close(&mut self, kind: Kind, length: usize) {
        while self.top() != kind && self.frames.len() > 1 {
            self.abandon();
        }
        self.at += length;
        let Some(frame) = self.take() else {
            return;
        };
        match kind {
            Kind::Template => {
                if let Some(text) = templates::text(&frame.text) {
                    self.push(&text);
                }
            }
            Kind::Link => {
                if let Some(text) = link(&frame.text, self.namespaces) {
                    self.push(text);
                }
            }
            Kind::External => {
                if let Some((_, label)) = frame.text.split_once(char::is_whitespace) {
                    self.push(label.trim_start());
                }
            }
            Kind::Table => self.push("\n"),
            Kind::Page => {}
        }
    }

    /// Whether a link is open inside the innermost template or table.
    fn in_link(&self) -> bool {
        self.frames
            .iter()
            .rev()
            .take_while(|frame| matches!(frame.kind, Kind::Link | Kind::External))
            .any(|frame| frame.kind == Kind::Link)
    }

    fn at_line_start(&self) -> bool {
        self.markup[..self.at]
            .bytes()
            .rev()
            .find(|byte| !matches!(byte, b' ' | b'\t' | b':' | b'*' | b'#'))
            .is_none_or(|byte| byte == b'\n')
    }

    /// Takes what begins with a byte that may be markup.
    fn special(&mut self) {
        let rest = self.rest();
        let starts = |prefix: &str| rest.starts_with(prefix);
        if starts("\n") {
            if self.top() == Kind::External {
                self.abandon();
            }
            self.literal(1);
        } else if starts("<") {
            self.element();
        } else if starts("&") {
            match entities::decode(rest) {
                Some((text, length)) => {
                    self.push(&text);
                    self.at += length;
                }
                None => self.literal(1),
            }
        } else if starts("''") {
            let run = rest.bytes().take_while(|&byte| byte == b'\'').count();
            // Two are italic, three bold, five both; what is over is text.
            let over = match run {
                4 => 1,
                2..=5 => 0,
                _ => run - 5,
            };
            self.push(&rest[..over]);
            self.at += run;
        } else if starts("{|") && self.at_line_start() {
            self.open(Kind::Table, 2);
        } else if starts("{{") {
            self.open(Kind::Template, 2);
        } else if starts("|}") && self.open_tables > 0 && !starts("|}}") && self.at_line_start() {
            self.close(Kind::Table, 2);
        } else if starts("}}") && self.open_templates > 0 {
            self.close(Kind::Template, 2);
        } else if starts("[[") {
            self.open(Kind::Link, 2);
        } else if starts("]]") && self.in_link() {
            self.close(Kind::Link, 2);
        } else if starts("[") && self.top() != Kind::External && is_address(&rest[1..]) {
            self.open(Kind::External, 1);
        } else if starts("]") && self.top() == Kind::External {
            self.close(Kind::External, 1);
        } else if let Some(length) = switch(rest) {
            self.at += length;
        } else if starts("}}") || starts("]]") {
            self.at += 2; // the end of what was never opened
        } else {
            self.literal(1);
        }
    }

    /// An element, a comment, or a mere less-than sign.
    fn element(&mut self) {
        let rest = self.rest();
        if let Some(comment) = rest.strip_prefix("<!--") {
            self.at += comment.find("-->").map_or(rest.len(), |end| 4 + end + 3);
            return;
        }
        let name_at = if rest.starts_with("</") { 2 } else { 1 };
        let name_length = rest[name_at..]
            .bytes()
            .take_while(u8::is_ascii_alphanumeric)
            .count();
        let name = rest[name_at..name_at + name_length].to_ascii_lowercase();
        let known = |names: &[&'static str]| names.iter().copied().find(|&known| known == name);
        let dropped = known(&DROPPED);
        let breaking = known(&BREAKING);
        let is_element = dropped.is_some() || breaking.is_some() || known(&INLINE).is_some();
        let end = (is_element && !self.unclosed.contains(&">"))
            .then(|| rest.find('>'))
            .flatten();
        if is_element && end.is_none() && !self.unclosed.contains(&">") {
            self.unclosed.push(">");
        }
        let Some(end) = end else {
            self.literal(1);
            return;
        };
        let closes_itself = rest[..end].ends_with('/');
        self.at += end + 1;
        if breaking.is_some() {
            self.push("\n");
        }
        if name_at == 2 || closes_itself {
            return;
        }
        if let Some(name) = dropped {
            if let Some((content_end, after)) = self.find_end(name) {
                let content = &self.markup[self.at..content_end];
                // Formulas that need no TeX read as they are: "where x + y = 1".
                if name == "math" && !content.contains(['\\', '{', '^', '_']) {
                    self.push(content);
                }
                self.at = after;
            }
        } else if name == "nowiki"
            && let Some((content_end, after)) = self.find_end("nowiki")
        {
            let content = &self.markup[self.at..content_end];
            self.push(content);
            self.at = after;
        }
    }

    /// Where the content of an element ends and what follows its end tag begins.
    fn find_end(&mut self, name: &'static str) -> Option<(usize, usize)> {
        if self.unclosed.contains(&name) {
            return None;
        }
        let mut from = self.at;
        while let Some(found) = self.markup[from..].find("</") {
            let tag = from + found;
            let after_name = tag + 2 + name.len();
            let is_it = self
                .markup
                .get(tag + 2..after_name)
                .is_some_and(|there| there.eq_ignore_ascii_case(name));
            if is_it {
                match self.markup[after_name..].find('>') {
                    Some(end) => return Some((tag, after_name + end + 1)),
                    None => break,
                }
            }
            from = tag + 2;
        }
        self.unclosed.push(name);
        None
    }
}

/// What a link shows: its label, or its target; nothing for files, categories and other languages.
fn link<'a>(content: &'a str, namespaces: &Namespaces) -> Option<&'a str> {
    let (target, label) = match content.split_once('|') {
        Some((target, label)) => (target, Some(label)),
        None => (content, None),
    };
    let target = target.trim();
    if let Some(shown) = target.strip_prefix(':') {
        return Some(label.unwrap_or(shown));
    }
    if let Some((prefix, _)) = target.split_once(':')
        && (namespaces.hides(prefix) || (label.is_none() && is_language(prefix)))
    {
        return None;
    }
    Some(label.unwrap_or(target))
}

/// Whether a prefix looks like the code of another language's wiki: `de`, `simple`, `zh-min-nan`.
fn is_language(prefix: &str) -> bool {
    prefix == "simple"
        || prefix.split('-').enumerate().all(|(i, part)| {
            let length = if i == 0 { 2..=3 } else { 2..=8 };
            length.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_lowercase())
        })
}

fn is_address(text: &str) -> bool {
    [
        "http://", "https://", "//", "ftp://", "mailto:", "news:", "irc://",
    ]
    .iter()
    .any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

/// The length of a behaviour switch such as `__NOTOC__` at the start of `text`.
fn switch(text: &str) -> Option<usize> {
    let name = text.strip_prefix("__")?;
    let length = name.bytes().take_while(u8::is_ascii_uppercase).count();
    (length > 2 && name[length..].starts_with("__")).then_some(length + 4)
}
