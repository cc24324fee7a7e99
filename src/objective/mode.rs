//! The objectives.

use serde::{Deserialize, Serialize};

use super::{ConditioningGraph, Corruption, Masking, ObjectiveError, PrefixFraction, Visibility};

/// What a model is trained, or evaluated, to predict.
///
/// Written in a recipe as its kind and its parameters: `{ kind = "masked", rate = 0.15 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObjectiveMode {
    /// Masked language modelling: selected tokens are corrupted and predicted, each at its own position,
    /// from both sides. An encoder.
    Masked(Masking),
    /// Each token is predicted from those before it. A decoder.
    Autoregressive,
    /// The "decoder mode" of the structure paper's own code: the corruption of masked language modelling
    /// under a causal mask, where the selected tokens, and only they, are predicted from the position
    /// before them. The context is corrupted too, which true next-token training does not do.
    MaskedCausal(Masking),
    /// A prefix is seen from both sides, and each token after it is predicted from all before it.
    PrefixLm(PrefixFraction),
    /// Every token is masked in turn, alone, and predicted from all others. For evaluation: a sequence of
    /// `n` tokens takes `n` passes.
    PseudoLikelihood,
}

impl ObjectiveMode {
    /// Masked language modelling at this rate, with BERT's corruption (80 % masked, 10 % random, 10 %
    /// kept); for others build [`ObjectiveMode::Masked`] from a [`Masking`].
    ///
    /// # Errors
    /// [`ObjectiveError::Rate`] where `rate` is not strictly between 0 and 1.
    pub fn masked(rate: f64) -> Result<Self, ObjectiveError> {
        Masking::new(rate, Corruption::default()).map(Self::Masked)
    }

    /// Next-token prediction.
    pub const fn autoregressive() -> Self {
        Self::Autoregressive
    }

    /// The structure paper's own "decoder mode", at this masking rate and with BERT's corruption.
    ///
    /// # Errors
    /// [`ObjectiveError::Rate`] where `rate` is not strictly between 0 and 1.
    pub fn masked_causal(rate: f64) -> Result<Self, ObjectiveError> {
        Masking::new(rate, Corruption::default()).map(Self::MaskedCausal)
    }

    /// A prefix language model whose prefix is this fraction of every sequence.
    ///
    /// # Errors
    /// [`ObjectiveError::PrefixFraction`] where `fraction` is not strictly between 0 and 1.
    pub fn prefix_lm(fraction: f64) -> Result<Self, ObjectiveError> {
        PrefixFraction::new(fraction).map(Self::PrefixLm)
    }

    /// The pseudo-likelihood over all positions.
    pub const fn pseudo_likelihood() -> Self {
        Self::PseudoLikelihood
    }

    /// A short name, as in a recipe.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Masked(_) => "masked",
            Self::Autoregressive => "autoregressive",
            Self::MaskedCausal(_) => "masked_causal",
            Self::PrefixLm(_) => "prefix_lm",
            Self::PseudoLikelihood => "pseudo_likelihood",
        }
    }

    /// What the attention of a sequence of `n` tokens may see.
    pub fn attention_mask(self, n: usize) -> Visibility {
        match self {
            Self::Masked(_) | Self::PseudoLikelihood => Visibility::Full,
            Self::Autoregressive | Self::MaskedCausal(_) => Visibility::Causal,
            Self::PrefixLm(prefix) => Visibility::Prefix(prefix.length(n)),
        }
    }

    /// The conditioning set `D_i` of token `i` in a sequence of `n` tokens: the positions whose tokens it
    /// is predicted from. Empty for a token that is not predicted: the first one where prediction goes
    /// forward, and a prefix.
    ///
    /// Under masking the set is `j ≠ i`; once a set `M` has been selected, the members of `M` are seen
    /// corrupted. Counted from 0, where the structure paper counts from 1.
    ///
    /// # Source
    /// Structure paper, section 2 and the definition of the objectives in its appendix.
    pub fn conditioning_set(self, i: usize, n: usize) -> Vec<usize> {
        if i >= n {
            return Vec::new();
        }
        match self {
            Self::Masked(_) | Self::PseudoLikelihood => (0..n).filter(|&j| j != i).collect(),
            Self::Autoregressive | Self::MaskedCausal(_) => (0..i).collect(),
            Self::PrefixLm(prefix) if i < prefix.length(n) => Vec::new(),
            Self::PrefixLm(_) => (0..i).collect(),
        }
    }

    /// All conditioning sets of a sequence of `n` tokens.
    pub fn conditioning_graph(self, n: usize) -> ConditioningGraph {
        ConditioningGraph::new((0..n).map(|i| self.conditioning_set(i, n)).collect())
    }

    /// Whether the product of the conditionals is a normalised likelihood, of the predicted tokens given
    /// those that are not (the first, or the prefix): whether the conditioning graph is acyclic. Where it
    /// is not, the objective is a pseudo-likelihood.
    ///
    /// [`MaskedCausal`](Self::MaskedCausal) passes as its graph is a decoder's; but as a part of the
    /// context is corrupted, what it normalises is not the likelihood of the text itself.
    ///
    /// # Source
    /// Structure paper, appendix, remark on likelihood and pseudo-likelihood.
    pub fn is_normalised(self) -> bool {
        // No mode changes its character with the length; the shortest cycle, of two tokens, shows at 2,
        // and a few more leave room for a prefix.
        const REPRESENTATIVE: usize = 4;
        self.conditioning_graph(REPRESENTATIVE).is_acyclic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes() -> [ObjectiveMode; 5] {
        [
            ObjectiveMode::masked(0.15).unwrap(),
            ObjectiveMode::autoregressive(),
            ObjectiveMode::masked_causal(0.15).unwrap(),
            ObjectiveMode::prefix_lm(0.5).unwrap(),
            ObjectiveMode::pseudo_likelihood(),
        ]
    }

    #[test]
    fn conditioning_sets_of_four_tokens() {
        let [masked, autoregressive, masked_causal, prefix, pseudo] = modes();
        for mode in [masked, pseudo] {
            assert_eq!(mode.conditioning_set(1, 4), [0, 2, 3]);
        }
        for mode in [autoregressive, masked_causal] {
            assert_eq!(mode.conditioning_set(0, 4), [0; 0]);
            assert_eq!(mode.conditioning_set(2, 4), [0, 1]);
        }
        assert_eq!(prefix.conditioning_set(1, 4), [0; 0]);
        assert_eq!(prefix.conditioning_set(2, 4), [0, 1]);
        assert_eq!(prefix.conditioning_set(3, 4), [0, 1, 2]);
        assert_eq!(prefix.conditioning_set(4, 4), [0; 0]);
    }

    #[test]
    fn normalised_exactly_where_prediction_goes_one_way_at_every_length() {
        for mode in modes() {
            let one_way = !matches!(mode, ObjectiveMode::Masked(_) | ObjectiveMode::PseudoLikelihood);
            assert_eq!(mode.is_normalised(), one_way, "{mode:?}");
            for n in 2..40 {
                assert_eq!(
                    mode.conditioning_graph(n).is_acyclic(),
                    one_way,
                    "{mode:?} at {n}"
                );
            }
        }
    }

    /// What conditions a prediction is what the position that makes it can see: with a causal mask,
    /// token `i` is predicted at position `i − 1`, which sees `0..i`.
    #[test]
    fn masks_show_exactly_the_conditioning_sets() {
        let n = 7;
        for mode in modes() {
            let visibility = mode.attention_mask(n);
            for i in 0..n {
                let set = mode.conditioning_set(i, n);
                if set.is_empty() {
                    continue;
                }
                let predicts_at = if visibility == Visibility::Full { i } else { i - 1 };
                let seen: Vec<usize> = (0..n)
                    .filter(|&j| visibility.sees(predicts_at, j) && j != i)
                    .collect();
                assert_eq!(set, seen, "{mode:?}, token {i}");
                // Ahead of its prediction a token is hidden: by the mask, or by the corruption.
                assert_eq!(visibility.sees(predicts_at, i), visibility == Visibility::Full);
            }
        }
    }

    #[test]
    fn recipes_read_and_write_modes() {
        for mode in modes() {
            let text = serde_json::to_string(&mode).unwrap();
            assert_eq!(
                serde_json::from_str::<ObjectiveMode>(&text).unwrap(),
                mode,
                "{text}"
            );
            assert!(text.contains(&format!("\"kind\":\"{}\"", mode.name())), "{text}");
        }
        let read = |text| serde_json::from_str::<ObjectiveMode>(text);
        assert_eq!(read(r#"{"kind":"masked","rate":0.15}"#).unwrap(), modes()[0]);
        let error = read(r#"{"kind":"masked","rate":15}"#).unwrap_err().to_string();
        assert!(error.contains("masking rate 15"), "{error}");
    }
}
