//! The closed forms of blocks without norms and with a linear feed-forward, at finite and infinite depth.

/// The two sums that the theory follows: the squared norm `N = ‖X‖_F²` and `C = ‖Σ_k x_k‖²`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    /// `N`.
    pub norm: f64,
    /// `C`.
    pub inner_products: f64,
    /// The number of tokens.
    pub n: usize,
}

impl Sums {
    /// The expectation after `layers` blocks with strengths `α₁`, `α₂`, without norms:
    /// `E C_L = [(1+α₁²)(1+α₂²)]^L C_0`, `E N_L = (1+α₂²)^L [N_0 + ((1+α₁²)^L − 1) C_0/n]`.
    ///
    /// Exact at any width for branches of unit gain (weights of variance one over their number of inputs, a linear
    /// feed-forward) and uniform attention; for another gain g give `α √g`.
    ///
    /// # Source
    /// Propagation paper, lemmas of section 3.2.
    pub fn after(self, layers: usize, [alpha_1, alpha_2]: [f64; 2]) -> Self {
        let power = |alpha: f64| (layers as f64 * (alpha * alpha).ln_1p()).exp();
        self.grown(power(alpha_1), power(alpha_2))
    }

    /// The limit of infinite depth for strengths `α̃/√L`: `C → e^{α̃₁²+α̃₂²} C_0`,
    /// `N → e^{α̃₂²} [N_0 + (e^{α̃₁²} − 1) C_0/n]`.
    pub fn at_infinite_depth(self, [alpha_1, alpha_2]: [f64; 2]) -> Self {
        self.grown((alpha_1 * alpha_1).exp(), (alpha_2 * alpha_2).exp())
    }

    fn grown(self, by_attention: f64, by_feed_forward: f64) -> Self {
        let spread = (by_attention - 1.0) * self.inner_products / self.n as f64;
        Self {
            norm: by_feed_forward * (self.norm + spread),
            inner_products: by_attention * by_feed_forward * self.inner_products,
            n: self.n,
        }
    }

    /// The token cosine of these sums.
    pub fn cosine(self) -> f64 {
        token_cosine(self.norm, self.inner_products, self.n)
    }
}

/// The mean cosine of two tokens of equal norm, `ρ = (C/N − 1)/(n − 1)`.
///
/// A ratio of expectations: the mean cosine itself at large width only.
pub fn token_cosine(norm: f64, inner_products: f64, n: usize) -> f64 {
    (inner_products / norm - 1.0) / (n as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Sums = Sums {
        norm: 640.0,
        inner_products: 800.0,
        n: 10,
    };

    #[test]
    fn the_closed_form_is_the_recursion() {
        let (a1, a2) = (0.7, 0.4);
        let (mut norm, mut sum) = (START.norm, START.inner_products);
        for _ in 0..17 {
            norm = (1.0 + a2 * a2) * (norm + a1 * a1 * sum / 10.0);
            sum *= (1.0 + a1 * a1) * (1.0 + a2 * a2);
        }
        let closed = START.after(17, [a1, a2]);
        assert!((closed.norm / norm - 1.0).abs() < 1e-12);
        assert!((closed.inner_products / sum - 1.0).abs() < 1e-12);
    }

    #[test]
    fn constant_strengths_collapse_and_scaled_ones_do_not() {
        assert!(START.after(200, [1.0, 1.0]).cosine() > 0.999_999);
        let limit = START.at_infinite_depth([1.0, 1.0]);
        assert!(limit.cosine() < 0.5);
        // The finite form tends to it, with an error of order 1/L.
        let layers = 100_000;
        let alpha = 1.0 / f64::from(layers).sqrt();
        let finite = START.after(layers as usize, [alpha, alpha]);
        assert!((finite.norm / limit.norm - 1.0).abs() < 1e-4);
        assert!((finite.cosine() / limit.cosine() - 1.0).abs() < 1e-4);
    }
}
