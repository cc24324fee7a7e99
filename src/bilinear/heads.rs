use serde::{Deserialize, Serialize};

use super::BilinearError;

/// How the columns of `W_q` and `W_k` divide into heads.
///
/// Query head `h` reads key head [`group_of(h)`](Self::group_of)` = h / (n_heads / n_kv_heads)`: the query
/// heads of a group lie next to each other. The width of a head is not stored; it follows from the matrices,
/// and need not be `d_model / n_heads`.
///
/// # Examples
/// ```
/// use wqk::bilinear::Heads;
/// let heads = Heads::grouped(32, 8);
/// assert_eq!(heads.group_of(3), 0);
/// assert_eq!(heads.group_of(4), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Heads {
    n_heads: usize,
    n_kv_heads: usize,
}

impl Heads {
    /// Multi-head attention: each query head has its own key head.
    pub const fn multi(n_heads: usize) -> Self {
        Self::grouped(n_heads, n_heads)
    }

    /// Grouped-query attention: `n_heads / n_kv_heads` neighbouring query heads share a key head.
    ///
    /// Counts that are zero or do not divide are refused where the layout meets its matrices.
    pub const fn grouped(n_heads: usize, n_kv_heads: usize) -> Self {
        Self { n_heads, n_kv_heads }
    }

    /// Multi-query attention: all query heads share one key head.
    pub const fn multi_query(n_heads: usize) -> Self {
        Self::grouped(n_heads, 1)
    }

    /// The number of query heads.
    pub const fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// The number of key heads, which is that of the groups.
    pub const fn n_kv_heads(&self) -> usize {
        self.n_kv_heads
    }

    /// The query heads of each group; 0 for a layout without key heads.
    pub const fn heads_per_group(&self) -> usize {
        match self.n_heads.checked_div(self.n_kv_heads) {
            Some(per_group) => per_group,
            None => 0,
        }
    }

    /// The key head that query head `head` reads.
    pub const fn group_of(&self, head: usize) -> usize {
        match head.checked_div(self.heads_per_group()) {
            Some(group) => group,
            None => 0,
        }
    }

    /// Checks that there are heads and that they divide.
    ///
    /// # Errors
    /// [`BilinearError::NoHeads`] or [`BilinearError::UnevenGroups`].
    pub fn check(&self) -> Result<(), BilinearError> {
        let Self { n_heads, n_kv_heads } = *self;
        if n_heads == 0 || n_kv_heads == 0 {
            return Err(BilinearError::NoHeads { n_heads, n_kv_heads });
        }
        if !n_heads.is_multiple_of(n_kv_heads) {
            return Err(BilinearError::UnevenGroups { n_heads, n_kv_heads });
        }
        Ok(())
    }
}
