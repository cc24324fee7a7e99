//! The frequencies of rotary positions, as `config.json` gives them.
//!
//! # Source
//! The names and formulas are those of Hugging Face's library (`modeling_rope_utils.py`): linear interpolation,
//! dynamic NTK, YaRN (arXiv 2309.00071), LongRoPE (2402.13753) and LLaMA 3's (2407.21783). All are taken within the
//! context of the pretraining: dynamic NTK then scales nothing, and LongRoPE uses its short factors.

use std::f64::consts::PI;

use serde_json::Value;

use super::family::Config;
use super::format::Short;

/// The frequencies of a layer, and what multiplies the turned part of queries and keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frequencies {
    pub values: Vec<f64>,
    pub scale: f64,
}

const THETA: f64 = 10_000.0;

/// The frequencies of layer `layer`, for heads of `head_dim` entries of which `rotary_dim` turn (unset: the share
/// that the configuration gives).
///
/// # Errors
/// What of the configuration is missing or unknown.
pub(super) fn frequencies(
    config: &Config<'_>,
    layer: usize,
    head_dim: usize,
    rotary_dim: Option<usize>,
) -> Result<Frequencies, String> {
    let local = is_local(config, layer);
    let parameters = parameters(config, local);
    check_numbers(config, parameters)?;
    let number = |key: &str| {
        parameters
            .and_then(|p| p.get(key)?.as_f64())
            .or_else(|| config.number(key))
    };
    let theta = match (
        nested(config),
        local,
        config
            .number("rope_local_base_freq")
            .or(config.number("local_rope_theta")),
    ) {
        (false, true, Some(theta)) => theta,
        _ => number("rope_theta")
            .or_else(|| config.number("global_rope_theta"))
            .or_else(|| config.number("rotary_emb_base"))
            .unwrap_or(THETA),
    };
    let share = number("partial_rotary_factor")
        .or_else(|| config.number("rotary_pct"))
        .unwrap_or(1.0);
    let stated = rotary_dim.or_else(|| config.number("rotary_dim").map(|d| d as usize));
    let dim = stated.unwrap_or((head_dim as f64 * share) as usize);
    if dim == 0 || dim > head_dim || !theta.is_finite() || theta <= 1.0 {
        return Err(format!(
            "rotary positions on {dim} of {head_dim} entries with base {theta} make no sense"
        ));
    }
    let base: Vec<f64> = (0..dim)
        .step_by(2)
        .map(|i| theta.powf(-(i as f64) / dim as f64))
        .collect();
    let plain = |values| Ok(Frequencies { values, scale: 1.0 });
    let kind = parameters
        .and_then(|p| p.get("rope_type").or(p.get("type"))?.as_str())
        .unwrap_or("default");
    let need = |key: &'static str| {
        number(key).ok_or_else(|| format!("rotary positions of the kind {kind} need {key}"))
    };
    match kind {
        "default" | "dynamic" | "mrope" => plain(base),
        "linear" => {
            let factor = need("factor")?;
            plain(base.iter().map(|f| f / factor).collect())
        }
        "llama3" => {
            let (factor, low, high) = (
                need("factor")?,
                need("low_freq_factor")?,
                need("high_freq_factor")?,
            );
            let context = need("original_max_position_embeddings")?;
            plain(
                base.iter()
                    .map(|f| llama3(*f, factor, low, high, context))
                    .collect(),
            )
        }
        "yarn" => {
            let context = number("original_max_position_embeddings")
                .map_or_else(|| need("max_position_embeddings"), Ok)?;
            let factor =
                number("factor").map_or_else(|| need("max_position_embeddings").map(|m| m / context), Ok)?;
            let (fast, slow) = (
                number("beta_fast").unwrap_or(32.0),
                number("beta_slow").unwrap_or(1.0),
            );
            let truncate = parameters
                .and_then(|p| p.get("truncate")?.as_bool())
                .unwrap_or(true);
            let ramp = yarn_ramp(dim, theta, context, fast, slow, truncate);
            let values = base
                .iter()
                .zip(ramp)
                .map(|(f, r)| f / factor * r + f * (1.0 - r))
                .collect();
            let grown = |m: f64| {
                if factor <= 1.0 {
                    1.0
                } else {
                    0.1 * m * factor.ln() + 1.0
                }
            };
            let scale = number("attention_factor").unwrap_or_else(|| {
                match (number("mscale"), number("mscale_all_dim")) {
                    (Some(m), Some(all)) if m != 0.0 && all != 0.0 => grown(m) / grown(all),
                    _ => grown(1.0),
                }
            });
            Ok(Frequencies { values, scale })
        }
        "longrope" | "su" => {
            let short = parameters.and_then(|p| p.get("short_factor")?.as_array());
            let short = short.ok_or("rotary positions of the kind longrope need short_factor")?;
            let divisors: Option<Vec<f64>> = short.iter().map(Value::as_f64).collect();
            let divisors = divisors.filter(|d| d.len() == base.len());
            let divisors =
                divisors.ok_or_else(|| format!("short_factor must hold {} numbers", base.len()))?;
            let values = base
                .iter()
                .zip(divisors)
                .map(|(f, divisor)| f / divisor)
                .collect();
            let context = config.number("original_max_position_embeddings");
            let context = context.map_or_else(|| need("original_max_position_embeddings"), Ok)?;
            let factor =
                number("factor").map_or_else(|| need("max_position_embeddings").map(|m| m / context), Ok)?;
            let scale = number("attention_factor").unwrap_or(if factor <= 1.0 {
                1.0
            } else {
                (1.0 + factor.ln() / context.ln()).sqrt()
            });
            Ok(Frequencies { values, scale })
        }
        other => Err(format!("rotary positions of the kind {other:?} are not known")),
    }
}

/// Refuses values that should be numbers and are not: taken for missing, they would be guessed.
fn check_numbers(config: &Config<'_>, parameters: Option<&Value>) -> Result<(), String> {
    const NUMBERS: [&str; 17] = [
        "rope_theta",
        "rope_local_base_freq",
        "local_rope_theta",
        "global_rope_theta",
        "rotary_emb_base",
        "partial_rotary_factor",
        "rotary_pct",
        "rotary_dim",
        "factor",
        "attention_factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
        "max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "mscale",
    ];
    for key in NUMBERS {
        let values = [parameters.and_then(|p| p.get(key)), config.value(key)];
        for value in values.into_iter().flatten().filter(|value| !value.is_null()) {
            if value.as_f64().is_none_or(|number| number < 0.0) {
                let value = value.to_string();
                return Err(format!(
                    "config.json gives {key} = {}, which is no number from 0 on",
                    Short(&value)
                ));
            }
        }
    }
    Ok(())
}

/// Low frequencies are divided, high ones stay, those between are blended by their wavelength.
fn llama3(f: f64, factor: f64, low: f64, high: f64, context: f64) -> f64 {
    let wavelength = 2.0 * PI / f;
    if wavelength < context / high {
        f
    } else if wavelength > context / low {
        f / factor
    } else {
        let smooth = (context / wavelength - low) / (high - low);
        (1.0 - smooth) * f / factor + smooth * f
    }
}

/// How far each frequency is interpolated: 0 for those that turn often within the context, 1 for the slow ones.
fn yarn_ramp(dim: usize, theta: f64, context: f64, fast: f64, slow: f64, truncate: bool) -> Vec<f64> {
    let correction = |turns: f64| dim as f64 * (context / (turns * 2.0 * PI)).ln() / (2.0 * theta.ln());
    let (mut low, mut high) = (correction(fast), correction(slow));
    if truncate {
        (low, high) = (low.floor(), high.ceil());
    }
    (low, high) = (low.max(0.0), high.min(dim as f64 - 1.0));
    if low == high {
        high += 0.001;
    }
    (0..dim / 2)
        .map(|i| ((i as f64 - low) / (high - low)).clamp(0.0, 1.0))
        .collect()
}

/// Whether a layer attends within a window only, where such layers have rotary positions of their own.
fn is_local(config: &Config<'_>, layer: usize) -> bool {
    if let Some(kind) = config
        .value("layer_types")
        .and_then(|types| types.get(layer)?.as_str())
    {
        return kind == "sliding_attention";
    }
    let every = |key| config.number(key).map(|n| n as usize).filter(|&n| n > 0);
    match (
        every("sliding_window_pattern"),
        every("global_attn_every_n_layers"),
    ) {
        (Some(n), _) => !(layer + 1).is_multiple_of(n),
        (None, Some(n)) => !layer.is_multiple_of(n),
        (None, None) => false,
    }
}

/// Whether `rope_parameters` has an object for each kind of layer.
fn nested(config: &Config<'_>) -> bool {
    ["full_attention", "sliding_attention"]
        .iter()
        .any(|kind| config.value(&format!("rope_parameters.{kind}")).is_some())
}

/// The object with the parameters of a layer's rotary positions.
fn parameters<'a>(config: &Config<'a>, local: bool) -> Option<&'a Value> {
    if nested(config) {
        return config.value(if local {
            "rope_parameters.sliding_attention"
        } else {
            "rope_parameters.full_attention"
        });
    }
    // Where local layers have a base of their own, scaling is for the others.
    let own = config
        .value("rope_local_base_freq")
        .or(config.value("local_rope_theta"))
        .is_some();
    if local && own {
        None
    } else {
        config
            .value("rope_parameters")
            .or_else(|| config.value("rope_scaling"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn of(config: Value, layer: usize) -> Result<Frequencies, String> {
        frequencies(&Config::new(Some(&config), None, &Map::new()), layer, 8, None)
    }

    #[test]
    fn frequencies_fall_by_powers_of_the_base() {
        // Su et al. 2021, equation 15: θ_i = base^(−2(i−1)/d).
        let plain = of(json!({"rope_theta": 10000.0}), 0).unwrap();
        let expected = [1.0, 0.1, 0.01, 0.001];
        assert!(
            plain
                .values
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-15),
            "{plain:?}"
        );
        assert_eq!(of(json!({}), 0), Ok(plain));
        assert_eq!(of(json!({"rotary_pct": 0.5}), 0).unwrap().values, [1.0, 0.01]);
    }

    #[test]
    fn older_configurations_say_the_same() {
        let scaled = json!({"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6});
        let local = json!({"rope_type": "default", "rope_theta": 1e4});
        let types: Vec<_> = (1..=6)
            .map(|i| {
                if i % 6 == 0 {
                    "full_attention"
                } else {
                    "sliding_attention"
                }
            })
            .collect();
        let new = json!({"layer_types": types, "rope_parameters": {"full_attention": scaled, "sliding_attention": local}});
        let old = json!({
            "sliding_window_pattern": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
            "rope_scaling": {"type": "linear", "factor": 8.0},
        });
        for layer in 0..6 {
            assert_eq!(of(new.clone(), layer), of(old.clone(), layer), "layer {layer}");
        }
        assert_ne!(of(old.clone(), 4), of(old, 5));
        let modernbert =
            json!({"global_rope_theta": 160000.0, "local_rope_theta": 1e4, "global_attn_every_n_layers": 3});
        assert_eq!(of(modernbert.clone(), 3), of(json!({"rope_theta": 160000.0}), 0));
        assert_eq!(of(modernbert, 2), of(json!({}), 0));
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for (config, what) in [
            (json!({"rope_scaling": {"type": "linear"}}), "factor"),
            (json!({"rope_scaling": {"type": "spiral"}}), "spiral"),
            (
                json!({"rope_scaling": {"type": "longrope", "short_factor": [1.0]}}),
                "short_factor",
            ),
            (json!({"partial_rotary_factor": 7.0}), "56 of 8"),
            (json!({"rope_theta": 0.0}), "base 0"),
        ] {
            let error = of(config, 0).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
