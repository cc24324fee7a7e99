//! Scores of a model in memory, by the same report as a checkpoint's.

use burn::module::Module;
use burn::tensor::backend::Backend;
use sha2::{Digest, Sha256};

use super::{LayerReport, ModelReport, Settings, summarise};
use crate::attention::HasAttention;
use crate::bilinear::BilinearError;

/// Scores every self-attention layer that a module shows.
///
/// Of the settings γ and `per_head` apply; the others are about checkpoints.
///
/// # Errors
/// [`BilinearError`] of the first layer that cannot be scored.
///
/// # Examples
/// ```
/// use wqk::attention::{AttentionLayer, HasAttention, SelfAttention, SelfAttentionConfig};
/// use wqk::backend::Flex;
/// use wqk::checkpoint::{Settings, score_module};
///
/// #[derive(burn::module::Module, Debug)]
/// struct Model<B: burn::tensor::backend::Backend> {
///     attention: SelfAttention<B>,
/// }
///
/// impl<B: burn::tensor::backend::Backend> HasAttention<B> for Model<B> {
///     fn attention_layers(&self) -> Vec<AttentionLayer<'_, B>> {
///         vec![AttentionLayer {
///             stack: "encoder".into(),
///             index: 0,
///             module: "attention".into(),
///             attention: (&self.attention).into(),
///         }]
///     }
/// }
///
/// let config = SelfAttentionConfig::new(16, 4);
/// let attention = config.init::<Flex>(&Default::default(), &mut wqk::random::stream(1, ["init"]))?;
/// let report = score_module("mine", &Model { attention }, &Settings::default())?;
/// assert_eq!(report.layers[0].scores.n_heads, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn score_module<B: Backend, M: Module<B> + HasAttention<B>>(
    name: &str,
    model: &M,
    settings: &Settings,
) -> Result<ModelReport, BilinearError> {
    let mut hash = Sha256::new();
    let layers = model
        .attention_layers()
        .into_iter()
        .map(|layer| {
            let form = layer.attention.form()?;
            for weight in [form.w_q(), form.w_k()] {
                let values = weight.into_data().convert::<f32>();
                hash.update(values.as_bytes());
            }
            Ok(LayerReport {
                stack: layer.stack.parse().unwrap_or_default(),
                index: layer.index,
                module: layer.module,
                repeats: 1,
                scores: form.measure(settings.gamma, settings.per_head)?,
                folded_norm: None,
                as_published: None,
                significance: None,
            })
        })
        .collect::<Result<Vec<_>, BilinearError>>()?;
    Ok(ModelReport {
        name: name.to_owned(),
        step: None,
        family: "module".into(),
        parameters: model.num_params() as u64,
        digest: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        summary: summarise(&layers),
        layers,
        notes: Vec::new(),
    })
}
