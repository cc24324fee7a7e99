use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{BilinearError, BilinearForm};

/// Which entries of a head turn together. `r` is the number of entries that turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RotaryPairs {
    /// Entry i with entry i + r/2 (GPT-NeoX, LLaMA).
    Half,
    /// Entry 2i with entry 2i + 1 (GPT-J, and the paper's own).
    Interleaved,
}

/// Rotary positions: how position p turns the queries and keys of a head.
///
/// Pair i is turned by the angle `p · frequencies[i]`; entries outside the pairs stay. Between a query at position
/// i and a key at position j only the offset `j − i` is left, because a query `R(i)ᵀ…` meets a key `R(j)`:
/// `q_i · k_j = x_i W_q R(j − i) W_kᵀ x_jᵀ` with `R` acting on columns.
///
/// # Source
/// Su et al. 2021, arXiv 2104.09864, equation 14.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    pairs: RotaryPairs,
    start: usize,
    frequencies: Vec<f64>,
    scale: f64,
}

impl Rotary {
    /// Turns the first `2 · frequencies.len()` entries of each head.
    pub fn new(pairs: RotaryPairs, frequencies: Vec<f64>) -> Self {
        Self {
            pairs,
            start: 0,
            frequencies,
            scale: 1.0,
        }
    }

    /// Turns entries from `start` on instead (multi-head latent attention: those after the unrotated part).
    pub fn starting_at(mut self, start: usize) -> Self {
        self.start = start;
        self
    }

    /// Multiplies the turned part of queries and of keys by `scale` each, as YaRN and LongRoPE do with their
    /// attention factor. It matters where only part of a head turns.
    pub fn scaled_by(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    /// How many entries of a head it needs.
    pub fn width(&self) -> usize {
        self.start + 2 * self.frequencies.len()
    }

    /// `R(offset)` for a head, `[head_dim, head_dim]` row-major, acting on columns.
    fn matrix(&self, head_dim: usize, offset: i64) -> Vec<f32> {
        let mut r = vec![0.0; head_dim * head_dim];
        for i in 0..head_dim {
            r[i * head_dim + i] = 1.0;
        }
        let half = self.frequencies.len();
        for (i, frequency) in self.frequencies.iter().enumerate() {
            let (a, b) = match self.pairs {
                RotaryPairs::Half => (self.start + i, self.start + i + half),
                RotaryPairs::Interleaved => (self.start + 2 * i, self.start + 2 * i + 1),
            };
            let (sin, cos) = (offset as f64 * frequency).sin_cos();
            let scaled = |v: f64| (self.scale * self.scale * v) as f32;
            r[a * head_dim + a] = scaled(cos);
            r[a * head_dim + b] = scaled(-sin);
            r[b * head_dim + a] = scaled(sin);
            r[b * head_dim + b] = scaled(cos);
        }
        r
    }
}

impl<B: Backend> BilinearForm<B> {
    /// The form between a query and a key that stands `offset` positions after it: `W_q,h R(offset) W_k,gᵀ`.
    ///
    /// Causal attention has offsets of 0 and below. Offset 0 gives the form itself, unless the rotation scales.
    ///
    /// # Errors
    /// [`BilinearError::Rotary`] where heads are narrower than what turns.
    pub fn at_offset(&self, rotary: &Rotary, offset: i64) -> Result<Self, BilinearError> {
        let (head_dim, heads) = (self.head_dim(), self.heads_layout());
        if rotary.width() > head_dim {
            return Err(BilinearError::Rotary {
                width: rotary.width(),
                head_dim,
            });
        }
        let k = self.w_k();
        let [d_model, _] = k.dims();
        let groups = heads.n_kv_heads();
        let r = TensorData::new(rotary.matrix(head_dim, offset), [1, head_dim, head_dim]);
        let r = Tensor::<B, 3>::from_data(r, &k.device()).repeat_dim(0, groups);
        let turned = r.matmul(k.transpose().reshape([groups, head_dim, d_model]));
        Self::new(
            self.w_q(),
            turned.reshape([groups * head_dim, d_model]).transpose(),
            heads,
        )
    }
}
