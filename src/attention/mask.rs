use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Element, Tensor, TensorData};

/// Which keys a query may see.
///
/// No mask (`None` where one is taken) is bidirectional attention: every position sees every other.
///
/// Hidden keys get a large negative finite logit, which the softmax turns into a weight of exactly 0. A query
/// that may see no key at all has weights of 0, and so an output of the output projection's bias alone; it sends
/// no gradient back.
#[derive(Debug, Clone)]
pub struct AttentionMask<B: Backend> {
    /// True where the key is hidden from the query, `[1 or batch, n, n]`.
    hidden: Tensor<B, 3, Bool>,
    /// What is added to the logits, `[1 or batch, n, n]`.
    bias: Tensor<B, 3>,
    /// 0 for queries that see nothing and 1 for the others, `[1 or batch, n, 1]`, where there are such queries.
    sighted: Option<Tensor<B, 3>>,
}

impl<B: Backend> AttentionMask<B> {
    /// Each position sees itself and those before it.
    pub fn causal(n: usize, device: &B::Device) -> Self {
        Self::from_fn(n, |query, key| key <= query, device)
    }

    /// Position `query` sees position `key` where `sees(query, key)`, in every sequence alike.
    pub fn from_fn(n: usize, sees: impl Fn(usize, usize) -> bool, device: &B::Device) -> Self {
        let hidden: Vec<bool> = (0..n * n).map(|i| !sees(i / n, i % n)).collect();
        Self::from_hidden(Tensor::from_data(TensorData::new(hidden, [1, n, n]), device))
    }

    /// Hides the padded keys of each sequence from all its queries.
    ///
    /// # Shape
    /// - `padded`: `[batch, n]`, true where a position holds padding
    pub fn key_padding(padded: Tensor<B, 2, Bool>) -> Self {
        let [batch, n] = padded.dims();
        Self::from_hidden(padded.reshape([batch, 1, n]).expand([batch, n, n]))
    }

    /// An arbitrary mask.
    ///
    /// # Shape
    /// - `hidden`: `[1 or batch, n, n]`, queries by keys, true where the key is hidden from the query
    pub fn from_hidden(hidden: Tensor<B, 3, Bool>) -> Self {
        let device = hidden.device();
        let bias = Tensor::zeros(hidden.shape(), &device).mask_fill(hidden.clone(), fill::<B>());
        let blind = hidden.clone().all_dim(2);
        let any_blind = blind.clone().any().into_data().iter::<bool>().any(|b| b);
        let sighted = any_blind.then(|| blind.bool_not().float());
        Self {
            hidden,
            bias,
            sighted,
        }
    }

    /// Hides what either mask hides.
    ///
    /// # Panics
    /// Where the masks are for different lengths, or for different numbers of sequences (other than 1).
    pub fn and(self, other: Self) -> Self {
        let [a, n, m] = self.hidden.dims();
        let shape = [a.max(other.hidden.dims()[0]), n, m];
        Self::from_hidden(self.hidden.expand(shape).bool_or(other.hidden.expand(shape)))
    }

    /// True where the key is hidden from the query, `[1 or batch, n, n]`.
    pub fn hidden(&self) -> Tensor<B, 3, Bool> {
        self.hidden.clone()
    }

    /// Hides keys in logits `[batch, heads, n, n]`.
    pub(super) fn apply(&self, logits: Tensor<B, 4>) -> Tensor<B, 4> {
        let [batch, heads, n, m] = logits.dims();
        let masks = self.bias.dims()[0];
        if masks == 1 {
            // Flat, so that the mask broadcasts along the first axis alone, which CPU backends do fast.
            let bias = self.bias.clone().reshape([1, n * m]);
            (logits.reshape([batch * heads, n * m]) + bias).reshape([batch, heads, n, m])
        } else {
            logits + self.bias.clone().reshape([masks, 1, n, m])
        }
    }

    /// Takes the weights away from queries that see nothing, in weights `[batch, heads, n, n]`.
    pub(super) fn blank(&self, weights: Tensor<B, 4>) -> Tensor<B, 4> {
        match &self.sighted {
            None => weights,
            Some(sighted) => {
                let [masks, n, _] = sighted.dims();
                weights * sighted.clone().reshape([masks, 1, n, 1])
            }
        }
    }
}

/// Half of the lowest number of the backend's floats: far below any logit, and finite with one added.
fn fill<B: Backend>() -> f64 {
    let lowest = B::FloatElem::dtype()
        .finfo()
        .map_or(f64::from(f32::MIN), |info| info.min);
    lowest / 2.0
}
