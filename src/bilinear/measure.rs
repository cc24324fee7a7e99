use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};

use super::{BilinearError, BilinearForm, Directionality, Moments, Summary};

/// The directionality of one form, in both variants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DirectionalityScores {
    /// [`Variant::Definition`](super::Variant::Definition).
    pub definition: f64,
    /// [`Variant::Excess`](super::Variant::Excess).
    pub excess: f64,
}

/// The scores of one head.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeadScores {
    /// The symmetry; absent for a zero matrix.
    pub symmetry: Option<f64>,
    /// The directionality.
    pub directionality: DirectionalityScores,
}

/// The scores of one attention layer, with what they were computed for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerScores {
    /// The width of the model.
    pub d_model: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key heads.
    pub n_kv_heads: usize,
    /// The width of a head.
    pub head_dim: usize,
    /// The γ of the directionality's threshold.
    pub gamma: f64,
    /// The symmetry of the whole layer's form; absent for a zero matrix.
    pub symmetry: Option<f64>,
    /// The directionality of the whole layer's form.
    pub directionality: DirectionalityScores,
    /// The scores of each query head, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<Vec<HeadScores>>,
}

impl HeadScores {
    fn of(moments: &Moments, gamma: f64) -> Result<Self, BilinearError> {
        let (rows, columns) = (moments.row_norms(), moments.column_norms());
        let d = |d: Directionality| d.with_gamma(gamma).of_norms(&rows, &columns);
        Ok(Self {
            symmetry: moments.symmetry(),
            directionality: DirectionalityScores {
                definition: d(Directionality::definition())?,
                excess: d(Directionality::excess())?,
            },
        })
    }
}

impl LayerScores {
    /// The median and quartiles over heads of a score, such as `|head| head.symmetry`.
    ///
    /// `None` where heads were not scored or none has the score.
    pub fn over_heads(&self, score: impl Fn(&HeadScores) -> Option<f64>) -> Option<Summary> {
        Summary::of(self.heads.as_ref()?.iter().filter_map(score))
    }
}

impl<B: Backend> BilinearForm<B> {
    /// Scores the whole layer, and each of its heads where asked.
    ///
    /// Nothing of it enters an autodiff graph.
    ///
    /// # Errors
    /// [`BilinearError::Gamma`] where `gamma` is not finite.
    pub fn measure(&self, gamma: f64, per_head: bool) -> Result<LayerScores, BilinearError> {
        if !gamma.is_finite() {
            return Err(BilinearError::Gamma(gamma));
        }
        let heads = self.heads_layout();
        let layer = HeadScores::of(&self.moments(), gamma)?;
        let per_head = match (per_head, heads.n_heads()) {
            (false, _) => None,
            (true, 1) => Some(vec![layer]),
            (true, _) => Some(
                self.head_moments()
                    .iter()
                    .map(|moments| HeadScores::of(moments, gamma))
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(LayerScores {
            d_model: self.d_model(),
            n_heads: heads.n_heads(),
            n_kv_heads: heads.n_kv_heads(),
            head_dim: self.head_dim(),
            gamma,
            symmetry: layer.symmetry,
            directionality: layer.directionality,
            heads: per_head,
        })
    }
}
