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

    #[cfg(feature = "flex")]
    #[test]
    fn closed_forms_on_flex() {
        on::<crate::backend::Flex>(&Default::default());
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn closed_forms_on_ndarray() {
        on::<crate::backend::NdArray>(&Default::default());
    }
}
