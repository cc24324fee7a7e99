//! Runs side by side: what symmetric initialisation saves, and how far the seeds agree.
//!
//! [`Comparison`] reads the folders of runs and sorts them: runs whose recipes differ in nothing but the
//! initialisation of attention and the seed make a [`Group`], within it each initialisation is an
//! [`InitArm`]. Only runs of one group are compared. [`tables`](Comparison::tables) and
//! [`figures`](Comparison::figures) are in the layout of the structure paper's Table 1, Figure 3,
//! Supplementary Figures 3 to 5, and its table of vision transformers.

mod effect;
mod figures;
mod page;
mod paired;
mod published;
mod read;
mod setting;
mod speed_up;
mod student_t;
mod tables;
mod updates;

pub use effect::Effect;
pub use figures::NamedFigure;
pub use page::write;
pub use paired::Paired;
pub use published::{Published, PublishedLoss, PublishedScores};
pub use setting::Setting;
pub use speed_up::SmoothLoss;
pub use tables::{NamedTable, TableKind};

use crate::bilinear::Summary;
use crate::report::experiment::Score;
use crate::train::{Run, RunInfo, ScoreRow};

/// Runs, sorted for comparison.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Groups of runs that differ in initialisation and seed alone, in the order of the paper: text before
    /// vision, small models first.
    pub groups: Vec<Group>,
    /// What was left out or cannot be compared, one line each.
    pub notes: Vec<String>,
}

/// Runs that differ in initialisation and seed alone.
#[derive(Debug, Clone)]
pub struct Group {
    /// What they have in common.
    pub setting: Setting,
    /// Their initialisations, the independent one first.
    pub arms: Vec<InitArm>,
}

/// The runs of one initialisation.
#[derive(Debug, Clone)]
pub struct InitArm {
    /// `independent`, `symmetric`, `control`, `mimetic`, with what differs from their defaults.
    pub name: String,
    /// Whether queries and keys were drawn independently: what the others are compared with.
    pub is_baseline: bool,
    /// Its runs, by seed.
    pub runs: Vec<Member>,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its folder, as it was given.
    pub folder: String,
    /// What its folder says of it.
    pub info: RunInfo,
    /// Its logs.
    pub run: Run,
    /// Its training loss, smoothed.
    pub loss: SmoothLoss,
    /// Whether it did all its updates. Others are drawn, but count in no table.
    pub finished: bool,
}

impl Member {
    /// Held-out loss at the end.
    pub fn held_out_loss(&self) -> Option<f64> {
        self.run.held_out.last().map(crate::train::HeldOutRow::final_loss)
    }

    /// Held-out accuracy at the end: of the averaged weights, where there are any.
    pub fn accuracy(&self) -> Option<f64> {
        let row = self.run.held_out.last()?;
        row.averaged_accuracy.or(row.accuracy)
    }

    /// Rows of the last scoring.
    fn last_scores(&self) -> &[ScoreRow] {
        ScoreRow::latest(&self.run.scores)
    }
}

impl InitArm {
    /// The finished runs.
    pub fn finished(&self) -> impl Iterator<Item = &Member> {
        self.runs.iter().filter(|run| run.finished)
    }

    /// A figure of each finished run, summed up; `None` where no run has it.
    pub fn summary(&self, of: impl Fn(&Member) -> Option<f64>) -> Option<Summary> {
        Summary::of(self.finished().filter_map(of))
    }

    /// A score of all layers of all finished runs at their end.
    pub fn final_score(&self, score: Score) -> Option<Summary> {
        let rows = self.finished().flat_map(Member::last_scores);
        Summary::of(rows.filter_map(|row| score.of(&row.scores)))
    }

    /// The symmetry of all heads of all layers of all finished runs at their end.
    pub fn final_head_symmetry(&self) -> Option<Summary> {
        let rows = self.finished().flat_map(Member::last_scores);
        let heads = rows.flat_map(|row| row.scores.heads.iter().flatten());
        Summary::of(heads.filter_map(|head| head.symmetry))
    }
}

impl Group {
    /// The arm with independent initialisation.
    pub fn baseline(&self) -> Option<&InitArm> {
        self.arms.iter().find(|arm| arm.is_baseline)
    }

    /// Every other arm against the baseline.
    pub fn effects(&self) -> Vec<Effect> {
        let Some(baseline) = self.baseline() else {
            return Vec::new();
        };
        let others = self.arms.iter().filter(|arm| !arm.is_baseline);
        others.map(|arm| Effect::of(arm, baseline)).collect()
    }

    fn runs(&self) -> impl Iterator<Item = &Member> {
        self.arms.iter().flat_map(|arm| &arm.runs)
    }
}

#[cfg(test)]
mod tests;
