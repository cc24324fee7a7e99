//! What the structure paper's published code takes from a layer, so that its tables can be audited.
//!
//! # Source
//! The code beside arXiv 2502.10927. It has four branches: separate weights, grouped keys, GPT-2's fused columns, and
//! one for every other fused weight. Which applies to a family follows from its layout.

use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};

use super::CheckpointError;
use super::error_context::Context;
use super::extract::{Extractor, Folding};
use super::family::Layout;
use super::plan::{Projection, Rows};
use crate::bilinear::{BilinearForm, DirectionalityScores, Heads};

/// Where the published code departs from the layer's true form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// Query head h is paired with key head `h mod n_kv_heads`, not `h / (n_heads / n_kv_heads)`.
    Pairing,
    /// A `Linear` weight is not transposed: the result is a matrix over output channels, not over inputs.
    Orientation,
    /// The first and second `d_model` rows of a fused weight are taken for queries and keys, where they are not.
    Slicing,
    /// Cross-attention is read, whose two sides live in different spaces.
    CrossAttention,
    /// The gains of normalisers on queries and keys are left out.
    Gain,
}

impl Fault {
    /// The fault in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Pairing => "pairs query head h with key head h mod n_kv_heads",
            Self::Orientation => "does not transpose the fused Linear weight",
            Self::Slicing => "slices the fused weight in thirds",
            Self::CrossAttention => "reads cross-attention",
            Self::Gain => "leaves out the gains on queries and keys",
        }
    }
}

/// What the published code gives for a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where it is wrong; nothing where it is right.
    pub faults: Vec<Fault>,
    /// Its symmetry, in our scale of −1 to 1.
    #[serde(default)]
    pub symmetry: Option<f64>,
    /// Its directionality; the published tables hold the excess.
    #[serde(default)]
    pub directionality: Option<DirectionalityScores>,
    /// Why the code gives nothing for these weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<String>,
}

impl Published {
    /// What the published code gives for a layer, whatever is folded into the right value.
    pub(super) fn of<B: Backend>(extractor: &Extractor<'_, B>, gamma: f64) -> Result<Self, CheckpointError> {
        let Extracted { faults, form } = form(extractor)?;
        let mut published = Self {
            faults,
            symmetry: None,
            directionality: None,
            stops: None,
        };
        match form {
            Ok(form) => {
                let scores = extractor.check(form.measure(gamma, false))?;
                published.symmetry = scores.symmetry;
                published.directionality = Some(scores.directionality);
            }
            Err(why) => published.stops = Some(why),
        }
        Ok(published)
    }
}

/// What the published code takes from a layer: a form, or why it stops.
struct Extracted<B: Backend> {
    faults: Vec<Fault>,
    form: Result<BilinearForm<B>, String>,
}

fn form<B: Backend>(extractor: &Extractor<'_, B>) -> Result<Extracted<B>, CheckpointError> {
    let layer = extractor.layer;
    let (h, g, d) = (layer.heads.n_heads(), layer.heads.n_kv_heads(), layer.d_model);
    let square = h * layer.head_dim == d;
    let whole = |tensor: &str| -> Result<Rows, CheckpointError> {
        let [rows, _] = Context(extractor.store).matrix(tensor)?;
        Ok(Rows::new(tensor, 0..rows))
    };
    let mut faults = Vec::new();
    if let Some((query, key)) = &layer.published {
        faults.push(Fault::CrossAttention);
        let form = extractor.whole(&whole(query)?, &whole(key)?, true, Heads::multi(1))?;
        return Ok(Extracted {
            faults,
            form: Ok(form),
        });
    }
    if layer.query_norm.is_some() || layer.key_norm.is_some() {
        faults.push(Fault::Gain);
    }
    let plain = || {
        extractor.form(Folding {
            norm: false,
            query_key_norms: false,
        })
    };
    let form = match (&layer.projection, layer.layout) {
        (Projection::Latent(_), _) => Err("it has no branch for latent attention".into()),
        (Projection::Columns { .. }, _) if square && g == h => Ok(plain()?),
        (Projection::Columns { .. }, _) => Err(stops(layer.head_dim, h, d)),
        (Projection::Rows { .. }, Layout::Separate) if g == h => Ok(plain()?),
        (Projection::Rows { query, key }, Layout::Separate) => {
            if g > 1 {
                faults.push(Fault::Pairing);
            }
            if square {
                Ok(extractor.whole(&regrouped(query, h, g, layer.head_dim), key, true, layer.heads)?)
            } else {
                Err(stops(layer.head_dim, h, d))
            }
        }
        (Projection::Rows { query, key }, _) => {
            faults.push(Fault::Orientation);
            let [first, second] = [0..d, d..2 * d].map(|range| Rows::new(&query.tensor, range));
            if *query != first || *key != second {
                faults.push(Fault::Slicing);
            }
            let [rows, _] = Context(extractor.store).matrix(&query.tensor)?;
            if rows >= 2 * d {
                Ok(extractor.whole(&first, &second, false, Heads::multi(1))?)
            } else {
                Err(format!(
                    "the weight has {rows} rows, fewer than the {} that it slices off",
                    2 * d
                ))
            }
        }
    };
    Ok(Extracted { faults, form })
}

fn stops(head_dim: usize, heads: usize, d_model: usize) -> String {
    format!("{heads} heads of {head_dim} are not the model's width, {d_model}, which its shapes need")
}

/// The query rows with their heads in such an order that grouping neighbours pairs head h with `h mod groups`.
fn regrouped(query: &Rows, heads: usize, groups: usize, head_dim: usize) -> Rows {
    let ranges = (0..groups)
        .flat_map(|g| (g..heads).step_by(groups))
        .map(|head| head * head_dim..(head + 1) * head_dim)
        .collect();
    Rows {
        tensor: query.tensor.clone(),
        ranges,
    }
}
