//! How far attention is from uniform.

use super::error::NoClosedForm;

/// The largest variance of logits for which the expansion of the softmax is used; its relative error is of the order
/// of the variance.
pub const LARGEST_LOGIT_VARIANCE: f64 = 0.25;

/// The variance of the logits of one query around their mean over the keys, expected over queries and weights.
///
/// Logits are `τ x_iᵀ W_q W_kᵀ x_j/√d_head`, with entries of `W_q` and `W_k` of variances `query_variance` and
/// `key_variance`, for tokens of squared norm `N = ‖X‖_F²` and summed inner products `C`, `n` tokens:
/// `v = τ² σ_q² σ_k² (N/n) (N − C/n)/n`. The width of a head cancels.
pub fn logit_variance(
    [norm, inner_products]: [f64; 2],
    n: usize,
    [query_variance, key_variance]: [f64; 2],
    inverse_temperature: f64,
) -> f64 {
    let n = n as f64;
    inverse_temperature.powi(2) * query_variance * key_variance * (norm / n) * (norm - inner_products / n) / n
}

/// The same for tokens of per-entry variance `variance` and correlation `correlation`, `d` wide.
pub fn logit_variance_of(
    (n, d): (usize, usize),
    (variance, correlation): (f64, f64),
    variances: [f64; 2],
    inverse_temperature: f64,
) -> f64 {
    let norm = n as f64 * d as f64 * variance;
    let inner_products = norm * (1.0 + (n as f64 - 1.0) * correlation);
    logit_variance([norm, inner_products], n, variances, inverse_temperature)
}

/// The entropy of a row of attention over `n` keys, in nats, for logits of variance `v` around their mean:
/// `log n − v/2`.
///
/// Exact for normal logits and many keys.
///
/// # Errors
/// [`NoClosedForm::LargeLogits`] above [`LARGEST_LOGIT_VARIANCE`].
pub fn attention_entropy(n: usize, v: f64) -> Result<f64, NoClosedForm> {
    check(v).map(|()| (n as f64).ln() - v / 2.0)
}

/// The distance of attention from uniform, `‖A − 11ᵀ/n‖_F` of a head, for logits of variance `v` around their mean:
/// `√(e^v − 1)`, which is `√v` for small v.
///
/// Exact for normal logits and many keys: a weight is then log-normal. It does not depend on the length. With
/// variances of one over the number of inputs it does not depend on `d_k` either; with the propagation paper's
/// `σ_q² = σ_k² = 1/d_k` it falls as `1/d_k` (its Figure 7 shows the square).
///
/// # Errors
/// As [`attention_entropy`].
pub fn attention_distance(v: f64) -> Result<f64, NoClosedForm> {
    check(v).map(|()| v.exp_m1().sqrt())
}

fn check(v: f64) -> Result<(), NoClosedForm> {
    if v <= LARGEST_LOGIT_VARIANCE {
        Ok(())
    } else {
        Err(NoClosedForm::LargeLogits {
            variance: v,
            largest: LARGEST_LOGIT_VARIANCE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_of_a_head_counts_by_the_variances_only() {
        let v = |variance| logit_variance_of((100, 64), (1.0, 0.0), [variance; 2], 1.0);
        // 1/fan_in: d² σ⁴ = 1, times (n − 1)/n.
        assert!((v(1.0 / 64.0) - 0.99).abs() < 1e-12);
        // 1/d_k: as d_k⁻².
        assert!((v(1.0 / 128.0) / v(1.0 / 64.0) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn large_logits_are_refused() {
        assert!(attention_distance(0.2).is_ok());
        let error = attention_entropy(10, 3.0).unwrap_err().to_string();
        assert!(error.starts_with("no closed form because"), "{error}");
    }
}
