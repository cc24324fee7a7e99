//! A table of texts, and the plain formats that it is written in.

use std::borrow::Cow;
use std::fmt::Write;

use super::minus::typeset;
use super::plot::escape;

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A header and rows of cells, as plain text.
///
/// Rows shorter than the header are filled with empty cells; longer ones are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows yet.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(name, align)| (name.into(), align))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// The names of the columns and how they stand.
    pub fn columns(&self) -> &[(String, Align)] {
        &self.columns
    }

    /// The rows, each as wide as the header.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// GitHub-flavoured Markdown.
    pub fn to_markdown(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| escape_markdown(name));
        let rules = self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        markdown_line(names) + &markdown_line(rules) + &self.markdown_rows()
    }

    /// The rows alone, to go on with a table.
    pub(crate) fn markdown_rows(&self) -> String {
        self.rows
            .iter()
            .map(|row| markdown_line(row.iter().map(|cell| escape_markdown(cell))))
            .collect()
    }

    /// A LaTeX `tabular` with the rules of the package booktabs.
    pub fn to_latex(&self) -> String {
        self.latex_head() + &self.latex_rows() + self.latex_foot()
    }

    /// Its beginning, up to the first row.
    pub(crate) fn latex_head(&self) -> String {
        let align = |align: Align| if align == Align::Left { 'l' } else { 'r' };
        let columns: String = self.columns.iter().map(|(_, a)| align(*a)).collect();
        let names = latex_line(
            self.columns
                .iter()
                .map(|(name, _)| format!("\\textbf{{{}}}", escape_latex(name))),
        );
        format!("\\begin{{tabular}}{{{columns}}}\n    \\toprule\n{names}    \\midrule\n")
    }

    /// The rows alone.
    pub(crate) fn latex_rows(&self) -> String {
        self.rows
            .iter()
            .map(|row| latex_line(row.iter().map(|cell| escape_latex(cell))))
            .collect()
    }

    /// Its end.
    pub(crate) fn latex_foot(&self) -> &'static str {
        "    \\bottomrule\n\\end{tabular}\n"
    }

    /// Lines of equal columns for a terminal: the names, a rule, and the rows.
    pub(crate) fn text_lines(&self) -> Vec<String> {
        let names: Vec<Cow<'_, str>> = self.columns.iter().map(|(name, _)| visible(name)).collect();
        let rows: Vec<Vec<Cow<'_, str>>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| visible(cell)).collect())
            .collect();
        let widths: Vec<usize> = (0..names.len())
            .map(|i| {
                rows.iter()
                    .chain([&names])
                    .map(|row| row[i].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let line = |row: &[Cow<'_, str>]| {
            let cells = row
                .iter()
                .zip(&self.columns)
                .zip(&widths)
                .map(|((cell, (_, align)), &width)| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let rule = widths
            .iter()
            .map(|&width| "─".repeat(width))
            .collect::<Vec<_>>()
            .join("  ");
        [line(&names), rule]
            .into_iter()
            .chain(rows.iter().map(|row| line(row)))
            .collect()
    }

    /// The lines for a terminal as one text.
    pub fn to_text(&self) -> String {
        self.text_lines().iter().map(|line| format!("{line}\n")).collect()
    }

    /// Comma-separated values with the names in the first line.
    pub fn to_csv(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| name).collect();
        let rows = self.rows.iter().map(|row| row.iter().collect());
        [names]
            .into_iter()
            .chain(rows)
            .map(|cells: Vec<&String>| csv_line(&cells))
            .collect()
    }

    /// An HTML table.
    pub fn to_html(&self) -> String {
        let class = |align: Align| if align == Align::Right { " class=\"n\"" } else { "" };
        let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for (name, align) in &self.columns {
            write!(html, "<th{}>{}</th>", class(*align), escape(name))
                .expect("writing to a String cannot fail");
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (cell, (_, align)) in row.iter().zip(&self.columns) {
                write!(html, "<td{}>{}</td>", class(*align), escape(cell))
                    .expect("writing to a String cannot fail");
            }
            html.push_str("</tr>\n");
        }
        html + "</tbody></table></div>\n"
    }
}

/// A text for a terminal: characters that would move the cursor, end the line or turn the direction of writing, as a
/// file or a tensor may have in its name, are written as escapes.
pub fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match acts(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown.into()
}

fn markdown_line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// A record of comma-separated values with its line end.
pub(crate) fn csv_line<S: AsRef<[u8]>>(cells: &[S]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells).expect("writing to memory cannot fail");
    let bytes = writer.into_inner().expect("writing to memory cannot fail");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn latex_line(cells: impl Iterator<Item = String>) -> String {
    format!("    {} \\\\\n", cells.collect::<Vec<_>>().join(" & "))
}

/// A text with what Markdown would take for marks escaped.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '$' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

fn escape_latex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in typeset(text).chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '−' => escaped.push_str("$-$"),
            '±' => escaped.push_str("$\\pm$"),
            '×' => escaped.push_str("$\\times$"),
            'γ' => escaped.push_str("$\\gamma$"),
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([("Model", Align::Left), ("Symmetry", Align::Right)]);
        table.push(["a_b|c", "0.50 ± [0.10, 0.20]"]);
        table.push(["<i>&", "-0.10"]);
        table
    }

    #[test]
    fn markdown() {
        let expected = "| Model | Symmetry |\n| --- | ---: |\n\
                        | a\\_b\\|c | 0.50 ± \\[0.10, 0.20\\] |\n| &lt;i>&amp; | -0.10 |\n";
        assert_eq!(table().to_markdown(), expected);
    }

    #[test]
    fn latex() {
        let expected = "\\begin{tabular}{lr}\n    \\toprule\n    \\textbf{Model} & \\textbf{Symmetry} \\\\\n    \\midrule\n\
                        \u{20}   a\\_b|c & 0.50 $\\pm$ [0.10, 0.20] \\\\\n    $<$i$>$\\& & $-$0.10 \\\\\n    \
                        \\bottomrule\n\\end{tabular}\n";
        assert_eq!(table().to_latex(), expected);
    }

    #[test]
    fn html() {
        let html = table().to_html();
        assert!(html.contains("<tr><td>a_b|c</td><td class=\"n\">0.50 ± [0.10, 0.20]</td></tr>"));
        assert!(html.contains("<td>&lt;i&gt;&amp;</td><td class=\"n\">−0.10</td>"));
    }

    #[test]
    fn a_terminal_gets_no_character_that_acts() {
        assert_eq!(visible("Modèle_1 γ"), "Modèle_1 γ");
        assert_eq!(
            visible("a\u{1b}[2J\nb\0\u{202e}"),
            "a\\u{1b}[2J\\nb\\u{0}\\u{202e}"
        );
        let mut table = table();
        table.push(["x\ny\u{1b}", "1"]);
        let text = table.to_text();
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn rows_are_as_wide_as_the_header() {
        let mut table = table();
        table.push(["short"]);
        table.push(["x", "y", "z"]);
        assert!(table.rows().iter().all(|row| row.len() == 2));
    }
}
