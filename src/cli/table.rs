//! Tables on the terminal.

use comfy_table::{CellAlignment, presets};

use crate::report::table::{Align, Table};

/// A table as text with aligned columns, for standard output.
pub fn terminal(table: &Table) -> String {
    let mut out = comfy_table::Table::new();
    out.load_style(presets::UTF8_HORIZONTAL_ONLY);
    out.set_header(table.columns().iter().map(|(name, _)| name));
    for (index, (_, align)) in table.columns().iter().enumerate() {
        if let (Align::Right, Some(column)) = (align, out.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    out.add_rows(table.rows());
    out.to_string()
}
