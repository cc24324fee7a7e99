//! The `W_qk` view of matrices: the factored form, its heads, its scores and their summaries.
