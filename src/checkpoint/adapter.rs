//! Low-rank adapters as the `peft` library writes them, merged with the weights of their base.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::CheckpointError;
use super::format::{Store, brief};

/// A folder with `adapter_config.json` and `adapter_model.safetensors` (or `.bin`), for one base.
///
/// # Formula
/// `W + s · B A` with `A [r, in]`, `B [out, r]` and `s = alpha / r`, or `alpha / √r` for rank-stabilised adapters.
///
/// # Source
/// E. Hu et al., LoRA, arXiv 2106.09685; D. Kalajdzievski, arXiv 2312.03732 (rank stabilisation).
#[derive(Debug)]
pub(super) struct Adapter {
    store: Store,
    transposed: bool,
    /// By the name of the base's weight.
    deltas: BTreeMap<String, Delta>,
}

/// What is added to one weight of the base.
#[derive(Debug)]
struct Delta {
    a: String,
    b: String,
    rank: usize,
    inputs: usize,
    outputs: usize,
    scale: f32,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    peft_type: Option<String>,
    lora_alpha: f64,
    #[serde(default)]
    use_rslora: bool,
    #[serde(default)]
    use_dora: bool,
    #[serde(default)]
    fan_in_fan_out: bool,
    #[serde(default)]
    alpha_pattern: BTreeMap<String, f64>,
}

const REMEDY: &str = "merge it with its base by peft's merge_and_unload, and score the merged folder";

impl Adapter {
    /// Opens the adapter in `folder` for this base.
    pub(super) fn open(folder: &Path, base: &Store) -> Result<Self, CheckpointError> {
        let fault = |what: String, remedy: &str| CheckpointError::Option {
            path: folder.to_owned(),
            what,
            remedy: remedy.to_owned(),
        };
        let config: Config = crate::files::read(&folder.join("adapter_config.json"))
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| brief(&error)))
            .map_err(|error| {
                let what = format!("adapter_config.json cannot be read as that of a LoRA adapter: {error}");
                fault(what, "give the folder that peft's save_pretrained wrote")
            })?;
        match config.peft_type.as_deref() {
            None | Some("LORA") => {}
            Some(other) => {
                return Err(fault(
                    format!("an adapter of type {other} is not a LoRA adapter"),
                    REMEDY,
                ));
            }
        }
        if config.use_dora {
            return Err(fault(
                "a DoRA adapter also rescales the weights, which is not read".into(),
                REMEDY,
            ));
        }
        let store = Store::open(&weights(folder))?;
        let mut deltas = BTreeMap::new();
        for a in store.names().filter(|name| name.contains(".lora_A.")) {
            let b = a.replace(".lora_A.", ".lora_B.");
            let module = a.split(".lora_A.").next().unwrap_or_default();
            let module = module.strip_prefix("base_model.model.").unwrap_or(module);
            let target = target(base, module).ok_or_else(|| {
                let what = format!(
                    "the base ({}) has no weight for the adapter's {module:?}",
                    base.path().display()
                );
                fault(what, "give the checkpoint that the adapter was trained on")
            })?;
            let shape = |name: &str| {
                store
                    .info(name)
                    .map(|info| info.shape.clone())
                    .unwrap_or_default()
            };
            let (&[rank, inputs], &[outputs, b_rank]) = (&shape(a)[..], &shape(&b)[..]) else {
                return Err(fault(format!("{a:?} and {b:?} are not two matrices"), REMEDY));
            };
            let size = if config.fan_in_fan_out {
                [inputs, outputs]
            } else {
                [outputs, inputs]
            };
            let held = base
                .info(&target)
                .map(|info| info.shape.clone())
                .unwrap_or_default();
            if b_rank != rank || rank == 0 || held != size {
                let what = format!(
                    "{a:?} {:?} and {b:?} {:?} do not fit the base's {target:?} {held:?}",
                    shape(a),
                    shape(&b)
                );
                return Err(fault(what, "give the checkpoint that the adapter was trained on"));
            }
            let alpha = alpha(&config, module);
            let r = rank as f64;
            let scale = (alpha / if config.use_rslora { r.sqrt() } else { r }) as f32;
            deltas.insert(
                target,
                Delta {
                    a: a.to_owned(),
                    b,
                    rank,
                    inputs,
                    outputs,
                    scale,
                },
            );
        }
        if deltas.is_empty() {
            return Err(fault(
                "the adapter holds no lora_A and lora_B weights".into(),
                REMEDY,
            ));
        }
        Ok(Self {
            store,
            transposed: config.fan_in_fan_out,
            deltas,
        })
    }

    /// Whether it changes this weight of the base.
    pub(super) fn changes(&self, tensor: &str) -> bool {
        self.deltas.contains_key(tensor)
    }

    /// SHA-256 of its weights, in hexadecimal.
    pub(super) fn digest(&self) -> Result<String, CheckpointError> {
        let names: Vec<&str> = self.store.names().collect();
        Ok(self
            .store
            .digest(&names)?
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    /// Adds its part to `values`, the indices `range` along `axis` of a weight of the base, row-major.
    pub(super) fn add_to(
        &self,
        values: &mut [f32],
        tensor: &str,
        axis: usize,
        range: &Range<usize>,
    ) -> Result<(), CheckpointError> {
        let Some(delta) = self.deltas.get(tensor) else {
            return Ok(());
        };
        let (a, b) = (self.store.read_f32(&delta.a)?, self.store.read_f32(&delta.b)?);
        let (r, inputs, outputs) = (delta.rank, delta.inputs, delta.outputs);
        // The factors by the rows and by the columns of the weight as it lies.
        let row = |i: usize, k: usize| {
            if self.transposed {
                a[k * inputs + i]
            } else {
                b[i * r + k]
            }
        };
        let column = |j: usize, k: usize| {
            if self.transposed {
                b[j * r + k]
            } else {
                a[k * inputs + j]
            }
        };
        let (rows, columns) = if self.transposed {
            (inputs, outputs)
        } else {
            (outputs, inputs)
        };
        let (rows, columns) = if axis == 0 {
            (range.clone(), 0..columns)
        } else {
            (0..rows, range.clone())
        };
        for (i, line) in rows.zip(values.chunks_mut(columns.len().max(1))) {
            for k in 0..r {
                let factor = delta.scale * row(i, k);
                line.iter_mut()
                    .zip(columns.clone())
                    .for_each(|(w, j)| *w += factor * column(j, k));
            }
        }
        Ok(())
    }
}

fn weights(folder: &Path) -> PathBuf {
    let safetensors = folder.join("adapter_model.safetensors");
    let pickle = folder.join("adapter_model.bin");
    if pickle.exists() && !safetensors.exists() {
        pickle
    } else {
        safetensors
    }
}

/// The base's weight for a module of the adapter, whose prefix may be longer or shorter than the base's.
fn target(base: &Store, module: &str) -> Option<String> {
    let name = format!("{module}.weight");
    if base.info(&name).is_some() {
        return Some(name);
    }
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|prefix| prefix.ends_with('.'))
    };
    let mut found = base
        .names()
        .filter(|other| ends(other, &name) || ends(&name, other));
    let first = found.next()?;
    found.next().is_none().then(|| first.to_owned())
}

/// The alpha of a module: the first of the patterns that names it or its last parts, or else that of all.
fn alpha(config: &Config, module: &str) -> f64 {
    let names = |key: &str| {
        module
            .strip_suffix(key)
            .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    };
    config
        .alpha_pattern
        .iter()
        .find(|(key, _)| names(key))
        .map_or(config.lora_alpha, |(_, &alpha)| alpha)
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::{Dtype, TensorView};
    use tempfile::TempDir;

    use super::*;

    fn write(path: &Path, tensors: &[(&str, [usize; 2], &[f32])]) {
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, _, v)| v.iter().flat_map(|x| x.to_le_bytes()).collect())
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap())
        });
        safetensors::serialize_to_file(views, None, path).unwrap();
    }

    /// A base with one weight `[2, 3]` of zeros, and an adapter of rank 1 with A = [1, 2, 3] and B = [10, 20]ᵀ.
    fn folder(config: &str, shape: [usize; 2]) -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        write(
            &folder.path().join("model.safetensors"),
            &[("model.q.weight", shape, &[0.0; 6])],
        );
        let adapter = [
            ("base_model.model.q.lora_A.weight", [1, 3], &[1.0, 2.0, 3.0][..]),
            ("base_model.model.q.lora_B.weight", [2, 1], &[10.0, 20.0]),
        ];
        write(&folder.path().join("adapter_model.safetensors"), &adapter);
        std::fs::write(folder.path().join("adapter_config.json"), config).unwrap();
        let base = Store::open(&folder.path().join("model.safetensors")).unwrap();
        (folder, base)
    }

    #[test]
    fn the_product_is_added_to_rows_and_columns() {
        let (folder, base) = folder(r#"{"peft_type": "LORA", "r": 1, "lora_alpha": 2}"#, [2, 3]);
        let adapter = Adapter::open(folder.path(), &base).unwrap();
        assert!(adapter.changes("model.q.weight"));
        let mut row = vec![0.5; 3];
        adapter.add_to(&mut row, "model.q.weight", 0, &(1..2)).unwrap();
        // 2 · 20 · [1, 2, 3] on top of 0.5.
        assert_eq!(row, [40.5, 80.5, 120.5]);
        let mut columns = vec![0.0; 4];
        adapter
            .add_to(&mut columns, "model.q.weight", 1, &(1..3))
            .unwrap();
        assert_eq!(columns, [40.0, 60.0, 80.0, 120.0]);
        let mut other = vec![1.0];
        adapter.add_to(&mut other, "model.k.weight", 0, &(0..1)).unwrap();
        assert_eq!(other, [1.0]);
    }

    #[test]
    fn a_weight_held_the_other_way_gets_the_transpose() {
        let (folder, base) = folder(r#"{"lora_alpha": 1, "fan_in_fan_out": true}"#, [3, 2]);
        let adapter = Adapter::open(folder.path(), &base).unwrap();
        let mut column = vec![0.0; 3];
        adapter.add_to(&mut column, "model.q.weight", 1, &(1..2)).unwrap();
        assert_eq!(column, [20.0, 40.0, 60.0]);
    }

    #[test]
    fn alpha_may_differ_by_module() {
        let config = r#"{"lora_alpha": 8, "use_rslora": true, "alpha_pattern": {"attn.q": 4}}"#;
        let config: Config = serde_json::from_str(config).unwrap();
        assert_eq!(alpha(&config, "layers.0.attn.q"), 4.0);
        assert_eq!(alpha(&config, "layers.0.battn.q"), 8.0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (of_another_shape, base) = folder(r#"{"lora_alpha": 1}"#, [3, 2]);
        assert!(
            Adapter::open(of_another_shape.path(), &base)
                .unwrap_err()
                .to_string()
                .contains("do not fit")
        );
        for config in [
            r#"{"lora_alpha": 1, "use_dora": true}"#,
            r#"{"lora_alpha": 1, "peft_type": "IA3"}"#,
            "{",
        ] {
            let (folder, base) = folder(config, [2, 3]);
            assert!(Adapter::open(folder.path(), &base).is_err(), "{config}");
        }
    }
}
