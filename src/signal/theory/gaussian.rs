use super::error::TheoryError;

/// Normal tokens: `n` rows `x_i = σ(√ρ z + √(1−ρ) e_i)` of `d` entries, with a common part z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianTokens {
    /// The number of tokens.
    pub n: usize,
    /// Their width.
    pub d: usize,
    /// The variance σ² of an entry.
    pub variance: f64,
    /// The correlation ρ of two tokens.
    pub correlation: f64,
}

impl GaussianTokens {
    /// Tokens, checked.
    ///
    /// # Errors
    /// [`TheoryError::Invalid`] for fewer than two tokens, no width, a variance that is negative or not finite, or a
    /// correlation outside [0, 1].
    pub fn new(n: usize, d: usize, variance: f64, correlation: f64) -> Result<Self, TheoryError> {
        if n < 2 {
            return Err(TheoryError::invalid("length", n, "at least 2"));
        }
        if d == 0 {
            return Err(TheoryError::invalid("width", d, "at least 1"));
        }
        TheoryError::check_scale("input variance", variance)?;
        if !(0.0..=1.0).contains(&correlation) {
            return Err(TheoryError::invalid(
                "input correlation",
                correlation,
                "in [0, 1]",
            ));
        }
        Ok(Self {
            n,
            d,
            variance,
            correlation,
        })
    }

    fn sizes(&self) -> (f64, f64) {
        (self.n as f64, self.d as f64)
    }

    /// `E‖X‖_F² = n d σ²`.
    pub fn norm(&self) -> f64 {
        let (n, d) = self.sizes();
        n * d * self.variance
    }

    /// `E‖Σ_k x_k‖² = n d σ² (1 + ρ(n−1))`.
    pub fn inner_products(&self) -> f64 {
        self.norm() * (1.0 + self.correlation * (self.n as f64 - 1.0))
    }

    /// `E‖Xᵀ H X‖_F² = σ⁴ (1−ρ)² (n−1) d (n+d)`, with `H = I − 11ᵀ/n`.
    pub fn centred_gram(&self) -> f64 {
        let (n, d) = self.sizes();
        (self.variance * (1.0 - self.correlation)).powi(2) * (n - 1.0) * d * (n + d)
    }

    /// `1 + 4(1−ρ)/(nd)`, by which `E[‖X‖_F² ‖Xᵀ H X‖_F²]` exceeds the product of the expectations.
    pub fn joint_factor(&self) -> f64 {
        let (n, d) = self.sizes();
        1.0 + 4.0 * (1.0 - self.correlation) / (n * d)
    }

    /// `E‖∂S/∂W_q‖² = σ⁶ (n−1)/n (1−ρ)² d(n+d) [1 + 4(1−ρ)/(nd)]` of one head as wide as the tokens, without an output
    /// map, all weights of variance `1/d`.
    ///
    /// # Source
    /// Propagation paper, section 3.3, with the finite-size factor that its large-width form leaves out.
    pub fn query_gradient(&self) -> f64 {
        let (n, d) = self.sizes();
        self.norm() * self.centred_gram() * self.joint_factor() / (n * n * d)
    }

    /// `E‖∂S/∂W_v‖² = d² σ² (1 + ρ(n−1))` of the same head: linear in σ² where that of the queries is cubic.
    pub fn value_gradient(&self) -> f64 {
        let (n, d) = self.sizes();
        d * self.inner_products() / n
    }

    /// The inverse temperature that makes the gradients of queries and values equal in norm, for the same head:
    /// `τ² = n d (1 + ρ(n−1)) / [σ⁴ (n−1) (1−ρ)² (n+d) [1 + 4(1−ρ)/(nd)]]`.
    ///
    /// Infinite for identical tokens, whose query gradients are 0.
    pub fn equalising_temperature(&self) -> f64 {
        (self.value_gradient() / self.query_gradient()).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn the_moments_are_those_of_simulated_tokens() {
        // ‖X‖² ‖XᵀHX‖² by hand, 4000 draws: the standard error is below 1 % (the spread of the product is below 60 %).
        for (n, d, variance, correlation) in [(5, 4, 1.0, 0.0), (6, 3, 0.5, 0.4)] {
            let tokens = GaussianTokens::new(n, d, variance, correlation).unwrap();
            let draws = 4000;
            let (mut joint, mut gram, mut sums) = (0.0, 0.0, 0.0);
            for draw in 0..draws {
                let z = random::normal(
                    &mut random::stream(draw, ["gaussian tokens"]),
                    (n + 1) * d,
                    variance.sqrt(),
                );
                let x = |i: usize, a: usize| {
                    f64::sqrt(correlation) * f64::from(z[a])
                        + f64::sqrt(1.0 - correlation) * f64::from(z[(i + 1) * d + a])
                };
                let mean: Vec<f64> = (0..d)
                    .map(|a| (0..n).map(|i| x(i, a)).sum::<f64>() / n as f64)
                    .collect();
                let norm: f64 = (0..n * d).map(|e| x(e / d, e % d).powi(2)).sum();
                let centred: f64 = (0..d * d)
                    .map(|e| {
                        let (a, b) = (e / d, e % d);
                        let entry: f64 = (0..n).map(|i| (x(i, a) - mean[a]) * (x(i, b) - mean[b])).sum();
                        entry * entry
                    })
                    .sum();
                joint += norm * centred;
                gram += centred;
                sums += mean.iter().map(|m| (m * n as f64).powi(2)).sum::<f64>();
            }
            let draws = draws as f64;
            let close = |sample: f64, law: f64| assert!((sample / draws / law - 1.0).abs() < 0.05, "{law}");
            close(sums, tokens.inner_products());
            close(gram, tokens.centred_gram());
            close(
                joint,
                tokens.norm() * tokens.centred_gram() * tokens.joint_factor(),
            );
        }
    }

    #[test]
    fn the_temperature_equalises() {
        // The formula as it is printed in the documentation above.
        let (n, d, v, r) = (32.0, 64.0, 1.7, 0.3);
        let tokens = GaussianTokens::new(32, 64, v, r).unwrap();
        let square = n * d * (1.0 + r * (n - 1.0))
            / (v * v * (n - 1.0) * (1.0 - r) * (1.0 - r) * (n + d) * (1.0 + 4.0 * (1.0 - r) / (n * d)));
        assert!((tokens.equalising_temperature() - square.sqrt()).abs() < 1e-12 * square.sqrt());
        assert!(
            GaussianTokens::new(4, 4, 1.0, 1.0)
                .unwrap()
                .equalising_temperature()
                .is_infinite()
        );
    }

    #[test]
    fn impossible_tokens_are_named() {
        for (n, d, v, r, field) in [
            (1, 4, 1.0, 0.0, "length"),
            (4, 0, 1.0, 0.0, "width"),
            (4, 4, f64::NAN, 0.0, "variance"),
            (4, 4, 1.0, 1.5, "correlation"),
        ] {
            let error = GaussianTokens::new(n, d, v, r).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
