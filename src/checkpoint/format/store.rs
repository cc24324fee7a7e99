//! All tensors of one checkpoint.

use std::collections::btree_map;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::decode::{NotFinite, decode};
use super::error::Quoted;
use super::folder::{self, Kind};
use super::map::MappedFile;
use super::tensor::{Entry, Runs, TensorInfo, unravel};
use super::{FormatError, config, index, quantised, safetensors, torch};

/// The tensors of a checkpoint by name, over one file or many shards.
///
/// Opening maps the files and reads their headers; a tensor's bytes are read when it is asked for,
/// and then only its own.
///
/// # Examples
/// ```no_run
/// use wqk::checkpoint::format::Store;
/// let store = Store::open("bert-base-uncased".as_ref())?;
/// let query = store.read_f32("bert.encoder.layer.0.attention.self.query.weight")?;
/// # Ok::<(), wqk::checkpoint::format::FormatError>(())
/// ```
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    files: Vec<MappedFile>,
    tensors: BTreeMap<String, TensorInfo>,
    config: Option<Value>,
}

impl Store {
    /// Opens a folder as Hugging Face's library writes it, a tensor file, or the index of a sharded
    /// checkpoint. `config.json` is read if it lies in the folder, or beside the file.
    ///
    /// Cost: the headers of all shards; no tensor is read.
    ///
    /// # Errors
    /// If there are no weights, or if any of the files is damaged, contradicts itself or another, or
    /// is of a kind that is not read.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let is_folder = std::fs::metadata(path)
            .map_err(|source| FormatError::Io {
                path: path.to_owned(),
                source,
            })?
            .is_dir();
        let (folder, weights) = if is_folder {
            (path, folder::weights(path)?)
        } else {
            (path.parent().unwrap_or(Path::new("")), path.to_owned())
        };
        if !is_folder {
            folder::refuse_descriptions(&weights)?;
        }
        let config = config::read(folder)?;
        let mut store = Self {
            path: path.to_owned(),
            files: Vec::new(),
            tensors: BTreeMap::new(),
            config,
        };
        if weights.extension().is_some_and(|ending| ending == "json") {
            store.add_shards(folder, &weights)?;
        } else {
            store.add_file(&weights)?;
        }
        Ok(store)
    }

    fn add_shards(&mut self, folder: &Path, index_path: &Path) -> Result<(), FormatError> {
        let fault = |what: String| FormatError::Index {
            path: index_path.to_owned(),
            what,
        };
        let index = index::parse(index_path, MappedFile::open(index_path)?.bytes())?;
        for shard in &index.shards {
            let path = folder.join(shard);
            if !path.exists() {
                return Err(fault(format!("shard {} is missing", Quoted(shard))));
            }
            self.add_file(&path)?;
        }
        for (name, shard) in &index.tensors {
            if self
                .tensors
                .get(name)
                .is_none_or(|tensor| tensor.file_index != *shard)
            {
                return Err(fault(format!(
                    "the index puts tensor {} in shard {}, which does not hold it",
                    Quoted(name),
                    Quoted(&index.shards[*shard])
                )));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), FormatError> {
        let file = MappedFile::open(path)?;
        let entries = match folder::kind(path, file.bytes())? {
            Kind::Safetensors => safetensors::entries(path, file.bytes())?,
            Kind::TorchZip => torch::zip_entries(path, file.bytes())?,
            Kind::TorchLegacy => torch::legacy_entries(path, file.bytes())?,
        };
        for Entry {
            name,
            dtype,
            shape,
            bytes,
            layout,
        } in entries
        {
            let tensor = TensorInfo {
                name: name.clone(),
                dtype,
                shape,
                file: file.path.clone(),
                bytes: bytes.start as u64..bytes.end as u64,
                file_index: self.files.len(),
                layout,
            };
            match self.tensors.entry(name) {
                btree_map::Entry::Vacant(place) => drop(place.insert(tensor)),
                btree_map::Entry::Occupied(earlier) => {
                    let what = format!(
                        "tensor {} is both here and in {}",
                        Quoted(earlier.key()),
                        earlier.get().file.display()
                    );
                    return Err(FormatError::Malformed {
                        path: path.to_owned(),
                        what,
                    });
                }
            }
        }
        self.files.push(file);
        Ok(())
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder's `config.json`, a JSON object; `None` if there is none.
    pub fn config(&self) -> Option<&Value> {
        self.config.as_ref()
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor's type, shape and place; `None` if there is no such tensor.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// The number of elements of all floating-point tensors; tensors that share their bytes, as tied
    /// embeddings do in PyTorch's format, count once.
    pub fn parameters(&self) -> u64 {
        let mut seen = HashSet::new();
        self.tensors
            .values()
            .filter(|tensor| tensor.dtype.is_float())
            .filter(|tensor| seen.insert((tensor.file_index, &tensor.bytes)))
            .map(|tensor| tensor.elements() as u64)
            .sum()
    }

    /// How the weight `name` is quantised, whether or not a tensor of that name exists; `None` if
    /// nothing says that it is.
    pub fn quantised(&self, name: &str) -> Option<String> {
        if let Some(scheme) = quantised::beside(name, |tensor| self.tensors.contains_key(tensor)) {
            return Some(scheme);
        }
        // Configurations name the method for the model; some of its weights may be left as they were.
        let weight_is_float = self.info(name).is_none_or(|tensor| tensor.dtype.is_float());
        if weight_is_float {
            None
        } else {
            quantised::method(self.config.as_ref()?)
        }
    }

    /// A whole tensor, row-major, as f32.
    ///
    /// # Errors
    /// If there is no such tensor, if it is not f64, f32, f16 or bf16, or if an element is not a
    /// finite f32.
    pub fn read_f32(&self, name: &str) -> Result<Vec<f32>, FormatError> {
        let tensor = self.float_tensor(name)?;
        self.read(tensor, None)
    }

    /// Some rows of a tensor of one axis or more, row-major, as f32: with shape `[n, …]`, rows
    /// `a..b` have the shape `[b − a, …]`. Nothing else is read.
    ///
    /// # Errors
    /// As [`Store::read_f32`], and if the tensor has no such rows.
    pub fn read_rows_f32(&self, name: &str, rows: Range<usize>) -> Result<Vec<f32>, FormatError> {
        self.read_slice_f32(name, 0, rows)
    }

    /// The part of a tensor with the indices `range` along `axis`, row-major, as f32. Of a matrix,
    /// axis 0 gives rows and axis 1 columns. Nothing else is read, save what shares a page with it.
    ///
    /// # Errors
    /// As [`Store::read_f32`], and if the tensor has no such indices.
    pub fn read_slice_f32(
        &self,
        name: &str,
        axis: usize,
        range: Range<usize>,
    ) -> Result<Vec<f32>, FormatError> {
        let tensor = self.float_tensor(name)?;
        if range.start > range.end || tensor.shape.get(axis).is_none_or(|&length| range.end > length) {
            return Err(FormatError::NoSuchSlice {
                path: tensor.file.to_path_buf(),
                name: name.to_owned(),
                shape: tensor.shape.clone(),
                axis,
                range,
            });
        }
        self.read(tensor, Some((axis, range)))
    }

    /// A hash of tensors: SHA-256 over, for each name in the order given, its name, type, shape and
    /// the SHA-256 of its elements, row-major and little-endian. The same weights give the same
    /// digest whichever format, shard and memory layout they are stored in.
    ///
    /// Cost: one pass over the tensors' bytes, on the threads of the pool.
    ///
    /// # Errors
    /// If there is no tensor of one of the names, or if one is a broadcast view.
    pub fn digest<S: AsRef<str> + Sync>(&self, names: &[S]) -> Result<[u8; 32], FormatError> {
        let parts = names
            .par_iter()
            .map(|name| self.tensor_digest(name.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        self.digest_of(names.iter().map(AsRef::as_ref).zip(parts))
    }

    /// The same from names and the digests of their tensors.
    pub(crate) fn digest_of<'a>(
        &self,
        parts: impl IntoIterator<Item = (&'a str, [u8; 32])>,
    ) -> Result<[u8; 32], FormatError> {
        let mut all = Sha256::new();
        for (name, elements) in parts {
            let tensor = self.tensor(name)?;
            let text = |hash: &mut Sha256, text: &str| {
                // The length keeps a name apart from what follows it.
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            };
            text(&mut all, name);
            text(&mut all, tensor.dtype.name());
            all.update((tensor.shape.len() as u64).to_le_bytes());
            for &length in &tensor.shape {
                all.update((length as u64).to_le_bytes());
            }
            all.update(elements);
        }
        Ok(all.finalize().into())
    }

    /// SHA-256 of a tensor's elements, row-major and little-endian.
    pub(crate) fn tensor_digest(&self, name: &str) -> Result<[u8; 32], FormatError> {
        let tensor = self.tensor(name)?;
        let data = self.data(tensor)?;
        let size = tensor.dtype.size();
        let mut hash = Sha256::new();
        let mut swapped = Vec::new();
        let runs = Runs::of(&tensor.shape, &tensor.layout.strides);
        if runs.is_single() && !tensor.layout.big_endian {
            hash.update(data);
        } else {
            for offset in runs.offsets() {
                let run = &data[offset * size..(offset + runs.length) * size];
                if tensor.layout.big_endian {
                    swapped.clear();
                    swapped.extend(run.chunks(size).flat_map(|element| element.iter().rev()));
                    hash.update(&swapped);
                } else {
                    hash.update(run);
                }
            }
        }
        Ok(hash.finalize().into())
    }

    fn tensor(&self, name: &str) -> Result<&TensorInfo, FormatError> {
        self.info(name).ok_or_else(|| {
            let (path, name) = (self.path.clone(), name.to_owned());
            match self.quantised(&name) {
                Some(scheme) => FormatError::Quantised { path, name, scheme },
                None => FormatError::NoTensor { path, name },
            }
        })
    }

    fn float_tensor(&self, name: &str) -> Result<&TensorInfo, FormatError> {
        let tensor = self.tensor(name)?;
        if tensor.dtype.is_float() {
            return Ok(tensor);
        }
        let path = tensor.file.to_path_buf();
        let name = name.to_owned();
        match self.quantised(&name) {
            Some(scheme) => Err(FormatError::Quantised { path, name, scheme }),
            None => Err(FormatError::NotFloat {
                path,
                name,
                dtype: tensor.dtype,
            }),
        }
    }

    /// A tensor's bytes, first element to last.
    fn data(&self, tensor: &TensorInfo) -> Result<&[u8], FormatError> {
        if tensor.layout.repeats {
            return Err(FormatError::Unsupported {
                path: tensor.file.to_path_buf(),
                what: format!(
                    "tensor {} is a broadcast view, larger than its data",
                    Quoted(&tensor.name)
                ),
                remedy: "save it as tensor.contiguous()",
            });
        }
        let range = tensor.bytes.start as usize..tensor.bytes.end as usize;
        let file = &self.files[tensor.file_index];
        file.will_read(&range);
        Ok(&file.bytes()[range])
    }

    /// The part of a tensor with the indices `range` along `axis`; all of it where `cut` is `None`.
    fn read(&self, tensor: &TensorInfo, cut: Option<(usize, Range<usize>)>) -> Result<Vec<f32>, FormatError> {
        let data = self.data(tensor)?;
        let size = tensor.dtype.size();
        let mut shape = tensor.shape.clone();
        let mut origin = vec![0; shape.len()];
        if let Some((axis, range)) = cut {
            shape[axis] = range.len();
            origin[axis] = range.start;
        }
        let mut values = vec![0.0; shape.iter().product()];
        if values.is_empty() {
            return Ok(values);
        }
        let first: usize = origin
            .iter()
            .zip(&tensor.layout.strides)
            .map(|(at, stride)| at * stride)
            .sum();
        let runs = Runs::of(&shape, &tensor.layout.strides);
        for (k, (offset, out)) in runs.offsets().zip(values.chunks_mut(runs.length)).enumerate() {
            let run = &data[(first + offset) * size..(first + offset + runs.length) * size];
            decode(tensor.dtype, tensor.layout.big_endian, run, out).map_err(
                |NotFinite { index, value }| {
                    let within = unravel(k * runs.length + index, &shape);
                    FormatError::NotFinite {
                        path: tensor.file.to_path_buf(),
                        name: tensor.name.clone(),
                        index: within
                            .iter()
                            .zip(&origin)
                            .map(|(at, origin)| at + origin)
                            .collect(),
                        value,
                    }
                },
            )?;
        }
        Ok(values)
    }
}
