//! Mixup and cutmix: images and labels of two samples in one.
//!
//! # Source
//! H. Zhang et al., mixup, arXiv 1710.09412; S. Yun et al., CutMix, arXiv 1905.04899.

use rand::RngExt as _;
use rand_distr::{Beta, Distribution};

use super::{Augmentation, CHANNELS};
use crate::random::Rng;

/// How one sample takes in another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mix {
    /// It stays as it is.
    None,
    /// All pixels are blended, with this weight for its own.
    Blend(f32),
    /// The other's pixels are put into the rows and columns of a box.
    Box { rows: [usize; 2], columns: [usize; 2] },
}

impl Mix {
    /// Draws how a square image of `size` pixels is mixed: by mixup or cutmix with equal chances where both are on.
    pub(super) fn draw(augmentation: &Augmentation, size: usize, rng: &mut Rng) -> Self {
        let (mixup, cutmix) = (augmentation.mixup > 0.0, augmentation.cutmix > 0.0);
        match (mixup, cutmix) {
            (false, false) => Self::None,
            (true, true) if rng.random_bool(0.5) => Self::Blend(share(augmentation.mixup, rng) as f32),
            (true, false) => Self::Blend(share(augmentation.mixup, rng) as f32),
            _ => Self::draw_box(augmentation.cutmix, size, rng),
        }
    }

    /// A box of area `1 − λ` around a random centre, cut off at the border, as in the paper's code.
    fn draw_box(alpha: f64, size: usize, rng: &mut Rng) -> Self {
        let half = (1.0 - share(alpha, rng)).sqrt() * size as f64 / 2.0;
        let mut side = || {
            let centre = rng.random_range(0..size) as f64;
            [
                (centre - half).round().max(0.0) as usize,
                ((centre + half).round() as usize).min(size),
            ]
        };
        Self::Box {
            rows: side(),
            columns: side(),
        }
    }

    /// The weight of the sample's own label: the share of its own pixels that is left.
    pub(super) fn own_share(&self, size: usize) -> f32 {
        match self {
            Self::None => 1.0,
            Self::Blend(own) => *own,
            Self::Box { rows, columns } => {
                let area = (rows[1] - rows[0]) * (columns[1] - columns[0]);
                1.0 - area as f32 / (size * size) as f32
            }
        }
    }

    /// Puts what is taken from `other` into `own`, both `[3, size, size]`.
    pub(super) fn apply(&self, own: &mut [f32], other: &[f32], size: usize) {
        match *self {
            Self::None => {}
            Self::Blend(weight) => {
                for (own, other) in own.iter_mut().zip(other) {
                    *own = weight * *own + (1.0 - weight) * other;
                }
            }
            Self::Box { rows, columns } => {
                for channel in 0..CHANNELS {
                    for row in rows[0]..rows[1] {
                        let line = (channel * size + row) * size;
                        let range = line + columns[0]..line + columns[1];
                        own[range.clone()].copy_from_slice(&other[range]);
                    }
                }
            }
        }
    }
}

/// λ from Beta(α, α).
fn share(alpha: f64, rng: &mut Rng) -> f64 {
    // α was checked to be finite and above 0; 1 mixes nothing.
    Beta::new(alpha, alpha).map_or(1.0, |beta| beta.sample(rng))
}
