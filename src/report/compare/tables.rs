//! The tables of a comparison.

use super::{Comparison, Effect, Group, InitArm, Member};
use crate::bilinear::Summary;
use crate::report::experiment::Score;
use crate::report::table::{Align, Table};

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Final losses and speed-up, the structure paper's Table 1.
    Losses,
    /// The differences between initialisations over seeds, and their tests.
    Tests,
    /// Symmetry and directionality at the end.
    Scores,
    /// Losses and accuracy of vision transformers.
    Vision,
    /// Every run.
    Runs,
}

/// A table with the name of its files and what it shows.
#[derive(Debug, Clone)]
pub struct NamedTable {
    /// Which.
    pub kind: TableKind,
    /// The table as people read it.
    pub table: Table,
    /// The same with every number in a column of its own, unrounded.
    pub data: Table,
    /// What it shows, in a sentence or two.
    pub caption: String,
}

impl TableKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Losses, Self::Tests, Self::Scores, Self::Vision, Self::Runs];

    /// The name of its files, without the ending.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Losses => "losses",
            Self::Tests => "tests",
            Self::Scores => "scores",
            Self::Vision => "vision",
            Self::Runs => "runs",
        }
    }
}

impl Comparison {
    /// All tables that have rows.
    pub fn tables(&self) -> Vec<NamedTable> {
        TableKind::ALL
            .map(|kind| self.table(kind))
            .into_iter()
            .filter(|named| !named.table.rows().is_empty())
            .collect()
    }

    /// One table, perhaps without rows.
    pub fn table(&self, kind: TableKind) -> NamedTable {
        let caption = match kind {
            TableKind::Losses => LOSSES,
            TableKind::Tests => TESTS,
            TableKind::Scores => SCORES,
            TableKind::Vision => VISION,
            TableKind::Runs => RUNS,
        };
        let rows = match kind {
            TableKind::Losses => self.losses(),
            TableKind::Tests => self.tests(),
            TableKind::Scores => self.scores(),
            TableKind::Vision => self.vision(),
            TableKind::Runs => self.runs(),
        };
        NamedTable {
            kind,
            table: rows.read,
            data: rows.data,
            caption: caption.to_owned(),
        }
    }

    fn arms(&self) -> impl Iterator<Item = (&Group, &InitArm)> {
        self.groups
            .iter()
            .flat_map(|group| group.arms.iter().map(move |arm| (group, arm)))
    }

    fn losses(&self) -> Rows {
        let mut rows = Rows::new(
            ["model", "data", "initialisation"],
            [
                Column::Count("runs"),
                Column::Spread("loss", 3),
                Column::Spread("speed-up (%)", 0),
                Column::Spread("held-out loss", 3),
                Column::Spread("by held-out loss (%)", 0),
            ],
        );
        for (group, arm) in self.arms().filter(|(group, _)| !group.setting.vision) {
            let effect = effect(group, arm);
            rows.push(
                names(group, arm),
                [
                    Cell::Count(arm.finished().count()),
                    Cell::Spread(arm.summary(|run| run.loss.last())),
                    Cell::Spread(effect.as_ref().and_then(Effect::speed_up).map(percent)),
                    Cell::Spread(arm.summary(Member::held_out_loss)),
                    Cell::Spread(effect.as_ref().and_then(Effect::held_out_speed_up).map(percent)),
                ],
            );
        }
        rows
    }

    fn tests(&self) -> Rows {
        let mut rows = Rows::new(
            ["model", "data", "compared", "loss"],
            [
                Column::Count("pairs"),
                Column::Count("lower in"),
                Column::Spread("difference", 4),
                Column::Number("p (sign flip)"),
                Column::Number("at least"),
                Column::Number("t"),
                Column::Number("p (t-test)"),
            ],
        );
        for group in &self.groups {
            for effect in group.effects() {
                let Some(loss) = &effect.loss else { continue };
                rows.push(
                    vec![
                        group.setting.model(),
                        data(group),
                        format!("{} - {}", effect.arm, effect.baseline),
                        if effect.held_out { "held-out" } else { "training" }.to_owned(),
                    ],
                    [
                        Cell::Count(loss.n),
                        Cell::Count(loss.below),
                        Cell::Spread(Some(loss.summary)),
                        Cell::Number(loss.p_sign_flip),
                        Cell::Number(loss.p_sign_flip.map(|_| loss.smallest_p())),
                        Cell::Number(loss.t.map(|(t, _)| t)),
                        Cell::Number(loss.t.map(|(_, p)| p)),
                    ],
                );
            }
        }
        rows
    }

    fn scores(&self) -> Rows {
        let mut rows = Rows::new(
            ["model", "data", "initialisation"],
            [
                Column::Count("runs"),
                Column::Spread("symmetry", 3),
                Column::Spread("symmetry of heads", 3),
                Column::Spread("directionality (excess)", 3),
            ],
        );
        for (group, arm) in self.arms() {
            if arm.final_score(Score::Directionality).is_none() {
                continue;
            }
            rows.push(
                names(group, arm),
                [
                    Cell::Count(arm.finished().count()),
                    Cell::Spread(arm.final_score(Score::Symmetry)),
                    Cell::Spread(arm.final_head_symmetry()),
                    Cell::Spread(arm.final_score(Score::Directionality)),
                ],
            );
        }
        rows
    }

    fn vision(&self) -> Rows {
        let mut rows = Rows::new(
            ["data", "model", "initialisation"],
            [
                Column::Count("runs"),
                Column::Spread("train loss", 2),
                Column::Spread("eval loss", 2),
                Column::Spread("eval accuracy", 3),
            ],
        );
        for (group, arm) in self.arms().filter(|(group, _)| group.setting.vision) {
            rows.push(
                vec![data(group), group.setting.model(), arm.name.clone()],
                [
                    Cell::Count(arm.finished().count()),
                    Cell::Spread(arm.summary(|run| run.loss.last())),
                    Cell::Spread(arm.summary(Member::held_out_loss)),
                    Cell::Spread(arm.summary(Member::accuracy)),
                ],
            );
        }
        rows
    }

    fn runs(&self) -> Rows {
        let mut rows = Rows::new(
            ["run", "model", "data", "initialisation", "state"],
            [
                Column::Count("seed"),
                Column::Count("updates"),
                Column::Number("loss"),
                Column::Number("held-out loss"),
                Column::Number("speed-up (%)"),
                Column::Number("symmetry"),
                Column::Number("directionality (excess)"),
                Column::Count("seconds"),
            ],
        );
        for (group, arm) in self.arms() {
            let effect = effect(group, arm);
            for run in &arm.runs {
                let saved = effect.as_ref().and_then(|effect| {
                    let place = effect.seeds.iter().position(|&seed| seed == run.run.seed)?;
                    Some(100.0 * effect.speed_ups[place].unwrap_or(0.0))
                });
                let median = |score: Score| {
                    let rows = run.last_scores().iter();
                    Summary::of(rows.filter_map(|row| score.of(&row.scores))).map(|summary| summary.median)
                };
                rows.push(
                    vec![
                        run.folder.clone(),
                        group.setting.model(),
                        data(group),
                        arm.name.clone(),
                        if run.finished { "finished" } else { "unfinished" }.to_owned(),
                    ],
                    [
                        Cell::Count(run.run.seed as usize),
                        Cell::Count(run.run.steps.last().map_or(0, |row| row.step)),
                        Cell::Number(run.loss.last()),
                        Cell::Number(run.held_out_loss()),
                        Cell::Number(saved.filter(|_| run.finished)),
                        Cell::Number(median(Score::Symmetry)),
                        Cell::Number(median(Score::Directionality)),
                        Cell::Count(run.run.seconds as usize),
                    ],
                );
            }
        }
        rows
    }
}

const LOSSES: &str = "Final losses and the speed-up (the layout of the structure paper's Table 1): medians over seeds, with \
quartiles where there are several. The loss is that of training, in means over a thousandth of the run (20 updates or a twentieth of \
a short run at least). The speed-up is the share of the updates that are left when the run first reaches the final loss of the \
independently initialised run of the same seed, 0 where it never does; by held-out loss, the same on evaluations. Of two runs that \
learn alike, noise brings either to the other's last training loss early: where the two speed-ups disagree, believe the held-out one.";
const TESTS: &str = "Final loss less that of the independently initialised run of the same seed: median with quartiles, and in how \
many pairs it is lower. Two-sided p of the exact sign-flip permutation test, with the smallest p that so many pairs can give, and of \
the paired t-test, which takes differences to be normal.";
const SCORES: &str =
    "Scores at the end of training: medians with quartiles over the layers (or heads) of all finished runs.";
const VISION: &str = "Vision transformers at the end of training (the layout of the structure paper's supplementary table): medians \
over seeds, with quartiles where there are several. Evaluation is on the averaged weights, where weights are averaged.";
const RUNS: &str = "Every run.";

fn effect(group: &Group, arm: &InitArm) -> Option<Effect> {
    let baseline = group.baseline()?;
    (!arm.is_baseline).then(|| Effect::of(arm, baseline))
}

fn names(group: &Group, arm: &InitArm) -> Vec<String> {
    vec![group.setting.model(), data(group), arm.name.clone()]
}

/// The data, with what sets the group apart from others on them.
fn data(group: &Group) -> String {
    let label = group.setting.label();
    let start = group.setting.model().len() + " on ".len();
    label.get(start..).unwrap_or(&label).to_owned()
}

fn percent(summary: Summary) -> Summary {
    Summary {
        median: 100.0 * summary.median,
        q25: 100.0 * summary.q25,
        q75: 100.0 * summary.q75,
    }
}

/// A column of numbers.
#[derive(Debug, Clone, Copy)]
enum Column {
    Count(&'static str),
    Number(&'static str),
    /// A median with quartiles, to so many decimals.
    Spread(&'static str, usize),
}

#[derive(Debug, Clone, Copy)]
enum Cell {
    Count(usize),
    Number(Option<f64>),
    Spread(Option<Summary>),
}

/// A table written twice: for reading, and with every number on its own.
struct Rows {
    columns: Vec<Column>,
    read: Table,
    data: Table,
}

impl Rows {
    fn new<const N: usize, const M: usize>(names: [&str; N], columns: [Column; M]) -> Self {
        let words = names.map(|name| (name.to_owned(), Align::Left));
        let read = columns.iter().map(|column| match column {
            Column::Count(name) | Column::Number(name) | Column::Spread(name, _) => {
                ((*name).to_owned(), Align::Right)
            }
        });
        let data = columns.iter().flat_map(|column| -> Vec<(String, Align)> {
            let name = |name: &str| super::setting::slug(name);
            match column {
                Column::Count(text) | Column::Number(text) => vec![(name(text), Align::Right)],
                Column::Spread(text, _) => ["", "_q25", "_q75"]
                    .map(|end| (name(text) + end, Align::Right))
                    .to_vec(),
            }
        });
        Self {
            read: Table::new(words.iter().cloned().chain(read)),
            data: Table::new(words.iter().cloned().chain(data)),
            columns: columns.to_vec(),
        }
    }

    fn push<const M: usize>(&mut self, names: Vec<String>, cells: [Cell; M]) {
        let read = self
            .columns
            .iter()
            .zip(&cells)
            .map(|(column, cell)| match (cell, column) {
                (Cell::Count(n), _) => n.to_string(),
                (Cell::Number(value), _) => value.map_or(String::new(), significant),
                (Cell::Spread(Some(summary)), Column::Spread(_, decimals)) => spread(summary, *decimals),
                (Cell::Spread(_), _) => String::new(),
            });
        self.read.push(names.iter().cloned().chain(read));
        let raw = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let data = cells.iter().flat_map(|cell| match cell {
            Cell::Count(n) => vec![n.to_string()],
            Cell::Number(value) => vec![raw(*value)],
            Cell::Spread(summary) => vec![
                raw(summary.map(|s| s.median)),
                raw(summary.map(|s| s.q25)),
                raw(summary.map(|s| s.q75)),
            ],
        });
        self.data.push(names.into_iter().chain(data));
    }
}

/// A median with its quartiles; alone where they are the same, as of a single run.
fn spread(summary: &Summary, decimals: usize) -> String {
    let number = |value: f64| {
        // No -0.
        let text = format!("{value:.decimals$}");
        let is_zero = text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
        match is_zero {
            true => text.trim_start_matches('-').to_owned(),
            false => text,
        }
    };
    let (median, low, high) = (number(summary.median), number(summary.q25), number(summary.q75));
    if low == high {
        median
    } else {
        format!("{median} [{low}, {high}]")
    }
}

/// Three significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i32;
    if (-4..6).contains(&exponent) {
        format!("{value:.*}", (2 - exponent).max(0) as usize)
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        let summary = |median, q25, q75| Summary { median, q25, q75 };
        assert_eq!(spread(&summary(1.0, 0.5, 1.25), 2), "1.00 [0.50, 1.25]");
        assert_eq!(spread(&summary(-0.25, -0.25, -0.25), 1), "-0.2");
        assert_eq!(spread(&summary(-0.0001, -0.0001, 0.0001), 2), "0.00");
        for (value, text) in [
            (0.25, "0.250"),
            (4.0621, "4.06"),
            (-12.34, "-12.3"),
            (1234.5, "1234"),
            (1.9e-6, "1.90e-6"),
            (0.0, "0"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
