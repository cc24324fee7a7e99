//! Feed-forward branches in the wide limit: what they do to the inner products of tokens.

use std::f64::consts::PI;

use crate::model::{Activation, FeedForwardKind, TextTransformerConfig};

/// What a feed-forward branch with random weights does to tokens.
///
/// Two tokens whose entries have variance `q` and covariance `p` become, at every output, jointly normal over the
/// draw of the weights, with a second moment that depends on q and p alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FeedForwardLaw {
    /// No branch.
    None,
    /// Linear maps: moments are multiplied by `gain`, the squared norm of the output for a unit input. With two maps
    /// `hidden` is the width between them.
    Linear {
        /// `E‖F(x)‖²/‖x‖²`.
        gain: f64,
        /// The width between two maps.
        hidden: Option<usize>,
    },
    /// Two linear maps with a function between them.
    Mlp {
        /// The function.
        activation: Activation,
        /// The variance of the inner weights times their number of inputs.
        inner: f64,
        /// The variance of the outer weights times their number of inputs.
        outer: f64,
        /// The width between the maps.
        hidden: usize,
    },
}

/// The second moments of a branch's outputs, per entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BranchMoments {
    /// Of one token.
    pub variance: f64,
    /// Of two tokens.
    pub covariance: f64,
    /// How the covariance grows with that of the inputs.
    pub slope: f64,
}

impl FeedForwardLaw {
    /// The branch of a text transformer.
    pub fn of_text(config: &TextTransformerConfig) -> Self {
        let (d, f, variance) = (config.d_model, config.ff_width(), config.init_std.powi(2));
        let (inner, outer) = (d as f64 * variance, f as f64 * variance);
        match (config.feed_forward, config.activation) {
            (FeedForwardKind::None, _) => Self::None,
            (FeedForwardKind::Linear, _) => Self::Linear {
                gain: inner,
                hidden: None,
            },
            (FeedForwardKind::Mlp, Activation::Linear) => Self::Linear {
                gain: inner * outer,
                hidden: Some(f),
            },
            (FeedForwardKind::Mlp, activation) => Self::Mlp {
                activation,
                inner,
                outer,
                hidden: f,
            },
        }
    }

    /// Whether the outputs are linear in the inputs, so that expectations are exact at any width.
    pub fn is_linear(&self) -> bool {
        !matches!(self, Self::Mlp { .. })
    }

    /// The width between two maps, if there are two.
    pub(super) fn hidden(&self) -> Option<usize> {
        match *self {
            Self::None => None,
            Self::Linear { hidden, .. } => hidden,
            Self::Mlp { hidden, .. } => Some(hidden),
        }
    }

    /// Moments of the outputs for inputs of variance `q` and covariance `p`, per entry.
    pub(super) fn moments(&self, q: f64, p: f64) -> BranchMoments {
        match *self {
            Self::None => BranchMoments {
                variance: 0.0,
                covariance: 0.0,
                slope: 0.0,
            },
            Self::Linear { gain, .. } => BranchMoments {
                variance: gain * q,
                covariance: gain * p,
                slope: gain,
            },
            Self::Mlp {
                activation,
                inner,
                outer,
                ..
            } => {
                let (a, c) = (inner * q, inner * p);
                BranchMoments {
                    variance: outer * dual(activation, a, a),
                    covariance: outer * dual(activation, a, c),
                    slope: outer * inner * dual_slope(activation, a, c),
                }
            }
        }
    }
}

/// `E[φ(z₁) φ(z₂)]` for jointly normal z of mean 0, variance `a` and covariance `c`.
///
/// # Source
/// ReLU: Cho and Saul 2009, the arc-cosine kernel of degree 1. GELU: Tsuchida, Pearce, van der Heide, Roosta and
/// Gallagher 2021; derived here by writing `φ(z) = z P(U < z)` with a standard normal U, so that the moment is one of
/// `z₁ z₂` where `y_i = z_i − U_i` are both positive.
pub(super) fn dual(activation: Activation, a: f64, c: f64) -> f64 {
    if a <= 0.0 {
        return 0.0;
    }
    let c = c.clamp(-a, a);
    match activation {
        Activation::Linear => c,
        Activation::Relu => a * quadrant(c / a).product,
        Activation::Gelu => {
            // y has variance a + 1 and covariance c; z is regressed on y.
            let s = a + 1.0;
            let det = s * s - c * c;
            let (own, other) = ((a * s - c * c) / det, c / det);
            // Covariance of z₁ and z₂ that y does not explain.
            let rest = c - (own * c + other * a);
            let Quadrant {
                probability,
                square,
                product,
            } = quadrant(c / s);
            s * ((own * own + other * other) * product + 2.0 * own * other * square) + rest * probability
        }
    }
}

/// The derivative of [`dual`] in the covariance, which is `E[φ'(z₁) φ'(z₂)]` by Price's theorem.
pub(super) fn dual_slope(activation: Activation, a: f64, c: f64) -> f64 {
    match activation {
        Activation::Linear => 1.0,
        Activation::Relu if a > 0.0 => quadrant((c / a).clamp(-1.0, 1.0)).probability,
        Activation::Relu => 0.25,
        Activation::Gelu => {
            // φ'(z) = Φ(z) + z φ_N(z). A central difference of the closed form; its error is of order step², 1e-8.
            let step = 1e-4 * a.max(1e-8);
            let inside = (a - step).max(0.0);
            let c = c.clamp(-inside, inside);
            (dual(activation, a, c + step) - dual(activation, a, c - step)) / (2.0 * step)
        }
    }
}

/// Moments of two standard normal variables of correlation r over the quadrant where both are positive.
struct Quadrant {
    /// `P(both > 0)`.
    probability: f64,
    /// `E[y₁²; both > 0]`.
    square: f64,
    /// `E[y₁ y₂; both > 0]`.
    product: f64,
}

fn quadrant(r: f64) -> Quadrant {
    let angle = PI - r.acos();
    let sine = (1.0 - r * r).max(0.0).sqrt();
    Quadrant {
        probability: angle / (2.0 * PI),
        square: (angle + r * sine) / (2.0 * PI),
        product: (sine + r * angle) / (2.0 * PI),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    /// Quadrature of the definition by a grid over two independent normals: error below 1e-6 for smooth functions,
    /// 1e-4 for the kink of the ReLU.
    fn by_quadrature(phi: impl Fn(f64) -> f64, a: f64, c: f64) -> f64 {
        const STEP: f64 = 0.02;
        let (sd, r) = (a.sqrt(), c / a);
        let density = |u: f64| (-u * u / 2.0).exp() / (2.0 * PI).sqrt();
        let grid: Vec<f64> = (-400..=400).map(|i| f64::from(i) * STEP).collect();
        let mut sum = 0.0;
        for &u in &grid {
            let first = phi(sd * u) * density(u);
            for &v in &grid {
                sum += first * phi(sd * (r * u + (1.0 - r * r).sqrt() * v)) * density(v);
            }
        }
        sum * STEP * STEP
    }

    /// Φ(z) by integration of the density, to 1e-9.
    fn normal_cdf(z: f64) -> f64 {
        let steps = 400;
        let h = z / f64::from(steps);
        let f = |x: f64| (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
        let inner: f64 = (1..steps)
            .map(|i| (if i % 2 == 1 { 4.0 } else { 2.0 }) * f(f64::from(i) * h))
            .sum();
        0.5 + h / 3.0 * (f(0.0) + inner + f(z))
    }

    #[test]
    fn duals_are_their_integrals() {
        for (a, r) in [(1.0, 0.0), (1.0, 0.5), (0.3, -0.4), (2.5, 0.9), (0.1, 0.99)] {
            let relu = by_quadrature(|z: f64| z.max(0.0), a, r * a);
            assert!(
                (dual(Activation::Relu, a, r * a) - relu).abs() < 1e-3 * a,
                "ReLU {a} {r}"
            );
            // A table keeps the quadrature quick.
            let table: Vec<f64> = (0..=4000)
                .map(|i| normal_cdf((f64::from(i) - 2000.0) * 0.01))
                .collect();
            let gelu = |z: f64| {
                let at = (z / 0.01 + 2000.0).clamp(0.0, 3999.0);
                let i = at as usize;
                z * (table[i] + (at - i as f64) * (table[i + 1] - table[i]))
            };
            let expected = by_quadrature(gelu, a, r * a);
            let got = dual(Activation::Gelu, a, r * a);
            assert!(
                (got - expected).abs() < 1e-4 * expected.abs().max(0.01),
                "GELU {a} {r}: {got} {expected}"
            );
        }
    }

    #[test]
    fn slopes_are_differences() {
        for activation in [Activation::Relu, Activation::Gelu] {
            for (a, r) in [(1.0, 0.0), (0.2, 0.6), (3.0, -0.5)] {
                let step = 1e-5;
                let c = r * a;
                let expected = (dual(activation, a, c + step) - dual(activation, a, c - step)) / (2.0 * step);
                assert!((dual_slope(activation, a, c) - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn small_inputs_make_gelu_linear() {
        // φ(z) = z/2 + z²/√(2π) + …: a quarter of the covariance, and a share of a²/π beside it.
        let a = 1e-4;
        assert!((dual(Activation::Gelu, a, a / 2.0) / (a / 8.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_wide_relu_network_has_these_moments() {
        // One draw of 200,000 hidden units: a standard error of about 0.5 %.
        let (hidden, a, c) = (200_000, 0.7, 0.2);
        let draws = random::normal(&mut random::stream(2, ["dual"]), 2 * hidden, 1.0);
        let (sd, r): (f64, f64) = (f64::sqrt(a), c / a);
        let mean = draws
            .chunks(2)
            .map(|z| {
                let (u, v) = (f64::from(z[0]), f64::from(z[1]));
                (sd * u).max(0.0) * (sd * (r * u + (1.0 - r * r).sqrt() * v)).max(0.0)
            })
            .sum::<f64>()
            / hidden as f64;
        assert!((mean / dual(Activation::Relu, a, c) - 1.0).abs() < 0.03);
    }
}
