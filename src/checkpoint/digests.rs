//! The digest of the weights that scores were made from, taken layer by layer.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::Checkpoint;
use super::format::FormatError;

/// SHA-256 of each tensor that queries and keys are read from.
#[derive(Debug)]
pub(super) struct Digests<'a> {
    checkpoint: &'a Checkpoint,
    tensors: BTreeMap<&'a str, OnceLock<[u8; 32]>>,
}

impl<'a> Digests<'a> {
    /// None of them hashed yet.
    pub fn new(checkpoint: &'a Checkpoint) -> Self {
        let names = checkpoint
            .layers
            .iter()
            .flat_map(|layer| layer.projection.tensors());
        Self {
            checkpoint,
            tensors: names.map(|name| (name, OnceLock::new())).collect(),
        }
    }

    /// Hashes the tensors of the layer at a position of the checkpoint's list.
    pub fn add(&self, i: usize) -> Result<(), FormatError> {
        self.checkpoint.layers[i]
            .projection
            .tensors()
            .into_par_iter()
            .try_for_each(|name| self.digest(name).map(drop))
    }

    fn digest(&self, name: &str) -> Result<[u8; 32], FormatError> {
        let place = self.tensors.get(name);
        if let Some(digest) = place.and_then(OnceLock::get) {
            return Ok(*digest);
        }
        let digest = self.checkpoint.store.tensor_digest(name)?;
        if let Some(place) = place {
            // Layers that share a tensor may both have hashed it, to the same.
            let _ = place.set(digest);
        }
        Ok(digest)
    }

    /// The digest of all, in hexadecimal.
    pub fn finish(&self) -> Result<String, FormatError> {
        let parts = self
            .tensors
            .keys()
            .map(|name| Ok((*name, self.digest(name)?)))
            .collect::<Result<Vec<_>, FormatError>>()?;
        let digest = self.checkpoint.store.digest_of(parts)?;
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
