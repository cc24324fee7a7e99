//! The vision transformer: patches of an image as tokens, with a class token before them.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Embedding, LayerNorm, LayerNormConfig, Linear};
use burn::tensor::backend::Backend;
use burn::tensor::{Device, Tensor, TensorData};

use super::block::{Block, attention_path};
use super::config::{ModelError, NormPlacement, TextTransformerConfig, invalid};
use super::linear::normal_linear;
use super::size::{WEIGHT, check_memory};
use crate::attention::{AttentionInit, AttentionLayer, AttentionTrace, HasAttention, Noise, dropout};
use crate::backend::Precision;
use crate::random;

/// Configuration of a [`ViT`].
///
/// The defaults are those of the structure paper (supplementary table of ViT configurations): pre-norm, GELU,
/// no dropout, ε 1e-6, biases on queries, keys and values.
///
/// # Examples
/// ```
/// use wqk::model::ViTConfig;
/// let vit = ViTConfig::cifar10();
/// assert_eq!((vit.n_layers, vit.d_model, vit.n_patches()), (6, 512, 64));
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct ViTConfig {
    /// Height and width of an image in pixels.
    pub image_size: usize,
    /// Height and width of a patch in pixels; it divides `image_size`.
    pub patch_size: usize,
    /// Number of classes.
    pub n_classes: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
    pub n_layers: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Width inside the feed-forward; `4 d_model` if not given.
    pub d_ff: Option<usize>,
    /// Colour channels of an image.
    #[config(default = 3)]
    pub channels: usize,
    /// Dropout after the embedding and on each branch.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Dropout on the attention weights, after the softmax.
    #[config(default = 0.0)]
    pub attention_dropout: f64,
    /// The ε of the layer norms.
    #[config(default = 1e-6)]
    pub norm_epsilon: f64,
    /// How the query and key projections start.
    #[config(default = "AttentionInit::default()")]
    pub attention_init: AttentionInit,
    /// Standard deviation of all other weights at initialisation.
    #[config(default = 0.02)]
    pub init_std: f64,
}

impl ViTConfig {
    /// The structure paper's ViT for CIFAR-10: 6 layers, 512 wide, 8 heads, patches of 4 in images of 32.
    pub fn cifar10() -> Self {
        Self::new(32, 4, 10, 512, 6, 8)
    }

    /// The structure paper's ViT for ImageNet-1k: 12 layers, 768 wide, 12 heads, patches of 16 in images of 224.
    pub fn imagenet() -> Self {
        Self::new(224, 16, 1000, 768, 12, 12)
    }

    /// Number of patches of an image.
    pub fn n_patches(&self) -> usize {
        (self.image_size / self.patch_size.max(1)).saturating_pow(2)
    }

    /// Width inside the feed-forward.
    pub fn ff_width(&self) -> usize {
        self.d_ff.unwrap_or(self.d_model.saturating_mul(4))
    }

    /// Refuses what cannot be built.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] with the field, its value and what it must be.
    pub fn check(&self) -> Result<(), ModelError> {
        // As in text, a size beyond these is a slip.
        for (field, value, largest) in [
            ("image_size", self.image_size, 1 << 13),
            ("patch_size", self.patch_size, 1 << 13),
            ("n_classes", self.n_classes, 1 << 26),
            ("channels", self.channels, 1 << 13),
        ] {
            if !(1..=largest).contains(&value) {
                return Err(invalid(
                    field,
                    value,
                    &format!("at least 1 and at most {largest}"),
                ));
            }
        }
        if !self.image_size.is_multiple_of(self.patch_size) {
            let must = format!("a divisor of image_size, {}", self.image_size);
            return Err(invalid("patch_size", self.patch_size, &must));
        }
        self.encoder().check()
    }

    /// The stack of blocks, which is that of a pre-norm text transformer over patches.
    pub(super) fn encoder(&self) -> TextTransformerConfig {
        TextTransformerConfig::new(self.n_classes, self.d_model, self.n_layers, self.n_heads)
            .with_d_ff(self.d_ff)
            .with_max_positions(self.n_patches() + 1)
            .with_dropout(self.dropout)
            .with_attention_dropout(self.attention_dropout)
            .with_norm(NormPlacement::Pre)
            .with_norm_epsilon(self.norm_epsilon)
            .with_attention_init(self.attention_init)
            .with_init_std(self.init_std)
    }

    /// Builds the model on a device, its weights drawn on the host from `seed`, each from a stream of its own.
    ///
    /// # Errors
    /// [`ModelError`] where a size, a rate or a head count is impossible, or the memory too small.
    pub fn init<B: Backend>(&self, seed: u64, device: &Device<B>) -> Result<ViT<B>, ModelError> {
        self.check()?;
        check_memory(self.n_parameters(), WEIGHT)?;
        let (d, std) = (self.d_model, self.init_std);
        let stream = |name: &str| random::stream(seed, ["init", name]);
        let n_tokens = self.n_patches() + 1;
        let positions = random::normal(&mut stream("positions"), n_tokens * d, std);
        let class_token = random::normal(&mut stream("class token"), d, std);
        let patch_width = self.channels * self.patch_size.pow(2);
        let encoder = self.encoder();
        Ok(ViT {
            patches: normal_linear(patch_width, d, true, std, &mut stream("patches"), device),
            class_token: Param::from_data(TensorData::new(class_token, [d]), device),
            positions: Embedding {
                weight: Param::from_data(TensorData::new(positions, [n_tokens, d]), device),
            },
            blocks: (0..self.n_layers)
                .map(|layer| Block::init(&encoder, seed, layer, device))
                .collect::<Result<_, _>>()?,
            final_norm: LayerNormConfig::new(d)
                .with_epsilon(self.norm_epsilon)
                .init(device),
            head: normal_linear(d, self.n_classes, true, std, &mut stream("head"), device),
            image_size: self.image_size,
            patch_size: self.patch_size,
            channels: self.channels,
            dropout: self.dropout,
            precision: Precision::F32,
        })
    }
}

/// A transformer over the patches of an image, which classifies by what becomes of a class token.
///
/// # Source
/// Dosovitskiy et al. 2021 (arXiv 2010.11929), in the layout of `ViTForImageClassification` of Hugging Face's
/// `transformers`; sizes from the structure paper's supplementary table of ViT configurations.
#[derive(Module, Debug)]
pub struct ViT<B: Backend> {
    /// The map of a patch, `[channels · patch_size², d_model]`: a convolution whose stride is its width.
    pub patches: Linear<B>,
    /// Stands before the patches, `[d_model]`.
    pub class_token: Param<Tensor<B, 1>>,
    /// Learned positions, that of the class token first, `[n_patches + 1, d_model]`.
    pub positions: Embedding<B>,
    /// The blocks, first to last.
    pub blocks: Vec<Block<B>>,
    /// After the last block.
    pub final_norm: LayerNorm<B>,
    /// From the class token to the classes, `[d_model, n_classes]`.
    pub head: Linear<B>,
    #[module(skip)]
    image_size: usize,
    #[module(skip)]
    patch_size: usize,
    #[module(skip)]
    channels: usize,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    precision: Precision,
}

impl<B: Backend> ViT<B> {
    /// The model with its matrices multiplied in this number type.
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self.blocks
            .iter_mut()
            .for_each(|block| block.set_precision(precision));
        self
    }

    /// Height and width of the images that it takes.
    pub fn image_size(&self) -> usize {
        self.image_size
    }

    /// Colour channels of the images that it takes.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.head.weight.dims()[1]
    }

    /// Number of tokens: the patches and the class token.
    pub fn n_tokens(&self) -> usize {
        self.positions.weight.dims()[0]
    }

    /// The residual stream after the last block and the final norm, the class token first.
    ///
    /// # Shape
    /// `[batch, channels, image_size, image_size]` to `[batch, n_patches + 1, d_model]`.
    pub fn forward(&self, images: Tensor<B, 4>, noise: Option<&Noise>) -> Tensor<B, 3> {
        let mut x = self.embed(images, noise);
        for (index, block) in self.blocks.iter().enumerate() {
            let noise = noise.map(|n| n.at(format!("layer {index}")));
            x = block.forward(x, None, noise.as_ref());
        }
        self.final_norm.forward(x)
    }

    /// The same, and what went on in each attention layer, in such a way that autodiff gives the gradients of
    /// the raw scores.
    pub fn forward_traced(
        &self,
        images: Tensor<B, 4>,
        noise: Option<&Noise>,
    ) -> (Tensor<B, 3>, Vec<AttentionTrace<B>>) {
        let (x, traces) = Block::trace_all(&self.blocks, self.embed(images, noise), None, noise);
        (self.final_norm.forward(x), traces)
    }

    /// The input of the first block.
    ///
    /// # Shape
    /// `[batch, channels, image_size, image_size]` to `[batch, n_patches + 1, d_model]`.
    pub fn embed(&self, images: Tensor<B, 4>, noise: Option<&Noise>) -> Tensor<B, 3> {
        let patches = self
            .precision
            .linear(&self.patches, patches(images, self.patch_size));
        let [batch, _, d_model] = patches.dims();
        let class_token = self
            .class_token
            .val()
            .reshape([1, 1, d_model])
            .expand([batch, 1, d_model]);
        let x = Tensor::cat(vec![class_token, patches], 1) + self.positions.weight.val().unsqueeze();
        dropout(x, self.dropout, noise.map(|n| n.at("embedding")).as_ref())
    }

    /// Logits over the classes.
    ///
    /// # Shape
    /// `[batch, channels, image_size, image_size]` to `[batch, n_classes]`.
    pub fn logits(&self, images: Tensor<B, 4>, noise: Option<&Noise>) -> Tensor<B, 2> {
        self.classify(self.forward(images, noise))
    }

    /// Logits over the classes, of what [`forward`](Self::forward) gives.
    ///
    /// # Shape
    /// `[batch, n_patches + 1, d_model]` to `[batch, n_classes]`.
    pub fn classify(&self, hidden: Tensor<B, 3>) -> Tensor<B, 2> {
        let [batch, _, d_model] = hidden.dims();
        let class_token = hidden.slice([0..batch, 0..1]).reshape([batch, d_model]);
        self.precision.linear(&self.head, class_token)
    }
}

/// The patches of images, row by row, each with its channels, rows and columns as one vector.
///
/// # Shape
/// `[batch, channels, size, size]` to `[batch, (size/patch)², channels · patch²]`.
fn patches<B: Backend>(images: Tensor<B, 4>, patch: usize) -> Tensor<B, 3> {
    let [batch, channels, height, width] = images.dims();
    let (rows, columns) = (height / patch, width / patch);
    images
        .reshape([batch, channels, rows, patch, columns, patch])
        .permute([0, 2, 4, 1, 3, 5])
        .reshape([batch, rows * columns, channels * patch * patch])
}

impl<B: Backend> HasAttention<B> for ViT<B> {
    fn attention_layers(&self) -> Vec<AttentionLayer<'_, B>> {
        self.blocks
            .iter()
            .enumerate()
            .map(|(index, block)| AttentionLayer {
                stack: "vision".to_owned(),
                index,
                module: attention_path(index),
                attention: (&block.attention).into(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_papers() {
        // Supplementary table of ViT configurations: hidden, intermediate, heads, layers, patch.
        for (config, want) in [
            (ViTConfig::cifar10(), (512, 2048, 8, 6, 4)),
            (ViTConfig::imagenet(), (768, 3072, 12, 12, 16)),
        ] {
            let have = (
                config.d_model,
                config.ff_width(),
                config.n_heads,
                config.n_layers,
                config.patch_size,
            );
            assert_eq!(have, want);
            assert_eq!(
                (config.dropout, config.attention_dropout, config.norm_epsilon),
                (0.0, 0.0, 1e-6)
            );
        }
    }

    #[test]
    fn impossible_sizes_name_the_field() {
        for (config, field) in [
            (ViTConfig::new(32, 5, 10, 8, 1, 2), "patch_size"),
            (ViTConfig::new(32, 0, 10, 8, 1, 2), "patch_size"),
            (ViTConfig::new(32, 4, 0, 8, 1, 2), "n_classes"),
            (ViTConfig::new(32, 4, 10, 8, 0, 2), "n_layers"),
            (ViTConfig::new(32, 4, 10, 8, 1, 2).with_dropout(1.0), "dropout"),
        ] {
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }

    #[cfg(feature = "flex")]
    #[test]
    fn a_patch_holds_its_own_pixels() {
        type B = crate::backend::Flex;
        // Two channels of 4 × 4 pixels that are numbered in their order, in patches of 2.
        let pixels: Vec<f32> = (0..32).map(|i| i as f32).collect();
        let images = Tensor::<B, 4>::from_data(TensorData::new(pixels, [1, 2, 4, 4]), &Default::default());
        let patches = patches(images, 2);
        assert_eq!(patches.dims(), [1, 4, 8]);
        let values: Vec<f32> = patches.into_data().to_vec().unwrap();
        // The second patch: columns 2 and 3 of the rows 0 and 1, of both channels.
        assert_eq!(values[8..16], [2.0, 3.0, 6.0, 7.0, 18.0, 19.0, 22.0, 23.0]);
    }

    #[cfg(feature = "flex")]
    #[test]
    fn symmetric_blocks_start_symmetric() {
        type B = crate::backend::Flex;
        let config = ViTConfig::new(8, 4, 3, 16, 2, 2)
            .with_attention_init(crate::attention::SymmetricInit::tied().into());
        let vit = config.init::<B>(1, &Default::default()).unwrap();
        assert_eq!((vit.n_tokens(), vit.n_classes()), (5, 3));
        let layers = vit.attention_layers();
        assert_eq!(layers.len(), 2);
        for layer in layers {
            // Tied weights: 1 up to f32 rounding of the sums.
            let symmetry = layer.attention.form().unwrap().symmetry().unwrap();
            assert!((symmetry - 1.0).abs() < 1e-5, "{symmetry}");
        }
    }
}
