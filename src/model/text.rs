//! The text transformer: BERT's layout by default, encoder or decoder by the mask that it is given.

use burn::module::{Module, Param};
use burn::nn::{Embedding, LayerNorm, LayerNormConfig, Linear};
use burn::tensor::backend::Backend;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::block::{Block, attention_path};
use super::config::{Activation, ModelError, NormPlacement, TextTransformerConfig};
use super::linear::normal_linear;
use super::size::{WEIGHT, check_memory};
use super::temperature::InverseTemperature;
use crate::attention::{AttentionLayer, AttentionMask, AttentionTrace, HasAttention, Noise, dropout};
use crate::backend::Precision;
use crate::random;

/// BERT's map before the vocabulary: dense, activation, norm.
#[derive(Module, Debug)]
pub struct PredictionHead<B: Backend> {
    /// `[d_model, d_model]`.
    pub dense: Linear<B>,
    /// None in models without norms.
    pub norm: Option<LayerNorm<B>>,
    #[module(skip)]
    activation: Activation,
}

/// A transformer over tokens.
///
/// Whether it is an encoder or a decoder is not in its weights: an
/// [`ObjectiveMode`](crate::objective::ObjectiveMode) gives the attention mask and the loss.
///
/// # Source
/// Structure paper, definition of a Transformer model and supplementary table of BERT configurations;
/// layout of the weights as Devlin et al. 2019.
#[derive(Module, Debug)]
pub struct TextTransformer<B: Backend> {
    /// Token embedding `[vocab_size, d_model]`, which is also the output map.
    pub tokens: Embedding<B>,
    /// Learned positions `[max_positions, d_model]`.
    pub positions: Embedding<B>,
    /// After the embeddings (post-norm).
    pub embedding_norm: Option<LayerNorm<B>>,
    /// The blocks, first to last.
    pub blocks: Vec<Block<B>>,
    /// After the last block (pre-norm).
    pub final_norm: Option<LayerNorm<B>>,
    /// Before the vocabulary.
    pub head: Option<PredictionHead<B>>,
    /// Bias of the output, `[vocab_size]`.
    pub output_bias: Option<Param<Tensor<B, 1>>>,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    inverse_temperature: InverseTemperature,
    #[module(skip)]
    precision: Precision,
}

impl TextTransformerConfig {
    /// Builds the model on a device, its weights drawn on the host from `seed`.
    ///
    /// Every weight has a stream of its own, so that two configurations that differ in one part, such as
    /// the initialisation of the attention, agree in all others.
    ///
    /// # Errors
    /// [`ModelError`] where a size, a rate or a head count is impossible, or the memory too small.
    pub fn init<B: Backend>(&self, seed: u64, device: &Device<B>) -> Result<TextTransformer<B>, ModelError> {
        self.check()?;
        check_memory(self.n_parameters(), WEIGHT)?;
        let embedding = |name: &str, rows: usize| {
            let values = random::normal(
                &mut random::stream(seed, ["init", name]),
                rows * self.d_model,
                self.init_std,
            );
            let weight = Tensor::from_data(TensorData::new(values, [rows, self.d_model]), device);
            Embedding {
                weight: Param::from_tensor(weight),
            }
        };
        let norm = || {
            LayerNormConfig::new(self.d_model)
                .with_epsilon(self.norm_epsilon)
                .init(device)
        };
        let blocks = (0..self.n_layers)
            .map(|l| Block::init(self, seed, l, device))
            .collect::<Result<_, _>>()?;
        let head = self.head_transform.then(|| PredictionHead {
            dense: normal_linear(
                self.d_model,
                self.d_model,
                self.bias,
                self.init_std,
                &mut random::stream(seed, ["init", "head"]),
                device,
            ),
            norm: (self.norm != NormPlacement::None).then(norm),
            activation: self.activation,
        });
        Ok(TextTransformer {
            tokens: embedding("tokens", self.vocab_size),
            positions: embedding("positions", self.max_positions),
            embedding_norm: (self.norm == NormPlacement::Post).then(norm),
            blocks,
            final_norm: (self.norm == NormPlacement::Pre).then(norm),
            head,
            output_bias: self
                .bias
                .then(|| Param::from_tensor(Tensor::zeros([self.vocab_size], device))),
            dropout: self.dropout,
            inverse_temperature: self.inverse_temperature,
            precision: Precision::F32,
        })
    }
}

impl<B: Backend> TextTransformer<B> {
    /// Number of distinct tokens.
    pub fn vocab_size(&self) -> usize {
        self.tokens.weight.dims()[0]
    }

    /// Longest sequence.
    pub fn max_positions(&self) -> usize {
        self.positions.weight.dims()[0]
    }

    /// The model as it is for the update that follows `step` others: with the inverse temperature of that step.
    ///
    /// A model that is built anew has that of step 0; one that goes on from a checkpoint is told the step by this.
    pub fn at_step(mut self, step: usize) -> Self {
        let inverse_temperature = self.inverse_temperature.at(step);
        for block in &mut self.blocks {
            block.attention.set_inverse_temperature(inverse_temperature);
        }
        self
    }

    /// The model with its matrices multiplied in this number type.
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self.blocks
            .iter_mut()
            .for_each(|block| block.set_precision(precision));
        self
    }

    /// The model without dropout, for measurements on autodiff backends.
    pub fn without_dropout(mut self) -> Self {
        self.dropout = 0.0;
        self.blocks.iter_mut().for_each(Block::set_no_dropout);
        self
    }

    /// The residual stream after the last block (and the final norm).
    ///
    /// # Shape
    /// `[batch, n_tokens]`, at most [`max_positions`](Self::max_positions) tokens, to
    /// `[batch, n_tokens, d_model]`.
    pub fn forward(
        &self,
        tokens: Tensor<B, 2, Int>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> Tensor<B, 3> {
        let mut x = self.embed(tokens, noise);
        for (index, block) in self.blocks.iter().enumerate() {
            let noise = noise.map(|n| n.at(format!("layer {index}")));
            x = block.forward(x, mask, noise.as_ref());
        }
        self.finish(x)
    }

    /// The same, and what went on in each attention layer, in such a way that autodiff gives the gradients of
    /// the raw scores.
    pub fn forward_traced(
        &self,
        tokens: Tensor<B, 2, Int>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> (Tensor<B, 3>, Vec<AttentionTrace<B>>) {
        let (x, traces) = Block::trace_all(&self.blocks, self.embed(tokens, noise), mask, noise);
        (self.finish(x), traces)
    }

    fn finish(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        match &self.final_norm {
            Some(norm) => norm.forward(x),
            None => x,
        }
    }

    /// The input of the first block.
    ///
    /// # Shape
    /// `[batch, n_tokens]` to `[batch, n_tokens, d_model]`.
    pub fn embed(&self, tokens: Tensor<B, 2, Int>, noise: Option<&Noise>) -> Tensor<B, 3> {
        let [_, n_tokens] = tokens.dims();
        let positions = self.positions.weight.val().slice(0..n_tokens).unsqueeze::<3>();
        let mut x = self.tokens.forward(tokens) + positions;
        if let Some(norm) = &self.embedding_norm {
            x = norm.forward(x);
        }
        dropout(x, self.dropout, noise.map(|n| n.at("embedding")).as_ref())
    }

    /// Logits over the vocabulary.
    ///
    /// Take the rows of the predicted positions before this map, not after it: at a vocabulary of 30,522
    /// it is most of a small model's work.
    ///
    /// # Shape
    /// `[n_predicted, d_model]` to `[n_predicted, vocab_size]`.
    pub fn logits(&self, hidden: Tensor<B, 2>) -> Tensor<B, 2> {
        let hidden = match &self.head {
            Some(head) => {
                let x = head
                    .activation
                    .forward(self.precision.linear(&head.dense, hidden));
                match &head.norm {
                    Some(norm) => norm.forward(x),
                    None => x,
                }
            }
            None => hidden,
        };
        let logits = self
            .precision
            .matmul(hidden, self.tokens.weight.val().transpose());
        match &self.output_bias {
            Some(bias) => logits + bias.val().unsqueeze(),
            None => logits,
        }
    }
}

impl<B: Backend> HasAttention<B> for TextTransformer<B> {
    fn attention_layers(&self) -> Vec<AttentionLayer<'_, B>> {
        self.blocks
            .iter()
            .enumerate()
            .map(|(index, block)| AttentionLayer {
                stack: "text".to_owned(),
                index,
                module: attention_path(index),
                attention: (&block.attention).into(),
            })
            .collect()
    }
}
