//! From layer to layer.

use super::attention::{LARGEST_LOGIT_VARIANCE, attention_distance, attention_entropy, logit_variance};
use super::error::{NoClosedForm, TheoryError};
use super::gradient::AttentionGradients;
use super::limit::token_cosine;
use super::stack::Stack;
use crate::model::NormPlacement;

/// The most of the squared norm that may be neglected, over all layers, by taking attention as uniform.
///
/// It also bounds the error of the token cosine.
pub const MOST_NEGLECTED: f64 = 0.05;

/// The residual stream somewhere in the model.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct StreamState {
    /// `N = E‖X‖_F²` of a sequence.
    pub norm: f64,
    /// `C = E‖Σ_k x_k‖²`.
    pub inner_products: f64,
    /// The token cosine ρ.
    pub cosine: f64,
    /// The share of the stream that is not common to all tokens, `‖X − 1x̄ᵀ‖_F/‖X‖_F = √(1 − C/(nN))`: 0 at rank
    /// collapse.
    pub residual: f64,
}

/// What the theory says of one block.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerPrediction {
    /// The stream after the block.
    pub stream: StreamState,
    /// The variance of the logits around their mean over keys.
    pub logit_variance: f64,
    /// The mean entropy of a row of attention, in nats.
    pub entropy: Result<f64, NoClosedForm>,
    /// The distance of a head's attention from uniform, `‖A − 11ᵀ/n‖_F`.
    pub distance: Result<f64, NoClosedForm>,
    /// The gradients of the attention's own output, given its input.
    pub gradients: Result<AttentionGradients, NoClosedForm>,
}

/// What the theory says of a model at initialisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The input of the first block.
    pub input: StreamState,
    /// The blocks, first to last, as far as there is a closed form.
    pub layers: Vec<LayerPrediction>,
    /// Why they end before the last block, where they do.
    pub ended: Option<NoClosedForm>,
    /// Whether norms and inner products are exact expectations at any width, as they are without layer norms and with a
    /// linear feed-forward; else they hold for wide models whose tokens have equal norms and equal angles.
    pub exact: bool,
    /// The share of the squared norm that was neglected by taking attention as uniform.
    pub neglected: f64,
}

impl Prediction {
    /// The stream after the last block that is predicted.
    pub fn output(&self) -> &StreamState {
        self.layers.last().map_or(&self.input, |layer| &layer.stream)
    }
}

/// Tokens in the wide limit: equal norms, equal angles.
///
/// `gram` is `tr(S̃²)` with `S̃ = H X Xᵀ H/d`, of which `‖XᵀHX‖_F² = d² tr(S̃²)`. It is not a function of the other two:
/// random maps spread the directions of the tokens unevenly over the features.
#[derive(Debug, Clone, Copy)]
struct Tokens {
    variance: f64,
    covariance: f64,
    gram: f64,
}

impl Tokens {
    /// What a layer norm makes of them.
    fn normed(self, epsilon: f64) -> Self {
        let scale = self.variance + epsilon;
        Self {
            variance: self.variance / scale,
            covariance: self.covariance / scale,
            gram: self.gram / (scale * scale),
        }
    }
}

impl Stack {
    /// Norms, token cosines, attention and gradients, layer by layer.
    ///
    /// A few dozen operations a layer, whatever the sizes.
    ///
    /// # Errors
    /// [`TheoryError::Invalid`] for impossible numbers; [`TheoryError::NoClosedForm`] for a causal stack, and where
    /// attention is too far from uniform in the first layer; in a later one the prediction [ends](Prediction::ended).
    ///
    /// # Source
    /// Norms and inner products as the propagation paper's section 3.2, with layer norms and non-linear feed-forwards in
    /// the wide limit. The paper takes the tokens of deep layers as normal when it comes to gradients; here
    /// `‖XᵀHX‖_F²` is followed through the random maps, which make it grow with depth.
    pub fn predict(&self) -> Result<Prediction, TheoryError> {
        self.check()?;
        let d = self.tokens.d;
        let start = Tokens {
            variance: self.tokens.variance,
            covariance: self.tokens.variance * self.tokens.correlation,
            gram: self.tokens.centred_gram() / (d * d) as f64,
        };
        let mut tokens = start;
        let (mut neglected, mut ended) = (0.0, None);
        let mut layers = Vec::with_capacity(self.layers());
        for layer in 0..self.layers() {
            let input = match self.norm {
                NormPlacement::Pre => tokens.normed(self.norm_epsilon),
                _ => tokens,
            };
            let mut prediction = self.attention_of(input, layer == 0);
            let (added, missed) = self.mixed(input, prediction.logit_variance);
            let strength = self.attention_strengths[layer].powi(2) * self.attention.value_gain();
            tokens.variance += strength * added;
            tokens.covariance += strength * added;
            neglected += strength * missed / tokens.variance;
            if neglected.is_nan() || neglected > MOST_NEGLECTED {
                let reason = NoClosedForm::NotUniform {
                    layer,
                    variance: prediction.logit_variance,
                    neglected,
                };
                if layer == 0 {
                    return Err(reason.into());
                }
                ended = Some(reason);
                break;
            }
            if self.norm == NormPlacement::Post {
                tokens = tokens.normed(self.norm_epsilon);
            }
            tokens = self.through_feed_forward(tokens, self.feed_forward_strengths[layer].powi(2));
            if self.norm == NormPlacement::Post {
                tokens = tokens.normed(self.norm_epsilon);
            }
            prediction.stream = self.state(tokens);
            layers.push(prediction);
        }
        Ok(Prediction {
            input: self.state(start),
            layers,
            ended,
            exact: self.norm == NormPlacement::None && self.feed_forward.is_linear(),
            neglected,
        })
    }

    fn state(&self, tokens: Tokens) -> StreamState {
        let [norm, inner_products] = self.sums(tokens);
        let n = self.tokens.n;
        StreamState {
            norm,
            inner_products,
            cosine: token_cosine(norm, inner_products, n),
            residual: (1.0 - inner_products / (n as f64 * norm)).max(0.0).sqrt(),
        }
    }

    fn sums(&self, tokens: Tokens) -> [f64; 2] {
        let (n, d) = (self.tokens.n as f64, self.tokens.d as f64);
        let inner_products = n * d * (tokens.variance + (n - 1.0) * tokens.covariance);
        [n * d * tokens.variance, inner_products]
    }

    /// Attention and its gradients on its input.
    fn attention_of(&self, input: Tokens, first: bool) -> LayerPrediction {
        let (n, d) = (self.tokens.n, self.tokens.d as f64);
        let law = &self.attention;
        let [norm, inner_products] = self.sums(input);
        let v = logit_variance(
            [norm, inner_products],
            n,
            [law.query_variance, law.key_variance],
            law.inverse_temperature,
        );
        // Norm and Gram matrix vary together where the tokens are normal, and norms are not set by a layer norm.
        let normal = first && self.norm != NormPlacement::Pre && !self.normed_input;
        let joint = if normal { self.tokens.joint_factor() } else { 1.0 };
        let gradients = law.gradients(n, norm, inner_products, d * d * input.gram * joint);
        LayerPrediction {
            stream: self.state(input),
            logit_variance: v,
            entropy: attention_entropy(n, v),
            distance: attention_distance(v),
            gradients: if v <= LARGEST_LOGIT_VARIANCE {
                Ok(gradients)
            } else {
                Err(NoClosedForm::LargeLogits {
                    variance: v,
                    largest: LARGEST_LOGIT_VARIANCE,
                })
            },
        }
    }

    /// What uniform attention adds to variance and covariance alike, before values and outputs, and what it misses: at
    /// logits of variance v the mean over n keys is one over `n e^{−v}`, and leans towards the query by `v/d`.
    fn mixed(&self, input: Tokens, v: f64) -> (f64, f64) {
        let (n, d) = (self.tokens.n as f64, self.tokens.d as f64);
        let spread = input.variance - input.covariance;
        (input.covariance + spread / n, spread * (v.exp_m1() / n + v / d))
    }

    /// `Z + α₂ F(Z)`, for `strength = α₂²`.
    ///
    /// With `K` the second moments of the branch per feature, of which the outputs' features are independent draws,
    /// `E tr(S̃ + …)² = tr S̃² + 2α²[tr S̃K + (tr S̃K + tr K tr S̃)/d] + α⁴[(1 + 1/d) tr K² + (tr K)²/d]`, K centred. K follows
    /// the deviations of S̃ from its mean by the slope of the activation's dual.
    fn through_feed_forward(&self, z: Tokens, strength: f64) -> Tokens {
        let (m, d) = (self.tokens.n as f64 - 1.0, self.tokens.d as f64);
        let scale = match self.norm {
            NormPlacement::Pre => z.variance + self.norm_epsilon,
            _ => 1.0,
        };
        let branch = self
            .feed_forward
            .moments(z.variance / scale, z.covariance / scale);
        let slope = branch.slope / scale;
        let (own, added) = (z.variance - z.covariance, branch.variance - branch.covariance);
        // tr S̃² beyond that of equal angles.
        let uneven = (z.gram - m * own * own).max(0.0);
        let (trace, branch_trace) = (m * own, m * added);
        let cross = m * own * added + slope * uneven;
        let hidden = self
            .feed_forward
            .hidden()
            .map_or(0.0, |width| branch_trace * branch_trace / width as f64);
        let branch_gram = m * added * added + slope * slope * uneven + hidden;
        let gram = z.gram
            + 2.0 * strength * (cross + (cross + branch_trace * trace) / d)
            + strength * strength * ((1.0 + 1.0 / d) * branch_gram + branch_trace * branch_trace / d);
        Tokens {
            variance: z.variance + strength * branch.variance,
            covariance: z.covariance + strength * branch.covariance,
            gram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::SymmetricInit;
    use crate::model::{Strength, TextTransformerConfig};
    use crate::signal::theory::{GaussianTokens, ProjectionLaw, Sums};

    fn tokens() -> GaussianTokens {
        GaussianTokens::new(16, 64, 1.0, 0.1).unwrap()
    }

    #[test]
    fn without_norms_it_is_the_closed_form() {
        let alphas = [0.6, 0.8];
        let prediction = Stack {
            attention: ProjectionLaw {
                // Exactly uniform.
                query_variance: 0.0,
                ..ProjectionLaw::single(64)
            },
            ..Stack::plain(tokens(), 9, alphas)
        }
        .predict()
        .unwrap();
        let closed = Sums {
            norm: tokens().norm(),
            inner_products: tokens().inner_products(),
            n: 16,
        }
        .after(9, alphas);
        let output = prediction.output();
        assert!(prediction.exact && prediction.neglected == 0.0);
        assert!((output.norm / closed.norm - 1.0).abs() < 1e-12);
        assert!((output.inner_products / closed.inner_products - 1.0).abs() < 1e-12);
        assert!((output.cosine / closed.cosine() - 1.0).abs() < 1e-10);
    }

    /// One step for c = C/N: `c' = c (1+α₁²)/(1 + α₁² c/n)` without norms and for post-norm, `α₁²/v` for pre-norm, v
    /// the running variance. The figures are of a simulation by another program: six layers, α = 1, eight tokens of
    /// correlation 0.2; it stands within 0.006 of the theory.
    #[test]
    fn norms_follow_the_recursion_for_c() {
        let n = 8;
        for (placement, simulated) in [(NormPlacement::Post, 0.955), (NormPlacement::Pre, 0.665)] {
            let mut stack = Stack::plain(GaussianTokens::new(n, 512, 1.0, 0.2).unwrap(), 6, [1.0, 1.0]);
            stack.norm = placement;
            stack.attention.query_variance = 0.0;
            let got = stack.predict().unwrap().output().cosine;
            let (mut c, mut v) = (1.0 + 0.2 * 7.0, 1.0);
            for _ in 0..6 {
                let a = if placement == NormPlacement::Pre {
                    1.0 / v
                } else {
                    1.0
                };
                v += c / n as f64;
                c = c * (1.0 + a) / (1.0 + a * c / n as f64);
                v += 1.0;
            }
            let expected = (c - 1.0) / (n as f64 - 1.0);
            assert!((got - expected).abs() < 1e-12, "{got} {expected}");
            assert!((got - simulated).abs() < 0.006, "{got} {simulated}");
        }
    }

    #[test]
    fn bert_large_is_predicted_in_an_instant() {
        let begin = std::time::Instant::now();
        let prediction = Stack::of_text(&TextTransformerConfig::large(), 512)
            .unwrap()
            .predict()
            .unwrap();
        // Microseconds; the bound is what users are promised.
        assert!(begin.elapsed().as_millis() < 50);
        assert_eq!(prediction.layers.len(), 24);
        assert!(prediction.layers.iter().all(|layer| layer.stream.cosine > 0.0));
    }

    #[test]
    fn outside_the_assumptions_there_is_a_reason_and_no_number() {
        let mini = TextTransformerConfig::mini();
        let reason = |stack: Result<Stack, TheoryError>| {
            let error = stack.and_then(|stack| stack.predict()).unwrap_err();
            assert!(matches!(error, TheoryError::NoClosedForm(_)), "{error:?}");
            let text = error.to_string();
            assert!(text.starts_with("no closed form because"), "{text}");
            text
        };
        let tied = mini.clone().with_attention_init(SymmetricInit::tied().into());
        assert!(reason(Stack::of_text(&tied, 64)).contains("tied"));
        let decoder = Stack::of_text(&mini, 64).map(|stack| stack.with_causal(true));
        assert!(reason(decoder).contains("causal"));
        let hot = mini.clone().with_init_std(0.3);
        assert!(reason(Stack::of_text(&hot, 64)).contains("layer 0"));
    }

    #[test]
    fn a_prediction_ends_where_attention_stops_being_uniform() {
        // Norms double in every layer, and logits go with their square.
        let config = TextTransformerConfig::bare(500, 64, 24, 4).with_init_std(0.125);
        let prediction = Stack::of_text(&config, 16).unwrap().predict().unwrap();
        let ended = prediction.ended.clone().unwrap().to_string();
        let layers = prediction.layers.len();
        assert!((3..20).contains(&layers), "{layers}");
        assert!(ended.contains(&format!("at layer {layers}")), "{ended}");
    }

    #[test]
    fn impossible_numbers_are_named() {
        let mini = TextTransformerConfig::mini();
        for (config, length, named) in [
            (
                TextTransformerConfig {
                    n_layers: 0,
                    ..mini.clone()
                },
                64,
                "n_layers",
            ),
            (mini.clone(), 1, "length"),
            (mini.clone(), 513, "length"),
            (
                mini.clone()
                    .with_attention_strength(Strength::PerLayer(vec![1.0])),
                64,
                "attention_strength",
            ),
        ] {
            let error = Stack::of_text(&config, length).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let none = Stack::plain(tokens(), 0, [1.0, 1.0]).predict().unwrap_err();
        assert!(none.to_string().contains("layers is 0"), "{none}");
    }
}
