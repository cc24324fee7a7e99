//! Pretrained checkpoints: file formats, the registry of families, and the reading of queries and keys.
//!
//! # Examples
//! ```no_run
//! use wqk::backend::Flex;
//! use wqk::checkpoint::{self, Options, Settings};
//! let checkpoint = checkpoint::open("bert-base-uncased", &Options::default())?;
//! for layer in checkpoint.layers::<Flex>(&Default::default()) {
//!     let layer = layer?;
//!     println!("{} {}: {:?}", layer.module, layer.index, layer.form.symmetry());
//! }
//! let report = checkpoint.score::<Flex>(&Settings::default(), &Default::default(), |_| ())?;
//! # Ok::<(), checkpoint::CheckpointError>(())
//! ```

mod adapter;
mod digests;
mod error;
mod error_context;
mod extract;
pub mod family;
pub mod format;
mod frequencies;
pub mod hub;
mod lanes;
mod module;
mod options;
mod plan;
pub mod pretrained;
mod published;
mod score;
mod significance;

use std::path::Path;

use burn::tensor::backend::Backend;
use rayon::prelude::*;

use crate::bilinear::{BilinearForm, Rotary};
use adapter::Adapter;
use digests::Digests;
use error_context::Context;
use extract::{Extractor, Folding};
use family::{Config, Family, StackKind};
use format::{Quoted, Store};
use plan::LayerPlan;

pub use error::CheckpointError;
pub use module::score_module;
pub use options::Options;
pub use published::{Fault, Published};
pub use score::{
    DirectionalitySummary, LayerReport, ModelReport, Report, SCHEMA, Settings, StackSummary, summarise,
};
pub use significance::{HeadSignificance, LayerSignificance};

/// A checkpoint whose self-attention layers have been found, and can be read one at a time.
#[derive(Debug)]
pub struct Checkpoint {
    store: Store,
    adapter: Option<Adapter>,
    name: String,
    family: Family,
    layers: Vec<LayerPlan>,
    notes: Vec<String>,
    options: Options,
}

/// One self-attention layer of a checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointLayer<B: Backend> {
    /// The part of the model.
    pub stack: StackKind,
    /// Counts the self-attention layers of the stack from 0.
    pub index: usize,
    /// The module's name in the file.
    pub module: String,
    /// How often the layer is applied (ALBERT shares layers).
    pub repeats: usize,
    /// The norm whose gain was folded in: none where that was not asked for, or where none precedes the attention.
    pub folded_norm: Option<String>,
    /// The form, at the offset that was asked for.
    pub form: BilinearForm<B>,
}

/// Finds the self-attention layers of a checkpoint: a folder as Hugging Face's library writes it, or one file.
///
/// Reads `config.json` and the headers of the files; of the weights nothing.
///
/// # Errors
/// Files that cannot be read, a family that is not known, a configuration that contradicts the shapes.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Checkpoint, CheckpointError> {
    let path = path.as_ref();
    let store = Store::open(path)?;
    let family = family_of(&store, options)?;
    let (layers, mut notes) = plan::plan(&family, &store, options)?;
    if layers.is_empty() {
        return Err(CheckpointError::NoLayers {
            path: path.to_owned(),
            family: family.name,
            found: plan::attention_like(&store),
        });
    }
    if layers
        .iter()
        .any(|l| l.query_norm.is_some() || l.key_norm.is_some())
    {
        notes.push("normalisers on queries and keys are left out, their gains are folded in".into());
    }
    let rotary = layers.iter().filter(|l| l.rotary.is_some()).count();
    if options.offset != 0 && rotary == 0 {
        notes.push("positions rotate queries and keys in no layer: --offset has no effect".into());
    } else if options.offset != 0 && rotary < layers.len() {
        notes.push(
            "positions rotate queries and keys in some layers only: --offset has no effect in the others"
                .into(),
        );
    }
    if options.fold_norm && layers.iter().any(|l| l.norm.is_none()) {
        notes.push("before some layers the file holds no norm with a gain: there none is folded in".into());
    }
    let adapter = options
        .adapter
        .as_deref()
        .map(|folder| Adapter::open(folder, &store))
        .transpose()?;
    if let (Some(adapter), Some(folder)) = (&adapter, &options.adapter) {
        let touched = layers.iter().any(|layer| {
            layer
                .projection
                .tensors()
                .into_iter()
                .any(|tensor| adapter.changes(tensor))
        });
        let what = if touched {
            "merged with the adapter"
        } else {
            "queries and keys are not changed by the adapter"
        };
        notes.push(format!(
            "{what} {} (weights {})",
            name_of(folder),
            &adapter.digest()?[..12]
        ));
    }
    Ok(Checkpoint {
        name: name_of(path),
        adapter,
        store,
        family,
        layers,
        notes,
        options: options.clone(),
    })
}

/// The last part of a path, as it was typed, that says something: the folder of a file that is called as all such
/// files are, the model and revision of a folder in the hub's cache.
fn name_of(path: &Path) -> String {
    const USUAL: [&str; 3] = [
        "model.safetensors",
        "pytorch_model.bin",
        "adapter_model.safetensors",
    ];
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut path = path.to_owned();
    if last(&path).is_none() {
        path = path.canonicalize().unwrap_or(path);
    }
    if last(&path).is_some_and(|name| USUAL.contains(&name.as_str())) {
        path = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => path
                .canonicalize()
                .ok()
                .and_then(|full| Some(full.parent()?.to_owned()))
                .unwrap_or(path),
        };
    }
    let name = last(&path).unwrap_or_else(|| path.display().to_string());
    let above = |n: usize| path.ancestors().nth(n).and_then(last);
    let cached = above(2).filter(|_| above(1).as_deref() == Some("snapshots"));
    let name = match cached.as_deref().and_then(|model| model.strip_prefix("models--")) {
        Some(model) => format!(
            "{}@{}",
            model.replace("--", "/"),
            name.chars().take(7).collect::<String>()
        ),
        None => name,
    };
    // Names go to terminals and tables.
    name.chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

fn family_of(store: &Store, options: &Options) -> Result<Family, CheckpointError> {
    let context = Context(store);
    if let Some(described) = options.described() {
        return described.map_err(|what| {
            context.option(
                what,
                "give the weights' names and layout as `wqk families` explains",
            )
        });
    }
    let unknown = |what: String| CheckpointError::UnknownFamily {
        path: store.path().to_owned(),
        what,
        found: plan::attention_like(store),
    };
    if let Some(name) = &options.family {
        return family::by_name(name)
            .cloned()
            .ok_or_else(|| unknown(format!("no family is called {}", Quoted(name))));
    }
    let Some(config) = store.config() else {
        return Err(unknown("there is no config.json to name the family".into()));
    };
    let Some(model_type) = config.get("model_type").and_then(|t| t.as_str()) else {
        return Err(unknown("config.json has no model_type".into()));
    };
    family::by_model_type(model_type)
        .cloned()
        .ok_or_else(|| unknown(format!("no family for the model_type {}", Quoted(model_type))))
}

impl Checkpoint {
    /// The name of the folder or file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The family that it was read as.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The tensors.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What a reader of its scores should know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The number of parameters in the file.
    pub fn parameters(&self) -> u64 {
        self.store.parameters()
    }

    /// The number of self-attention layers in the file.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none; a checkpoint that opens has some.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The tensors that scoring reads, with these options and whatever the settings.
    pub fn tensors(&self) -> impl Iterator<Item = &str> {
        let fold_norm = self.options.fold_norm;
        self.layers.iter().flat_map(move |layer| {
            let norm = layer.norm.as_ref().filter(|_| fold_norm);
            let gains = [norm, layer.query_norm.as_ref(), layer.key_norm.as_ref()];
            let published = layer.published.iter().flat_map(|(query, key)| [query, key]);
            let others = gains.into_iter().flatten().chain(published).map(String::as_str);
            layer.projection.tensors().into_iter().chain(others)
        })
    }

    /// SHA-256 of the tensors that the layers' queries and keys are read from, in hexadecimal.
    ///
    /// # Errors
    /// A tensor that cannot be read.
    pub fn digest(&self) -> Result<String, CheckpointError> {
        let digests = Digests::new(self);
        (0..self.len()).into_par_iter().try_for_each(|i| digests.add(i))?;
        Ok(digests.finish()?)
    }

    /// The layers in order, each read when its turn comes.
    pub fn layers<'a, B: Backend>(
        &'a self,
        device: &'a B::Device,
    ) -> impl ExactSizeIterator<Item = Result<CheckpointLayer<B>, CheckpointError>> + 'a {
        (0..self.len()).map(move |i| self.layer(i, device))
    }

    /// The stack of each layer and its number there, in the order of [`layers`](Self::layers); nothing is read.
    pub fn places(&self) -> impl ExactSizeIterator<Item = (StackKind, usize)> {
        self.layers.iter().map(|plan| (plan.stack, plan.index))
    }

    /// Reads the layer at a position of the list.
    pub(crate) fn layer<B: Backend>(
        &self,
        i: usize,
        device: &B::Device,
    ) -> Result<CheckpointLayer<B>, CheckpointError> {
        let (plan, extractor) = (&self.layers[i], self.extractor::<B>(i, device));
        let folding = Folding {
            norm: self.options.fold_norm,
            query_key_norms: true,
        };
        let mut form = extractor.form(folding)?;
        if self.options.offset != 0
            && let Some(rotary) = self.rotary(plan)?
        {
            form = extractor.check(form.at_offset(&rotary, self.options.offset))?;
        }
        Ok(CheckpointLayer {
            stack: plan.stack,
            index: plan.index,
            module: plan.module.clone(),
            repeats: plan.repeats,
            folded_norm: plan.norm.clone().filter(|_| self.options.fold_norm),
            form,
        })
    }

    fn extractor<'a, B: Backend>(&'a self, i: usize, device: &'a B::Device) -> Extractor<'a, B> {
        Extractor {
            store: &self.store,
            adapter: self.adapter.as_ref(),
            layer: &self.layers[i],
            device,
        }
    }

    /// How positions rotate a layer's queries and keys.
    fn rotary(&self, plan: &LayerPlan) -> Result<Option<Rotary>, CheckpointError> {
        let Some(pairs) = plan.rotary else { return Ok(None) };
        let stack = &self.family.stacks[plan.entry];
        let config = Config::new(self.store.config(), stack.config.as_deref(), &stack.defaults);
        let (start, width) = match &plan.projection {
            plan::Projection::Latent(latent) => (latent.plain, latent.rotary),
            _ => (0, plan.head_dim),
        };
        let dim = config.size(&stack.rotary_dim, &[]).map(|size| size.value);
        let frequencies = frequencies::frequencies(&config, plan.number, width, dim)
            .map_err(|what| Context(&self.store).option(what, "score at offset 0, or correct config.json"))?;
        Ok(Some(
            Rotary::new(pairs, frequencies.values)
                .starting_at(start)
                .scaled_by(frequencies.scale),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_model() {
        for (path, name) in [
            ("runs/step-100/", "step-100"),
            ("runs/step-100/model.safetensors", "step-100"),
            ("runs/weights.pt", "weights.pt"),
            (
                "hub/models--org--bert-base/snapshots/86b5e0934494bd",
                "org/bert-base@86b5e09",
            ),
            (
                "hub/models--gpt2/snapshots/607a30d783dfa/model.safetensors",
                "gpt2@607a30d",
            ),
            ("a\u{1b}[31m", "a\u{fffd}[31m"),
        ] {
            assert_eq!(name_of(Path::new(path)), name);
        }
    }
}
