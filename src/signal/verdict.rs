//! Whether a model will train, by thresholds that are stated, and what to do where it will not.

use serde::Serialize;

use super::survey::Survey;
use super::theory::{Prediction, Stack};
use crate::model::NormPlacement;

/// Where signal propagation counts as broken.
///
/// They are conventions, set so that the usual models of the field pass and those that the propagation paper reports as
/// hard to train do not; none is a theorem.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Thresholds {
    /// The token cosine at the output from which tokens count as aligned. Default: 0.9.
    pub cosine: f64,
    /// The ratio of query to value gradient norms in a layer below which queries and keys count as not learning. Default:
    /// 0.001; BERT-large starts at 0.008.
    pub gradient_ratio: f64,
    /// The factor by which the stream may grow or shrink from input to output, without layer norms. Default: 100.
    pub growth: f64,
    /// The share of the entropy of uniform attention below which a layer counts as saturated. Default: 0.5.
    pub entropy: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            cosine: 0.9,
            gradient_ratio: 1e-3,
            growth: 100.0,
            entropy: 0.5,
        }
    }
}

/// What is wrong with the propagation of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Symptom {
    /// Tokens are aligned before the first block.
    AlignedInput,
    /// Tokens align with depth.
    RankCollapse,
    /// Queries and keys get next to no gradient.
    VanishingQueryGradients,
    /// The stream grows or shrinks by orders of magnitude.
    UnstableNorm,
    /// Attention looks at a few keys from the start.
    SaturatedAttention,
}

/// One thing that is wrong, and the remedy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What.
    pub symptom: Symptom,
    /// The layer at which it shows, counted from 0; none for the input of the first.
    pub layer: Option<usize>,
    /// The number that crossed its threshold.
    pub value: f64,
    /// A sentence that says so and what to do.
    pub text: String,
}

/// Everything that is wrong, or nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether nothing was found.
    pub propagates: bool,
    /// What was found.
    pub findings: Vec<Finding>,
    /// The thresholds.
    pub thresholds: Thresholds,
}

/// What a verdict looks at, measured or predicted.
struct Observed {
    input_cosine: f64,
    /// After each layer.
    cosines: Vec<f64>,
    /// Query or key to value gradient norms of each layer, where they are known.
    gradient_ratios: Vec<Option<f64>>,
    /// The norm at the output over that at the input.
    growth: f64,
    /// The entropy of attention over that of uniform attention in each layer, where it is known.
    entropies: Vec<Option<f64>>,
}

impl Observed {
    fn measured(survey: &Survey) -> Self {
        Self {
            input_cosine: survey.input.cosine.mean,
            cosines: survey.layers.iter().map(|l| l.stream.cosine.mean).collect(),
            gradient_ratios: survey
                .layers
                .iter()
                .map(|layer| {
                    let g = layer.gradients?;
                    ratio(g.query.mean, g.key.mean, g.value.mean)
                })
                .collect(),
            growth: (survey.output().norm.mean / survey.input.norm.mean).sqrt(),
            entropies: survey
                .layers
                .iter()
                .map(|l| (l.uniform_entropy > 0.0).then(|| l.entropy.mean / l.uniform_entropy))
                .collect(),
        }
    }

    fn predicted(prediction: &Prediction, n: usize) -> Self {
        let layers = &prediction.layers;
        Self {
            input_cosine: prediction.input.cosine,
            cosines: layers.iter().map(|layer| layer.stream.cosine).collect(),
            gradient_ratios: layers
                .iter()
                .map(|layer| {
                    let g = layer.gradients.as_ref().ok()?;
                    ratio(g.query, g.key, g.value)
                })
                .collect(),
            growth: (prediction.output().norm / prediction.input.norm).sqrt(),
            entropies: layers
                .iter()
                .map(|layer| Some(layer.entropy.as_ref().ok()? / (n as f64).ln()))
                .collect(),
        }
    }

    fn depth(&self) -> usize {
        self.cosines.len()
    }
}

/// Keys have the same gradients as queries but for the variances of the other: the larger counts.
fn ratio(query: f64, key: f64, value: f64) -> Option<f64> {
    (value > 0.0).then(|| (query.max(key) / value).sqrt())
}

impl Verdict {
    /// Judges what was measured; `stack` is the same model for the theory, which says what a remedy would do, if known.
    pub fn of(survey: &Survey, stack: Option<&Stack>, norm: NormPlacement, thresholds: Thresholds) -> Self {
        Self::judge(&Observed::measured(survey), stack, norm, thresholds)
    }

    /// Judges what the theory says of a model.
    pub fn of_prediction(prediction: &Prediction, stack: &Stack, thresholds: Thresholds) -> Self {
        let observed = Observed::predicted(prediction, stack.tokens.n);
        Self::judge(&observed, Some(stack), stack.norm, thresholds)
    }

    fn judge(
        observed: &Observed,
        stack: Option<&Stack>,
        norm: NormPlacement,
        thresholds: Thresholds,
    ) -> Self {
        let findings: Vec<Finding> = [
            alignment(observed, stack, thresholds.cosine),
            vanishing(observed, thresholds.gradient_ratio),
            growth(observed, norm, thresholds.growth),
            saturation(observed, thresholds.entropy),
        ]
        .into_iter()
        .flatten()
        .collect();
        Self {
            propagates: findings.is_empty(),
            findings,
            thresholds,
        }
    }

    /// The findings as lines, or one line that there are none.
    pub fn lines(&self) -> Vec<String> {
        if self.propagates {
            return vec!["the signal propagates: no threshold is crossed".to_owned()];
        }
        self.findings.iter().map(|finding| finding.text.clone()).collect()
    }
}

fn alignment(seen: &Observed, stack: Option<&Stack>, threshold: f64) -> Option<Finding> {
    let input = seen.input_cosine;
    if input >= threshold {
        return Some(Finding {
            symptom: Symptom::AlignedInput,
            layer: None,
            value: input,
            text: format!(
                "tokens are aligned to {input:.2} at the input of layer 0: give the token embeddings more variance \
                 than what all positions share"
            ),
        });
    }
    let depth = seen.depth();
    let value = *seen.cosines.last().filter(|cosine| **cosine >= threshold)?;
    let first = seen.cosines.iter().position(|cosine| *cosine >= threshold)?;
    let scaled = scaled_cosine(stack, depth);
    let remedy = match scaled {
        Some((cosine, _)) if cosine < threshold => {
            format!("set residual scaling to 1/√L, which brings this to {cosine:.2}")
        }
        Some((cosine, half)) => format!(
            "residual scaling of 1/√L brings this to {cosine:.2} only, of 0.5/√L to {half:.2}: \
             give the input tokens less in common, or take fewer layers"
        ),
        None => "set residual scaling to 1/√L".to_owned(),
    };
    let last = depth - 1;
    let reached = if first < last {
        format!(" (above {threshold} from layer {first} on)")
    } else {
        String::new()
    };
    Some(Finding {
        symptom: Symptom::RankCollapse,
        layer: Some(last),
        value,
        text: format!("tokens align to {value:.2} after layer {last}{reached}: {remedy}"),
    })
}

/// The predicted cosine at the output with strengths of 1/√L and of 0.5/√L.
fn scaled_cosine(stack: Option<&Stack>, depth: usize) -> Option<(f64, f64)> {
    let stack = stack?;
    let cosine = |alpha: f64| {
        let alpha = alpha / (depth as f64).sqrt();
        let prediction = stack.clone().with_strengths([alpha, alpha]).predict().ok()?;
        prediction.ended.is_none().then(|| prediction.output().cosine)
    };
    Some((cosine(1.0)?, cosine(0.5)?))
}

/// The layer with the lowest of these numbers.
fn lowest(values: &[Option<f64>]) -> Option<(usize, f64)> {
    let known = values.iter().enumerate();
    known
        .filter_map(|(layer, value)| Some((layer, (*value)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

fn vanishing(seen: &Observed, threshold: f64) -> Option<Finding> {
    let (layer, value) = lowest(&seen.gradient_ratios)?;
    (value < threshold).then(|| Finding {
        symptom: Symptom::VanishingQueryGradients,
        layer: Some(layer),
        value,
        text: format!(
            "gradients of queries and keys {} at layer {layer}: keep tokens apart by residual scaling of 1/√L or \
             weaker branches{}; SGD suffers more than Adam",
            if value > 0.0 {
                format!("are {value:.1e} of those of values")
            } else {
                "are 0".to_owned()
            },
            // Beyond that no temperature helps.
            if value > 1e-2 * threshold {
                format!(
                    ", or multiply the inverse temperature by up to {:.0}",
                    1.0 / value
                )
            } else {
                String::new()
            }
        ),
    })
}

fn growth(seen: &Observed, norm: NormPlacement, threshold: f64) -> Option<Finding> {
    if norm != NormPlacement::None {
        return None;
    }
    let (value, depth) = (seen.growth, seen.depth());
    let (verb, remedy) = if value > threshold {
        (
            "grow",
            "set residual scaling to 1/√L, use layer norms, or start from smaller weights",
        )
    } else if value < 1.0 / threshold {
        ("shrink", "use residual branches, or start from larger weights")
    } else {
        return None;
    };
    Some(Finding {
        symptom: Symptom::UnstableNorm,
        layer: depth.checked_sub(1),
        value,
        text: format!("norms {verb} by a factor of {value:.1e} over {depth} layers: {remedy}"),
    })
}

fn saturation(seen: &Observed, threshold: f64) -> Option<Finding> {
    let (layer, value) = lowest(&seen.entropies)?;
    (value < threshold).then(|| Finding {
        symptom: Symptom::SaturatedAttention,
        layer: Some(layer),
        value,
        text: format!(
            "attention has {:.0} % of the entropy of uniform attention at layer {layer}: start queries and keys \
             from smaller weights, or normalise the input",
            100.0 * value.max(0.0)
        ),
    })
}
