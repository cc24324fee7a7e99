use crate::bilinear::BilinearError;

/// What is wrong with the settings of an attention layer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AttentionError {
    /// Head counts that do not fit together.
    #[error(transparent)]
    Heads(#[from] BilinearError),
    /// A width of 0.
    #[error("{0} is 0: it must be at least 1")]
    Zero(&'static str),
    /// A model width that does not divide among the heads, and no head width was given.
    #[error("d_model {d_model} does not divide among {n_heads} heads: give a head width")]
    HeadWidth {
        /// The width of the model.
        d_model: usize,
        /// Query heads.
        n_heads: usize,
    },
    /// A number outside its range.
    #[error("{name} is {value}: it must be {range}")]
    OutOfRange {
        /// The name of the setting.
        name: &'static str,
        /// What it was.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A decomposition that did not converge.
    #[error("the singular value decomposition of a {size}x{size} matrix did not converge")]
    NoConvergence {
        /// The size of the matrix.
        size: usize,
    },
}

impl AttentionError {
    /// Checks that a setting is finite and not negative.
    pub(super) fn check_scale(name: &'static str, value: f64) -> Result<(), Self> {
        if value.is_finite() && value >= 0.0 {
            Ok(())
        } else {
            Err(Self::OutOfRange {
                name,
                value,
                range: "finite and not negative",
            })
        }
    }
}
