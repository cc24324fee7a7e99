//! `wqk families`: what can be scored, with layout and source.

use std::process::ExitCode;

use super::output::Output;
use crate::checkpoint::family::{Layout, families};
use crate::report::table::{Align, Table};

/// Arguments of `wqk families`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the families whose name or model_type contains this
    #[arg(value_name = "TEXT")]
    filter: Option<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// Standard output that cannot be written to.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    let wanted = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let mut table =
        Table::new(["family", "model_type", "stack", "layout", "source"].map(|name| (name, Align::Left)));
    let mut notes = String::new();
    for family in families() {
        let matches = |name: &str| name.to_lowercase().contains(&wanted);
        if !matches(&family.name) && !family.types.iter().any(|name| matches(name)) {
            continue;
        }
        for (i, stack) in family.stacks.iter().enumerate() {
            let once = |text: String| if i == 0 { text } else { String::new() };
            table.push([
                once(family.name.clone()),
                once(family.types.join(", ")),
                stack.stack.name().to_owned(),
                stack.layout.name().to_owned(),
                once(family.reference.clone()),
            ]);
        }
        if let Some(note) = &family.note {
            notes += &format!("{}: {note}\n", family.name);
        }
    }
    if table.rows().is_empty() {
        anyhow::bail!(
            "no family is called '{wanted}': `wqk families` lists all, and flags of `wqk score` describe others"
        );
    }
    output.write(table.to_text().as_bytes())?;
    output.write(b"\nLayouts, by which --layout describes weights that are not listed:\n")?;
    for layout in Layout::ALL {
        output.write(format!("  {:<14} {}\n", layout.name(), layout.describe()).as_bytes())?;
    }
    if !notes.is_empty() {
        output.write(format!("\n{notes}").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
