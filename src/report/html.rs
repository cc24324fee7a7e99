//! A report as one HTML page: opens from disk, needs no script and no network, light and dark.
//!
//! # Examples
//! ```
//! use wqk::report::html::{Page, Section};
//! use wqk::report::plot::{Axis, Colour, Curves, Series};
//!
//! let steps = [0.0, 100.0, 200.0];
//! let loss = Curves::new("Loss", Axis::linear("training step"), Axis::linear("loss (nats a token)"))
//!     .with(Series::new("encoder", &steps, &[4.6, 3.1, 2.7], Colour::Encoder));
//! let page = Page::new("Two objectives, one architecture")
//!     .with_lead("What the runs show, in a sentence or two.")
//!     .with(Section::new("Training").text("Three seeds each.").figure(&loss.figure(), "Held-out loss."))
//!     .with_provenance([("version", "wqk 0.1.0")]);
//! assert!(page.to_html().starts_with("<!DOCTYPE html>"));
//! ```

use super::plot::{Figure, dark_rules, escape};
use super::table::Table;

/// A page under construction. Every text given to it is plain: what looks like markup shows as typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
    provenance: Vec<(String, String)>,
}

/// A part of a [`Page`] under a heading of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    title: String,
    html: String,
}

impl Section {
    /// A section without content yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            html: String::new(),
        }
    }

    /// Adds a text; an empty line in it starts a new paragraph.
    pub fn text(mut self, text: &str) -> Self {
        for paragraph in text
            .split("\n\n")
            .map(str::trim)
            .filter(|paragraph| !paragraph.is_empty())
        {
            self.html += &format!("<p>{}</p>\n", escape(paragraph));
        }
        self
    }

    /// Adds a figure with a caption that says what is seen.
    pub fn figure(self, figure: &Figure, caption: &str) -> Self {
        self.figures([figure], caption)
    }

    /// Adds figures that stand side by side where the screen is wide enough, under one caption.
    pub fn figures<'a>(mut self, figures: impl IntoIterator<Item = &'a Figure>, caption: &str) -> Self {
        self.html += "<figure><div class=\"row\">\n";
        for figure in figures {
            self.html += &format!("<div>{}</div>\n", figure.to_inline_svg());
        }
        self.html += &format!("</div><figcaption>{}</figcaption></figure>\n", escape(caption));
        self
    }

    /// Adds a table with a caption above it.
    pub fn table(mut self, table: &Table, caption: &str) -> Self {
        self.html += &format!(
            "<p class=\"caption\">{}</p>\n{}",
            escape(caption),
            table.to_html()
        );
        self
    }

    /// Adds names with their values, such as settings.
    pub fn settings<N: AsRef<str>, V: AsRef<str>>(mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        self.html += &definitions(pairs);
        self
    }

    /// Adds links to files beside the page.
    pub fn files<P: AsRef<str>, D: AsRef<str>>(mut self, files: impl IntoIterator<Item = (P, D)>) -> Self {
        self.html += "<ul>\n";
        for (path, description) in files {
            let (path, description) = (path.as_ref(), escape(description.as_ref()));
            self.html += &format!(
                "<li><a href=\"{}\">{}</a>: {description}</li>\n",
                relative_link(path),
                escape(path)
            );
        }
        self.html += "</ul>\n";
        self
    }
}

impl Page {
    /// A page with a title and nothing else yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            lead: String::new(),
            sections: Vec::new(),
            provenance: Vec::new(),
        }
    }

    /// Sets the sentence or two under the title.
    pub fn with_lead(mut self, lead: impl Into<String>) -> Self {
        self.lead = lead.into();
        self
    }

    /// Adds a section.
    pub fn with(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Sets what the page was made from: version, command, seed, digests.
    pub fn with_provenance<N: Into<String>, V: Into<String>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.provenance = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        self
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}@media (prefers-color-scheme: dark) {{\n{DARK}{}\n}}\n</style>\n\
             </head>\n<body>\n<main>\n<h1>{title}</h1>\n",
            dark_rules()
        );
        if !self.lead.is_empty() {
            html += &format!("<p class=\"lead\">{}</p>\n", escape(&self.lead));
        }
        for section in &self.sections {
            html += &format!(
                "<section>\n<h2>{}</h2>\n{}</section>\n",
                escape(&section.title),
                section.html
            );
        }
        if !self.provenance.is_empty() {
            html += &format!(
                "<footer>\n<h2>Provenance</h2>\n{}</footer>\n",
                definitions(self.pairs())
            );
        }
        html + "</main>\n</body>\n</html>\n"
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.provenance
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn definitions<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> String {
    let rows: String = pairs
        .into_iter()
        .map(|(name, value)| {
            format!(
                "<dt>{}</dt><dd>{}</dd>\n",
                escape(name.as_ref()),
                escape(value.as_ref())
            )
        })
        .collect();
    format!("<dl>\n{rows}</dl>\n")
}

/// A path as a link that cannot be taken for a scheme such as `javascript:`.
fn relative_link(path: &str) -> String {
    let mut link = String::from("./");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                link.push(byte.into())
            }
            _ => link += &format!("%{byte:02X}"),
        }
    }
    link
}

const STYLE: &str = "\
:root{--ink:#1a1a1a;--muted:#555;--paper:#fff;--rule:#d8d8d8}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif}
main{max-width:64rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .6rem}
h2{font-size:1.2rem;margin:2.4rem 0 .6rem;padding-bottom:.25rem;border-bottom:1px solid var(--rule)}
p{max-width:46rem}
.lead{font-size:1.1rem;color:var(--muted)}
figure{margin:1.2rem 0}
.row{display:flex;flex-wrap:wrap;gap:1rem}
.row>div{flex:1 1 26rem;min-width:0}
.row svg{display:block}
figcaption,.caption{color:var(--muted);font-size:.92rem;max-width:46rem;margin:.4rem 0}
.scroll{overflow-x:auto;margin:.6rem 0 1.2rem}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .8rem .28rem 0;text-align:left;border-bottom:1px solid var(--rule);white-space:nowrap}
th{font-weight:600}
.n{text-align:right}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.2rem 1.2rem;font-size:.92rem}
dt{color:var(--muted)}
dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
a{color:inherit}
";

const DARK: &str = "\
:root{--ink:#e8e8e8;--muted:#b5b5b5;--paper:#16181b;--rule:#3a3f45}
";

#[cfg(test)]
mod tests {
    use super::super::plot::{Axis, Colour, Curves, Series};
    use super::super::table::Align;
    use super::*;

    #[test]
    fn nothing_given_becomes_markup() {
        let evil = "</title><script>alert(1)</script>\"'&";
        let curves = Curves::new(evil, Axis::linear(evil), Axis::linear(evil))
            .with(Series::new(evil, &[0.0, 1.0], &[1.0, 2.0], Colour::Encoder))
            .with(Series::new("b", &[0.0, 1.0], &[1.0, 2.0], Colour::Decoder));
        let mut table = Table::new([(evil, Align::Left)]);
        table.push([evil]);
        let section = Section::new(evil)
            .text(evil)
            .figure(&curves.figure(), evil)
            .table(&table, evil)
            .settings([(evil, evil)])
            .files([(evil, evil), ("javascript:alert(1)", "")]);
        let html = Page::new(evil)
            .with_lead(evil)
            .with(section)
            .with_provenance([(evil, evil)])
            .to_html();
        assert!(!html.contains("<script"));
        assert!(!html.contains("\"javascript:"));
        assert!(!html.contains("&&"));
        assert_eq!(
            html.matches("</title>").count(),
            2,
            "that of the page and that of the figure"
        );
    }

    #[test]
    fn the_page_stands_alone() {
        let html = Page::new("A")
            .with(Section::new("B").text("one\n\ntwo"))
            .to_html();
        assert!(html.contains("<p>one</p>\n<p>two</p>"));
        for outside in ["http://", "https://", "<link", "<script", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
