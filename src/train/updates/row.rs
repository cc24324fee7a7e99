//! The numbers of one update of one layer.

use std::io::Write;

use serde::{Deserialize, Serialize};

/// What one update did to the form of one layer, and what its gradient says.
///
/// All are of whole layers, heads summed. Symmetries are absent for zero matrices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateRow {
    /// Updates done, the watched one included.
    pub step: usize,
    /// Index of the self-attention layer, from 0.
    pub layer: usize,
    /// Symmetry of `W_qk` after the update.
    pub weights_symmetry: Option<f64>,
    /// Its directionality, variant `Excess`.
    pub weights_directionality: f64,
    /// Symmetry of `G = Σ_h Xᵀ B_h X`, the gradient in the form itself.
    pub gradient_symmetry: Option<f64>,
    /// Directionality of `G`, variant `Excess`.
    pub gradient_directionality: f64,
    /// `Σ β_ij β_ji / Σ β_ij²` over pairs of different positions, all heads: see
    /// [`PairSymmetry::symmetry`](crate::bilinear::PairSymmetry::symmetry).
    pub pair_symmetry: Option<f64>,
    /// The share of pairs whose both ends carry an error:
    /// [`PairSymmetry::mutual`](crate::bilinear::PairSymmetry::mutual).
    pub mutual_pairs: Option<f64>,
    /// Symmetry of the exact update `ΔW_qk` of this step.
    pub update_symmetry: Option<f64>,
    /// Directionality of the update, variant `Excess`.
    pub update_directionality: f64,
    /// Frobenius norm of the update.
    pub update_norm: f64,
    /// Cosine between the update and what plain gradient descent would do to first order.
    pub first_order_cosine: Option<f64>,
    /// Symmetry of `W_qk − W_qk(0)`, all that training has added.
    pub change_symmetry: Option<f64>,
    /// Its directionality, variant `Excess`.
    pub change_directionality: f64,
    /// Its Frobenius norm.
    pub change_norm: f64,
    /// `‖Σ ΔW_qk − (W_qk − W_qk(0))‖` over that norm: what the exact updates, accumulated from one watched step to
    /// the next, miss of the change of the weights. Rounding alone.
    pub accumulation_error: f64,
}

impl UpdateRow {
    /// Writes rows as CSV with a header.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_csv(rows: &[Self], writer: impl Write) -> std::io::Result<()> {
        let mut csv = csv::Writer::from_writer(writer);
        for row in rows {
            csv.serialize(row).map_err(std::io::Error::other)?;
        }
        csv.flush()
    }
}
