//! Numbers as people read them.

use crate::bilinear::Summary;

/// A score with its sign, to three decimals: `+0.512`, `-0.080`; a dash where there is none.
pub(super) fn score(value: Option<f64>) -> String {
    signed(value, 3)
}

/// A number with its sign and so many decimals.
pub(super) fn signed(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else {
        return "–".into();
    };
    let text = format!("{value:+.decimals$}");
    // Rounding leaves "-0.000" of a small negative number, whose sign says nothing.
    if text[1..].bytes().all(|b| matches!(b, b'0' | b'.')) {
        text[1..].to_owned()
    } else {
        text
    }
}

/// Median and quartiles: `+0.512 [+0.430, +0.570]`.
pub(super) fn spread(summary: Option<Summary>) -> String {
    summary.map_or_else(
        || "–".into(),
        |s| {
            format!(
                "{} [{}, {}]",
                score(Some(s.median)),
                score(Some(s.q25)),
                score(Some(s.q75))
            )
        },
    )
}

/// A count in words of thousands: `109.5M`.
pub(super) fn quantity(count: u64) -> String {
    let value = count as f64;
    for (unit, suffix) in [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")] {
        if value >= unit {
            return format!("{:.1}{suffix}", value / unit);
        }
    }
    count.to_string()
}

/// Values as a row of blocks, low to high, at most `width` of them: more are averaged by neighbours.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let n = values.len().min(width.max(1));
    let bins: Vec<f64> = (0..n)
        .map(|i| {
            let bin = &values[i * values.len() / n..(i + 1) * values.len() / n];
            bin.iter().sum::<f64>() / bin.len() as f64
        })
        .collect();
    let low = bins.iter().copied().fold(f64::INFINITY, f64::min);
    let high = bins.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let block = |v: f64| {
        let part = if high > low { (v - low) / (high - low) } else { 0.5 };
        BLOCKS[((part * 8.0) as usize).min(7)]
    };
    bins.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_have_signs_and_zero_has_none() {
        let shown = [Some(0.5124), Some(-0.08), Some(-0.0001), None, Some(f64::NAN)].map(score);
        assert_eq!(shown, ["+0.512", "-0.080", "0.000", "–", "–"]);
    }

    #[test]
    fn sparklines_fit_their_width() {
        assert_eq!(sparkline(&[0.0, 1.0, 0.5], 10), "▁█▅");
        assert_eq!(sparkline(&[0.0, 0.0, 1.0, 1.0], 2), "▁█");
        assert_eq!(sparkline(&[], 5), "");
        assert_eq!(sparkline(&[0.3, 0.3], 5), "▅▅");
    }

    #[test]
    fn counts() {
        assert_eq!(
            [999, 1_500, 109_482_240, 8_030_261_248].map(quantity),
            ["999", "1.5k", "109.5M", "8.0B"]
        );
    }
}
