//! From the tensors of a layer to its bilinear form.

use std::ops::Range;

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

use super::CheckpointError;
use super::adapter::Adapter;
use super::error_context::Context;
use super::format::Store;
use super::plan::{Latent, LayerPlan, Projection, Rows};
use crate::bilinear::{BilinearError, BilinearForm, Heads};

/// What to fold into the weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folding {
    /// The gain of the preceding norm.
    pub norm: bool,
    /// The gains of normalisers on queries and keys.
    pub query_key_norms: bool,
}

/// Reads the queries and keys of one layer from one checkpoint.
#[derive(Debug)]
pub(super) struct Extractor<'a, B: Backend> {
    pub store: &'a Store,
    pub adapter: Option<&'a Adapter>,
    pub layer: &'a LayerPlan,
    pub device: &'a B::Device,
}

/// A weight as `Linear` holds it, `[out, in]`, row-major.
struct Weight {
    values: Vec<f32>,
    inputs: usize,
}

impl Weight {
    fn outputs(&self) -> usize {
        self.values.len() / self.inputs.max(1)
    }

    /// Multiplies each output by its gain; a gain for one head repeats over the heads.
    fn scale_outputs(&mut self, gain: &[f32]) {
        for (row, gain) in self.values.chunks_exact_mut(self.inputs).zip(gain.iter().cycle()) {
            row.iter_mut().for_each(|w| *w *= gain);
        }
    }

    /// Multiplies what is read from each input by that input's gain.
    fn scale_inputs(&mut self, gain: &[f32]) {
        for row in self.values.chunks_exact_mut(self.inputs) {
            row.iter_mut().zip(gain).for_each(|(w, gain)| *w *= gain);
        }
    }

    /// `[out, in]` on the device.
    fn upload<B: Backend>(self, device: &B::Device) -> Tensor<B, 2> {
        let shape = [self.outputs(), self.inputs];
        Tensor::from_data(TensorData::new(self.values, shape), device)
    }
}

impl<B: Backend> Extractor<'_, B> {
    /// The form of the layer.
    pub fn form(&self, folding: Folding) -> Result<BilinearForm<B>, CheckpointError> {
        let (query, key) = match &self.layer.projection {
            Projection::Rows { query, key } => {
                let (mut query, mut key) = (self.rows(query)?, self.rows(key)?);
                self.fold(&mut query, &mut key, folding)?;
                (
                    query.upload::<B>(self.device).transpose(),
                    key.upload::<B>(self.device).transpose(),
                )
            }
            Projection::Columns { tensor, query, key } => {
                // Held as [in, out]: folding sees the transposed roles.
                let read = |range: &Range<usize>| -> Result<Tensor<B, 2>, CheckpointError> {
                    let values = self.read(tensor, 1, range)?;
                    let mut weight = Weight {
                        values,
                        inputs: range.len(),
                    };
                    if folding.norm
                        && let Some(gain) = self.norm()?
                    {
                        weight.scale_outputs(&gain);
                    }
                    Ok(weight.upload(self.device))
                };
                (read(query)?, read(key)?)
            }
            Projection::Latent(latent) => self.latent(latent, folding)?,
        };
        self.check(BilinearForm::new(query, key, self.layer.heads))
    }

    /// The form of two whole `Linear` weights, transposed or (as nobody should) not.
    pub fn whole(
        &self,
        query: &Rows,
        key: &Rows,
        transposed: bool,
        heads: Heads,
    ) -> Result<BilinearForm<B>, CheckpointError> {
        let orient = |w: Tensor<B, 2>| if transposed { w.transpose() } else { w };
        let query = orient(self.rows(query)?.upload(self.device));
        let key = orient(self.rows(key)?.upload(self.device));
        self.check(BilinearForm::new(query, key, heads))
    }

    /// Says which layer a numerical error is about.
    pub fn check<T>(&self, result: Result<T, BilinearError>) -> Result<T, CheckpointError> {
        result.map_err(|source| CheckpointError::Layer {
            path: self.store.path().to_owned(),
            module: self.layer.module.clone(),
            source,
        })
    }

    /// A part of a weight, merged with the adapter's.
    fn read(&self, tensor: &str, axis: usize, range: &Range<usize>) -> Result<Vec<f32>, CheckpointError> {
        let mut values = self.store.read_slice_f32(tensor, axis, range.clone())?;
        if let Some(adapter) = self.adapter {
            adapter.add_to(&mut values, tensor, axis, range)?;
        }
        Ok(values)
    }

    fn rows(&self, rows: &Rows) -> Result<Weight, CheckpointError> {
        let [_, inputs] = Context(self.store).matrix(&rows.tensor)?;
        let mut parts = rows.ranges.iter().map(|range| self.read(&rows.tensor, 0, range));
        let mut values = parts.next().transpose()?.unwrap_or_default();
        let count: usize = rows.ranges.iter().map(Range::len).sum();
        values.reserve_exact((count * inputs).saturating_sub(values.len()));
        for part in parts {
            values.extend(part?);
        }
        Ok(Weight { values, inputs })
    }

    fn fold(&self, query: &mut Weight, key: &mut Weight, folding: Folding) -> Result<(), CheckpointError> {
        if folding.query_key_norms {
            for (weight, name) in [
                (&mut *query, &self.layer.query_norm),
                (&mut *key, &self.layer.key_norm),
            ] {
                if let Some(name) = name {
                    let (head_dim, outputs) = (self.layer.head_dim, weight.outputs());
                    weight.scale_outputs(&self.gain(name, &[head_dim, outputs])?);
                }
            }
        }
        if folding.norm
            && let Some(gain) = self.norm()?
        {
            query.scale_inputs(&gain);
            key.scale_inputs(&gain);
        }
        Ok(())
    }

    /// Queries `[d_model, n_heads · head_dim]` and keys of latent attention, multiplied out. Of each head the
    /// unrotated entries come first; the rotary entries of the keys are the same for all heads.
    fn latent(
        &self,
        latent: &Latent,
        folding: Folding,
    ) -> Result<(Tensor<B, 2>, Tensor<B, 2>), CheckpointError> {
        let heads = self.layer.heads.n_heads();
        let all = |tensor: &str| -> Result<Weight, CheckpointError> {
            let [rows, _] = Context(self.store).matrix(tensor)?;
            self.rows(&Rows::new(tensor, 0..rows))
        };
        let norm = if folding.norm { self.norm()? } else { None };
        let from_model = |mut weight: Weight| {
            if let Some(gain) = &norm {
                weight.scale_inputs(gain);
            }
            weight.upload::<B>(self.device)
        };
        let from_latent =
            |mut weight: Weight, name: &Option<String>| -> Result<Tensor<B, 2>, CheckpointError> {
                if let (true, Some(name)) = (folding.query_key_norms, name) {
                    weight.scale_inputs(&self.gain(name, &[weight.inputs])?);
                }
                Ok(weight.upload(self.device))
            };
        let query = match &latent.query_down {
            Some(down) => {
                from_latent(all(&latent.query)?, &self.layer.query_norm)?.matmul(from_model(all(down)?))
            }
            None => from_model(all(&latent.query)?),
        };
        let per_head = latent.plain + latent.value;
        let plain = Rows {
            tensor: latent.key.clone(),
            ranges: (0..heads)
                .map(|h| h * per_head..h * per_head + latent.plain)
                .collect(),
        };
        let plain = from_latent(self.rows(&plain)?, &self.layer.key_norm)?;
        let down = from_model(all(&latent.key_down)?);
        let (rank, d_model) = (latent.rank, self.layer.d_model);
        let plain = plain.matmul(down.clone().slice([0..rank, 0..d_model]));
        let rotary = down.slice([rank..rank + latent.rotary, 0..d_model]);
        let key = Tensor::cat(
            vec![
                plain.reshape([heads, latent.plain, d_model]),
                rotary.reshape([1, latent.rotary, d_model]).repeat_dim(0, heads),
            ],
            1,
        );
        let width = heads * (latent.plain + latent.rotary);
        Ok((query.transpose(), key.reshape([width, d_model]).transpose()))
    }

    /// The gain of the norm before the attention, if there is one.
    fn norm(&self) -> Result<Option<Vec<f32>>, CheckpointError> {
        self.layer
            .norm
            .as_ref()
            .map(|name| self.gain(name, &[self.layer.d_model]))
            .transpose()
    }

    /// A gain, which must have one of these lengths.
    fn gain(&self, name: &str, lengths: &[usize]) -> Result<Vec<f32>, CheckpointError> {
        let mut gain = self.store.read_f32(name)?;
        if !lengths.contains(&gain.len()) {
            let shape = self
                .store
                .info(name)
                .map(|info| info.shape.clone())
                .unwrap_or_default();
            return Err(CheckpointError::Disagrees {
                path: self.store.path().to_owned(),
                source_of_value: format!("the layer's projection ({:?})", lengths),
                tensor: name.to_owned(),
                shape,
                why: "a gain has one entry for each".into(),
            });
        }
        gain.iter_mut().for_each(|g| *g += self.layer.gain_offset);
        Ok(gain)
    }
}
