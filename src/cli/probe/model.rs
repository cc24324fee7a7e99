//! The model that a user describes by flags.

use clap::{Args, ValueEnum};

use crate::attention::IndependentInit;
use crate::cli::Usage;
use crate::model::{Activation, FeedForwardKind, NormPlacement, Strength, TextTransformerConfig};

/// A size to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Size {
    /// 4 layers, 256 wide, 4 heads
    BertMini,
    /// 12 layers, 768 wide, 12 heads
    Bert,
    /// 24 layers, 1024 wide, 16 heads
    BertLarge,
    /// The theory's own: 6 layers, 256 wide, 4 heads, no norms, linear feed-forward, variances of 1/width
    Bare,
}

/// What stands beside the branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Norm {
    Post,
    Pre,
    None,
}

/// What stands for the feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Branch {
    Gelu,
    Relu,
    Linear,
    /// One linear map
    Single,
    None,
}

/// Flags that describe a model, over a size or a recipe.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model (over the size, or over a recipe)")]
pub(super) struct ModelFlags {
    /// Size to start from [default: bert-mini]
    #[arg(long, value_enum, value_name = "SIZE")]
    model: Option<Size>,

    /// Number of blocks
    #[arg(long, value_name = "N")]
    layers: Option<usize>,

    /// Width of the residual stream
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    /// Number of query heads
    #[arg(long, value_name = "N")]
    heads: Option<usize>,

    /// Number of key and value heads
    #[arg(long, value_name = "N")]
    kv_heads: Option<usize>,

    /// Tokens of the vocabulary
    #[arg(long, value_name = "N")]
    vocabulary: Option<usize>,

    /// Where the layer norms stand
    #[arg(long, value_enum)]
    norm: Option<Norm>,

    /// The feed-forward: two maps with an activation (or linear), a single linear map, or none
    #[arg(long, value_enum)]
    feed_forward: Option<Branch>,

    /// Strength of both residual branches: a number, 1/sqrt(L), or a number for each layer (1,0.7,…)
    #[arg(long, value_name = "ALPHA")]
    residual: Option<Strength>,

    /// The same for the feed-forward branches alone
    #[arg(long, value_name = "ALPHA")]
    residual_feed_forward: Option<Strength>,

    /// Standard deviation of the weights: a number, or 1/sqrt(d) for one over the root of the width
    #[arg(long, value_name = "STD", value_parser = std_of)]
    init_std: Option<Std>,

    /// The same for queries and keys alone
    #[arg(long, value_name = "STD", value_parser = std_of)]
    query_key_std: Option<Std>,

    /// Inverse temperature of the attention
    #[arg(long, value_name = "TAU")]
    inverse_temperature: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Std {
    Number(f64),
    OverRootWidth,
}

fn std_of(text: &str) -> Result<Std, String> {
    if text.replace(' ', "") == "1/sqrt(d)" {
        return Ok(Std::OverRootWidth);
    }
    let number = text
        .parse()
        .ok()
        .filter(|std: &f64| std.is_finite() && *std >= 0.0);
    number
        .map(Std::Number)
        .ok_or_else(|| "must be a number that is not negative, or 1/sqrt(d)".to_owned())
}

impl Std {
    fn of_width(self, width: usize) -> f64 {
        match self {
            Self::Number(std) => std,
            Self::OverRootWidth => 1.0 / (width as f64).sqrt(),
        }
    }
}

impl ModelFlags {
    /// The vocabulary, if it is given.
    pub(super) fn vocabulary(&self) -> Option<usize> {
        self.vocabulary
    }

    /// Whether any of the flags that change a model is given.
    pub(super) fn is_given(&self) -> bool {
        let plain = TextTransformerConfig::mini();
        self.model.is_some()
            || Self {
                vocabulary: None,
                ..self.clone()
            }
            .config(Some((String::new(), plain.clone())))
            .is_ok_and(|(_, config)| config != plain)
    }

    /// The configuration, over that of a recipe if there is one, and a name for it.
    ///
    /// # Errors
    /// [`Usage`] for a size together with a recipe.
    pub(super) fn config(
        &self,
        recipe: Option<(String, TextTransformerConfig)>,
    ) -> Result<(String, TextTransformerConfig), Usage> {
        let (mut name, mut config) = match (recipe, self.model) {
            (Some(_), Some(_)) => {
                return Err(Usage(
                    "--model names a size, and the recipe has one already: give one of them".to_owned(),
                ));
            }
            (Some(recipe), None) => recipe,
            (None, size) => match size.unwrap_or(Size::BertMini) {
                Size::BertMini => ("bert-mini".to_owned(), TextTransformerConfig::mini()),
                Size::Bert => ("bert".to_owned(), TextTransformerConfig::base()),
                Size::BertLarge => ("bert-large".to_owned(), TextTransformerConfig::large()),
                Size::Bare => ("bare".to_owned(), TextTransformerConfig::bare(4096, 256, 6, 4)),
            },
        };
        if self.model == Some(Size::Bare) && self.init_std.is_none() {
            config.init_std = Std::OverRootWidth.of_width(self.width.unwrap_or(config.d_model));
        }
        let plain = config.clone();
        config.n_layers = self.layers.unwrap_or(config.n_layers);
        config.d_model = self.width.unwrap_or(config.d_model);
        config.n_heads = self.heads.unwrap_or(config.n_heads);
        config.n_kv_heads = self.kv_heads.or(config.n_kv_heads);
        config.vocab_size = self.vocabulary.unwrap_or(config.vocab_size);
        if let Some(norm) = self.norm {
            config.norm = match norm {
                Norm::Post => NormPlacement::Post,
                Norm::Pre => NormPlacement::Pre,
                Norm::None => NormPlacement::None,
            };
        }
        if let Some(branch) = self.feed_forward {
            (config.feed_forward, config.activation) = match branch {
                Branch::Gelu => (FeedForwardKind::Mlp, Activation::Gelu),
                Branch::Relu => (FeedForwardKind::Mlp, Activation::Relu),
                Branch::Linear => (FeedForwardKind::Mlp, Activation::Linear),
                Branch::Single => (FeedForwardKind::Linear, Activation::Linear),
                Branch::None => (FeedForwardKind::None, config.activation),
            };
        }
        if let Some(strength) = &self.residual {
            config.attention_strength = strength.clone();
            config.feed_forward_strength = strength.clone();
        }
        if let Some(strength) = &self.residual_feed_forward {
            config.feed_forward_strength = strength.clone();
        }
        if let Some(std) = self.init_std {
            config.init_std = std.of_width(config.d_model);
        }
        if let Some(std) = self.query_key_std {
            let std = std.of_width(config.d_model);
            config.attention_init = IndependentInit {
                query_std: Some(std),
                key_std: Some(std),
                ..IndependentInit::default()
            }
            .into();
        }
        if let Some(tau) = self.inverse_temperature {
            config.inverse_temperature = tau.into();
        }
        if config != plain {
            name += ", changed";
        }
        Ok((name, config))
    }
}
