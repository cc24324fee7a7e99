//! The gradients of one attention layer, given its input.

use crate::attention::AttentionInit;
use crate::attention::init::Projections;

/// The four projections of an attention layer at random, entries independent with mean 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProjectionLaw {
    /// The width of the tokens.
    pub d_model: usize,
    /// Query heads. Key heads do not change any law here but share them.
    pub n_heads: usize,
    /// The width of a head.
    pub head_dim: usize,
    /// The variance σ_q² of the entries of `W_q`.
    pub query_variance: f64,
    /// Of `W_k`.
    pub key_variance: f64,
    /// Of `W_v`.
    pub value_variance: f64,
    /// Of `W_o`; none where the heads side by side are the output, as in the propagation paper.
    pub output_variance: Option<f64>,
    /// The factor τ on the logits beside `1/√head_dim`.
    pub inverse_temperature: f64,
}

/// Expected squared norms `E‖∂S/∂W‖_F²` of the derivatives of a layer's output in its weights.
///
/// That of a loss `⟨R, S⟩` with R of independent entries of variance 1 has the same expectation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct AttentionGradients {
    /// In `W_q`, all heads.
    pub query: f64,
    /// In `W_k`.
    pub key: f64,
    /// In `W_v`.
    pub value: f64,
}

impl ProjectionLaw {
    /// The propagation paper's head: as wide as the tokens, without an output map, variances `1/d`.
    pub fn single(d: usize) -> Self {
        let variance = 1.0 / d as f64;
        Self {
            d_model: d,
            n_heads: 1,
            head_dim: d,
            query_variance: variance,
            key_variance: variance,
            value_variance: variance,
            output_variance: None,
            inverse_temperature: 1.0,
        }
    }

    /// The law of an initialisation, with `std` where it sets no standard deviation itself; none unless every matrix is
    /// drawn by itself.
    pub fn of_init(
        init: &AttentionInit,
        projections: &Projections,
        std: f64,
        inverse_temperature: f64,
    ) -> Option<Self> {
        let AttentionInit::Independent(init) = init else {
            return None;
        };
        let variance = |given: Option<f64>| given.unwrap_or(std).powi(2);
        Some(Self {
            d_model: projections.d_model,
            n_heads: projections.heads.n_heads(),
            head_dim: projections.head_dim,
            query_variance: variance(init.query_std),
            key_variance: variance(init.key_std),
            value_variance: variance(init.value_std),
            output_variance: Some(variance(init.output_std)),
            inverse_temperature,
        })
    }

    /// `E‖x W_v W_o‖²/‖x‖²`, what values and outputs do to a squared norm.
    pub fn value_gain(&self) -> f64 {
        self.value_variance * self.output_gain()
    }

    /// All heads' entries times what the output map does to a squared norm.
    fn output_gain(&self) -> f64 {
        let entries = (self.n_heads * self.head_dim) as f64;
        entries
            * self
                .output_variance
                .map_or(1.0, |variance| self.d_model as f64 * variance)
    }

    /// The gradients of the layer under uniform attention, given `N = ‖X‖_F²`, `C = ‖Σ_k x_k‖²` and `‖Xᵀ H X‖_F²` of its
    /// `n` input tokens: with `G` the gain of the values,
    /// `E‖∂S/∂W_q‖² = τ² σ_k² G N ‖XᵀHX‖²/n²`, the keys' with `σ_q²`, and `E‖∂S/∂W_v‖² = (G/σ_v²) C/n`.
    ///
    /// Exact for any X over the draw of the other weights, where attention is exactly uniform (`W_q = 0`).
    ///
    /// # Source
    /// Propagation paper, section 3.1 and its appendix, carried over to several heads and an output map: heads add up,
    /// because their output maps are independent, and so do the query heads that share a key head.
    pub fn gradients(
        &self,
        n: usize,
        norm: f64,
        inner_products: f64,
        centred_gram: f64,
    ) -> AttentionGradients {
        let n = n as f64;
        let common = self.inverse_temperature.powi(2) * self.value_gain() * norm * centred_gram / (n * n);
        AttentionGradients {
            query: common * self.key_variance,
            key: common * self.query_variance,
            value: self.output_gain() * inner_products / n,
        }
    }
}

impl AttentionGradients {
    /// The factor on the inverse temperature that makes queries and values equal in norm: the square root of their
    /// ratio, infinite where the queries have none.
    pub fn equalising_factor(&self) -> f64 {
        (self.value / self.query).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::theory::GaussianTokens;

    #[test]
    fn a_single_head_has_the_papers_form() {
        let tokens = GaussianTokens::new(20, 32, 0.8, 0.25).unwrap();
        let gram = tokens.centred_gram() * tokens.joint_factor();
        let got = ProjectionLaw::single(32).gradients(20, tokens.norm(), tokens.inner_products(), gram);
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
        close(got.query, tokens.query_gradient());
        close(got.key, tokens.query_gradient());
        close(got.value, tokens.value_gradient());
        close(got.equalising_factor(), tokens.equalising_temperature());
    }
}
