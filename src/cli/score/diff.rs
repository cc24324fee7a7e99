//! Two checkpoints of one model, layer by layer.

use serde_json::json;

use crate::checkpoint::{ModelReport, Settings};
use crate::report::scores::{Format, Made, Screen, Writer, difference, difference_csv, footer};
use crate::report::table::{escape_markdown, visible};

/// The difference in a format. JSON holds both models as ever, and `difference` beside them.
pub(super) fn text(
    before: &ModelReport,
    after: &ModelReport,
    format: Format,
    settings: &Settings,
    made: Made,
    screen: Screen,
) -> anyhow::Result<String> {
    let difference = difference(before, after);
    if difference.layers.is_empty() {
        anyhow::bail!(
            "'{}' and '{}' have no layer in common: --diff compares revisions of one model",
            before.name,
            after.name
        );
    }
    let table = difference.table();
    let notes: String = difference
        .notes
        .iter()
        .map(|note| format!("note: {}\n", visible(note)))
        .collect();
    // The table and JSON hold them.
    if !matches!(format, Format::Table | Format::Json) {
        eprint!("{notes}");
    }
    let folded = |model: &ModelReport| model.layers.iter().any(|layer| layer.folded_norm.is_some());
    let footer = footer(settings, &made, folded(before) || folded(after));
    Ok(match format {
        Format::Table => {
            format!(
                "{} minus {}\n{}{notes}\n{footer}\n",
                visible(&after.name),
                visible(&before.name),
                table.to_text()
            )
        }
        Format::Markdown => format!(
            "{}\n{} minus {}; {footer}.\n",
            table.to_markdown(),
            escape_markdown(&after.name),
            escape_markdown(&before.name)
        ),
        Format::Latex => format!(
            "{}% {} minus {}; {footer}.\n",
            table.to_latex(),
            visible(&after.name),
            visible(&before.name)
        ),
        Format::Csv => difference_csv(&difference, before, after, settings),
        Format::Json => {
            let mut writer = Writer::new(Format::Json, settings.clone(), made, screen);
            let text = writer.model(before) + &writer.model(after) + &writer.finish();
            let mut report: serde_json::Value = serde_json::from_str(&text)?;
            report["difference"] = json!(difference);
            format!("{report}\n")
        }
    })
}
