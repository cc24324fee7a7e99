//! Two checkpoints of one model, layer by layer.

use serde_json::json;

use crate::checkpoint::{ModelReport, Settings};
use crate::report::scores::{Format, Made, Screen, Writer, difference, difference_csv};

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
    Ok(match format {
        Format::Table => {
            format!(
                "{} minus {}\n{}{}",
                after.name,
                before.name,
                table.to_text(),
                difference.missing_note()
            )
        }
        Format::Markdown => table.to_markdown(),
        Format::Latex => table.to_latex(),
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
