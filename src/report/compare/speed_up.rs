//! The loss of a run smoothed, and how much sooner one run reaches the loss of another.

/// The training loss of a run in means over windows of updates that follow each other.
///
/// The structure paper's losses are the means that its trainer logged, over 200 of 200,000 updates each,
/// without further smoothing: from these points its Table 1 comes out to the last digit. Here a window is
/// the same thousandth of the run, but of at least 20 updates, or a twentieth of the run where that is
/// fewer. Windows end with the run as it is planned, so that runs that are on their way have the same; the first may
/// be shorter, and what comes after the last whole one is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct SmoothLoss {
    /// Updates at the end of each window.
    pub steps: Vec<usize>,
    /// Mean loss in it.
    pub loss: Vec<f64>,
    /// Updates in a window.
    pub window: usize,
}

impl SmoothLoss {
    /// Of the losses of updates 1, 2, 3, … of a run that is to have `planned` of them.
    pub fn of(losses: &[f64], planned: usize) -> Self {
        let window = window(planned);
        let first = planned % window;
        let (mut steps, mut means) = (Vec::new(), Vec::new());
        let mut from = 0;
        for to in (first..=losses.len()).step_by(window).filter(|&to| to > 0) {
            let part = &losses[from..to];
            steps.push(to);
            means.push(part.iter().sum::<f64>() / part.len() as f64);
            from = to;
        }
        Self {
            steps,
            loss: means,
            window,
        }
    }

    /// Points that are means already, such as published ones.
    pub fn from_points(steps: &[usize], loss: &[f64]) -> Self {
        Self {
            window: steps.first().copied().unwrap_or(1),
            steps: steps.to_vec(),
            loss: loss.to_vec(),
        }
    }

    /// The loss at the end.
    pub fn last(&self) -> Option<f64> {
        self.loss.last().copied()
    }

    /// The share of the updates that this run saves until it first reaches the final loss of another of the
    /// same length; `None` where it never does.
    ///
    /// # Formula
    /// `(T − t)/T`, with T the updates of the run and t those after which the smoothed loss is first at or
    /// below the other's last.
    ///
    /// # Source
    /// The structure paper, Table 1, which counts in epochs.
    pub fn speed_up(&self, baseline: &Self) -> Option<f64> {
        let goal = baseline.last()?;
        let total = *baseline.steps.last()?;
        let reached = self.loss.iter().position(|&loss| loss <= goal)?;
        Some((total as f64 - self.steps[reached] as f64) / total as f64)
    }
}

/// The same on evaluations, `(updates done, loss)`, between which the loss is taken to be linear. Evaluations
/// are on the same held-out data each time, so that their first crossing is none of noise.
pub(super) fn held_out_speed_up(run: &[(usize, f64)], baseline: &[(usize, f64)]) -> Option<f64> {
    let &(total, goal) = baseline.last()?;
    let reached = run.iter().position(|&(_, loss)| loss <= goal)?;
    let (step, loss) = run[reached];
    let at = match reached.checked_sub(1).map(|before| run[before]) {
        Some((before, higher)) => before as f64 + (step - before) as f64 * (higher - goal) / (higher - loss),
        None => step as f64,
    };
    Some((total as f64 - at) / total as f64)
}

fn window(planned: usize) -> usize {
    const LEAST: usize = 20;
    planned.div_ceil(1000).max(LEAST.min(planned / 20)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_with_the_run() {
        assert_eq!(
            [200_000, 20_000, 800, 100, 10, 1].map(window),
            [200, 20, 20, 5, 1, 1]
        );
        let smooth = SmoothLoss::of(&[9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0, 5.0, 5.0, 0.0], 102);
        assert_eq!(smooth.steps, [2, 7, 12]);
        assert_eq!(smooth.loss, [9.0, 3.0, 4.0]);
        // On its way, with one update more.
        let mut more = vec![9.0; 2];
        more.extend([1.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
        assert_eq!(SmoothLoss::of(&more, 102).steps, [2, 7]);
        assert_eq!(SmoothLoss::of(&[], 100).last(), None);
    }

    /// Loss `1 + e^{−k t}`: a run with twice the rate reaches the other's end in half the updates. The
    /// window of a thousandth is the resolution, and what the means lose by the curvature within is less.
    #[test]
    fn twice_the_rate_saves_half() {
        let run = |rate: f64| {
            let losses: Vec<f64> = (1..=50_000).map(|t| 1.0 + (-rate * f64::from(t)).exp()).collect();
            SmoothLoss::of(&losses, 50_000)
        };
        let (slow, fast) = (run(5e-5), run(1e-4));
        let saved = fast.speed_up(&slow).unwrap();
        assert!((saved - 0.5).abs() <= 2e-3, "{saved}");
        assert_eq!(slow.speed_up(&fast), None);
        // Itself is reached at its end, which saves nothing.
        assert_eq!(slow.speed_up(&slow), Some(0.0));
    }

    #[test]
    fn evaluations_are_joined_by_lines() {
        let baseline = [(50, 4.0), (100, 2.5)];
        // From 3 at 50 to 2 at 100 by way of 2.5 at 75: a quarter is saved.
        assert_eq!(held_out_speed_up(&[(50, 3.0), (100, 2.0)], &baseline), Some(0.25));
        assert_eq!(held_out_speed_up(&[(50, 2.5), (100, 2.6)], &baseline), Some(0.5));
        assert_eq!(held_out_speed_up(&[(50, 3.0), (100, 2.6)], &baseline), None);
        assert_eq!(held_out_speed_up(&baseline, &baseline), Some(0.0));
        assert_eq!(held_out_speed_up(&[], &baseline), None);
    }

    /// The speed-ups and losses that the paper prints, from its own loss curves.
    #[test]
    fn table_1_from_the_published_curves() {
        let Some(curves) = super::super::published::tests::shared() else {
            return;
        };
        for (model, data, baseline, symmetric, saved) in [
            ("bert_small", "jigsaw", 2.782, 2.758, 26.0),
            ("bert_small", "wikipedia", 0.984, 0.812, 73.0),
            ("bert_small", "red_pajama", 1.106, 0.907, 69.0),
            ("bert", "jigsaw", 1.419, 1.430, 0.0),
            ("bert", "wikipedia", 0.256, 0.247, 20.0),
            ("bert", "red_pajama", 0.297, 0.274, 35.0),
        ] {
            let of = |end: &str| {
                let curve = &curves.loss[&format!("{model}--encoder--{data}{end}")];
                SmoothLoss::from_points(&curve.steps, &curve.loss)
            };
            let (without, with) = (of(""), of("--symmetric-init"));
            // Three digits are printed; one of the twelve losses is cut off there, not rounded.
            assert!(
                (without.last().unwrap() - baseline).abs() <= 1e-3,
                "{model} {data}"
            );
            assert!((with.last().unwrap() - symmetric).abs() <= 1e-3, "{model} {data}");
            let got = 100.0 * with.speed_up(&without).unwrap_or(0.0);
            assert!(
                (got - saved).abs() <= 0.5,
                "{model} {data}: {got} against {saved}"
            );
        }
    }
}
