//! How many parameters a model has, counted before it is built, and whether the memory holds them.

use super::config::{FeedForwardKind, ModelError, NormPlacement, TextTransformerConfig};
use super::vision::ViTConfig;

/// Bytes of a weight.
pub(crate) const WEIGHT: u64 = 4;
/// Bytes of a weight, its gradient and both of its moments.
pub(crate) const TRAINED: u64 = 4 * WEIGHT;

impl TextTransformerConfig {
    /// Number of parameters; none where they are more than can be counted.
    pub fn n_parameters(&self) -> Option<u64> {
        let d = self.d_model;
        sum([
            product(&[self.vocab_size, d]),
            product(&[self.max_positions, d]),
            // After the embeddings, or after the last block.
            some_if(self.norm != NormPlacement::None, norm(d)),
            self.blocks(),
            some_if(
                self.head_transform,
                sum([
                    linear(d, Some(d), self.bias),
                    some_if(self.norm != NormPlacement::None, norm(d)),
                ]),
            ),
            some_if(self.bias, product(&[self.vocab_size])),
        ])
    }

    /// Those of all blocks.
    fn blocks(&self) -> Option<u64> {
        let (d, f) = (self.d_model, self.ff_width());
        let head_dim = self.head_dim.unwrap_or(d / self.n_heads.max(1));
        let queries = self.n_heads.checked_mul(head_dim);
        let keys = self.n_kv_heads.unwrap_or(self.n_heads).checked_mul(head_dim);
        let feed_forward = match self.feed_forward {
            FeedForwardKind::None => Some(0),
            FeedForwardKind::Linear => linear(d, Some(d), self.bias),
            FeedForwardKind::Mlp => sum([linear(d, Some(f), self.bias), linear(f, Some(d), self.bias)]),
        };
        let block = sum([
            linear(d, queries, self.bias),
            linear(d, keys, self.bias),
            linear(d, keys, self.bias),
            queries.and_then(|queries| linear(queries, Some(d), self.bias)),
            feed_forward,
            some_if(self.norm != NormPlacement::None, sum([norm(d), norm(d)])),
            some_if(self.train_strengths, Some(2)),
        ]);
        block?.checked_mul(u64::try_from(self.n_layers).ok()?)
    }
}

impl ViTConfig {
    /// Number of parameters; none where they are more than can be counted.
    pub fn n_parameters(&self) -> Option<u64> {
        let d = self.d_model;
        let patch = [self.patch_size, self.patch_size]
            .iter()
            .try_fold(self.channels, |width, &side| width.checked_mul(side))?;
        sum([
            linear(patch, Some(d), true),
            // The class token and the positions, one of them its own.
            product(&[d, self.n_patches().checked_add(2)?]),
            self.encoder().blocks(),
            norm(d),
            linear(d, Some(self.n_classes), true),
        ])
    }
}

fn linear(input: usize, output: Option<usize>, bias: bool) -> Option<u64> {
    sum([product(&[input, output?]), some_if(bias, product(&[output?]))])
}

/// Gain and bias.
fn norm(width: usize) -> Option<u64> {
    product(&[2, width])
}

fn some_if(there: bool, count: Option<u64>) -> Option<u64> {
    if there { count } else { Some(0) }
}

fn product(factors: &[usize]) -> Option<u64> {
    let mut factors = factors.iter().map(|&factor| u64::try_from(factor).ok());
    factors.try_fold(1_u64, |product, factor| product.checked_mul(factor?))
}

fn sum<const N: usize>(terms: [Option<u64>; N]) -> Option<u64> {
    terms
        .into_iter()
        .try_fold(0_u64, |sum, term| sum.checked_add(term?))
}

/// Refuses a model that the memory of this machine cannot hold, at so many bytes for each parameter: to ask the
/// system for that much would end the program.
pub(crate) fn check_memory(parameters: Option<u64>, bytes: u64) -> Result<(), ModelError> {
    fits(parameters, bytes, memory())
}

fn fits(parameters: Option<u64>, bytes: u64, memory: u64) -> Result<(), ModelError> {
    let needed = parameters.and_then(|parameters| parameters.checked_mul(bytes));
    if needed.is_some_and(|needed| needed <= memory) {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    Err(ModelError::TooLarge {
        parameters: parameters.map_or("more than 10¹⁹".to_owned(), |parameters| {
            parameters.to_string()
        }),
        needed: needed.map_or("more than 10¹⁰ GB".to_owned(), gigabytes),
        memory: gigabytes(memory),
    })
}

/// Bytes of memory that this process may have; where the system does not say, all that can be addressed.
fn memory() -> u64 {
    let most = isize::MAX as u64;
    // Limits of a container count too. Both files are Linux's.
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|limit| limit.trim().parse().ok());
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|about| total(&about));
    most.min(limit.unwrap_or(most)).min(machine.unwrap_or(most))
}

/// Memory and swap space by `/proc/meminfo`.
fn total(about: &str) -> Option<u64> {
    let kilobytes = |name: &str| {
        let line = about.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    let total = kilobytes("MemTotal:")? + kilobytes("SwapTotal:").unwrap_or(0);
    total.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Burn counts what was built.
    #[cfg(feature = "flex")]
    #[test]
    fn what_is_counted_is_what_is_built() {
        use burn::module::Module;

        use crate::model::Strength;
        type B = crate::backend::Flex;
        let device = Default::default();
        let text = || TextTransformerConfig::new(11, 12, 3, 4).with_max_positions(7);
        for config in [
            text(),
            text().with_norm(NormPlacement::Pre).with_head_transform(false),
            text().with_norm(NormPlacement::None).with_bias(false),
            text().with_n_kv_heads(Some(2)).with_head_dim(Some(5)),
            text().with_d_ff(Some(9)).with_train_strengths(true),
            text().with_feed_forward(FeedForwardKind::None),
            text().with_attention_strength(Strength::SCALED),
            TextTransformerConfig::bare(11, 12, 3, 4),
        ] {
            let built = config.init::<B>(0, &device).unwrap().num_params();
            assert_eq!(config.n_parameters(), Some(built as u64), "{config:?}");
        }
        for config in [
            ViTConfig::new(8, 4, 3, 12, 2, 3),
            ViTConfig::new(6, 2, 5, 8, 1, 2)
                .with_channels(1)
                .with_d_ff(Some(7)),
        ] {
            let built = config.init::<B>(0, &device).unwrap().num_params();
            assert_eq!(config.n_parameters(), Some(built as u64), "{config:?}");
        }
    }

    /// 109.5 million are what `transformers` counts in bert-base-uncased's `BertForMaskedLM`, whose embedding of two
    /// segments our model has not.
    #[test]
    fn bert_has_its_known_size() {
        let segments = 2 * 768;
        assert_eq!(
            TextTransformerConfig::base().n_parameters(),
            Some(109_514_298 - segments)
        );
    }

    #[test]
    fn what_no_memory_holds_is_refused() {
        let huge = TextTransformerConfig::new(usize::MAX, usize::MAX, 2, 2).with_head_dim(Some(usize::MAX));
        assert_eq!(huge.n_parameters(), None);
        let error = fits(huge.n_parameters(), WEIGHT, 1 << 40)
            .unwrap_err()
            .to_string();
        assert!(error.contains("more than 10¹⁹ parameters"), "{error}");
        let gigabyte = Some(250_000_000);
        assert!(fits(gigabyte, WEIGHT, 1_000_000_000).is_ok());
        let error = fits(gigabyte, TRAINED, 2_000_000_000).unwrap_err().to_string();
        for said in ["250000000 parameters", "4.0 GB", "2.0 GB"] {
            assert!(error.contains(said), "{said} in: {error}");
        }
        assert!(memory() > 1 << 26);
    }

    #[test]
    fn memory_and_swap_are_added() {
        let about = "MemTotal:       16384 kB\nMemFree: 1 kB\nSwapTotal:        1024 kB\n";
        assert_eq!(total(about), Some((16384 + 1024) * 1024));
        assert_eq!(total("MemTotal: much"), None);
    }
}
