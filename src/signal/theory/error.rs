/// Why there is no closed form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoClosedForm {
    /// The weights are not independent draws any more.
    #[error("no closed form because the weights are trained: the theory is that of initialisation")]
    Trained,
    /// A query does not see every position.
    #[error(
        "no closed form because attention is causal: the theory averages over all positions, \
         and early positions of a decoder see few"
    )]
    Causal,
    /// Queries and keys, or values and outputs, are not drawn independently.
    #[error(
        "no closed form because the attention starts by the scheme '{scheme}': \
         the theory needs query, key, value and output weights that are drawn independently"
    )]
    Scheme {
        /// The name of the initialisation.
        scheme: &'static str,
    },
    /// Logits too large for attention to be taken as uniform in the forward pass.
    #[error(
        "no closed form because attention is not near uniform at layer {layer}: logits of variance {variance:.2} \
         change the stream by up to {neglected:.1e} of its squared norm, which the theory neglects"
    )]
    NotUniform {
        /// The layer, from 0.
        layer: usize,
        /// The variance of its logits around their mean over keys.
        variance: f64,
        /// The share of the squared norm that is neglected, summed over layers up to this one.
        neglected: f64,
    },
    /// Logits too large for the expansion of the softmax.
    #[error(
        "no closed form because logits of variance {variance:.2} are not small: the expansion of the softmax \
         holds up to {largest}"
    )]
    LargeLogits {
        /// The variance of the logits around their mean over keys.
        variance: f64,
        /// The largest for which the expansion is used.
        largest: f64,
    },
    /// A model that the theory knows nothing of.
    #[error("no closed form because {what}")]
    Other {
        /// What the theory does not cover.
        what: String,
    },
}

/// Why there is no prediction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TheoryError {
    /// A number outside its range.
    #[error("signal propagation: {field} is {value}, but must be {must}")]
    Invalid {
        /// Which number.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        must: &'static str,
    },
    /// The model itself cannot be built.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
    /// A model outside the assumptions.
    #[error(transparent)]
    NoClosedForm(#[from] NoClosedForm),
}

impl TheoryError {
    pub(super) fn invalid(field: &'static str, value: impl ToString, must: &'static str) -> Self {
        Self::Invalid {
            field,
            value: value.to_string(),
            must,
        }
    }

    /// Checks that a number is finite and not negative.
    pub(super) fn check_scale(field: &'static str, value: f64) -> Result<(), Self> {
        if value.is_finite() && value >= 0.0 {
            Ok(())
        } else {
            Err(Self::invalid(field, value, "finite and not negative"))
        }
    }
}
