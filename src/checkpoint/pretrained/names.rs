//! Which of our parameters is which tensor of the library, and how the two lie.

use std::collections::{BTreeMap, BTreeSet};

use super::{Parameter, Parameters, PretrainedError};
use crate::checkpoint::format::Store;

/// One parameter under both names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    ours: String,
    our_shape: Vec<usize>,
    theirs: String,
    their_shape: Vec<usize>,
    /// Whether ours is `[in, out]` and theirs `[out, in]`, before it takes its shape.
    transposed: bool,
}

/// The parameters of a model under both names.
#[derive(Debug, Default)]
pub(super) struct Pairs(Vec<Pair>);

impl Pairs {
    /// A parameter that lies the same in both.
    pub fn same(&mut self, ours: impl Into<String>, theirs: impl Into<String>, shape: &[usize]) {
        self.reshaped(ours, shape, theirs, shape);
    }

    /// A parameter with the same elements in another shape.
    pub fn reshaped(
        &mut self,
        ours: impl Into<String>,
        our_shape: &[usize],
        theirs: impl Into<String>,
        their_shape: &[usize],
    ) {
        self.0.push(Pair {
            ours: ours.into(),
            our_shape: our_shape.to_vec(),
            theirs: theirs.into(),
            their_shape: their_shape.to_vec(),
            transposed: false,
        });
    }

    /// Weight and bias of a linear map from `input` to `output`.
    pub fn linear(&mut self, ours: &str, theirs: &str, [input, output]: [usize; 2]) {
        self.transposed(ours, theirs, [input, output], &[output, input]);
    }

    /// The same where the weight has another shape at theirs, such as that of a convolution.
    pub fn transposed(
        &mut self,
        ours: &str,
        theirs: &str,
        [input, output]: [usize; 2],
        their_shape: &[usize],
    ) {
        self.0.push(Pair {
            ours: format!("{ours}.weight"),
            our_shape: vec![input, output],
            theirs: format!("{theirs}.weight"),
            their_shape: their_shape.to_vec(),
            transposed: true,
        });
        self.same(format!("{ours}.bias"), format!("{theirs}.bias"), &[output]);
    }

    /// Gain and offset of a layer norm.
    pub fn norm(&mut self, ours: &str, theirs: &str, width: usize) {
        self.same(format!("{ours}.gamma"), format!("{theirs}.weight"), &[width]);
        self.same(format!("{ours}.beta"), format!("{theirs}.bias"), &[width]);
    }

    /// The attention and feed-forward of a block, which BERT and ViT name alike but for the `inner` module of the
    /// three projections; the feed-forward is `ff` wide, the stream `d`.
    pub fn block(&mut self, ours: &str, theirs: &str, inner: &str, [d, ff]: [usize; 2]) {
        for part in ["query", "key", "value"] {
            self.linear(
                &format!("{ours}.attention.{part}"),
                &format!("{theirs}.attention.{inner}.{part}"),
                [d, d],
            );
        }
        for (part, name, shape) in [
            ("attention.output", "attention.output.dense", [d, d]),
            ("feed_forward.inner", "intermediate.dense", [d, ff]),
            ("feed_forward.outer", "output.dense", [ff, d]),
        ] {
            self.linear(&format!("{ours}.{part}"), &format!("{theirs}.{name}"), shape);
        }
    }

    /// Reads our parameters from a checkpoint of theirs, all checked before the first is read.
    ///
    /// `passed_over` says which other tensors the file may hold.
    ///
    /// # Errors
    /// A tensor that is missing, left over, of another shape, or that cannot be read.
    pub fn read(
        &self,
        store: &Store,
        passed_over: impl Fn(&str) -> bool,
    ) -> Result<Parameters, PretrainedError> {
        let mut used = BTreeSet::new();
        let mut found = Vec::with_capacity(self.0.len());
        for pair in &self.0 {
            let name = in_file(store, &pair.theirs).ok_or_else(|| PretrainedError::Missing {
                path: store.path().to_owned(),
                name: pair.theirs.clone(),
                remedy: "the file and its config.json are not of one model, fetch both again",
            })?;
            check(store, &name, &pair.their_shape)?;
            used.insert(name.clone());
            found.push(name);
        }
        let mut surplus = store
            .names()
            .filter(|name| !used.contains(*name) && !passed_over(name));
        if let Some(name) = surplus.next() {
            return Err(PretrainedError::Surplus {
                path: store.path().to_owned(),
                name: name.to_owned(),
                others: surplus.count(),
            });
        }
        let mut by_name = BTreeMap::new();
        for (pair, name) in self.0.iter().zip(found) {
            let values = store.read_f32(&name)?;
            let values = match (pair.transposed, &pair.our_shape[..]) {
                (true, &[input, output]) => transpose(&values, output, input),
                _ => values,
            };
            let shape = pair.our_shape.clone();
            by_name.insert(pair.ours.clone(), Parameter { shape, values });
        }
        Ok(Parameters {
            path: store.path().to_owned(),
            by_name,
        })
    }

    /// Our parameters under their names, in the order of the pairs.
    ///
    /// # Errors
    /// A parameter that is missing, left over or of another shape than the configuration says.
    pub fn export(&self, parameters: &Parameters) -> Result<Vec<(String, Parameter)>, PretrainedError> {
        let path = || parameters.path.clone();
        let mut tensors = Vec::with_capacity(self.0.len());
        for pair in &self.0 {
            let parameter = parameters
                .get(&pair.ours)
                .ok_or_else(|| PretrainedError::Missing {
                    path: path(),
                    name: pair.ours.clone(),
                    remedy: "the weights and the configuration are not of one model",
                })?;
            if parameter.shape != pair.our_shape {
                return Err(PretrainedError::Shape {
                    path: path(),
                    name: pair.ours.clone(),
                    found: parameter.shape.clone(),
                    wanted: pair.our_shape.clone(),
                });
            }
            let values = match (pair.transposed, &pair.our_shape[..]) {
                (true, &[input, output]) => transpose(&parameter.values, input, output),
                _ => parameter.values.clone(),
            };
            let shape = pair.their_shape.clone();
            tensors.push((pair.theirs.clone(), Parameter { shape, values }));
        }
        let known: BTreeSet<&str> = self.0.iter().map(|pair| pair.ours.as_str()).collect();
        let mut surplus = parameters.names().filter(|name| !known.contains(name));
        match surplus.next() {
            None => Ok(tensors),
            Some(name) => Err(PretrainedError::Surplus {
                path: path(),
                name: name.to_owned(),
                others: surplus.count(),
            }),
        }
    }
}

/// The name of a tensor as the file has it: norms of BERT's first release are called `gamma` and `beta`.
fn in_file(store: &Store, name: &str) -> Option<String> {
    let old = || match name.rsplit_once('.') {
        Some((norm, "weight")) => format!("{norm}.gamma"),
        Some((norm, "bias")) => format!("{norm}.beta"),
        _ => name.to_owned(),
    };
    [name.to_owned(), old()]
        .into_iter()
        .find(|name| store.info(name).is_some())
}

/// Refuses a tensor of another shape.
pub(super) fn check(store: &Store, name: &str, wanted: &[usize]) -> Result<(), PretrainedError> {
    let found = store
        .info(name)
        .map(|info| info.shape.clone())
        .unwrap_or_default();
    if found == wanted {
        return Ok(());
    }
    Err(PretrainedError::Shape {
        path: store.path().to_owned(),
        name: name.to_owned(),
        found,
        wanted: wanted.to_vec(),
    })
}

/// The transpose of a matrix `[rows, columns]`, row-major.
fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut transposed = vec![0.0; values.len()];
    for (row, line) in values.chunks_exact(columns.max(1)).enumerate() {
        for (column, value) in line.iter().enumerate() {
            transposed[column * rows + row] = *value;
        }
    }
    transposed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposes() {
        assert_eq!(
            transpose(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
    }
}
