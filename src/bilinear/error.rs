/// What is wrong with the matrices, the head layout or the settings of a bilinear form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BilinearError {
    /// A layout without heads, or without key heads.
    #[error("the head layout has {n_heads} query and {n_kv_heads} key heads: both must be at least 1")]
    NoHeads {
        /// Query heads.
        n_heads: usize,
        /// Key heads.
        n_kv_heads: usize,
    },
    /// Query heads that cannot be split evenly among the key heads.
    #[error("{n_heads} query heads do not divide among {n_kv_heads} key heads")]
    UnevenGroups {
        /// Query heads.
        n_heads: usize,
        /// Key heads.
        n_kv_heads: usize,
    },
    /// A matrix with no entries.
    #[error("{argument} has shape {shape:?}: it has no entries")]
    Empty {
        /// The name of the matrix.
        argument: &'static str,
        /// Its shape.
        shape: [usize; 2],
    },
    /// A matrix whose columns do not divide among its heads.
    #[error("{argument} has shape {shape:?}: its columns do not divide among {heads} heads")]
    Width {
        /// The name of the matrix.
        argument: &'static str,
        /// Its shape.
        shape: [usize; 2],
        /// The heads that it should hold.
        heads: usize,
    },
    /// Query and key matrices that do not belong together.
    #[error(
        "w_q has shape {w_q:?} and w_k {w_k:?}, as {n_heads} and {n_kv_heads} heads: \
         they need the same number of rows and the same head width"
    )]
    Mismatch {
        /// The shape of the query matrix.
        w_q: [usize; 2],
        /// The shape of the key matrix.
        w_k: [usize; 2],
        /// Query heads.
        n_heads: usize,
        /// Key heads.
        n_kv_heads: usize,
    },
    /// A matrix with a NaN or infinite entry.
    #[error("{argument} of shape {shape:?} holds NaN or infinite entries")]
    NotFinite {
        /// The name of the matrix.
        argument: &'static str,
        /// Its shape.
        shape: [usize; 2],
    },
    /// A head that the layout does not have.
    #[error("head {index} was asked for, of {n_heads}")]
    NoSuchHead {
        /// The index asked for, from 0.
        index: usize,
        /// Query heads.
        n_heads: usize,
    },
    /// Tokens whose width is not that of the model.
    #[error("x has shape {shape:?}: its rows must have the width of the model, {d_model}")]
    Tokens {
        /// The shape of the tokens.
        shape: [usize; 2],
        /// The width of the model.
        d_model: usize,
    },
    /// The symmetry of a zero matrix, which does not exist.
    #[error("the form is the zero matrix, which has no symmetry score")]
    Zero,
    /// A threshold that is not a number.
    #[error("gamma is {0}: it must be finite")]
    Gamma(f64),
    /// Heads narrower than the part that rotary positions turn.
    #[error("rotary positions turn {width} entries of a head, which has {head_dim}")]
    Rotary {
        /// The entries that are turned, and those before them.
        width: usize,
        /// The width of a head.
        head_dim: usize,
    },
    /// Tokens and gradients of raw scores that do not belong together.
    #[error(
        "x has shape {:?} and the gradient of the raw scores {:?}: they must be [batch, n, d_model] and \
         [batch, n_heads, n, n], none of them 0", .0.0, .0.1
    )]
    Gradients(
        /// The shape of the tokens, and that of the gradient.
        Box<([usize; 3], [usize; 4])>,
    ),
    /// Tokens or gradients with a NaN or infinite entry.
    #[error("{0} holds NaN or infinite entries, of which no gradient can be made: has the run diverged?")]
    NotFiniteGradients(&'static str),
    /// Queries and keys that are not those of the raw scores.
    #[error(
        "queries of shape {:?} and keys of {:?} do not fit a gradient of the raw scores of shape {:?}",
        .0[0], .0[1], .0[2]
    )]
    Projected(
        /// The shapes of the queries, of the keys and of the gradient.
        Box<[[usize; 4]; 3]>,
    ),
    /// A position that the batch does not have.
    #[error("sequence and position {at:?} were asked for, of {of:?}")]
    NoSuchPosition {
        /// The indices asked for, from 0.
        at: [usize; 2],
        /// Sequences, and positions in each.
        of: [usize; 2],
    },
    /// Forms of different shapes, of which there is no change from one to the other.
    #[error("a form with factors of shape {before:?} cannot be compared with one of {after:?}")]
    Change {
        /// The shape of the one.
        before: [usize; 2],
        /// The shape of the other.
        after: [usize; 2],
    },
    /// A decomposition that did not converge.
    #[error("the {what} of a {size}x{size} matrix did not converge")]
    NoConvergence {
        /// What was sought.
        what: &'static str,
        /// The size of the matrix.
        size: usize,
    },
}
