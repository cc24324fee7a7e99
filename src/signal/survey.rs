//! Probes over several seeds, as means with intervals.

use serde::Serialize;

use super::probe::{AttentionSignal, GradientSignal, LayerSignal, ModelSignal, StreamSignal};

/// A mean over seeds, with the lowest and the highest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Interval {
    /// Of values; `None` where there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then(|| Self {
            mean,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// The residual stream at one place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StreamSurvey {
    /// `N = ‖X‖_F²` of a sequence.
    pub norm: Interval,
    /// `C = ‖Σ_k x_k‖²`.
    pub inner_products: Interval,
    /// The mean cosine of two tokens.
    pub cosine: Interval,
    /// `‖X − 1x̄ᵀ‖_F/‖X‖_F`.
    pub residual: Interval,
    /// `‖X‖_F²/‖X‖₂²`.
    pub stable_rank: Interval,
}

/// One block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LayerSurvey {
    /// The stream after it.
    pub stream: StreamSurvey,
    /// The distance of a head's attention from uniform, root of the mean square over heads and sequences.
    pub distance: Interval,
    /// The entropy of a row of attention, in nats.
    pub entropy: Interval,
    /// The entropy of uniform attention.
    pub uniform_entropy: f64,
    /// Squared gradient norms, where they were measured.
    pub gradients: Option<GradientSurvey>,
}

/// Squared gradient norms of one attention: see [`GradientSignal`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GradientSurvey {
    /// Of the layer's own output in `W_q`.
    pub query: Interval,
    /// In `W_k`.
    pub key: Interval,
    /// In `W_v`.
    pub value: Interval,
    /// Of the last stream in `W_q`.
    pub whole_query: Interval,
    /// In `W_k`.
    pub whole_key: Interval,
    /// In `W_v`.
    pub whole_value: Interval,
}

/// What was measured on models from several seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// How many.
    pub seeds: usize,
    /// The input of the first block.
    pub input: StreamSurvey,
    /// The blocks, first to last.
    pub layers: Vec<LayerSurvey>,
}

impl Survey {
    /// Puts probes of equally deep models together; `None` where there are none.
    pub fn of(signals: &[ModelSignal]) -> Option<Self> {
        let layers = signals.iter().map(|signal| signal.layers.len()).min()?;
        let input = StreamSurvey::of(signals.iter().map(|signal| &signal.input))?;
        let layers = (0..layers)
            .map(|layer| LayerSurvey::of(signals.iter().map(|signal| &signal.layers[layer])))
            .collect::<Option<_>>()?;
        Some(Self {
            seeds: signals.len(),
            input,
            layers,
        })
    }

    /// The stream after the last block.
    pub fn output(&self) -> &StreamSurvey {
        self.layers.last().map_or(&self.input, |layer| &layer.stream)
    }
}

impl StreamSurvey {
    fn of<'a>(signals: impl Iterator<Item = &'a StreamSignal> + Clone) -> Option<Self> {
        let over = |value: fn(&StreamSignal) -> f64| Interval::of(signals.clone().map(value));
        Some(Self {
            norm: over(|s| s.norm)?,
            inner_products: over(|s| s.inner_products)?,
            cosine: over(|s| s.cosine)?,
            residual: over(|s| s.residual)?,
            stable_rank: over(|s| s.stable_rank)?,
        })
    }
}

impl LayerSurvey {
    fn of<'a>(signals: impl Iterator<Item = &'a LayerSignal> + Clone) -> Option<Self> {
        let attention =
            |value: fn(&AttentionSignal) -> f64| Interval::of(signals.clone().map(|s| value(&s.attention)));
        Some(Self {
            stream: StreamSurvey::of(signals.clone().map(|signal| &signal.stream))?,
            distance: attention(|a| a.squared_distance.sqrt())?,
            entropy: attention(|a| a.entropy)?,
            uniform_entropy: attention(|a| a.uniform_entropy)?.mean,
            gradients: signals
                .clone()
                .map(|signal| signal.gradients.as_ref())
                .collect::<Option<Vec<_>>>()
                .and_then(|gradients| GradientSurvey::of(&gradients)),
        })
    }
}

impl GradientSurvey {
    fn of(signals: &[&GradientSignal]) -> Option<Self> {
        let over = |value: fn(&GradientSignal) -> f64| Interval::of(signals.iter().map(|s| value(s)));
        Some(Self {
            query: over(|s| s.own.query)?,
            key: over(|s| s.own.key)?,
            value: over(|s| s.own.value)?,
            whole_query: over(|s| s.whole.query)?,
            whole_key: over(|s| s.whole.key)?,
            whole_value: over(|s| s.whole.value)?,
        })
    }
}
