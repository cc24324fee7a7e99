//! Whether two arms differ over the same seeds.

use rand::RngExt as _;

use super::student_t::two_sided;
use crate::bilinear::Summary;
use crate::random;

/// Differences between two arms, one for each seed that both have.
///
/// Two tests of the hypothesis that the arms do not differ, both two-sided. The exact sign-flip permutation
/// test assumes only that a difference is as likely as its opposite; with n pairs its p is at least
/// [`smallest_p`](Self::smallest_p). The paired t-test assumes normal differences, which few pairs cannot
/// show. Neither says anything about other seeds, data or settings than those of the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// Number of pairs.
    pub n: usize,
    /// Pairs in which the difference is below 0.
    pub below: usize,
    /// Mean difference.
    pub mean: f64,
    /// Median difference and quartiles.
    pub summary: Summary,
    /// p of the sign-flip permutation test of the mean; none for a single pair.
    pub p_sign_flip: Option<f64>,
    /// Whether all sign patterns were counted, or a sample of them.
    pub exact: bool,
    /// t and p of the paired t-test; none for a single pair or where all differences are equal.
    pub t: Option<(f64, f64)>,
}

/// Up to so many pairs all sign patterns are counted, a million of them.
const EXACT: usize = 20;

/// Sign patterns that are drawn beyond.
const DRAWN: usize = 100_000;

impl Paired {
    /// The tests of some differences; `None` for none or one that is not finite.
    pub fn of(differences: &[f64]) -> Option<Self> {
        let n = differences.len();
        if n == 0 || differences.iter().any(|d| !d.is_finite()) {
            return None;
        }
        let mean = differences.iter().sum::<f64>() / n as f64;
        Some(Self {
            n,
            below: differences.iter().filter(|&&d| d < 0.0).count(),
            mean,
            summary: Summary::of(differences.iter().copied())?,
            p_sign_flip: (n > 1).then(|| sign_flip(differences)),
            exact: n <= EXACT,
            t: (n > 1).then(|| t_test(differences, mean)).flatten(),
        })
    }

    /// The smallest p that the sign-flip test can give with so many pairs, `2/2ⁿ`.
    pub fn smallest_p(&self) -> f64 {
        if self.exact {
            2.0 / 2f64.powi(self.n as i32)
        } else {
            1.0 / (DRAWN + 1) as f64
        }
    }
}

/// The share of sign patterns under which the mean is at least as far from 0 as it is.
fn sign_flip(differences: &[f64]) -> f64 {
    let n = differences.len();
    let observed: f64 = differences.iter().sum::<f64>().abs();
    // The same sum in another order may differ by rounding.
    let scale: f64 = differences.iter().map(|d| d.abs()).sum();
    let bound = observed - 1e-12 * scale;
    let sum = |pattern: &dyn Fn(usize) -> bool| -> f64 {
        let signed = differences
            .iter()
            .enumerate()
            .map(|(i, &d)| if pattern(i) { -d } else { d });
        signed.sum()
    };
    if n <= EXACT {
        let patterns = 1_u32 << n;
        let count = (0..patterns)
            .filter(|&bits| sum(&|i| bits >> i & 1 == 1).abs() >= bound)
            .count();
        return count as f64 / f64::from(patterns);
    }
    let mut rng = random::stream(0, ["sign flip"]);
    let mut flips = vec![false; n];
    let count = (0..DRAWN)
        .filter(|_| {
            flips.iter_mut().for_each(|flip| *flip = rng.random());
            sum(&|i| flips[i]).abs() >= bound
        })
        .count();
    // With the observed pattern itself, so that p is never 0.
    (count + 1) as f64 / (DRAWN + 1) as f64
}

fn t_test(differences: &[f64], mean: f64) -> Option<(f64, f64)> {
    let n = differences.len() as f64;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    // Equal differences: rounding alone would decide.
    if error <= 1e-12 * mean.abs() || error == 0.0 {
        return None;
    }
    let t = mean / error;
    Some((t, two_sided(t, n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_flips_by_hand() {
        // All of one sign: only the pattern itself and its opposite are as far out.
        for n in 2..=10 {
            let differences: Vec<f64> = (1..=n).map(|i| -0.1 * f64::from(i)).collect();
            let paired = Paired::of(&differences).unwrap();
            let smallest = 2.0 / 2f64.powi(n);
            assert_eq!(paired.p_sign_flip, Some(smallest));
            assert_eq!(paired.smallest_p(), smallest);
            assert_eq!(paired.below, n as usize);
        }
        // |±1 ±2 ±3| ≥ 2 = |1 + −2 + 3|: all of the eight but ±(1 + 2 − 3) = 0.
        assert_eq!(
            Paired::of(&[1.0, -2.0, 3.0]).unwrap().p_sign_flip,
            Some(6.0 / 8.0)
        );
        assert_eq!(Paired::of(&[0.0, 0.0]).unwrap().p_sign_flip, Some(1.0));
        // Twenty-one pairs of one sign: 2/2²¹ is below what 100,000 draws can show.
        let many = Paired::of(&[0.5; 21]).unwrap();
        assert!(!many.exact && many.p_sign_flip.unwrap() < 1e-4);
    }

    /// Student's own example (Biometrika 1908, section IX): the additional hours of sleep of ten patients
    /// under two drugs; t = 4.0621, p = 0.00283 in R's `t.test(extra ~ group, paired)`.
    #[test]
    fn students_sleep() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = second.iter().zip(first).map(|(b, a)| b - a).collect();
        let paired = Paired::of(&differences).unwrap();
        let (t, p) = paired.t.unwrap();
        // R prints five and four digits.
        assert!((t - 4.0621).abs() < 5e-5, "{t}");
        assert!((p - 0.00283).abs() < 5e-6, "{p}");
        assert!((paired.mean - 1.58).abs() < 1e-12);
        // Nine of ten differ, all in one direction: 4 of 1024 patterns (the zero counts twice).
        assert_eq!(paired.p_sign_flip, Some(4.0 / 1024.0));
    }

    #[test]
    fn no_more_than_the_pairs_give() {
        assert_eq!(Paired::of(&[]), None);
        assert_eq!(Paired::of(&[f64::NAN, 1.0]), None);
        let one = Paired::of(&[-1.0]).unwrap();
        assert_eq!((one.p_sign_flip, one.t), (None, None));
        assert_eq!(Paired::of(&[0.25, 0.25, 0.25]).unwrap().t, None);
    }
}
