//! Medians and quartiles of scores.

use serde::{Deserialize, Serialize};

/// The `p`-quantile by linear interpolation between order statistics (Hyndman and Fan's type 7, the default
/// of R and NumPy).
///
/// # Formula
/// With the values sorted and counted from 0, the value at position `p (n − 1)`, interpolated linearly.
///
/// Gives `None` for no values, a NaN among them, or a `p` outside [0, 1].
///
/// # Examples
/// ```
/// use wqk::bilinear::quantile;
/// assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.25), Some(1.75));
/// ```
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, p)
}

fn of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    let (low, high) = (sorted[below], sorted[above]);
    // Equal ends need no interpolation, which would make NaN of two infinities.
    Some(if low == high {
        low
    } else {
        low + (position - below as f64) * (high - low)
    })
}

/// The median and the quartiles of a set of scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The 25 % quantile.
    pub q25: f64,
    /// The 75 % quantile.
    pub q75: f64,
}

impl Summary {
    /// The summary of some values, by [`quantile`]; `None` for no values or a NaN among them.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.iter().any(|v| v.is_nan()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median: of_sorted(&sorted, 0.5)?,
            q25: of_sorted(&sorted, 0.25)?,
            q75: of_sorted(&sorted, 0.75)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_type_7() {
        // numpy.quantile([3, 1, 4, 1, 5, 9, 2, 6], [0, .1, .25, .5, .9, 1])
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        for (p, expected) in [
            (0.0, 1.0),
            (0.1, 1.0),
            (0.25, 1.75),
            (0.5, 3.5),
            (0.9, 6.9),
            (1.0, 9.0),
        ] {
            let q = quantile(&values, p).unwrap();
            // One interpolation in f64.
            assert!((q - expected).abs() < 1e-12, "p {p}: {q}");
        }
    }

    #[test]
    fn no_quantile_without_values() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, f64::NAN], 0.5), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0], 1.0), Some(1.0));
        assert!(Summary::of([]).is_none());
    }
}
