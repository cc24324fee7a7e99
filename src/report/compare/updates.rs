//! The figure of updates that were taken apart, of runs whose recipes ask for it.

use super::figures::{Canvas, arm_label, title};
use super::{Group, InitArm, NamedFigure};
use crate::report::plot::{Axis, Colour, Curves, Grid};
use crate::train::UpdateRow;

/// A panel: its title, and what of a layer it shows.
type Quantity = (&'static str, fn(&UpdateRow) -> Option<f64>);

const QUANTITIES: [Quantity; 4] = [
    ("Symmetry of the update", |row| row.update_symmetry),
    ("Symmetry of the weights", |row| row.weights_symmetry),
    ("Symmetry of all that was added", |row| row.change_symmetry),
    ("Cosine of the update with gradient descent", |row| {
        row.first_order_cosine
    }),
];

impl Canvas<'_> {
    /// What updates do to `W_qk` and how far they are those of gradient descent, a curve for each arm of groups that
    /// differ in their objective alone.
    pub(super) fn updates(self, groups: &[&Group]) -> Option<NamedFigure> {
        let watched = |arm: &&InitArm| arm.runs.iter().any(|run| !run.run.updates.is_empty());
        let arms: Vec<(&Group, &InitArm)> = groups
            .iter()
            .flat_map(|group| group.arms.iter().filter(watched).map(|arm| (*group, arm)))
            .collect();
        let (first, _) = arms.first()?;
        let title = title(first);
        let mut grid = Grid::new("Updates", 2);
        for (name, of) in QUANTITIES {
            let series = arms.iter().enumerate().map(|(index, (group, arm))| {
                let label = arm_label(&group.setting.mode, arm);
                self.summary(&label, &arm.runs, Colour::Category(index), |run| {
                    let rows = run.run.updates.iter();
                    rows.filter_map(|row| Some((row.step, of(row)?))).collect()
                })
            });
            let series: Vec<_> = series.collect();
            grid = grid.with(Curves::new(name, self.x(), Axis::linear("symmetry, cosine")).with_all(series));
        }
        Some(self.named(
            &format!("updates_{}", super::setting::slug(&title)),
            &format!("Updates: {title}"),
            grid.figure(),
            "Updates of W_qk that were taken apart: median over the layers of all seeds, with quartiles. Of each update \
             by itself its symmetry, and its cosine with that of plain gradient descent to first order; of all updates up \
             to there what they have added; and the weights.",
        ))
    }
}
