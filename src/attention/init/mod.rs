//! How the weights of attention start.
//!
//! Everything is drawn on the host, so that every backend starts from the same bits. The generator that is
//! passed in gives one number, from which each matrix has a stream of its own: arms of a comparison that start
//! from equal generators share every matrix that their schemes do not set.

mod apply;
mod host;
mod mimetic;
mod symmetric;

use rand_chacha::rand_core::Rng as _;
use serde::{Deserialize, Serialize};

pub use apply::{initialise, initialise_burn};
pub use mimetic::MimeticInit;
pub use symmetric::{ControlInit, SymmetricInit};

use super::AttentionError;
use crate::bilinear::Heads;
use crate::random::{self, Rng};

/// A scheme by which the query, key, value and output weights of attention start.
///
/// Each scheme converts into it, so `with_init(SymmetricInit::tied())` works.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "scheme")]
#[non_exhaustive]
pub enum AttentionInit {
    /// Every matrix drawn by itself.
    Independent(IndependentInit),
    /// Every head's form symmetric.
    Tied(SymmetricInit),
    /// The singular values of the tied scheme, without its symmetry.
    Control(ControlInit),
    /// Forms close to the identity, as trained ones are.
    Mimetic(MimeticInit),
}

impl AttentionInit {
    /// The name of the scheme, as in a recipe.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Independent(_) => "independent",
            Self::Tied(_) => "tied",
            Self::Control(_) => "control",
            Self::Mimetic(_) => "mimetic",
        }
    }
}

impl Default for AttentionInit {
    fn default() -> Self {
        Self::Independent(IndependentInit::default())
    }
}

/// Every matrix drawn by itself from a normal distribution.
///
/// A standard deviation that is not set is that of the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndependentInit {
    /// The standard deviation of the entries of `W_q`.
    pub query_std: Option<f64>,
    /// Of `W_k`.
    pub key_std: Option<f64>,
    /// Of `W_v`.
    pub value_std: Option<f64>,
    /// Of `W_o`.
    pub output_std: Option<f64>,
}

impl IndependentInit {
    /// The same standard deviation for all four matrices.
    pub const fn with_std(std: f64) -> Self {
        Self {
            query_std: Some(std),
            key_std: Some(std),
            value_std: Some(std),
            output_std: Some(std),
        }
    }
}

impl From<IndependentInit> for AttentionInit {
    fn from(init: IndependentInit) -> Self {
        Self::Independent(init)
    }
}

impl From<SymmetricInit> for AttentionInit {
    fn from(init: SymmetricInit) -> Self {
        Self::Tied(init)
    }
}

impl From<ControlInit> for AttentionInit {
    fn from(init: ControlInit) -> Self {
        Self::Control(init)
    }
}

impl From<MimeticInit> for AttentionInit {
    fn from(init: MimeticInit) -> Self {
        Self::Mimetic(init)
    }
}

/// The shapes of the four projections of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projections {
    /// The width of the model.
    pub d_model: usize,
    /// The layout of the heads.
    pub heads: Heads,
    /// The width of a head.
    pub head_dim: usize,
}

impl Projections {
    /// `n_heads * head_dim`.
    fn query_width(&self) -> usize {
        self.heads.n_heads() * self.head_dim
    }

    /// `n_kv_heads * head_dim`.
    fn key_width(&self) -> usize {
        self.heads.n_kv_heads() * self.head_dim
    }
}

/// A matrix on the host, inputs by outputs, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// The entries.
    pub values: Vec<f32>,
    /// Rows and columns.
    pub shape: [usize; 2],
}

/// The weights of a layer, on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// `W_q`, `[d_model, n_heads * head_dim]`.
    pub query: Matrix,
    /// `W_k`, `[d_model, n_kv_heads * head_dim]`.
    pub key: Matrix,
    /// `W_v`, `[d_model, n_kv_heads * head_dim]`.
    pub value: Matrix,
    /// `W_o`, `[n_heads * head_dim, d_model]`.
    pub output: Matrix,
}

/// The streams of one layer, one for each matrix.
struct Streams(u64);

impl Streams {
    fn of(&self, matrix: &str) -> Rng {
        random::stream(self.0, [matrix])
    }

    fn normal(&self, matrix: &str, shape: [usize; 2], std: f64) -> Matrix {
        Matrix {
            values: random::normal(&mut self.of(matrix), shape[0] * shape[1], std),
            shape,
        }
    }
}

/// Draws the weights of a layer.
///
/// `std` is the standard deviation of what the scheme does not scale itself.
///
/// # Errors
/// A scale that is negative or not finite; [`AttentionError::NoConvergence`] of the mimetic scheme.
pub fn draw(
    init: &AttentionInit,
    projections: &Projections,
    std: f64,
    rng: &mut Rng,
) -> Result<Weights, AttentionError> {
    AttentionError::check_scale("std", std)?;
    let streams = Streams(rng.next_u64());
    let &Projections { d_model, .. } = projections;
    let (query_width, key_width) = (projections.query_width(), projections.key_width());
    let independent = |init: &IndependentInit| {
        let scale = |name, value: Option<f64>| {
            let value = value.unwrap_or(std);
            AttentionError::check_scale(name, value).map(|()| value)
        };
        Ok::<_, AttentionError>(Weights {
            query: streams.normal(
                "query",
                [d_model, query_width],
                scale("query_std", init.query_std)?,
            ),
            key: streams.normal("key", [d_model, key_width], scale("key_std", init.key_std)?),
            value: streams.normal("value", [d_model, key_width], scale("value_std", init.value_std)?),
            output: streams.normal(
                "output",
                [query_width, d_model],
                scale("output_std", init.output_std)?,
            ),
        })
    };
    match init {
        AttentionInit::Independent(init) => independent(init),
        AttentionInit::Tied(init) => {
            let (query, key) = init.draw(projections, std, &streams);
            Ok(Weights {
                query,
                key,
                ..independent(&IndependentInit::default())?
            })
        }
        AttentionInit::Control(init) => {
            let (query, key) = init.draw(projections, std, &streams);
            Ok(Weights {
                query,
                key,
                ..independent(&IndependentInit::default())?
            })
        }
        AttentionInit::Mimetic(init) => init.draw(projections, &streams),
    }
}
