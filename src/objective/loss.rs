//! The loss, and the rows that it needs.

use burn::tensor::activation::log_softmax;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor};

/// The mean cross entropy of the predictions, in nats.
///
/// # Shape
/// `logits` is `[n_predicted, vocabulary]`, `targets` is `[n_predicted]`, the result `[1]`.
///
/// The logarithm of the softmax is taken with the largest logit subtracted, so large logits do not
/// overflow.
pub fn loss<B: Backend>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    log_softmax(logits, 1)
        .gather(1, targets.unsqueeze_dim(1))
        .mean()
        .neg()
}

/// The mean cross entropy of the predictions with targets that are distributions, in nats: of mixed images, or of
/// smoothed labels.
///
/// # Shape
/// `logits` and `targets` are `[n_predicted, n_classes]`, the rows of `targets` sum to 1, the result is `[1]`.
pub fn soft_loss<B: Backend>(logits: Tensor<B, 2>, targets: Tensor<B, 2>) -> Tensor<B, 1> {
    (log_softmax(logits, 1) * targets).sum_dim(1).mean().neg()
}

/// The hidden states at the positions that predict something.
///
/// # Shape
/// `hidden` is `[batch, n, d_model]`, `positions` is `[n_predicted]` and counts through the batch (`b·n + i`,
/// as [`Prepared::positions`](super::Prepared::positions)), the result is `[n_predicted, d_model]`.
pub fn select_positions<B: Backend>(hidden: Tensor<B, 3>, positions: Tensor<B, 1, Int>) -> Tensor<B, 2> {
    hidden.flatten::<2>(0, 1).select(0, positions)
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;

    use super::*;
    use crate::objective::{ObjectiveMode, Vocabulary};

    fn on<B: Backend>(device: &B::Device) {
        let tensor = |rows: [[f32; 3]; 2]| Tensor::<B, 2>::from_data(TensorData::from(rows), device);
        let targets = |ids: [i32; 2]| Tensor::<B, 1, Int>::from_data(TensorData::from(ids), device);
        let value = |logits, ids| {
            loss(tensor(logits), targets(ids))
                .into_data()
                .iter::<f32>()
                .next()
                .unwrap()
        };

        // softmax(ln 1, ln 2, ln 5) = (1, 2, 5)/8 and an even row: the loss is (ln(8/5) + ln 3)/2. An f32
        // logarithm near 1 is good to 1e-7; 1e-6 leaves room for the sums.
        let (l2, l5) = (2f32.ln(), 5f32.ln());
        let expected = ((8.0f32 / 5.0).ln() + 3f32.ln()) / 2.0;
        let got = value([[0.0, l2, l5], [4.0, 4.0, 4.0]], [2, 1]);
        assert!((got - expected).abs() < 1e-6, "{got} against {expected}");

        // The same with targets as distributions, and one that is even over the three: the mean of −ln p.
        let soft = |targets| {
            soft_loss(tensor([[0.0, l2, l5], [4.0, 4.0, 4.0]]), tensor(targets))
                .into_data()
                .iter::<f32>()
                .next()
                .unwrap()
        };
        let got = soft([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]);
        assert!((got - expected).abs() < 1e-6, "{got} against {expected}");
        let even = (3.0 * 8f32.ln() - l2 - l5) / 3.0;
        let got = soft([[1.0 / 3.0; 3], [0.5, 0.25, 0.25]]);
        assert!((got - (even + 3f32.ln()) / 2.0).abs() < 1e-6, "{got}");

        // Logits whose exponentials overflow: ln(1 + 2e⁻¹⁰⁰) is 0, and the wrong target costs the gap.
        let got = value([[1000.0, 900.0, 900.0], [1000.0, 900.0, 900.0]], [0, 1]);
        assert!((got - 50.0).abs() < 1e-4, "{got}");

        // Rows of the second sequence lie after those of the first.
        let hidden = Tensor::<B, 3>::from_data(
            TensorData::from([[[0f32, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]),
            device,
        );
        let rows = select_positions(hidden, targets([1, 2])).into_data();
        assert_eq!(rows.iter::<f32>().collect::<Vec<_>>(), [2.0, 3.0, 4.0, 5.0]);
    }

    /// Two tokens with a known joint law, by hand, and a model that knows its conditionals: the
    /// pseudo-likelihood of a pair is the product of both conditionals, which over all pairs sums to
    /// 8/15 + 1/20 + 2/15 + 9/20 = 7/6; next-token prediction, given the first, sums to 1.
    fn pairs_on<B: Backend>(device: &B::Device) {
        const MASK: u32 = 0;
        let joint = |first: u32, second: u32| match (first, second) {
            (1, 1) => 0.4,
            (1, 2) => 0.1,
            (2, 1) => 0.2,
            _ => 0.3f32,
        };
        let vocabulary = Vocabulary {
            mask: Some(MASK),
            ..Vocabulary::new(3)
        };
        // The likelihood of a pair under a mode: the exponential of minus the summed loss.
        let likelihood = |mode: ObjectiveMode, first: u32, second: u32| {
            let mut rng = crate::random::stream(0, ["unused"]);
            let prepared = mode
                .prepare(&[first, second], 1, 2, &vocabulary, &mut rng)
                .unwrap();
            let logits: Vec<f32> = prepared
                .positions
                .iter()
                .flat_map(|&position| {
                    let sequence = &prepared.inputs[position as usize / 2 * 2..][..2];
                    let weights = match *sequence {
                        [MASK, second] => [joint(1, second), joint(2, second)],
                        [first, _] => [joint(first, 1), joint(first, 2)],
                        _ => unreachable!(),
                    };
                    [f32::MIN, weights[0].ln(), weights[1].ln()]
                })
                .collect();
            let n = prepared.targets.len();
            let targets: Vec<i32> = prepared.targets.iter().map(|&target| target as i32).collect();
            let logits = Tensor::<B, 2>::from_data(TensorData::new(logits, [n, 3]), device);
            let targets = Tensor::<B, 1, Int>::from_data(TensorData::new(targets, [n]), device);
            let mean = loss(logits, targets).into_data().iter::<f32>().next().unwrap();
            (-mean * n as f32).exp()
        };
        let pseudo = ObjectiveMode::pseudo_likelihood();
        let causal = ObjectiveMode::autoregressive();
        // Single precision, a handful of operations.
        let close =
            |got: f32, expected: f32| assert!((got - expected).abs() < 1e-6, "{got} against {expected}");
        close(likelihood(pseudo, 1, 2), 0.25 * 0.2);
        close(likelihood(causal, 1, 2), 0.2);
        let sum = |mode, firsts: &[u32]| -> f32 {
            let pairs = firsts.iter().flat_map(|&first| [(first, 1), (first, 2)]);
            pairs.map(|(first, second)| likelihood(mode, first, second)).sum()
        };
        close(sum(pseudo, &[1, 2]), 7.0 / 6.0);
        assert!(!pseudo.is_normalised());
        close(sum(causal, &[1]), 1.0);
        close(sum(causal, &[2]), 1.0);
        assert!(causal.is_normalised());
    }

    #[cfg(feature = "flex")]
    #[test]
    fn closed_forms_on_flex() {
        on::<crate::backend::Flex>(&Default::default());
        pairs_on::<crate::backend::Flex>(&Default::default());
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn closed_forms_on_ndarray() {
        on::<crate::backend::NdArray>(&Default::default());
        pairs_on::<crate::backend::NdArray>(&Default::default());
    }
}
