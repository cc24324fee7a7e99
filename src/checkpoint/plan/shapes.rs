//! Head layouts: what the configuration says, checked against the shapes of the projections.

use super::super::family::{Layout, Place, Size};
use super::stack::StackPlanner;
use super::{CheckpointError, Latent, Projection, Rows};

/// The head layout of one layer, with where it is from.
pub(super) struct Shape {
    pub heads: Size,
    pub kv_heads: Size,
    pub head_dim: usize,
}

pub(super) const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads", "num_heads"];
pub(super) const KV_HEADS: &[&str] = &["num_key_value_heads"];
pub(super) const HEAD_DIM: &[&str] = &["head_dim"];

impl StackPlanner<'_> {
    /// Queries and keys of two `Linear` weights: where they are, their heads and the model's width.
    pub fn separate(&self, query: &str, key: &str) -> Result<(Projection, Shape, usize), CheckpointError> {
        let ([rows, d_model], [key_rows, key_width]) = (self.matrix(query)?, self.matrix(key)?);
        let shape = self.shape(query, rows, 0, Some(key_rows))?;
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

    /// The same of one weight that holds queries, keys and values.
    pub fn fused(&self, tensor: &str) -> Result<(Projection, Shape, usize), CheckpointError> {
        let [rows, columns] = self.matrix(tensor)?;
        let (out, d_model) = match self.stack.layout {
            Layout::FusedColumns => (columns, rows),
            _ => (rows, columns),
        };
        let shape = self.shape(tensor, out, 2, None)?;
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

    /// The same of latent attention.
    pub fn latent(
        &self,
        query: &str,
        key: &str,
        place: Place<'_>,
    ) -> Result<(Projection, Shape, usize), CheckpointError> {
        let heads = self
            .heads()
            .ok_or_else(|| self.context.missing("number of query heads", "--n-heads"))?;
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
        let width = plain.value.saturating_add(rotary.value);
        need(
            &heads,
            query,
            [rows, inner],
            rows == heads.value.saturating_mul(width),
            format!("heads of {width} need other rows"),
        )?;
        need(
            &rotary,
            &key_down,
            [down_rows, d_model],
            down_rows == rank.saturating_add(rotary.value),
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

    /// The head layout of a projection of `rows` outputs: its query heads, and `parts` heads for each key head.
    /// `key_rows` is the height of a key projection of its own.
    fn shape(
        &self,
        tensor: &str,
        rows: usize,
        parts: usize,
        key_rows: Option<usize>,
    ) -> Result<Shape, CheckpointError> {
        let head_dim = Size::stated(self.options.head_dim, "--head-dim")
            .or_else(|| self.config.size(&self.stack.head_dim, HEAD_DIM))
            .filter(|d| d.value > 0);
        let heads = match (self.heads(), &head_dim) {
            (Some(heads), _) => heads,
            // The height of queries alone tells.
            (None, Some(d)) if parts == 0 => Size {
                value: rows / d.value,
                from: d.from.clone(),
            },
            _ => return Err(self.context.missing("number of query heads", "--n-heads")),
        };
        let stated = Size::stated(self.options.kv_heads, "--n-kv-heads");
        let kv_heads = match stated.or_else(|| self.config.size(&self.stack.kv_heads, KV_HEADS)) {
            Some(kv_heads) => kv_heads,
            None => match key_rows {
                // Without a configuration the keys' height tells.
                Some(key_rows) if self.store.config().is_none() && rows > 0 => Size {
                    value: key_rows.saturating_mul(heads.value) / rows,
                    from: "the height of the key projection".into(),
                },
                _ => heads.clone(),
            },
        };
        for size in [&heads, &kv_heads] {
            if size.value == 0 || size.value > rows {
                let why = "that is no number of heads".to_owned();
                return Err(self.context.disagrees(size, tensor, &self.matrix(tensor)?, why));
            }
        }
        let count = heads.value + parts * kv_heads.value;
        match head_dim {
            Some(d) if d.value.saturating_mul(count) != rows => {
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

    fn heads(&self) -> Option<Size> {
        Size::stated(self.options.heads, "--n-heads").or_else(|| self.config.size(&self.stack.heads, HEADS))
    }
}
