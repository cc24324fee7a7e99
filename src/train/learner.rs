//! Our scores in a learner of `burn-train`: metrics, and the output that feeds them.
//!
//! A metric of `burn-train` sees what a step puts out, not the model. [`Scored`] wraps that output together with the
//! query and key weights of the model, of which it holds references and no copies; a [`ScoreMetric`] scores them when
//! it is due. The example `burn_learner` has it in a learner of its own.

use std::sync::Arc;

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_train::ItemLazy;
use burn_train::metric::state::{FormatOptions, NumericMetricState};
use burn_train::metric::{
    AccuracyInput, Adaptor, LossInput, Metric, MetricAttributes, MetricMetadata, MetricName, Numeric,
    NumericAttributes, NumericEntry, PerplexityInput, SerializedEntry, TopKAccuracyInput,
};

use crate::attention::{AttentionModule, HasAttention};
use crate::bilinear::{BilinearError, BilinearForm, Directionality, Heads, Summary, Variant};

/// Query and key weights of every self-attention layer of a model, at one moment.
#[derive(Debug, Clone)]
pub struct AttentionWeights<B: Backend> {
    layers: Vec<(Tensor<B, 2>, Tensor<B, 2>, Heads)>,
}

impl<B: Backend> AttentionWeights<B> {
    /// Those of a model as it is now. Give it the inner model (`model.valid()`), so that no graph is held.
    pub fn of<M: HasAttention<B>>(model: &M) -> Self {
        let layers = model.attention_layers().into_iter().map(|layer| {
            let (query, key, heads) = match layer.attention {
                AttentionModule::SelfAttention(module) => (&module.query, &module.key, module.heads()),
                AttentionModule::MultiHead(module) => {
                    (&module.query, &module.key, Heads::multi(module.n_heads))
                }
            };
            (query.weight.val(), key.weight.val(), heads)
        });
        Self {
            layers: layers.collect(),
        }
    }

    /// The bilinear form of every layer.
    ///
    /// # Errors
    /// [`BilinearError`] of the first layer that has none, such as one with weights that are not finite.
    pub fn forms(&self) -> Result<Vec<BilinearForm<B>>, BilinearError> {
        self.layers
            .iter()
            .map(|(query, key, heads)| BilinearForm::new(query.clone(), key.clone(), *heads))
            .collect()
    }
}

/// The output of a step, and the attention weights of the model that made it.
///
/// It feeds every metric that the output itself feeds with a loss, an accuracy (also top-k) or a perplexity.
#[derive(Debug, Clone)]
pub struct Scored<O, B: Backend> {
    /// The output.
    pub output: O,
    /// The weights.
    pub weights: AttentionWeights<B>,
}

impl<O, B: Backend> Scored<O, B> {
    /// An output, and the weights of an inner model.
    pub fn new<M: HasAttention<B>>(output: O, model: &M) -> Self {
        Self {
            output,
            weights: AttentionWeights::of(model),
        }
    }
}

impl<O: ItemLazy, B: Backend> ItemLazy for Scored<O, B> {
    type ItemSync = Scored<O::ItemSync, B>;

    fn sync(self) -> Self::ItemSync {
        Scored {
            output: self.output.sync(),
            weights: self.weights,
        }
    }
}

impl<O, B: Backend> Adaptor<AttentionWeights<B>> for Scored<O, B> {
    fn adapt(&self) -> AttentionWeights<B> {
        self.weights.clone()
    }
}

/// An output feeds the metrics that it feeds alone. One for each input: an implementation for all would clash with
/// that of `burn-train` for the empty input.
macro_rules! adapt_output {
    ($($input:ident),+) => {$(
        impl<C: Backend, O: Adaptor<$input<C>>, B: Backend> Adaptor<$input<C>> for Scored<O, B> {
            fn adapt(&self) -> $input<C> {
                self.output.adapt()
            }
        }
    )+};
}
adapt_output!(LossInput, AccuracyInput, TopKAccuracyInput, PerplexityInput);

#[derive(Debug, Clone, Copy)]
enum Score {
    Symmetry,
    Directionality(Directionality),
}

/// The median of a score over the self-attention layers of a model, as a metric.
///
/// Scored at every `every`-th batch, and shown as it was then in between. A model whose weights are not finite, or
/// all of whose layers are zero, has the value NaN.
#[derive(Clone)]
pub struct ScoreMetric<B: Backend> {
    score: Score,
    name: MetricName,
    every: usize,
    seen: usize,
    last: f64,
    state: NumericMetricState,
    backend: std::marker::PhantomData<fn() -> B>,
}

impl<B: Backend> ScoreMetric<B> {
    /// The median symmetry, in [−1, 1].
    pub fn symmetry() -> Self {
        Self::new(Score::Symmetry, "Symmetry")
    }

    /// The median directionality, in [−1, 1], of either variant.
    pub fn directionality(directionality: Directionality) -> Self {
        let name = match directionality.variant {
            Variant::Definition => "Directionality (definition)",
            Variant::Excess => "Directionality (excess)",
        };
        Self::new(Score::Directionality(directionality), name)
    }

    fn new(score: Score, name: &str) -> Self {
        Self {
            score,
            name: Arc::new(name.to_owned()),
            every: 1,
            seen: 0,
            last: f64::NAN,
            state: NumericMetricState::new(),
            backend: std::marker::PhantomData,
        }
    }

    /// Scores every `every`-th batch only. Default: every one.
    pub fn every(mut self, every: usize) -> Self {
        self.every = every.max(1);
        self
    }

    fn score(&self, weights: &AttentionWeights<B>) -> Result<Option<f64>, BilinearError> {
        let scores = weights
            .forms()?
            .iter()
            .map(|form| match self.score {
                // A zero matrix has no symmetry; the others are summarised.
                Score::Symmetry => match form.symmetry() {
                    Err(BilinearError::Zero) => Ok(None),
                    other => other.map(Some),
                },
                Score::Directionality(variant) => form.directionality(variant).map(Some),
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Summary::of(scores.into_iter().flatten()).map(|summary| summary.median))
    }
}

impl<B: Backend> Metric for ScoreMetric<B> {
    type Input = AttentionWeights<B>;

    fn name(&self) -> MetricName {
        self.name.clone()
    }

    fn description(&self) -> Option<String> {
        Some("median over the self-attention layers of the model, of W_q W_kᵀ".to_owned())
    }

    fn attributes(&self) -> MetricAttributes {
        NumericAttributes {
            unit: None,
            higher_is_better: true,
        }
        .into()
    }

    fn update(&mut self, weights: &AttentionWeights<B>, _metadata: &MetricMetadata) -> SerializedEntry {
        if self.seen.is_multiple_of(self.every) {
            self.last = self.score(weights).ok().flatten().unwrap_or(f64::NAN);
        }
        self.seen += 1;
        let format = FormatOptions::new(self.name()).precision(3);
        self.state.update(self.last, 1, format)
    }

    fn clear(&mut self) {
        self.state.reset();
    }
}

impl<B: Backend> Numeric for ScoreMetric<B> {
    fn value(&self) -> NumericEntry {
        self.state.current_value()
    }

    fn running_value(&self) -> NumericEntry {
        self.state.running_value()
    }
}
