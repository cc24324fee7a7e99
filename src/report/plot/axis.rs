//! Axes: from data to pixels, and where the ticks stand.

/// How an axis spreads its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are equal ratios. Values that are not positive are left out.
    Log,
}

/// An axis as a user describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) range: Option<(f64, f64)>,
    pub(super) integer: bool,
}

impl Axis {
    /// A linear axis with a label, which names the unit where there is one.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// A logarithmic axis with a label.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Log,
            ..Self::default()
        }
    }

    /// An axis of whole numbers, such as layers: its ticks are whole too.
    pub fn integer(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            integer: true,
            ..Self::default()
        }
    }

    /// Shows at least these values, whatever the data.
    pub fn with_range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The values that the axis can show.
    pub(super) fn accepts(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// Fits the axis to the data.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>, max_ticks: usize) -> Fitted {
        let asked = self.range.into_iter().flat_map(|(low, high)| [low, high]);
        let (low, high) = values
            .chain(asked)
            .filter(|&v| self.accepts(v))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        let (low, high) = if low <= high {
            (low, high)
        } else {
            self.empty_range()
        };
        match self.scale {
            Scale::Linear => fit_linear(low, high, max_ticks, self.integer),
            Scale::Log => fit_log(low, high, max_ticks),
        }
    }

    fn empty_range(&self) -> (f64, f64) {
        match self.scale {
            Scale::Linear => (0.0, 1.0),
            Scale::Log => (1.0, 10.0),
        }
    }
}

/// An axis with its ends and ticks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    scale: Scale,
    low: f64,
    high: f64,
    /// Values and labels.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Fitted {
    /// Where a value lies: 0 at the low end and 1 at the high one. NaN for what the axis cannot show.
    pub(super) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Log => f64::NAN,
        }
    }

    pub(super) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

fn fit_linear(mut low: f64, mut high: f64, max_ticks: usize, integer: bool) -> Fitted {
    if high - low <= f64::EPSILON * low.abs().max(high.abs()) {
        let room = if integer || low == 0.0 {
            0.5
        } else {
            low.abs() * 0.1
        };
        (low, high) = (low - room, high + room);
    }
    let mut step = nice_step((high - low) / max_ticks.max(2) as f64);
    if integer {
        step = step.max(1.0).round();
        // Whole numbers sit on the ticks; the ends leave room for half a step of data.
        let pad = ((high - low) * 0.02).min(0.5);
        (low, high) = (low - pad, high + pad);
    } else {
        // The ends are ticks too where that costs little room.
        let (floor, ceil) = ((low / step).floor() * step, (high / step).ceil() * step);
        let slack = 0.25 * step;
        low = if low - floor <= slack {
            floor
        } else {
            low - 0.05 * step
        };
        high = if ceil - high <= slack {
            ceil
        } else {
            high + 0.05 * step
        };
    }
    let (first, last) = (
        (low / step - 1e-9).ceil() as i64,
        (high / step + 1e-9).floor() as i64,
    );
    let ticks = (first..=last)
        .map(|i| i as f64 * step)
        .map(|v| (v, linear_label(v, step)))
        .collect();
    Fitted {
        scale: Scale::Linear,
        low,
        high,
        ticks,
    }
}

fn fit_log(low: f64, high: f64, max_ticks: usize) -> Fitted {
    // Half a tenth of a decade of room, and a whole decade at least.
    let (mut from, mut to) = (low.log10() - 0.05, high.log10() + 0.05);
    if to - from < 1.0 {
        let middle = (from + to) / 2.0;
        (from, to) = (middle - 0.5, middle + 0.5);
    }
    let (low, high) = (10f64.powf(from), 10f64.powf(to));
    let decades = to - from;
    let every = (decades / max_ticks.max(2) as f64).ceil().max(1.0) as i32;
    let mantissas: &[f64] = if decades <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    for exponent in (from.floor() as i32)..=(to.ceil() as i32) {
        if exponent.rem_euclid(every) != 0 {
            continue;
        }
        for mantissa in mantissas {
            let value = mantissa * 10f64.powi(exponent);
            if (low..=high).contains(&value) {
                ticks.push((value, quantity(value)));
            }
        }
    }
    Fitted {
        scale: Scale::Log,
        low,
        high,
        ticks,
    }
}

/// The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `raw`.
fn nice_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|&step| step >= raw * (1.0 - 1e-9))
        .unwrap_or(raw)
}

fn linear_label(value: f64, step: f64) -> String {
    if value.abs() >= 10_000.0 || (value == 0.0 && step >= 5_000.0) {
        return quantity(value);
    }
    // As many decimals as the step has, no more.
    let decimals = (0..=12).find(|&d| {
        let scaled = step * 10f64.powi(d);
        (scaled - scaled.round()).abs() < 1e-6
    });
    match decimals {
        Some(d) => format!("{:.*}", d as usize, value + 0.0),
        None => format!("{value:e}"),
    }
}

/// A size as people say it: 340M parameters, 20k steps.
pub(super) fn quantity(value: f64) -> String {
    let size = value.abs();
    for (unit, suffix) in [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")] {
        if size >= unit * (1.0 - 1e-9) {
            return format!("{}{suffix}", short(value / unit));
        }
    }
    if size == 0.0 || size >= 1e-3 {
        short(value)
    } else {
        format!("{value:.0e}")
    }
}

/// Four significant digits at most.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(fitted: &Fitted) -> Vec<&str> {
        fitted.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers() {
        let axis = Axis::linear("").fit([-0.37, 0.52].into_iter(), 5);
        assert_eq!(labels(&axis), ["-0.4", "-0.2", "0.0", "0.2", "0.4"]);
        let steps = Axis::linear("").fit([0.0, 200_000.0].into_iter(), 5);
        assert_eq!(labels(&steps), ["0", "50k", "100k", "150k", "200k"]);
    }

    #[test]
    fn layers_have_whole_ticks_only() {
        let axis = Axis::integer("layer").fit([0.0, 3.0].into_iter(), 8);
        assert_eq!(labels(&axis), ["0", "1", "2", "3"]);
        let one = Axis::integer("layer").fit([0.0].into_iter(), 8);
        assert_eq!(labels(&one), ["0"]);
    }

    #[test]
    fn log_ticks_read_as_quantities_and_places_are_ratios() {
        let axis = Axis::log("parameters").fit([1e6, 1e11].into_iter(), 6);
        assert_eq!(labels(&axis), ["1M", "10M", "100M", "1B", "10B", "100B"]);
        let (a, b, c) = (axis.place(1e7), axis.place(1e8), axis.place(1e9));
        assert!((b - a - (c - b)).abs() < 1e-12);
        assert!(axis.place(-1.0).is_nan());
    }

    #[test]
    fn no_data_and_equal_data_still_make_an_axis() {
        for axis in [Axis::linear(""), Axis::log("")] {
            for values in [vec![], vec![f64::NAN], vec![0.25, 0.25]] {
                let fitted = axis.fit(values.into_iter(), 5);
                assert!(fitted.place(0.25).is_finite());
                assert!(!fitted.ticks.is_empty());
            }
        }
    }
}
