//! How often a token is expected to serve as context and as target.

use serde::{Deserialize, Serialize};

use super::ObjectiveMode;

/// The expected numbers of pairs in which a token is the context, and in which it is the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExpectedCounts {
    /// How many predictions the token is expected to serve as context.
    pub context: f64,
    /// How many tokens it is expected to be predicted from.
    pub target: f64,
}

impl ExpectedCounts {
    /// Context over target, the ratio of the structure paper's proposition; `None` where the token is
    /// never a target.
    pub fn ratio(self) -> Option<f64> {
        (self.target > 0.0).then(|| self.context / self.target)
    }
}

impl ObjectiveMode {
    /// The expected counts of a token `t` in one sequence, from `probabilities[k] = Pr[t_k = t]`.
    ///
    /// # Formula
    /// Counting positions from 1: autoregressive `Σ_k (N − k) Pr[t_k = t]` as context and
    /// `Σ_k (k − 1) Pr[t_k = t]` as target; masked at rate ρ `ρ(1 − ρ)(N − 1) Σ_k Pr[t_k = t]` as either, so
    /// that the ratio is 1. In general the sums run over the edges out of and into `k` in the conditioning
    /// graph, times the probability `ρ(1 − ρ)` that an edge joins a token that is predicted to one that is
    /// not hidden, where tokens are masked at random.
    ///
    /// # Source
    /// Structure paper, proposition on the ratio of expected counts. Its absolute counts for masking
    /// carry a factor N too many, which its ratio does not show.
    pub fn expected_counts(self, probabilities: &[f64]) -> ExpectedCounts {
        let graph = self.conditioning_graph(probabilities.len());
        let pair = match self {
            Self::Masked(masking) | Self::MaskedCausal(masking) => masking.rate() * (1.0 - masking.rate()),
            Self::Autoregressive | Self::PrefixLm(_) | Self::PseudoLikelihood => 1.0,
        };
        let expected = |degrees: Vec<usize>| -> f64 {
            let sum: f64 = degrees
                .iter()
                .zip(probabilities)
                .map(|(&degree, probability)| degree as f64 * probability)
                .sum();
            pair * sum
        };
        ExpectedCounts {
            context: expected(graph.context_counts()),
            target: expected(graph.target_counts()),
        }
    }
}

/// Of the ordered pairs of different positions whose query is masked, the share whose key is masked too,
/// when `masked` of `n` positions are: `(pN − 1)/(N − 1)` for `masked = pN`.
///
/// `None` where no such pair exists. With each position masked independently at rate p the ratio of the
/// expected numbers is p.
///
/// # Source
/// Structure paper, remark on masked language modelling under the symmetry theorem, which gives
/// [`masked_pair_ratio`] instead and calls it a percentage.
pub fn masked_pair_share(masked: usize, n: usize) -> Option<f64> {
    (masked >= 1 && masked <= n && n >= 2).then(|| (masked - 1) as f64 / (n - 1) as f64)
}

/// The pairs with both ends masked over those with a masked query and an unmasked key, as the structure
/// paper prints it: `(pN − 1)/(N − pN)` for `masked = pN`.
///
/// `None` where every position is masked or none.
pub fn masked_pair_ratio(masked: usize, n: usize) -> Option<f64> {
    (masked >= 1 && masked < n).then(|| (masked - 1) as f64 / (n - masked) as f64)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::random;

    /// A token's probabilities by position, more likely early, as the paper's assumption (c) has it.
    const EARLY: [f64; 6] = [0.5, 0.3, 0.2, 0.1, 0.05, 0.05];

    /// Sums of a few products in f64: a relative 1e-14 is a hundred roundings.
    fn assert_close(got: f64, expected: f64) {
        assert!(
            (got - expected).abs() <= 1e-14 * expected.abs(),
            "{got} against {expected}"
        );
    }

    #[test]
    fn autoregressive_sums_as_printed() {
        // N = 6: 5·.5 + 4·.3 + 3·.2 + 2·.1 + 1·.05 and 1·.3 + 2·.2 + 3·.1 + 4·.05 + 5·.05.
        let counts = ObjectiveMode::autoregressive().expected_counts(&EARLY);
        assert_close(counts.context, 4.55);
        assert_close(counts.target, 1.45);
        // The paper's remark: the ratio is (N − μ)/(μ − 1), μ the mean position counted from 1.
        let mean = (1..).zip(EARLY).map(|(k, p)| f64::from(k) * p).sum::<f64>() / EARLY.iter().sum::<f64>();
        assert_close(counts.ratio().unwrap(), (6.0 - mean) / (mean - 1.0));
        // The structure paper's decoder mode has the same ratio.
        let corrupted = ObjectiveMode::masked_causal(0.15)
            .unwrap()
            .expected_counts(&EARLY);
        assert_close(corrupted.ratio().unwrap(), counts.ratio().unwrap());
    }

    #[test]
    fn masked_closed_form() {
        let (rate, n) = (0.15, 6.0);
        let counts = ObjectiveMode::masked(rate).unwrap().expected_counts(&EARLY);
        let expected = rate * (1.0 - rate) * (n - 1.0) * EARLY.iter().sum::<f64>();
        assert_close(counts.context, expected);
        assert_close(counts.target, expected);
    }

    #[test]
    fn evenly_spread_tokens_balance_in_every_mode() {
        let even = [0.01; 32];
        for mode in [
            ObjectiveMode::masked(0.3).unwrap(),
            ObjectiveMode::autoregressive(),
            ObjectiveMode::masked_causal(0.3).unwrap(),
            ObjectiveMode::pseudo_likelihood(),
            // Every edge has two ends, so this holds of any graph.
            ObjectiveMode::prefix_lm(0.5).unwrap(),
        ] {
            assert_close(mode.expected_counts(&even).ratio().unwrap(), 1.0);
        }
        assert_eq!(
            ObjectiveMode::autoregressive().expected_counts(&[1.0]).ratio(),
            None
        );
    }

    /// The masked counts, simulated: tokens drawn by position, masks by rate, pairs counted one by one.
    #[test]
    fn masked_counts_agree_with_simulation() {
        let (rate, draws) = (0.3, 40_000);
        let mut rng = random::stream(11, ["expected counts"]);
        let (mut context, mut target) = (Vec::new(), Vec::new());
        for _ in 0..draws {
            let is_token = EARLY.map(|p| rng.random_bool(p));
            let is_masked = EARLY.map(|_| rng.random_bool(rate));
            let (mut as_context, mut as_target) = (0.0, 0.0);
            for query in 0..EARLY.len() {
                for key in (0..EARLY.len()).filter(|&key| key != query) {
                    if is_masked[query] && !is_masked[key] {
                        as_context += f64::from(u8::from(is_token[key]));
                        as_target += f64::from(u8::from(is_token[query]));
                    }
                }
            }
            context.push(as_context);
            target.push(as_target);
        }
        let expected = ObjectiveMode::masked(rate).unwrap().expected_counts(&EARLY);
        for (counts, expected) in [(context, expected.context), (target, expected.target)] {
            let mean = counts.iter().sum::<f64>() / f64::from(draws);
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / f64::from(draws);
            // Four standard errors; the paper's extra factor N would be off by hundreds.
            let allowed = 4.0 * (variance / f64::from(draws)).sqrt();
            assert!(
                (mean - expected).abs() < allowed,
                "{mean} against {expected} ± {allowed}"
            );
        }
    }

    /// All ways to mask 3 of 7 positions, enumerated.
    #[test]
    fn pair_shares_by_enumeration() {
        let (masked, n) = (3, 7);
        let (mut both, mut query_masked) = (0u32, 0u32);
        for mask in (0u32..1 << n).filter(|mask| mask.count_ones() == masked) {
            for query in (0..n).filter(|query| mask >> query & 1 == 1) {
                for key in (0..n).filter(|&key| key != query) {
                    query_masked += 1;
                    both += mask >> key & 1;
                }
            }
        }
        let share = f64::from(both) / f64::from(query_masked);
        assert_close(masked_pair_share(3, 7).unwrap(), share);
        assert_close(masked_pair_ratio(3, 7).unwrap(), share / (1.0 - share));
        assert_eq!(masked_pair_share(0, 7), None);
        assert_eq!(masked_pair_share(1, 1), None);
        assert_eq!(masked_pair_ratio(7, 7), None);
        // 15 % of 100: the share is 14/99; the paper's "percentage" is 14/85.
        assert_close(masked_pair_share(15, 100).unwrap(), 14.0 / 99.0);
        assert_close(masked_pair_ratio(15, 100).unwrap(), 14.0 / 85.0);
    }
}
