//! The learning rate as a function of the step.

use serde::{Deserialize, Serialize};

/// How the rate falls after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// It does not.
    Constant,
    /// Linearly to 0 at the last step, as the structure paper trains BERT.
    Linear,
    /// Along half a cosine to 0 at the last step, as it trains vision transformers.
    Cosine,
}

impl Decay {
    /// Its name, as in a recipe.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Linear => "linear",
            Self::Cosine => "cosine",
        }
    }
}

/// A linear warm-up, then a decay.
///
/// Steps count from 0. During the warm-up of `w` steps the rate is `peak · (t + 1)/(w + 1)`, so that the
/// first update already moves, or, where it is to rise from a share `f`, `peak · (f + (1 − f) t/w)`; after it, with `r = (t − w)/(T − w)`, it is `peak · (1 − r)` (linear) or
/// `peak · (1 + cos πr)/2` (cosine).
///
/// # Examples
/// ```
/// use wqk::train::{Decay, Schedule};
/// let schedule = Schedule { peak: 1.0, warmup: 4, warmup_from: None, steps: 14, decay: Decay::Linear };
/// assert_eq!(schedule.rate(0), 0.2);
/// assert_eq!(schedule.rate(4), 1.0);
/// assert_eq!(schedule.rate(9), 0.5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The highest rate.
    pub peak: f64,
    /// Number of warm-up steps.
    pub warmup: usize,
    /// The share of the highest rate from which it rises.
    pub warmup_from: Option<f64>,
    /// Number of all steps.
    pub steps: usize,
    /// What follows the warm-up.
    pub decay: Decay,
}

impl Schedule {
    /// The rate of one step.
    pub fn rate(&self, step: usize) -> f64 {
        if step < self.warmup {
            return self.peak
                * match self.warmup_from {
                    None => (step + 1) as f64 / (self.warmup + 1) as f64,
                    Some(from) => from + (1.0 - from) * step as f64 / self.warmup as f64,
                };
        }
        let rest = self.steps.saturating_sub(self.warmup).max(1) as f64;
        let r = ((step - self.warmup) as f64 / rest).min(1.0);
        self.peak
            * match self.decay {
                Decay::Constant => 1.0,
                Decay::Linear => 1.0 - r,
                Decay::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * r).cos()),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_rises_and_falls() {
        let s = Schedule {
            peak: 2.0,
            warmup: 3,
            warmup_from: None,
            steps: 13,
            decay: Decay::Linear,
        };
        let rates: Vec<f64> = (0..13).map(|t| s.rate(t)).collect();
        assert_eq!(&rates[..4], &[0.5, 1.0, 1.5, 2.0]);
        assert!(rates[3..].windows(2).all(|w| w[1] < w[0]));
        // The last update still moves: step 12 of 13 has a tenth of the decay left.
        assert!((rates[12] - 0.2).abs() < 1e-15);
        assert_eq!(s.rate(13), 0.0);
    }

    #[test]
    fn cosine_is_half_way_in_the_middle() {
        let s = Schedule {
            peak: 1.0,
            warmup: 0,
            warmup_from: None,
            steps: 10,
            decay: Decay::Cosine,
        };
        assert_eq!(s.rate(0), 1.0);
        assert!((s.rate(5) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn a_share_of_the_peak_to_rise_from() {
        // The structure paper's vision transformers: from 0.033 of the rate.
        let s = Schedule {
            peak: 3e-3,
            warmup: 10,
            warmup_from: Some(0.033),
            steps: 20,
            decay: Decay::Cosine,
        };
        for (step, share) in [(0, 0.033), (5, 0.5165), (10, 1.0), (15, 0.5)] {
            assert!(
                (s.rate(step) / 3e-3 - share).abs() < 1e-12,
                "{step}: {}",
                s.rate(step)
            );
        }
    }

    #[test]
    fn a_warmup_longer_than_the_run_never_peaks() {
        let s = Schedule {
            peak: 1.0,
            warmup: 100,
            warmup_from: None,
            steps: 10,
            decay: Decay::Linear,
        };
        assert!((0..10).all(|t| s.rate(t) < 0.1 + 1e-12));
    }
}
