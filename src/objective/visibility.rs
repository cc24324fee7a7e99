//! Which keys a query may attend to.

use serde::{Deserialize, Serialize};

/// The kind of an attention mask: which positions a position sees, on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Every position sees every position: an encoder.
    Full,
    /// A position sees itself and what comes before it: a decoder.
    Causal,
    /// The first positions, as many as given, see each other; the others are causal.
    Prefix(usize),
}

impl Visibility {
    /// Whether the query at position `query` may attend to the key at position `key`.
    pub const fn sees(self, query: usize, key: usize) -> bool {
        match self {
            Self::Full => true,
            Self::Causal => key <= query,
            Self::Prefix(prefix) => key <= query || key < prefix,
        }
    }

    /// The mask of a sequence of `n` positions, row by row: `true` where the query of the row may attend
    /// to the key of the column.
    ///
    /// # Shape
    /// `[n, n]`, flat.
    pub fn matrix(self, n: usize) -> Vec<bool> {
        (0..n * n).map(|flat| self.sees(flat / n, flat % n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_of_three_positions() {
        let (x, o) = (true, false);
        assert_eq!(Visibility::Full.matrix(3), [x; 9]);
        assert_eq!(Visibility::Causal.matrix(3), [x, o, o, x, x, o, x, x, x]);
        assert_eq!(Visibility::Prefix(2).matrix(3), [x, x, o, x, x, o, x, x, x]);
    }
}
