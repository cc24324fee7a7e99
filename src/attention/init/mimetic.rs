use faer::Mat;
use serde::{Deserialize, Serialize};

use super::host::{from_mat, gaussian};
use super::{Projections, Streams, Weights};
use crate::attention::AttentionError;

/// Mimetic initialisation: `W_q,h W_k,hᵀ ≈ α₁ Z + β₁ I` for each head, and `W_v W_o ≈ α₂ Z − β₂ I`, with `Z` of
/// independent normal entries of variance `1/d_model`.
///
/// Each product is the truncated singular value decomposition of its target, halved between the factors. Where
/// query heads share a key head, the target of the group is factored once and its heads share it, each with its
/// part of the output.
///
/// Costs `O(d_model³)` on the host for each key head.
///
/// # Source
/// A. Trockman and J. Z. Kolter, Mimetic Initialization of Self-Attention Layers (2023).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MimeticInit {
    /// The noise in queries and keys, `α₁`. Default: 0.7.
    pub query_key_noise: f64,
    /// The identity in queries and keys, `β₁`. Default: 0.7.
    pub query_key_identity: f64,
    /// The noise in values and outputs, `α₂`. Default: 0.4.
    pub value_output_noise: f64,
    /// The negative identity in values and outputs, `β₂`. Default: 0.4.
    pub value_output_identity: f64,
}

impl Default for MimeticInit {
    fn default() -> Self {
        Self {
            query_key_noise: 0.7,
            query_key_identity: 0.7,
            value_output_noise: 0.4,
            value_output_identity: 0.4,
        }
    }
}

impl MimeticInit {
    pub(super) fn draw(
        &self,
        projections: &Projections,
        streams: &Streams,
    ) -> Result<Weights, AttentionError> {
        for (name, value) in [
            ("query_key_noise", self.query_key_noise),
            ("query_key_identity", self.query_key_identity),
            ("value_output_noise", self.value_output_noise),
            ("value_output_identity", self.value_output_identity),
        ] {
            AttentionError::check_scale(name, value)?;
        }
        let &Projections {
            d_model,
            heads,
            head_dim,
        } = projections;
        let mut target = {
            let mut rng = streams.of("mimetic");
            move |noise: f64, identity: f64| {
                let mut target = gaussian(&mut rng, d_model, d_model, noise / (d_model as f64).sqrt());
                for i in 0..d_model {
                    target[(i, i)] += identity;
                }
                target
            }
        };
        let mut query = Mat::<f64>::zeros(d_model, projections.query_width());
        let mut key = Mat::<f64>::zeros(d_model, projections.key_width());
        for group in 0..heads.n_kv_heads() {
            let (left, right) = factors(&target(self.query_key_noise, self.query_key_identity), head_dim)?;
            key.as_mut()
                .subcols_mut(group * head_dim, head_dim)
                .copy_from(&right);
            let per_group = heads.heads_per_group();
            for head in group * per_group..(group + 1) * per_group {
                query
                    .as_mut()
                    .subcols_mut(head * head_dim, head_dim)
                    .copy_from(&left);
            }
        }
        let (value, right) = factors(
            &target(self.value_output_noise, -self.value_output_identity),
            projections.key_width(),
        )?;
        // Heads of a group add up: each gets its share of the output.
        let share = 1.0 / heads.heads_per_group() as f64;
        let output = Mat::from_fn(projections.query_width(), d_model, |i, j| {
            let (head, within) = (i / head_dim, i % head_dim);
            right[(j, heads.group_of(head) * head_dim + within)] * share
        });
        Ok(Weights {
            query: from_mat(&query),
            key: from_mat(&key),
            value: from_mat(&value),
            output: from_mat(&output),
        })
    }
}

/// The best `A Bᵀ` of inner width `rank` to a square matrix, balanced; columns beyond its size are 0.
fn factors(target: &Mat<f64>, rank: usize) -> Result<(Mat<f64>, Mat<f64>), AttentionError> {
    let size = target.nrows();
    let svd = target
        .thin_svd()
        .map_err(|_| AttentionError::NoConvergence { size })?;
    let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
    let half = |x: faer::MatRef<'_, f64>| {
        Mat::from_fn(
            size,
            rank,
            |i, j| if j < size { x[(i, j)] * s[j].sqrt() } else { 0.0 },
        )
    };
    Ok((half(u), half(v)))
}
