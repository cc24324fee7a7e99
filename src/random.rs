//! Randomness, drawn on the host.
//!
//! Every random number that the library uses comes from a ChaCha stream that is addressed by a seed
//! and a place, never from a backend's own generator: every backend then starts from the same bits,
//! and what is drawn in one place does not depend on what was drawn before in another.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use sha2::{Digest, Sha256};

/// The generator of the library: seedable, portable, and the same on every machine.
pub type Rng = ChaCha8Rng;

/// The stream for one place under one seed.
///
/// `place` is a path of labels, such as `["init", "layer 3", "query"]`; two different places give
/// independent streams, the same place always the same one.
///
/// # Examples
/// ```
/// use wqk::random;
/// let a = random::normal(&mut random::stream(7, ["init", "query"]), 4, 1.0);
/// let b = random::normal(&mut random::stream(7, ["init", "query"]), 4, 1.0);
/// let c = random::normal(&mut random::stream(7, ["init", "key"]), 4, 1.0);
/// assert_eq!(a, b);
/// assert_ne!(a, c);
/// ```
pub fn stream<P: AsRef<str>>(seed: u64, place: impl IntoIterator<Item = P>) -> Rng {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    for label in place {
        let label = label.as_ref().as_bytes();
        // The length keeps ["ab", "c"] apart from ["a", "bc"].
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
    }
    Rng::from_seed(hash.finalize().into())
}

/// `n` draws from the normal distribution with mean 0 and standard deviation `std`.
///
/// Drawn in f64 and rounded, so that the f32 values are those nearest to the f64 ones.
pub fn normal(rng: &mut Rng, n: usize, std: f64) -> Vec<f32> {
    (0..n)
        .map(|_| {
            let z: f64 = StandardNormal.sample(rng);
            (z * std) as f32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_run_together() {
        let joined = normal(&mut stream(1, ["ab", "c"]), 8, 1.0);
        let split = normal(&mut stream(1, ["a", "bc"]), 8, 1.0);
        assert_ne!(joined, split);
    }

    #[test]
    fn normal_has_its_moments() {
        // Standard error of the mean is 1/√n and of the variance √(2/n); five of each are allowed.
        let n = 100_000;
        let x = normal(&mut stream(3, ["moments"]), n, 2.0);
        let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
        let var = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 5.0 * 2.0 / (n as f64).sqrt(), "mean {mean}");
        assert!(
            (var / 4.0 - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt(),
            "variance {var}"
        );
    }
}
