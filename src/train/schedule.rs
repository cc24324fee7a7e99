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

/// A linear warm-up, then a decay.
///
/// Steps count from 0. During the warm-up of `w` steps the rate is `peak · (t + 1)/(w + 1)`, so that the
/// first update already moves; after it, with `r = (t − w)/(T − w)`, it is `peak · (1 − r)` (linear) or
/// `peak · (1 + cos πr)/2` (cosine).
///
/// # Examples
/// ```
/// use wqk::train::{Decay, Schedule};
/// let schedule = Schedule { peak: 1.0, warmup: 4, steps: 14, decay: Decay::Linear };
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
    /// Number of all steps.
    pub steps: usize,
    /// What follows the warm-up.
    pub decay: Decay,
}

impl Schedule {
    /// The rate of one step.
    pub fn rate(&self, step: usize) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / (self.warmup + 1) as f64;
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
            steps: 10,
            decay: Decay::Cosine,
        };
        assert_eq!(s.rate(0), 1.0);
        assert!((s.rate(5) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn a_warmup_longer_than_the_run_never_peaks() {
        let s = Schedule {
            peak: 1.0,
            warmup: 100,
            steps: 10,
            decay: Decay::Linear,
        };
        assert!((0..10).all(|t| s.rate(t) < 0.1 + 1e-12));
    }
}
