//! The factor on the logits of the attention, fixed or rising over training.

use serde::{Deserialize, Serialize};

use super::config::{ModelError, invalid};

/// The inverse temperature τ on the logits of the attention, beside `1/√head_dim`: `softmax(τ Q Kᵀ/√head_dim)`.
///
/// In a recipe it is a number, or a rise over steps: `inverse_temperature = 8.5` or
/// `inverse_temperature = { from = 1.0, to = 8.5, steps = 4000 }`.
///
/// # Source
/// Propagation paper, section C.2, which uses a final τ of 8.5 in translation: τ multiplies the gradients of
/// queries and keys, which are otherwise far smaller than those of the values.
///
/// # Examples
/// ```
/// use wqk::model::InverseTemperature;
/// let rise = InverseTemperature::Rise { from: 1.0, to: 8.5, steps: 10 };
/// assert_eq!([rise.at(0), rise.at(5), rise.at(99)], [1.0, 4.75, 8.5]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a number, or { from, to, steps } for a rise over training"
)]
pub enum InverseTemperature {
    /// The same at every step.
    Constant(f64),
    /// A straight line over the first steps.
    Rise {
        /// τ at step 0.
        from: f64,
        /// τ from step `steps` on.
        to: f64,
        /// Updates until `to` is reached.
        steps: usize,
    },
}

impl InverseTemperature {
    /// Logits as they are.
    pub const ONE: Self = Self::Constant(1.0);

    /// τ for the update that follows `step` others.
    pub fn at(&self, step: usize) -> f64 {
        match *self {
            Self::Constant(tau) => tau,
            Self::Rise { to, steps, .. } if step >= steps => to,
            Self::Rise { from, to, steps } => from + (to - from) * (step as f64 / steps as f64),
        }
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        let (from, to) = match *self {
            Self::Constant(tau) => (tau, tau),
            Self::Rise { from, to, .. } => (from, to),
        };
        match [from, to].into_iter().find(|tau| !tau.is_finite() || *tau < 0.0) {
            Some(tau) => Err(invalid("inverse_temperature", tau, "finite and not negative")),
            None => Ok(()),
        }
    }
}

impl From<f64> for InverseTemperature {
    fn from(tau: f64) -> Self {
        Self::Constant(tau)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back() {
        for tau in [
            InverseTemperature::ONE,
            InverseTemperature::Rise {
                from: 1.0,
                to: 8.5,
                steps: 0,
            },
        ] {
            let json = serde_json::to_string(&tau).unwrap();
            assert_eq!(
                serde_json::from_str::<InverseTemperature>(&json).unwrap(),
                tau,
                "{json}"
            );
        }
        assert!(serde_json::from_str::<InverseTemperature>(r#"{"from": 1, "to": 2}"#).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(InverseTemperature::Constant(-1.0).check().is_err());
        let rise = InverseTemperature::Rise {
            from: 1.0,
            to: f64::INFINITY,
            steps: 3,
        };
        assert!(
            rise.check()
                .unwrap_err()
                .to_string()
                .contains("inverse_temperature")
        );
    }
}
