use burn::module::Param;
use burn::nn::Linear;
use burn::nn::attention::MultiHeadAttention;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

use super::{AttentionInit, Matrix, Projections, Weights, draw};
use crate::attention::{AttentionError, SelfAttention};
use crate::bilinear::Heads;
use crate::random::Rng;

/// Draws the weights of an existing layer anew; its biases become 0.
///
/// # Errors
/// As [`draw`].
pub fn initialise<B: Backend>(
    attention: &mut SelfAttention<B>,
    init: &AttentionInit,
    std: f64,
    rng: &mut Rng,
) -> Result<(), AttentionError> {
    let projections = Projections {
        d_model: attention.query.weight.dims()[0],
        heads: attention.heads(),
        head_dim: attention.head_dim(),
    };
    let weights = draw(init, &projections, std, rng)?;
    let linears = [
        &mut attention.query,
        &mut attention.key,
        &mut attention.value,
        &mut attention.output,
    ];
    set_all(linears, weights);
    Ok(())
}

/// The same for Burn's own multi-head attention.
///
/// # Errors
/// As [`draw`].
///
/// # Examples
/// ```
/// # use wqk::backend::{BackendKind, with_backend};
/// # with_backend!(BackendKind::default_compiled().unwrap(), None, |B, device| {
/// use burn::nn::attention::MultiHeadAttentionConfig;
/// use wqk::attention::{SymmetricInit, init};
/// use wqk::bilinear::BilinearForm;
/// use wqk::random;
///
/// let mut mha = MultiHeadAttentionConfig::new(16, 4).init::<B>(&device);
/// let mut rng = random::stream(1, ["init"]);
/// init::initialise_burn(&mut mha, &SymmetricInit::tied().into(), 0.02, &mut rng)?;
/// assert!(BilinearForm::try_from(&mha)?.symmetry()? > 0.9999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn initialise_burn<B: Backend>(
    attention: &mut MultiHeadAttention<B>,
    init: &AttentionInit,
    std: f64,
    rng: &mut Rng,
) -> Result<(), AttentionError> {
    let projections = Projections {
        d_model: attention.d_model,
        heads: Heads::multi(attention.n_heads),
        head_dim: attention.d_k,
    };
    let weights = draw(init, &projections, std, rng)?;
    let linears = [
        &mut attention.query,
        &mut attention.key,
        &mut attention.value,
        &mut attention.output,
    ];
    set_all(linears, weights);
    Ok(())
}

fn set_all<B: Backend>(linears: [&mut Linear<B>; 4], weights: Weights) {
    let Weights {
        query,
        key,
        value,
        output,
    } = weights;
    for (linear, matrix) in linears.into_iter().zip([query, key, value, output]) {
        set(linear, matrix);
    }
}

/// Sets the weight and clears the bias; both stay the parameters that an optimiser may know already.
fn set<B: Backend>(linear: &mut Linear<B>, matrix: Matrix) {
    let device = linear.weight.device();
    let weight = Tensor::from_data(TensorData::new(matrix.values, matrix.shape), &device);
    linear.weight = Param::initialized(linear.weight.id, weight.require_grad());
    if let Some(bias) = &mut linear.bias {
        let zeros = Tensor::zeros([matrix.shape[1]], &device);
        *bias = Param::initialized(bias.id, zeros.require_grad());
    }
}
