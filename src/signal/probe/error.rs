/// Why a model cannot be probed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A model that has no self-attention.
    #[error("the model has no self-attention layer: there is nothing to probe")]
    NoAttention,
    /// Values that are not finite somewhere in the model.
    #[error(
        "layer {layer}: {quantity} hold NaN or infinite values: \
         start from smaller weights or weaker residual branches, or take an earlier checkpoint"
    )]
    NotFinite {
        /// The layer, from 0.
        layer: usize,
        /// What is not finite, such as `the tokens after the block`.
        quantity: &'static str,
    },
    /// The same before the first block.
    #[error("the input of layer 0: {quantity} hold NaN or infinite values: look at the embeddings")]
    InputNotFinite {
        /// What is not finite.
        quantity: &'static str,
    },
    /// Sequences that cannot be probed.
    #[error("signal probe: {field} is {value}, but must be {must}")]
    Invalid {
        /// Which setting.
        field: &'static str,
        /// What it is.
        value: usize,
        /// What it may be.
        must: String,
    },
    /// A model that cannot be built.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
}

/// Where in a model something was measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Input,
    Layer(usize),
}

impl Place {
    pub(super) fn not_finite(self, quantity: &'static str) -> ProbeError {
        match self {
            Self::Input => ProbeError::InputNotFinite { quantity },
            Self::Layer(layer) => ProbeError::NotFinite { layer, quantity },
        }
    }
}
