//! The data of a recipe, read once and shared by its runs.

mod images;
mod preview;
mod text;

use std::path::Path;

pub use images::ImageInput;
pub use preview::{Preview, PreviewFile};
pub use text::TextInput;

use super::config::TrainError;
use super::recipe::Recipe;
use crate::data::{CacheProgress, ReadReport};

/// What the runs of a recipe learn from.
#[derive(Debug)]
pub enum Input {
    /// Tokens.
    Text(TextInput),
    /// Images.
    Images(ImageInput),
}

impl Input {
    /// Reads the data of a recipe. Text of one's own goes through the cache in `cache`; `progress` hears how far the
    /// making of one is.
    ///
    /// # Errors
    /// [`TrainError::Data`] or [`TrainError::Image`] where the data cannot be read, or are too few.
    pub fn open(
        recipe: &Recipe,
        cache: &Path,
        progress: &mut dyn FnMut(CacheProgress),
    ) -> Result<Self, TrainError> {
        match recipe.data.is_text() {
            true => TextInput::open(recipe, cache, progress).map(Self::Text),
            false => ImageInput::open(recipe).map(Self::Images),
        }
    }

    /// Number of sequences or images to train on.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.n_sequences(),
            Self::Images(images) => images.len(),
        }
    }

    /// What was read and passed over, of each corpus of files.
    pub fn reports(&self) -> &[ReadReport] {
        match self {
            Self::Text(text) => text.reports(),
            Self::Images(_) => &[],
        }
    }

    /// What else is worth saying of the data, one line each.
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Text(text) => text.notes(),
            Self::Images(_) => &[],
        }
    }
}
