//! From a registry entry, a configuration and the shapes in a file to the layers to read.

use std::collections::BTreeMap;
use std::ops::Range;

use super::CheckpointError;
use super::error_context::Context;
use super::family::{Alternatives, Config, Family, Layout, Pattern, Place, Size, Stack, StackKind};
use super::format::Store;
use super::options::Options;
use crate::bilinear::{Heads, RotaryPairs};

/// One self-attention layer of a checkpoint: where its queries and keys are.
#[derive(Debug, Clone)]
pub(super) struct LayerPlan {
    pub stack: StackKind,
    /// Counts self-attention layers of the stack.
    pub index: usize,
    /// The layer's number in the file.
    pub number: usize,
    pub module: String,
    pub repeats: usize,
    pub heads: Heads,
    pub head_dim: usize,
    pub d_model: usize,
    pub layout: Layout,
    pub projection: Projection,
    /// The gain of the norm before the attention.
    pub norm: Option<String>,
    pub query_norm: Option<String>,
    pub key_norm: Option<String>,
    pub gain_offset: f32,
    pub rotary: Option<RotaryPairs>,
    /// Which of the family's stacks, for its configuration.
    pub entry: usize,
    /// What the structure paper's code read instead, where that is other tensors.
    pub published: Option<(String, String)>,
}

/// The tensors that make a layer's queries and keys.
#[derive(Debug, Clone)]
pub(super) enum Projection {
    /// Rows of `Linear` weights.
    Rows { query: Rows, key: Rows },
    /// Columns of one `Conv1D` weight.
    Columns {
        tensor: String,
        query: Range<usize>,
        key: Range<usize>,
    },
    /// Multi-head latent attention.
    Latent(Latent),
}

/// Rows of a tensor, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    pub tensor: String,
    pub ranges: Vec<Range<usize>>,
}

/// The factors of latent attention; see [`extract`](super::extract).
#[derive(Debug, Clone)]
pub(super) struct Latent {
    /// `[query rank, d_model]`; absent where queries are projected directly.
    pub query_down: Option<String>,
    /// `[n_heads (plain + rotary), query rank or d_model]`.
    pub query: String,
    /// `[key rank + rotary, d_model]`.
    pub key_down: String,
    /// `[n_heads (plain + value), key rank]`.
    pub key: String,
    pub rank: usize,
    pub plain: usize,
    pub rotary: usize,
    pub value: usize,
}

impl Rows {
    /// Rows that lie side by side.
    pub fn new(tensor: &str, range: Range<usize>) -> Self {
        Self {
            tensor: tensor.to_owned(),
            ranges: std::iter::once(range).collect(),
        }
    }
}

impl Projection {
    /// The tensors that are read.
    pub fn tensors(&self) -> Vec<&str> {
        match self {
            Self::Rows { query, key } if query.tensor == key.tensor => vec![&query.tensor],
            Self::Rows { query, key } => vec![&query.tensor, &key.tensor],
            Self::Columns { tensor, .. } => vec![tensor],
            Self::Latent(latent) => {
                let down = latent.query_down.as_deref();
                down.into_iter()
                    .chain([latent.query.as_str(), &latent.key_down, &latent.key])
                    .collect()
            }
        }
    }
}

/// The layers of all stacks, and what a report should say about them.
pub(super) fn plan(
    family: &Family,
    store: &Store,
    options: &Options,
) -> Result<(Vec<LayerPlan>, Vec<String>), CheckpointError> {
    let mut layers: Vec<LayerPlan> = Vec::new();
    let mut notes = Vec::new();
    for (entry, stack) in family.stacks.iter().enumerate() {
        let config = Config::new(store.config(), stack.config.as_deref(), &stack.defaults);
        let planner = StackPlanner {
            context: Context(store),
            store,
            options,
            stack,
            config,
            entry,
        };
        let first = layers
            .iter()
            .filter(|l| l.stack == stack.stack)
            .map(|l| l.index + 1)
            .max()
            .unwrap_or(0);
        let found = planner.layers(first)?;
        if let (Some(declared), false) = (planner.declared(), found.is_empty()) {
            let (declared, present) = (declared.value - planner.skipped(declared.value), found.len());
            let inner = found.len().max(1)
                / found
                    .iter()
                    .map(|l| l.number)
                    .collect::<std::collections::BTreeSet<_>>()
                    .len();
            if present < declared * inner {
                notes.push(format!(
                    "{} of {declared} {} layers are in the file",
                    present,
                    stack.stack.name()
                ));
            }
        }
        layers.extend(found);
    }
    notes.extend(family.note.clone());
    Ok((layers, notes))
}

struct StackPlanner<'a> {
    context: Context<'a>,
    store: &'a Store,
    options: &'a Options,
    stack: &'a Stack,
    config: Config<'a>,
    entry: usize,
}

/// The head layout of one layer, with where it is from.
struct Shape {
    heads: Size,
    kv_heads: Size,
    head_dim: usize,
}

const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads", "num_heads"];
const KV_HEADS: &[&str] = &["num_key_value_heads"];
const HEAD_DIM: &[&str] = &["head_dim"];
const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "n_layers", "num_layers"];
const HIDDEN: &[&str] = &["hidden_size", "n_embd", "d_model", "dim"];

impl StackPlanner<'_> {
    /// The layers of the stack in the file; `first` is the index of its layer 0.
    fn layers(&self, first: usize) -> Result<Vec<LayerPlan>, CheckpointError> {
        let Some((alternative, places)) = self.find()? else {
            return Ok(Vec::new());
        };
        let inner = places.iter().map(|place| place.inner + 1).max().unwrap_or(1);
        places
            .into_iter()
            .map(|place| {
                let index = first + (place.layer - self.skipped(place.layer)) * inner + place.inner;
                self.layer(alternative, place, index)
            })
            .collect()
    }

    /// Which of the query patterns the file follows, and where.
    fn find(&self) -> Result<Option<(usize, Vec<Place<'_>>)>, CheckpointError> {
        for (i, text) in self.stack.query.all().enumerate() {
            let pattern = Pattern::new(text);
            let mut places: Vec<_> = self.store.names().filter_map(|name| pattern.find(name)).collect();
            places.sort();
            let (Some(first), Some(last)) = (places.first(), places.last()) else {
                continue;
            };
            if first.prefix != last.prefix {
                let mut prefixes: Vec<_> = places.iter().map(|place| place.prefix.to_owned()).collect();
                prefixes.dedup();
                return Err(self.context.ambiguous(text, prefixes));
            }
            return Ok(Some((i, places)));
        }
        Ok(None)
    }

    /// The configuration's number of layers of this pattern.
    fn declared(&self) -> Option<Size> {
        self.config.size(&self.stack.layers, LAYERS)
    }

    /// How many layers before `layer` are not self-attention.
    fn skipped(&self, layer: usize) -> usize {
        let list = self
            .stack
            .skip
            .as_ref()
            .and_then(|key| self.config.value(key)?.as_array());
        list.map_or(0, |list| {
            list.iter()
                .filter(|v| v.as_u64().is_some_and(|v| v < layer as u64))
                .count()
        })
    }

    fn layer(
        &self,
        alternative: usize,
        place: Place<'_>,
        index: usize,
    ) -> Result<LayerPlan, CheckpointError> {
        let stack = self.stack;
        let query = self.nth(&stack.query, alternative, place);
        let key = if stack.key.is_empty() {
            query.clone()
        } else {
            self.nth(&stack.key, alternative, place)
        };
        if let Some(declared) = self.declared()
            && place.layer >= declared.value
        {
            let why = format!("this is layer {}", place.layer);
            return Err(self
                .context
                .disagrees(&declared, &query, &self.matrix(&query)?, why));
        }
        let (projection, shape, d_model) = match stack.layout {
            Layout::Separate => self.separate(&query, &key)?,
            Layout::Fused | Layout::FusedColumns | Layout::FusedGroups => self.fused(&query)?,
            Layout::Latent => self.latent(&query, &key, place)?,
        };
        if let Some(hidden) = self.config.size(&stack.hidden, HIDDEN)
            && hidden.value != d_model
        {
            let why = format!("which reads {d_model} inputs");
            return Err(self
                .context
                .disagrees(&hidden, &query, &self.matrix(&query)?, why));
        }
        let gain = |alternatives: &Alternatives| self.first_present(alternatives, place);
        let norm = gain(&stack.norm).or_else(|| {
            if place.layer == 0 {
                gain(&stack.first_norm)
            } else {
                None
            }
        });
        let published = [&stack.published_query, &stack.published_key].map(|p| self.first_present(p, place));
        Ok(LayerPlan {
            stack: stack.stack,
            index,
            number: place.layer,
            module: module(&query, &key),
            repeats: self
                .config
                .size(&stack.repeats, &[])
                .map_or(1, |size| size.value.max(1)),
            heads: Heads::grouped(shape.heads.value, shape.kv_heads.value),
            head_dim: shape.head_dim,
            d_model,
            layout: stack.layout,
            projection,
            // An embedding narrower than the model is projected up after its norm, which then does not come before
            // the attention.
            norm: norm.filter(|name| place.layer > 0 || self.length(name) == Some(d_model)),
            query_norm: gain(&stack.query_norm),
            key_norm: gain(&stack.key_norm),
            gain_offset: stack.gain_offset,
            rotary: stack
                .rotary
                .holding(&self.config)
                .next()
                .map(|convention| match convention {
                    "interleaved" => RotaryPairs::Interleaved,
                    _ => RotaryPairs::Half,
                }),
            entry: self.entry,
            published: match published {
                [Some(query), Some(key)] => Some((query, key)),
                _ => None,
            },
        })
    }

    fn separate(&self, query: &str, key: &str) -> Result<(Projection, Shape, usize), CheckpointError> {
        let ([rows, d_model], [key_rows, key_width]) = (self.matrix(query)?, self.matrix(key)?);
        let shape = self.shape(query, rows, |heads, _| heads, Some((key, key_rows)))?;
        if key_width != d_model {
            let from = Size {
                value: d_model,
                from: format!("the width of {query:?}"),
            };
            let why = format!("which reads {key_width} inputs");
            return Err(self.context.disagrees(&from, key, &[key_rows, key_width], why));
        }
        if key_rows != shape.kv_heads.value * shape.head_dim {
            let why = format!(
                "heads of {} need {} rows",
                shape.head_dim,
                shape.kv_heads.value * shape.head_dim
            );
            return Err(self
                .context
                .disagrees(&shape.kv_heads, key, &[key_rows, key_width], why));
        }
        Ok((
            Projection::Rows {
                query: Rows::new(query, 0..rows),
                key: Rows::new(key, 0..key_rows),
            },
            shape,
            d_model,
        ))
    }

    fn fused(&self, tensor: &str) -> Result<(Projection, Shape, usize), CheckpointError> {
        let [rows, columns] = self.matrix(tensor)?;
        let (out, d_model) = match self.stack.layout {
            Layout::FusedColumns => (columns, rows),
            _ => (rows, columns),
        };
        let shape = self.shape(tensor, out, |heads, kv_heads| heads + 2 * kv_heads, None)?;
        let (heads, groups, width) = (shape.heads.value, shape.kv_heads.value, shape.head_dim);
        let projection = match self.stack.layout {
            Layout::FusedColumns => Projection::Columns {
                tensor: tensor.to_owned(),
                query: 0..heads * width,
                key: heads * width..(heads + groups) * width,
            },
            Layout::FusedGroups => {
                if !heads.is_multiple_of(groups) {
                    let why = format!("{heads} query heads do not divide among them");
                    return Err(self
                        .context
                        .disagrees(&shape.kv_heads, tensor, &[rows, columns], why));
                }
                let per_group = heads / groups;
                let block = (per_group + 2) * width;
                let rows = |from: usize, count: usize| Rows {
                    tensor: tensor.to_owned(),
                    ranges: (0..groups)
                        .map(|g| g * block + from * width..g * block + (from + count) * width)
                        .collect(),
                };
                Projection::Rows {
                    query: rows(0, per_group),
                    key: rows(per_group, 1),
                }
            }
            _ => Projection::Rows {
                query: Rows::new(tensor, 0..heads * width),
                key: Rows::new(tensor, heads * width..(heads + groups) * width),
            },
        };
        Ok((projection, shape, d_model))
    }

    fn latent(
        &self,
        query: &str,
        key: &str,
        place: Place<'_>,
    ) -> Result<(Projection, Shape, usize), CheckpointError> {
        let heads = self
            .heads()?
            .ok_or_else(|| self.context.missing("number of query heads", "--heads"))?;
        let size = |alternatives, what| {
            self.config
                .size(alternatives, &[])
                .ok_or_else(|| self.context.missing(what, "--head-dim"))
        };
        let plain = size(&self.stack.head_dim, "width of a head's unrotated part")?;
        let rotary = size(&self.stack.rotary_dim, "width of a head's rotary part")?;
        let query_down = self.first_present(&self.stack.query_down, place);
        let key_down = self.nth(&self.stack.key_down, 0, place);
        let ([rows, inner], [key_rows, rank], [down_rows, d_model]) =
            (self.matrix(query)?, self.matrix(key)?, self.matrix(&key_down)?);
        let need = |of: &Size, tensor: &str, shape: [usize; 2], ok: bool, need: String| {
            if ok {
                Ok(())
            } else {
                Err(self.context.disagrees(of, tensor, &shape, need))
            }
        };
        let width = plain.value + rotary.value;
        need(
            &heads,
            query,
            [rows, inner],
            rows == heads.value * width,
            format!("heads of {width} need other rows"),
        )?;
        need(
            &rotary,
            &key_down,
            [down_rows, d_model],
            down_rows == rank + rotary.value,
            format!("with a rank of {rank}"),
        )?;
        let per_head = key_rows / heads.value.max(1);
        let whole = heads.value > 0 && key_rows.is_multiple_of(heads.value) && per_head >= plain.value;
        need(
            &heads,
            key,
            [key_rows, rank],
            whole,
            format!("unrotated parts of {} need more rows", plain.value),
        )?;
        match &query_down {
            Some(down) => {
                let [down_rows, down_width] = self.matrix(down)?;
                let from = Size {
                    value: inner,
                    from: format!("the width of {query:?}"),
                };
                let fits = down_rows == inner && down_width == d_model;
                need(
                    &from,
                    down,
                    [down_rows, down_width],
                    fits,
                    format!("for a model of width {d_model}"),
                )?;
            }
            None => {
                let from = Size {
                    value: d_model,
                    from: format!("the width of {key_down:?}"),
                };
                need(
                    &from,
                    query,
                    [rows, inner],
                    inner == d_model,
                    format!("which reads {inner} inputs"),
                )?;
            }
        }
        let latent = Latent {
            query_down,
            query: query.to_owned(),
            key_down,
            key: key.to_owned(),
            rank,
            plain: plain.value,
            rotary: rotary.value,
            value: per_head - plain.value,
        };
        let shape = Shape {
            kv_heads: heads.clone(),
            heads,
            head_dim: width,
        };
        Ok((Projection::Latent(latent), shape, d_model))
    }

    /// The head layout of a projection of `rows` outputs, of which `widths(heads, kv_heads)` heads make up all.
    fn shape(
        &self,
        tensor: &str,
        rows: usize,
        widths: impl Fn(usize, usize) -> usize,
        key: Option<(&str, usize)>,
    ) -> Result<Shape, CheckpointError> {
        let stated = self.options.head_dim.map(|value| Size {
            value,
            from: "--head-dim".into(),
        });
        let head_dim = stated
            .or_else(|| self.config.size(&self.stack.head_dim, HEAD_DIM))
            .filter(|d| d.value > 0);
        let heads = match (self.heads()?, &head_dim, key) {
            (Some(heads), _, _) => heads,
            // One projection for queries alone: its height tells.
            (None, Some(d), Some(_)) if rows.is_multiple_of(d.value) => Size {
                value: rows / d.value,
                from: d.from.clone(),
            },
            _ => return Err(self.context.missing("number of query heads", "--heads")),
        };
        let stated = self.options.kv_heads.map(|value| Size {
            value,
            from: "--kv-heads".into(),
        });
        let kv_heads = match (
            stated.or_else(|| self.config.size(&self.stack.kv_heads, KV_HEADS)),
            key,
        ) {
            (Some(kv_heads), _) => kv_heads,
            // Without a configuration the keys' height tells.
            (None, Some((_, key_rows))) if self.store.config().is_none() && rows > 0 => Size {
                value: key_rows * heads.value / rows,
                from: "the height of the key projection".into(),
            },
            (None, _) => heads.clone(),
        };
        for size in [&heads, &kv_heads] {
            if size.value == 0 || size.value > rows {
                let why = "that is no number of heads".to_owned();
                return Err(self.context.disagrees(size, tensor, &self.matrix(tensor)?, why));
            }
        }
        let count = widths(heads.value, kv_heads.value);
        match head_dim {
            Some(d) if d.value * count != rows => {
                let why = format!(
                    "{count} heads of that width need {} outputs",
                    d.value.saturating_mul(count)
                );
                Err(self.context.disagrees(&d, tensor, &self.matrix(tensor)?, why))
            }
            None if !rows.is_multiple_of(count) => {
                let why = format!("{rows} outputs are no {count} heads");
                Err(self.context.disagrees(&heads, tensor, &self.matrix(tensor)?, why))
            }
            _ => Ok(Shape {
                heads,
                kv_heads,
                head_dim: rows / count,
            }),
        }
    }

    fn heads(&self) -> Result<Option<Size>, CheckpointError> {
        let stated = self.options.heads.map(|value| Size {
            value,
            from: "--heads".into(),
        });
        Ok(stated.or_else(|| self.config.size(&self.stack.heads, HEADS)))
    }

    /// The name that the alternative gives; the last where there are fewer.
    fn nth(&self, alternatives: &Alternatives, alternative: usize, place: Place<'_>) -> String {
        let text = alternatives
            .all()
            .nth(alternative)
            .or_else(|| alternatives.all().last())
            .unwrap_or_default();
        Pattern::new(text).at(place).unwrap_or_default()
    }

    /// The first of the alternatives that the file holds; a norm may go by the old name of its gain.
    fn first_present(&self, alternatives: &Alternatives, place: Place<'_>) -> Option<String> {
        alternatives
            .holding(&self.config)
            .filter_map(|text| Pattern::new(text).at(place))
            .find_map(|name| {
                let old = name.strip_suffix("weight").map(|stem| format!("{stem}gamma"));
                [Some(name), old]
                    .into_iter()
                    .flatten()
                    .find(|name| self.store.info(name).is_some())
            })
    }

    fn length(&self, tensor: &str) -> Option<usize> {
        self.store.info(tensor).map(|info| info.elements())
    }

    /// A tensor's shape, which must be a matrix's.
    fn matrix(&self, tensor: &str) -> Result<[usize; 2], CheckpointError> {
        self.context.matrix(tensor)
    }
}

/// The module that holds both projections: what their names share.
fn module(query: &str, key: &str) -> String {
    let parents = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (query, key) = (parents(query), parents(key));
    let shared = query.iter().zip(&key).take_while(|(a, b)| a == b).count();
    // A fused projection shares its whole name; its module is what holds it.
    let shared = shared.min(query.len().saturating_sub(2));
    query[..shared].join(".")
}

/// The distinct parameter names of a file that look like attention, numbers left open, for error messages.
pub(super) fn attention_like(store: &Store) -> String {
    const WORDS: [&str; 11] = [
        "attn",
        "attention",
        "q_proj",
        "k_proj",
        "query",
        "key",
        "qkv",
        "q_lin",
        "k_lin",
        "wq",
        "wk",
    ];
    const SHOWN: usize = 8;
    let mut found: BTreeMap<(String, &[usize]), usize> = BTreeMap::new();
    for name in store.names() {
        let Some(info) = store.info(name).filter(|info| info.shape.len() == 2) else {
            continue;
        };
        let lower = name.to_ascii_lowercase();
        if WORDS.iter().any(|word| lower.contains(word)) {
            let open: Vec<_> = name
                .split('.')
                .map(|part| if part.parse::<u32>().is_ok() { "{l}" } else { part })
                .collect();
            *found.entry((open.join("."), &info.shape)).or_default() += 1;
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let shown: Vec<_> = found
        .iter()
        .take(SHOWN)
        .map(|((name, shape), count)| format!("{} {shape:?} x{count}", name.escape_debug()))
        .collect();
    let more = if found.len() > SHOWN {
        format!(" and {} more", found.len() - SHOWN)
    } else {
        String::new()
    };
    format!("it holds {}{more}; ", shown.join(", "))
}
