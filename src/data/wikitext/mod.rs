//! Wiki markup stripped to readable text.
//!
//! Two passes, each linear in the size of the page. The first takes the markup apart with an explicit
//! stack of what is open ([`scan`]): templates, tables, references, files and categories go, links and a
//! few templates leave their text. The second puts the lines in order ([`lines`]): headings, lists,
//! white space, and the traces that the first pass leaves, such as empty parentheses.
//!
//! It is no parser of MediaWiki: templates are not expanded, and what they would have said is missing.

mod entities;
mod lines;
mod scan;
mod templates;

/// The text of a page.
///
/// Lines are parted by `\n`; no line is blank. A heading stands on a line of its own, unless nothing is
/// left of its section.
pub(super) fn strip(markup: &str, namespaces: &Namespaces) -> String {
    lines::arrange(&scan::scan(markup, namespaces))
}

/// Whether the page only leads to another one. Dumps since 2010 say so in an element of their own; older
/// ones need a look at the text.
pub(super) fn is_redirect(markup: &str) -> bool {
    const REDIRECT: &str = "#redirect";
    let markup = markup.trim_start();
    markup
        .get(..REDIRECT.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(REDIRECT))
}

/// The names of the namespaces whose links show nothing in the text: files and categories. English
/// names work in every wiki; a dump gives those of its own language.
#[derive(Debug, Clone)]
pub(super) struct Namespaces {
    hidden: Vec<String>,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self {
            hidden: ["file", "image", "media", "category"].map(str::to_owned).to_vec(),
        }
    }
}

impl Namespaces {
    /// Whether the name of the namespace with this key is wanted; if so, [`name`](Self::name) takes it.
    pub(super) fn begin(&mut self, key: &str) -> bool {
        const MEDIA: &str = "-2";
        const FILE: &str = "6";
        const CATEGORY: &str = "14";
        let wanted = [MEDIA, FILE, CATEGORY].contains(&key);
        if wanted {
            self.hidden.push(String::new());
        }
        wanted
    }

    /// Appends to the name that was begun last.
    pub(super) fn name(&mut self, part: &str) {
        if let Some(last) = self.hidden.last_mut() {
            last.push_str(&part.to_lowercase());
        }
    }

    fn hides(&self, prefix: &str) -> bool {
        let prefix = prefix.trim().to_lowercase();
        self.hidden.contains(&prefix)
    }
}

#[cfg(test)]
mod tests;
