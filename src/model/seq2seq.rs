//! The encoder-decoder of translation: Vaswani et al.'s layout, post-norm by default.

use burn::module::{Module, Param};
use burn::nn::{Embedding, LayerNorm, LayerNormConfig};
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use super::block::attention_path;
use super::config::{ModelError, NormPlacement, TextTransformerConfig};
use super::feed_forward::FeedForward;
use super::residual::Residual;
use super::temperature::InverseTemperature;
use super::text::TextTransformer;
use crate::attention::{
    AttentionLayer, AttentionMask, HasAttention, Noise, SelfAttention, SelfAttentionConfig, dropout,
};
use crate::random;

/// A block of a decoder that also looks at a source: self-attention, cross-attention, feed-forward.
#[derive(Module, Debug)]
pub struct DecoderBlock<B: Backend> {
    /// Attention of the target to itself and its past.
    pub attention: SelfAttention<B>,
    /// Attention of the target to the source: queries from the one, keys and values from the other.
    pub cross_attention: SelfAttention<B>,
    /// The feed-forward branch, if there is one.
    pub feed_forward: Option<FeedForward<B>>,
    /// The layer norms of the three branches; empty in models without norms.
    pub norms: Vec<LayerNorm<B>>,
    /// The strengths of the three branches where they are trained, `[3]`.
    pub trained_strengths: Option<Param<Tensor<B, 1>>>,
    #[module(skip)]
    placement: NormPlacement,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    strengths: [f64; 3],
}

/// What is given to a decoder block beside its stream.
struct Context<B: Backend> {
    memory: Tensor<B, 3>,
    past: AttentionMask<B>,
    padding: AttentionMask<B>,
}

impl<B: Backend> DecoderBlock<B> {
    fn init(
        config: &TextTransformerConfig,
        seed: u64,
        index: usize,
        device: &Device<B>,
    ) -> Result<Self, ModelError> {
        let layer = format!("decoder layer {index}");
        let attention = |name: &str| {
            SelfAttentionConfig {
                n_kv_heads: config.n_kv_heads,
                head_dim: config.head_dim,
                dropout: config.attention_dropout,
                bias: config.bias,
                inverse_temperature: config.inverse_temperature.at(0),
                init: config.attention_init,
                std: config.init_std,
                ..SelfAttentionConfig::new(config.d_model, config.n_heads)
            }
            .init(device, &mut random::stream(seed, ["init", &layer, name]))
        };
        let [alpha_1, alpha_2] = [&config.attention_strength, &config.feed_forward_strength]
            .map(|strength| strength.of_layer(index, config.n_layers));
        let strengths = [alpha_1, alpha_1, alpha_2];
        Ok(Self {
            attention: attention("attention")?,
            cross_attention: attention("cross attention")?,
            feed_forward: FeedForward::init(config, seed, &layer, device),
            norms: match config.norm {
                NormPlacement::None => Vec::new(),
                _ => (0..3).map(|_| norm(config, device)).collect(),
            },
            trained_strengths: config
                .train_strengths
                .then(|| Param::from_data(TensorData::from(strengths.map(|alpha| alpha as f32)), device)),
            placement: config.norm,
            dropout: config.dropout,
            strengths,
        })
    }

    /// The strengths of self-attention, cross-attention and feed-forward, as they are now.
    pub fn strengths(&self) -> [f64; 3] {
        match &self.trained_strengths {
            Some(strengths) => {
                let now: Vec<f64> = strengths.val().into_data().iter::<f64>().collect();
                [now[0], now[1], now[2]]
            }
            None => self.strengths,
        }
    }

    fn forward(&self, x: Tensor<B, 3>, context: &Context<B>, noise: Option<&Noise>) -> Tensor<B, 3> {
        let at = |place: &str| noise.map(|noise| noise.at(place));
        let x = self.branch(x, 0, noise, |x| {
            let noise = at("attention weights");
            self.attention
                .forward_with(x, Some(&context.past), noise.as_ref())
        });
        let x = self.branch(x, 1, noise, |x| {
            let noise = at("cross-attention weights");
            let memory = context.memory.clone();
            self.cross_attention
                .forward_cross(x, memory, Some(&context.padding), noise.as_ref())
        });
        match &self.feed_forward {
            Some(feed_forward) => self.branch(x, 2, noise, |x| feed_forward.forward(x)),
            None => x,
        }
    }

    fn branch(
        &self,
        x: Tensor<B, 3>,
        which: usize,
        noise: Option<&Noise>,
        branch: impl FnOnce(Tensor<B, 3>) -> Tensor<B, 3>,
    ) -> Tensor<B, 3> {
        let place = [
            "attention branch",
            "cross-attention branch",
            "feed-forward branch",
        ][which];
        let residual = Residual {
            norm: self.norms.get(which),
            placement: self.placement,
            dropout: self.dropout,
            strength: self.strengths[which],
            trained: self
                .trained_strengths
                .as_ref()
                .map(|strengths| (strengths, which)),
        };
        residual.add(x, noise.map(|n| n.at(place)).as_ref(), branch)
    }
}

fn norm<B: Backend>(config: &TextTransformerConfig, device: &Device<B>) -> LayerNorm<B> {
    LayerNormConfig::new(config.d_model)
        .with_epsilon(config.norm_epsilon)
        .init(device)
}

/// An encoder of source tokens and a decoder of target tokens, equally deep, over one vocabulary.
///
/// Both sides and the output share the token embedding; each side has positions of its own.
///
/// # Source
/// Vaswani et al. 2017; the model of the propagation paper's translation experiments, with its residual strengths
/// (`α₁` on both attentions of a decoder block) and temperature.
#[derive(Module, Debug)]
pub struct EncoderDecoder<B: Backend> {
    /// The encoder, with the token embedding of all.
    pub encoder: TextTransformer<B>,
    /// Positions of the target, `[max_positions, d_model]`.
    pub positions: Embedding<B>,
    /// After the target's embeddings (post-norm).
    pub embedding_norm: Option<LayerNorm<B>>,
    /// The blocks of the decoder.
    pub blocks: Vec<DecoderBlock<B>>,
    /// After the last block of the decoder (pre-norm).
    pub final_norm: Option<LayerNorm<B>>,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    inverse_temperature: InverseTemperature,
}

impl TextTransformerConfig {
    /// Builds an encoder-decoder whose two stacks are both of this configuration.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn init_encoder_decoder<B: Backend>(
        &self,
        seed: u64,
        device: &Device<B>,
    ) -> Result<EncoderDecoder<B>, ModelError> {
        let encoder = self.clone().with_head_transform(false).init(seed, device)?;
        let mut rng = random::stream(seed, ["init", "decoder positions"]);
        let positions = random::normal(&mut rng, self.max_positions * self.d_model, self.init_std);
        let positions = TensorData::new(positions, [self.max_positions, self.d_model]);
        Ok(EncoderDecoder {
            encoder,
            positions: Embedding {
                weight: Param::from_data(positions, device),
            },
            embedding_norm: (self.norm == NormPlacement::Post).then(|| norm(self, device)),
            blocks: (0..self.n_layers)
                .map(|layer| DecoderBlock::init(self, seed, layer, device))
                .collect::<Result<_, _>>()?,
            final_norm: (self.norm == NormPlacement::Pre).then(|| norm(self, device)),
            dropout: self.dropout,
            inverse_temperature: self.inverse_temperature,
        })
    }
}

/// Source sentences of a batch.
#[derive(Debug, Clone)]
pub struct Sources<B: Backend> {
    /// Token ids, `[batch, n]`.
    pub tokens: Tensor<B, 2, Int>,
    /// True where a sentence has ended, `[batch, n]`.
    pub padded: Tensor<B, 2, Bool>,
}

impl<B: Backend> EncoderDecoder<B> {
    /// The model as it is for the update that follows `step` others: see [`TextTransformer::at_step`].
    pub fn at_step(mut self, step: usize) -> Self {
        let inverse_temperature = self.inverse_temperature.at(step);
        self.encoder = self.encoder.at_step(step);
        for block in &mut self.blocks {
            block.attention.set_inverse_temperature(inverse_temperature);
            block.cross_attention.set_inverse_temperature(inverse_temperature);
        }
        self
    }

    /// What the encoder makes of the sources, `[batch, n, d_model]`.
    pub fn encode(&self, sources: &Sources<B>, noise: Option<&Noise>) -> Tensor<B, 3> {
        let mask = AttentionMask::key_padding(sources.padded.clone());
        let noise = noise.map(|noise| noise.at("encoder"));
        self.encoder
            .forward(sources.tokens.clone(), Some(&mask), noise.as_ref())
    }

    /// The stream of the decoder after its last block, for target tokens that each see those before.
    ///
    /// # Shape
    /// `memory` as [`encode`](Self::encode) gives it, `targets` `[batch, m]`, to `[batch, m, d_model]`.
    pub fn decode(
        &self,
        memory: Tensor<B, 3>,
        sources: &Sources<B>,
        targets: Tensor<B, 2, Int>,
        noise: Option<&Noise>,
    ) -> Tensor<B, 3> {
        let [batch, m] = targets.dims();
        let n = sources.padded.dims()[1];
        let device = targets.device();
        let noise = noise.map(|noise| noise.at("decoder"));
        let positions = self.positions.weight.val().slice(0..m).unsqueeze::<3>();
        let mut x = self.encoder.tokens.forward(targets) + positions;
        if let Some(norm) = &self.embedding_norm {
            x = norm.forward(x);
        }
        x = dropout(
            x,
            self.dropout,
            noise.as_ref().map(|n| n.at("embedding")).as_ref(),
        );
        let hidden = sources
            .padded
            .clone()
            .reshape([batch, 1, n])
            .expand([batch, m, n]);
        let (past, padding) = (
            AttentionMask::causal(m, &device),
            AttentionMask::from_hidden(hidden),
        );
        let context = Context {
            memory,
            past,
            padding,
        };
        for (index, block) in self.blocks.iter().enumerate() {
            let noise = noise.as_ref().map(|n| n.at(format!("layer {index}")));
            x = block.forward(x, &context, noise.as_ref());
        }
        match &self.final_norm {
            Some(norm) => norm.forward(x),
            None => x,
        }
    }

    /// Logits over the vocabulary, `[n_predicted, d_model]` to `[n_predicted, vocab_size]`.
    pub fn logits(&self, hidden: Tensor<B, 2>) -> Tensor<B, 2> {
        self.encoder.logits(hidden)
    }

    /// The most likely target, token by token, up to `end` (left out) or `longest` tokens.
    ///
    /// Costs a pass of the decoder over all tokens so far for each.
    pub fn translate(&self, sources: &Sources<B>, [begin, end]: [u32; 2], longest: usize) -> Vec<Vec<u32>> {
        let [batch, _] = sources.tokens.dims();
        let device = sources.tokens.device();
        let longest = longest.min(self.positions.weight.dims()[0]);
        let memory = self.encode(sources, None);
        let mut targets = vec![vec![begin as i32]; batch];
        let mut done = vec![false; batch];
        while targets[0].len() < longest && !done.iter().all(|done| *done) {
            let m = targets[0].len();
            let so_far = TensorData::new(targets.concat(), [batch, m]);
            let x = self.decode(memory.clone(), sources, Tensor::from_data(so_far, &device), None);
            let d = x.dims()[2];
            let last = x.slice([0..batch, m - 1..m, 0..d]).reshape([batch, d]);
            let next: Vec<i64> = self.logits(last).argmax(1).into_data().iter::<i64>().collect();
            for ((target, done), next) in targets.iter_mut().zip(&mut done).zip(next) {
                *done |= next == i64::from(end);
                target.push(if *done { end as i32 } else { next as i32 });
            }
        }
        let tokens = |target: Vec<i32>| {
            target
                .into_iter()
                .skip(1)
                .map(|token| token as u32)
                .take_while(|token| *token != end)
                .collect()
        };
        targets.into_iter().map(tokens).collect()
    }
}

/// The self-attention layers of both stacks; cross-attention has no form of its own kind.
impl<B: Backend> HasAttention<B> for EncoderDecoder<B> {
    fn attention_layers(&self) -> Vec<AttentionLayer<'_, B>> {
        let encoder = self
            .encoder
            .attention_layers()
            .into_iter()
            .map(|layer| AttentionLayer {
                stack: "encoder".to_owned(),
                module: format!("encoder.{}", layer.module),
                ..layer
            });
        let decoder = self
            .blocks
            .iter()
            .enumerate()
            .map(|(index, block)| AttentionLayer {
                stack: "decoder".to_owned(),
                index,
                module: attention_path(index),
                attention: (&block.attention).into(),
            });
        encoder.chain(decoder).collect()
    }
}
