//! How tokens are selected and corrupted: checked parameters.

use serde::{Deserialize, Serialize};

use super::ObjectiveError;

/// What happens to the selected tokens: a share is replaced by the mask token, a share by a random
/// ordinary token, and the rest stays.
///
/// # Source
/// BERT (Devlin et al. 2019): 80 % masked, 10 % random, 10 % kept, which is the default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CorruptionShares")]
pub struct Corruption {
    mask: f64,
    random: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorruptionShares {
    mask: f64,
    random: f64,
}

impl Corruption {
    /// The shares of the selected tokens that are masked and that are replaced by a random token.
    ///
    /// # Errors
    /// [`ObjectiveError::Corruption`] where a share is negative or not a number, or the sum exceeds 1.
    pub fn new(mask: f64, random: f64) -> Result<Self, ObjectiveError> {
        if mask >= 0.0 && random >= 0.0 && mask + random <= 1.0 {
            Ok(Self { mask, random })
        } else {
            Err(ObjectiveError::Corruption { mask, random })
        }
    }

    /// The share that is masked.
    pub const fn mask(self) -> f64 {
        self.mask
    }

    /// The share that is replaced by a random token.
    pub const fn random(self) -> f64 {
        self.random
    }
}

impl Default for Corruption {
    fn default() -> Self {
        Self {
            mask: 0.8,
            random: 0.1,
        }
    }
}

impl TryFrom<CorruptionShares> for Corruption {
    type Error = ObjectiveError;

    fn try_from(shares: CorruptionShares) -> Result<Self, Self::Error> {
        Self::new(shares.mask, shares.random)
    }
}

/// The rate at which tokens are selected for prediction, and what is then done to them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MaskingParameters")]
pub struct Masking {
    rate: f64,
    corruption: Corruption,
}

#[derive(Deserialize)]
struct MaskingParameters {
    rate: f64,
    #[serde(default)]
    corruption: Corruption,
}

impl Masking {
    /// Each token is selected with probability `rate`, independently of the others, and then corrupted.
    ///
    /// # Errors
    /// [`ObjectiveError::Rate`] where `rate` is not strictly between 0 and 1.
    pub fn new(rate: f64, corruption: Corruption) -> Result<Self, ObjectiveError> {
        if rate > 0.0 && rate < 1.0 {
            Ok(Self { rate, corruption })
        } else {
            Err(ObjectiveError::Rate(rate))
        }
    }

    /// The probability that a token is selected.
    pub const fn rate(self) -> f64 {
        self.rate
    }

    /// What is done to a selected token.
    pub const fn corruption(self) -> Corruption {
        self.corruption
    }
}

impl TryFrom<MaskingParameters> for Masking {
    type Error = ObjectiveError;

    fn try_from(parameters: MaskingParameters) -> Result<Self, Self::Error> {
        Self::new(parameters.rate, parameters.corruption)
    }
}

/// The part of each sequence that a prefix language model is given, the same for all sequences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PrefixParameters")]
pub struct PrefixFraction {
    fraction: f64,
}

#[derive(Deserialize)]
struct PrefixParameters {
    fraction: f64,
}

impl PrefixFraction {
    /// The first `fraction` of each sequence.
    ///
    /// # Errors
    /// [`ObjectiveError::PrefixFraction`] where it is not strictly between 0 and 1.
    pub fn new(fraction: f64) -> Result<Self, ObjectiveError> {
        if fraction > 0.0 && fraction < 1.0 {
            Ok(Self { fraction })
        } else {
            Err(ObjectiveError::PrefixFraction(fraction))
        }
    }

    /// The fraction.
    pub const fn fraction(self) -> f64 {
        self.fraction
    }

    /// The length of the prefix in a sequence of `n` tokens: the fraction, rounded, with at least one
    /// token in the prefix and one left to predict wherever `n` allows.
    pub fn length(self, n: usize) -> usize {
        let rounded = (self.fraction * n as f64).round() as usize;
        rounded.max(1).min(n.saturating_sub(1))
    }
}

impl TryFrom<PrefixParameters> for PrefixFraction {
    type Error = ObjectiveError;

    fn try_from(parameters: PrefixParameters) -> Result<Self, Self::Error> {
        Self::new(parameters.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked() {
        for rate in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
            assert!(Masking::new(rate, Corruption::default()).is_err(), "{rate}");
            assert!(PrefixFraction::new(rate).is_err(), "{rate}");
        }
        for (mask, random) in [(-0.1, 0.5), (0.5, -0.1), (0.9, 0.2), (f64::NAN, 0.0)] {
            assert!(Corruption::new(mask, random).is_err(), "{mask} {random}");
        }
        assert!(Corruption::new(0.0, 0.0).is_ok());
        assert!(Corruption::new(1.0, 0.0).is_ok());
    }

    #[test]
    fn a_prefix_leaves_something_on_both_sides() {
        let prefix = |fraction: f64, n| PrefixFraction::new(fraction).unwrap().length(n);
        assert_eq!(prefix(0.5, 8), 4);
        assert_eq!(prefix(0.01, 8), 1);
        assert_eq!(prefix(0.99, 8), 7);
        assert_eq!(prefix(0.5, 1), 0);
    }
}
