//! The report of a comparison: a folder with one page, the figures, and the numbers behind both.

use std::path::Path;

use super::{Comparison, Published};
use crate::report::html::{Page, Section};
use crate::report::plot::Figure;
use crate::report::table::{Align, Table};

/// Writes the report into a folder that exists: `index.html`, which needs none of the other files; every
/// figure as SVG; every table as CSV (unrounded), Markdown and LaTeX; `curves.csv` with the smoothed losses;
/// `notes.txt`; and `settings.json`.
///
/// # Errors
/// Whatever the system says, for the first file that cannot be written.
pub fn write(
    folder: &Path,
    comparison: &Comparison,
    published: Option<&Published>,
    provenance: &[(String, String)],
) -> std::io::Result<()> {
    let figures = comparison.figures(published);
    let tables = comparison.tables();
    let mut files: Vec<(String, String)> = Vec::new();
    let mut save = |name: String, content: String, what: &str| -> std::io::Result<()> {
        std::fs::write(folder.join(&name), content)?;
        if !what.is_empty() {
            files.push((name, what.to_owned()));
        }
        Ok(())
    };
    for named in &tables {
        let name = named.kind.name();
        save(format!("{name}.csv"), named.data.to_csv(), "numbers, unrounded")?;
        save(format!("{name}.md"), named.table.to_markdown(), "")?;
        save(
            format!("{name}.tex"),
            named.table.to_latex(),
            "the table for LaTeX",
        )?;
    }
    save(
        "curves.csv".to_owned(),
        curves(comparison).to_csv(),
        "smoothed training losses",
    )?;
    for named in &figures {
        save(format!("{}.svg", named.name), named.figure.to_svg(), "")?;
    }
    save(
        "notes.txt".to_owned(),
        comparison.notes.iter().map(|note| format!("{note}\n")).collect(),
        "",
    )?;
    let settings: serde_json::Map<String, serde_json::Value> = provenance
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    save(
        "settings.json".to_owned(),
        serde_json::to_string_pretty(&settings)?,
        "",
    )?;

    let mut page = Page::new("Runs compared").with_lead(lead(comparison));
    if !comparison.notes.is_empty() {
        page = page.with(Section::new("Left out, and not compared").text(&comparison.notes.join("\n\n")));
    }
    let mut section = Section::new("Tables");
    for named in &tables {
        section = section.table(&named.table, &named.caption);
    }
    page = page.with(section);
    let mut at = 0;
    while at < figures.len() {
        let name = &figures[at].section;
        let end = at
            + figures[at..]
                .iter()
                .take_while(|figure| figure.section == *name)
                .count();
        let mut section = Section::new(name.clone());
        // Figures under one caption stand side by side.
        let mut from = at;
        while from < end {
            let caption = &figures[from].caption;
            let beside: Vec<&Figure> = figures[from..end]
                .iter()
                .filter(|figure| figure.caption == *caption)
                .map(|figure| &figure.figure)
                .collect();
            let is_first = !figures[at..from].iter().any(|figure| figure.caption == *caption);
            if is_first {
                section = section.figures(beside, caption);
            }
            from += 1;
        }
        page = page.with(section);
        at = end;
    }
    if published.is_some() {
        page = page.with(Section::new("Published curves").text(
            "Dashed curves are published ones, drawn over the share of their own training. They are of other \
             tokenizers, other lengths and, where it says so, another number of layers: their losses are not \
             comparable with those of the runs, their course is.",
        ));
    }
    page = page
        .with(Section::new("Files").files(files))
        .with_provenance(provenance.iter().cloned());
    std::fs::write(folder.join("index.html"), page.to_html())
}

/// What was compared, in a sentence or two.
fn lead(comparison: &Comparison) -> String {
    let finished = comparison.members().filter(|run| run.finished).count();
    format!(
        "{} runs, of which {finished} finished, in {} groups. Runs of a group differ in the initialisation of \
         queries and keys and in their seed, and in nothing else.",
        comparison.n_runs(),
        comparison.groups.len()
    )
}

fn curves(comparison: &Comparison) -> Table {
    let mut table = Table::new([
        ("group", Align::Left),
        ("initialisation", Align::Left),
        ("seed", Align::Right),
        ("step", Align::Right),
        ("loss", Align::Right),
    ]);
    for group in &comparison.groups {
        for arm in &group.arms {
            for run in &arm.runs {
                for (step, loss) in run.loss.steps.iter().zip(&run.loss.loss) {
                    table.push([
                        group.setting.label(),
                        arm.name.clone(),
                        run.run.seed.to_string(),
                        step.to_string(),
                        loss.to_string(),
                    ]);
                }
            }
        }
    }
    table
}
