//! Signal propagation, predicted beside measured: as tables, JSON, CSV and curves.

use std::fmt;

use serde_json::{Value, json};

use super::plot::{Axis, Colour, Curves, Figure, Scale, Series};
use super::table::{Align, Table, visible};
use crate::signal::theory::{AttentionGradients, LayerPrediction, NoClosedForm, Prediction, StreamState};
use crate::signal::{GradientSurvey, Interval, LayerSurvey, StreamSurvey, Survey, Verdict};

/// The version of the JSON.
pub const SCHEMA: u32 = 2;

/// What a probe found.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// What was probed, in words.
    pub title: String,
    /// What is to be known of the numbers, a line each.
    pub notes: Vec<String>,
    /// All settings.
    pub settings: Value,
    /// Tokens of a sequence, and their width.
    pub sizes: [usize; 2],
    /// What was measured; none where the model was not built.
    pub survey: Option<Survey>,
    /// What the theory says, or why it says nothing.
    pub prediction: Result<Prediction, String>,
    /// The verdict; none on trained weights, which are measured and not judged.
    pub verdict: Option<Verdict>,
}

/// Where in a model a quantity is. Layers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The stream that enters the first layer.
    Input,
    /// The stream after a layer.
    After(usize),
    /// The attention of a layer.
    Layer(usize),
}

impl Place {
    /// The layer; none for the input.
    pub fn layer(self) -> Option<usize> {
        match self {
            Self::Input => None,
            Self::After(layer) | Self::Layer(layer) => Some(layer),
        }
    }

    /// Where it stands in a figure: the stream by the layers that it has passed, attention by its layer.
    fn on_axis(self) -> f64 {
        match self {
            Self::Input => 0.0,
            Self::After(layer) => (layer + 1) as f64,
            Self::Layer(layer) => layer as f64,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input"),
            Self::After(layer) => write!(f, "after layer {layer}"),
            Self::Layer(layer) => write!(f, "layer {layer}"),
        }
    }
}

/// One quantity at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where in the model.
    pub place: Place,
    /// What it is, such as `token cosine`.
    pub quantity: &'static str,
    /// What the theory says; none where it says nothing.
    pub predicted: Option<f64>,
    /// Why it says nothing, where it covers the model but not this number.
    pub reason: Option<String>,
    /// What was measured; none where the model was not built.
    pub measured: Option<Interval>,
}

/// A quantity and how it is taken from a prediction and a survey of a layer.
struct Quantity {
    name: &'static str,
    /// A word for the head of a column.
    short: &'static str,
}

const COSINE: Quantity = quantity("token cosine", "cosine");
const SIZE: Quantity = quantity("root mean square entry", "entry");
const RESIDUAL: Quantity = quantity("residual to rank one of equal tokens", "residual");
const STABLE_RANK: Quantity = quantity("stable rank", "stable rank");
const DISTANCE: Quantity = quantity("distance of attention from uniform", "distance");
const ENTROPY: Quantity = quantity("entropy of attention", "entropy");
const QUERY: Quantity = quantity("query gradient norm", "∇ query");
const KEY: Quantity = quantity("key gradient norm", "∇ key");
const VALUE: Quantity = quantity("value gradient norm", "∇ value");
const WHOLE_QUERY: Quantity = quantity("query gradient norm of the whole model", "whole ∇ query");
const WHOLE_KEY: Quantity = quantity("key gradient norm of the whole model", "whole ∇ key");
const WHOLE_VALUE: Quantity = quantity("value gradient norm of the whole model", "whole ∇ value");

const fn quantity(name: &'static str, short: &'static str) -> Quantity {
    Quantity { name, short }
}

/// What a figure of a probe shows over layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbePlot {
    /// The token cosine.
    Cosine,
    /// The root mean square entry of the stream.
    Norms,
    /// Gradient norms of queries, keys and values.
    Gradients,
    /// The distance of attention from uniform.
    Attention,
}

impl Row {
    fn to_json(&self) -> Value {
        json!({
            "place": self.place.to_string(),
            "layer": self.place.layer(),
            "quantity": self.quantity,
            "predicted": self.predicted,
            "reason": self.reason,
            "measured": self.measured,
        })
    }
}

impl ProbeReport {
    /// The number of layers that something is known of.
    fn depth(&self) -> usize {
        let predicted = self.prediction.as_ref().map_or(0, |p| p.layers.len());
        self.survey.as_ref().map_or(predicted, |s| s.layers.len())
    }

    /// Every quantity of every layer.
    pub fn rows(&self) -> Vec<Row> {
        let prediction = self.prediction.as_ref().ok();
        let survey = self.survey.as_ref();
        let mut rows = self.stream_rows(
            Place::Input,
            prediction.map(|p| &p.input),
            survey.map(|s| &s.input),
        );
        for i in 0..self.depth() {
            let predicted = prediction.and_then(|p| p.layers.get(i));
            let measured = survey.and_then(|s| s.layers.get(i));
            let stream = (predicted.map(|p| &p.stream), measured.map(|m| &m.stream));
            rows.extend(self.stream_rows(Place::After(i), stream.0, stream.1));
            rows.extend(attention_rows(i, predicted, measured));
        }
        rows.retain(|row| row.predicted.is_some() || row.measured.is_some() || row.reason.is_some());
        rows
    }

    fn stream_rows(
        &self,
        place: Place,
        predicted: Option<&StreamState>,
        measured: Option<&StreamSurvey>,
    ) -> Vec<Row> {
        let entries = (self.sizes[0] * self.sizes[1]) as f64;
        let row = |quantity: Quantity, predicted: Option<f64>, measured| Row {
            place,
            quantity: quantity.name,
            predicted,
            reason: None,
            measured,
        };
        let size = |norm: f64| (norm / entries).sqrt();
        vec![
            row(COSINE, predicted.map(|p| p.cosine), measured.map(|m| m.cosine)),
            row(
                SIZE,
                predicted.map(|p| size(p.norm)),
                measured.map(|m| map(m.norm, size)),
            ),
            row(
                RESIDUAL,
                predicted.map(|p| p.residual),
                measured.map(|m| m.residual),
            ),
            row(STABLE_RANK, None, measured.map(|m| m.stable_rank)),
        ]
    }

    /// As tables for a terminal, with the verdict at the end.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n\n", visible(&self.title));
        text += "The stream\n";
        text += &self.table(&[&COSINE, &SIZE, &RESIDUAL, &STABLE_RANK]).to_text();
        text += "\nAttention\n";
        text += &self.table(&[&ENTROPY, &DISTANCE]).to_text();
        text += "\nGradient norms of the attention's own output\n";
        text += &self.table(&[&QUERY, &KEY, &VALUE]).to_text();
        if self.survey.is_some() {
            text += "\nGradient norms of the output of the whole model (measured only)\n";
            text += &self.table(&[&WHOLE_QUERY, &WHOLE_KEY, &WHOLE_VALUE]).to_text();
            text += "\nMeasured: mean over seeds (lowest to highest).";
        }
        match &self.prediction {
            Ok(prediction) if prediction.exact => {
                text += "\nPredicted: norms are exact expectations under uniform attention.\n";
            }
            Ok(_) => text += "\nPredicted: the limit of wide models under uniform attention.\n",
            Err(reason) => text += &format!("\nPredicted: {reason}.\n"),
        }
        if let Ok(Prediction {
            ended: Some(reason),
            layers,
            ..
        }) = &self.prediction
        {
            // The first layer is always predicted where anything is.
            text += &format!("It ends after layer {}: {reason}.\n", layers.len() - 1);
        }
        let reasons: std::collections::BTreeSet<String> =
            self.rows().into_iter().filter_map(|row| row.reason).collect();
        for reason in reasons.iter().take(1) {
            text += &format!("Missing numbers (–): {reason}.\n");
        }
        for note in &self.notes {
            text += &format!("note: {}\n", visible(note));
        }
        if let Some(verdict) = &self.verdict {
            for line in verdict.lines() {
                text += &format!("\n{} {line}", if verdict.propagates { "✓" } else { "✗" });
            }
            text.push('\n');
        }
        text
    }

    fn table(&self, quantities: &[&Quantity]) -> Table {
        let rows = self.rows();
        let known = |quantity: &Quantity, has: fn(&Row) -> bool| {
            rows.iter().any(|row| row.quantity == quantity.name && has(row))
        };
        let mut columns = vec![("place".to_owned(), Align::Left)];
        // Of each quantity, whether it is predicted and whether it is measured.
        let shown: Vec<[bool; 2]> = quantities
            .iter()
            .map(|quantity| {
                let shown = [
                    known(quantity, |row| row.predicted.is_some()),
                    known(quantity, |row| row.measured.is_some()),
                ];
                if shown[0] {
                    columns.push((format!("{} predicted", quantity.short), Align::Right));
                }
                if shown[1] {
                    columns.push((format!("{} measured", quantity.short), Align::Left));
                }
                shown
            })
            .collect();
        let mut table = Table::new(columns);
        let mut places: Vec<Place> = rows
            .iter()
            .filter(|row| quantities.iter().any(|quantity| quantity.name == row.quantity))
            .map(|row| row.place)
            .collect();
        places.dedup();
        for place in places {
            let of = |quantity: &Quantity| {
                rows.iter()
                    .find(|row| row.place == place && row.quantity == quantity.name)
            };
            let mut cells = vec![place.to_string()];
            for (quantity, [predicted, measured]) in quantities.iter().zip(&shown) {
                let row = of(quantity);
                if *predicted {
                    cells.push(row.and_then(|row| row.predicted).map_or("–".to_owned(), short));
                }
                if *measured {
                    cells.push(
                        row.and_then(|row| row.measured.as_ref())
                            .map_or(String::new(), with_range),
                    );
                }
            }
            table.push(cells);
        }
        table
    }

    /// A record for each quantity of each layer.
    pub fn to_csv(&self) -> String {
        let mut table = Table::new(
            [
                "place",
                "layer",
                "quantity",
                "predicted",
                "measured_mean",
                "measured_low",
                "measured_high",
            ]
            .map(|name| (name, Align::Right)),
        );
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for row in self.rows() {
            table.push([
                row.place.to_string(),
                row.place.layer().map_or(String::new(), |layer| layer.to_string()),
                row.quantity.to_owned(),
                cell(row.predicted),
                cell(row.measured.map(|measured| measured.mean)),
                cell(row.measured.map(|measured| measured.low)),
                cell(row.measured.map(|measured| measured.high)),
            ]);
        }
        table.to_csv()
    }

    /// Everything.
    pub fn to_json(&self) -> String {
        let value = json!({
            "schema": SCHEMA,
            "version": format!("wqk {}", env!("CARGO_PKG_VERSION")),
            "title": self.title,
            "notes": self.notes,
            "settings": self.settings,
            "seeds": self.survey.as_ref().map_or(0, |survey| survey.seeds),
            "no_closed_form": match &self.prediction {
                Ok(prediction) => prediction.ended.as_ref().map(ToString::to_string),
                Err(reason) => Some(reason.clone()),
            },
            "exact": self.prediction.as_ref().ok().map(|prediction| prediction.exact),
            "neglected": self.prediction.as_ref().ok().map(|prediction| prediction.neglected),
            "rows": self.rows().iter().map(Row::to_json).collect::<Vec<_>>(),
            "verdict": self.verdict,
        });
        // Every part has text keys and finite numbers, or null.
        serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
    }

    /// A figure over layers: measured as a line with its band, predicted as a dashed one.
    pub fn figure(&self, plot: ProbePlot) -> Figure {
        let (title, quantities, scale): (_, &[Quantity], _) = match plot {
            ProbePlot::Cosine => ("Token cosine with depth", &[COSINE], Scale::Linear),
            ProbePlot::Norms => ("Size of the residual stream with depth", &[SIZE], Scale::Log),
            ProbePlot::Gradients => (
                "Gradient norms of each attention by layer",
                &[QUERY, KEY, VALUE],
                Scale::Log,
            ),
            ProbePlot::Attention => (
                "Distance of attention from uniform by layer",
                &[DISTANCE],
                Scale::Log,
            ),
        };
        let label = match quantities {
            [one] => one.name,
            _ => "gradient norm",
        };
        let y = match scale {
            Scale::Linear => Axis::linear(label).with_range(0.0, 1.0),
            Scale::Log => Axis::log(label),
        };
        let rows = self.rows();
        let x = match plot {
            ProbePlot::Cosine | ProbePlot::Norms => "layers passed",
            ProbePlot::Gradients | ProbePlot::Attention => "layer",
        };
        let mut curves = Curves::new(title, Axis::integer(x), y);
        for (i, quantity) in quantities.iter().enumerate() {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.quantity == quantity.name).collect();
            let of = |value: fn(&Row) -> f64| rows.iter().map(|row| value(row)).collect::<Vec<_>>();
            let x = of(|row| row.place.on_axis());
            let colour = Colour::Category(i);
            if rows.iter().any(|row| row.measured.is_some()) {
                let mean = of(|row| row.measured.map_or(f64::NAN, |m| m.mean));
                let low = of(|row| row.measured.map_or(f64::NAN, |m| m.low));
                let high = of(|row| row.measured.map_or(f64::NAN, |m| m.high));
                let name = format!("{} measured", quantity.short);
                curves = curves.with(Series::new(name, &x, &mean, colour).with_band(&low, &high));
            }
            if rows.iter().any(|row| row.predicted.is_some()) {
                let predicted = of(|row| row.predicted.unwrap_or(f64::NAN));
                let name = format!("{} predicted", quantity.short);
                curves = curves.with(Series::new(name, &x, &predicted, colour).dashed());
            }
        }
        curves.figure()
    }
}

fn attention_rows(
    layer: usize,
    predicted: Option<&LayerPrediction>,
    measured: Option<&LayerSurvey>,
) -> Vec<Row> {
    let row = |quantity: Quantity, predicted: Option<Result<f64, String>>, measured| {
        let (predicted, reason) = match predicted {
            None => (None, None),
            Some(Ok(value)) => (Some(value), None),
            Some(Err(reason)) => (None, Some(reason)),
        };
        Row {
            place: Place::Layer(layer),
            quantity: quantity.name,
            predicted,
            reason,
            measured,
        }
    };
    let text = |value: &Result<f64, NoClosedForm>| value.clone().map_err(|reason| reason.to_string());
    let theory = |of: fn(&AttentionGradients) -> f64| {
        predicted.map(|p| match &p.gradients {
            Ok(gradients) => Ok(of(gradients).sqrt()),
            Err(reason) => Err(reason.to_string()),
        })
    };
    let gradient = |of: fn(&GradientSurvey) -> Interval| {
        let gradients = measured.and_then(|measured| measured.gradients.as_ref())?;
        Some(map(of(gradients), f64::sqrt))
    };
    vec![
        row(
            ENTROPY,
            predicted.map(|p| text(&p.entropy)),
            measured.map(|m| m.entropy),
        ),
        row(
            DISTANCE,
            predicted.map(|p| text(&p.distance)),
            measured.map(|m| m.distance),
        ),
        row(QUERY, theory(|g| g.query), gradient(|g| g.query)),
        row(KEY, theory(|g| g.key), gradient(|g| g.key)),
        row(VALUE, theory(|g| g.value), gradient(|g| g.value)),
        row(WHOLE_QUERY, None, gradient(|g| g.whole_query)),
        row(WHOLE_KEY, None, gradient(|g| g.whole_key)),
        row(WHOLE_VALUE, None, gradient(|g| g.whole_value)),
    ]
}

/// An interval under a function that grows.
fn map(interval: Interval, f: impl Fn(f64) -> f64) -> Interval {
    Interval {
        mean: f(interval.mean),
        low: f(interval.low),
        high: f(interval.high),
    }
}

fn with_range(interval: &Interval) -> String {
    if interval.low == interval.high {
        return short(interval.mean);
    }
    format!(
        "{} ({} to {})",
        short(interval.mean),
        short(interval.low),
        short(interval.high)
    )
}

/// Three digits that count.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e4).contains(&size) {
        format!("{value:.2e}")
    } else if size < 1.0 {
        format!("{value:.3}")
    } else {
        let digits = (2 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.digits$}")
    }
}
