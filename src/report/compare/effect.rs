//! What an initialisation does to the same runs.

use super::paired::Paired;
use super::speed_up::held_out_speed_up;
use super::{InitArm, Member};
use crate::bilinear::Summary;

/// An arm against the baseline, seed by seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The arm.
    pub arm: String,
    /// The baseline.
    pub baseline: String,
    /// The seeds that both have finished.
    pub seeds: Vec<u64>,
    /// The share of the updates that the arm saves until it reaches the baseline's final loss, for each of
    /// the seeds; `None` where it never reaches it.
    pub speed_ups: Vec<Option<f64>>,
    /// The same by held-out losses; empty where a run has none.
    pub held_out_speed_ups: Vec<Option<f64>>,
    /// The arm's final loss less the baseline's: on held-out data, or where there are none in training.
    pub loss: Option<Paired>,
    /// Whether that loss is on held-out data.
    pub held_out: bool,
}

impl Effect {
    pub(super) fn of(arm: &InitArm, baseline: &InitArm) -> Self {
        let pairs: Vec<(&Member, &Member)> = arm
            .finished()
            .filter_map(|run| {
                let partner = baseline.finished().find(|other| other.run.seed == run.run.seed)?;
                Some((run, partner))
            })
            .collect();
        let difference = |of: &dyn Fn(&Member) -> Option<f64>| -> Option<Vec<f64>> {
            pairs
                .iter()
                .map(|(run, partner)| Some(of(run)? - of(partner)?))
                .collect()
        };
        let evaluations = |run: &Member| -> Vec<(usize, f64)> {
            let rows = run.run.held_out.iter();
            rows.map(|row| (row.step, row.final_loss())).collect()
        };
        let evaluated = pairs
            .iter()
            .all(|(run, partner)| !run.run.held_out.is_empty() && !partner.run.held_out.is_empty());
        let on_held_out = difference(&Member::held_out_loss);
        let held_out = on_held_out.is_some();
        let differences = on_held_out.or_else(|| difference(&|run| run.loss.last()));
        Self {
            arm: arm.name.clone(),
            baseline: baseline.name.clone(),
            seeds: pairs.iter().map(|(run, _)| run.run.seed).collect(),
            speed_ups: pairs
                .iter()
                .map(|(run, partner)| run.loss.speed_up(&partner.loss))
                .collect(),
            held_out_speed_ups: pairs
                .iter()
                .filter(|_| evaluated)
                .map(|(run, partner)| held_out_speed_up(&evaluations(run), &evaluations(partner)))
                .collect(),
            loss: differences.and_then(|differences| Paired::of(&differences)),
            held_out,
        }
    }

    /// The speed-ups summed up; a run that never reaches the loss saved nothing, as in the paper's table.
    pub fn speed_up(&self) -> Option<Summary> {
        Summary::of(self.speed_ups.iter().map(|saved| saved.unwrap_or(0.0)))
    }

    /// The speed-ups by held-out losses, summed up in the same way.
    pub fn held_out_speed_up(&self) -> Option<Summary> {
        Summary::of(self.held_out_speed_ups.iter().map(|saved| saved.unwrap_or(0.0)))
    }

    /// Pairs in which the baseline's final loss was never reached.
    pub fn never(&self) -> usize {
        self.speed_ups.iter().filter(|saved| saved.is_none()).count()
    }
}
