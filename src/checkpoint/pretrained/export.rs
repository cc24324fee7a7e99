//! Writing folders that the library loads.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

use super::{Parameter, Parameters, PretrainedError, bert, vit};
use crate::model::{TextTransformerConfig, ViTConfig};

/// A file that lies beside the weights, such as one of a tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    /// Its name in the folder.
    pub name: &'static str,
    /// What is in it.
    pub content: String,
}

/// A text transformer to write.
#[derive(Debug, Clone, Copy)]
pub struct ExportedText<'a> {
    /// What it is made of.
    pub config: &'a TextTransformerConfig,
    /// Its parameters.
    pub parameters: &'a Parameters,
    /// Whether it was trained under a causal mask.
    pub causal: bool,
    /// The id of the padding token, where there is one.
    pub pad: Option<u32>,
    /// The files of its tokenizer.
    pub files: &'a [HubFile],
}

/// A vision transformer to write.
#[derive(Debug, Clone, Copy)]
pub struct ExportedViT<'a> {
    /// What it is made of.
    pub config: &'a ViTConfig,
    /// Its parameters.
    pub parameters: &'a Parameters,
    /// Names of the classes.
    pub classes: &'a [String],
    /// The files that say how its pixels are prepared.
    pub files: &'a [HubFile],
}

/// Writes a text transformer to a new folder: `BertForMaskedLM`, or `BertLMHeadModel` if it is causal.
///
/// The output map is tied to the embedding, so that the file holds it once.
///
/// # Errors
/// [`PretrainedError::Unexpressible`] for a model that BERT's classes cannot be told, [`PretrainedError::Exists`] for
/// a folder with something in it, [`PretrainedError::Write`] where the system refuses. Nothing is left behind then.
pub fn export_text(model: &ExportedText<'_>, to: &Path) -> Result<(), PretrainedError> {
    let (tensors, config) = bert::write(model.config, model.causal, model.pad, model.parameters)?;
    write(to, &tensors, &config, model.files)
}

/// Writes a vision transformer to a new folder, as `ViTForImageClassification`.
///
/// # Errors
/// As [`export_text`].
pub fn export_vit(model: &ExportedViT<'_>, to: &Path) -> Result<(), PretrainedError> {
    let (tensors, config) = vit::write(model.config, model.classes, model.parameters)?;
    write(to, &tensors, &config, model.files)
}

fn write(
    to: &Path,
    tensors: &[(String, Parameter)],
    config: &Value,
    files: &[HubFile],
) -> Result<(), PretrainedError> {
    let folder = Folder::new(to)?;
    folder.model(tensors, config)?;
    for file in files {
        folder.write(file.name, file.content.as_bytes())?;
    }
    folder.finish()
}

/// Makes sure that a model can be written to a folder, before the work that leads to it.
///
/// # Errors
/// [`PretrainedError::Exists`], [`PretrainedError::Write`].
pub fn check_target(to: &Path) -> Result<(), PretrainedError> {
    let failed = |source: std::io::Error| write_error(to, source.kind().into());
    if !is_free(to).map_err(failed)? {
        return Err(PretrainedError::Exists { path: to.to_owned() });
    }
    let parent = to.ancestors().skip(1).find(|parent| parent.exists());
    tempfile::tempdir_in(parent.unwrap_or(Path::new("."))).map_err(failed)?;
    Ok(())
}

/// A folder that is filled beside its place and moved there when it is whole.
struct Folder {
    to: PathBuf,
    draft: tempfile::TempDir,
}

impl Folder {
    fn new(to: &Path) -> Result<Self, PretrainedError> {
        let failed = |source| write_error(to, source);
        if !is_free(to).map_err(failed)? {
            return Err(PretrainedError::Exists { path: to.to_owned() });
        }
        let parent = match to.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(failed)?;
        let draft = tempfile::Builder::new()
            .prefix(".wqk-export-")
            .tempdir_in(parent)
            // Without the name of the draft.
            .map_err(|error| failed(error.kind().into()))?;
        Ok(Self {
            to: to.to_owned(),
            draft,
        })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), PretrainedError> {
        fs::write(self.draft.path().join(name), content)
            .map_err(|source| write_error(&self.to.join(name), source))
    }

    fn model(&self, tensors: &[(String, Parameter)], config: &Value) -> Result<(), PretrainedError> {
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, tensor)| {
                tensor
                    .values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect()
            })
            .collect();
        let failed = |error: safetensors::SafeTensorError| {
            write_error(&self.to.join("model.safetensors"), std::io::Error::other(error))
        };
        let views = tensors
            .iter()
            .zip(&bytes)
            .map(|((name, tensor), bytes)| {
                Ok((
                    name.as_str(),
                    TensorView::new(Dtype::F32, tensor.shape.clone(), bytes)?,
                ))
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        // Without it the library takes the file for TensorFlow's.
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let path = self.draft.path().join("model.safetensors");
        safetensors::serialize_to_file(views, Some(metadata), &path).map_err(failed)?;
        set_mode(&path, 0o644).map_err(|source| write_error(&self.to, source))?;
        self.write("config.json", format!("{config:#}\n").as_bytes())
    }

    fn finish(self) -> Result<(), PretrainedError> {
        let failed = |source| write_error(&self.to, source);
        set_mode(self.draft.path(), 0o755).map_err(failed)?;
        // An empty folder gives way; one that has come to hold something does not.
        match fs::remove_dir(&self.to) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        fs::rename(self.draft.path(), &self.to).map_err(failed)?;
        // What was moved is no draft any more.
        let _ = self.draft.keep();
        Ok(())
    }
}

/// Opens to others what is made for its owner alone: temporary folders, and files of the `safetensors` crate.
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

/// Whether nothing stands at a place, or an empty folder.
fn is_free(place: &Path) -> std::io::Result<bool> {
    match fs::read_dir(place) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(fs::symlink_metadata(place).is_err())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_error(path: &Path, source: std::io::Error) -> PretrainedError {
    PretrainedError::Write {
        path: path.to_owned(),
        source,
    }
}
