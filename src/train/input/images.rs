//! The images of a recipe.

use sha2::{Digest, Sha256};

use crate::data::vision::{Cifar10, ClassFolder, ImageError, Images, Normalisation, Picture};
use crate::train::config::TrainError;
use crate::train::image_task::ImageData;
use crate::train::recipe::{DataSection, Recipe};
use crate::train::run::ImageInfo;

/// The images of a recipe.
#[derive(Debug)]
pub struct ImageInput {
    train: Box<dyn Images>,
    test: Box<dyn Images>,
    normalisation: Normalisation,
    shorter_side: usize,
    data_sha256: String,
}

impl ImageInput {
    /// Finds the images of a recipe, and the mean and deviation of those to train on.
    ///
    /// # Errors
    /// [`TrainError::Image`] where they cannot be read.
    pub fn open(recipe: &Recipe) -> Result<Self, TrainError> {
        let (train, test) = find(recipe)?;
        // A pass over ImageNet would be long, and its values are known.
        let in_memory = matches!(recipe.data, DataSection::Cifar10 { .. });
        let normalisation = match in_memory {
            true => Normalisation::of(train.as_ref())?,
            false => Normalisation::IMAGENET,
        };
        let mut hash = Sha256::new();
        for images in [&train, &test] {
            hash.update((images.len() as u64).to_le_bytes());
            for index in 0..images.len() {
                hash.update((images.label(index) as u64).to_le_bytes());
                match in_memory {
                    true => hash.update(images.picture(index)?.pixels()),
                    false => hash.update(file_name(&images.name(index))),
                }
            }
        }
        Ok(Self {
            train,
            test,
            normalisation,
            shorter_side: match recipe.data {
                DataSection::Images { shorter_side, .. } => shorter_side,
                _ => Cifar10::SIZE,
            },
            data_sha256: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// What a task takes.
    pub fn data(&self) -> ImageData<'_> {
        ImageData {
            train: self.train.as_ref(),
            test: self.test.as_ref(),
            normalisation: &self.normalisation,
        }
    }

    /// What other images need to be shown to a model of these.
    pub fn about(&self) -> ImageInfo {
        ImageInfo {
            classes: self.train.classes().to_vec(),
            normalisation: self.normalisation,
            shorter_side: self.shorter_side,
        }
    }

    /// Number of images to train on.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.train.len()
    }

    /// SHA-256 of pixels and classes, or, of images that stay in their files, of names and classes.
    pub fn sha256(&self) -> &str {
        &self.data_sha256
    }
}

/// Images of any kind.
pub(super) type AnyImages = Box<dyn Images>;

/// The images to train on and those to evaluate on.
pub(super) fn find(recipe: &Recipe) -> Result<(AnyImages, AnyImages), TrainError> {
    Ok(match &recipe.data {
        DataSection::Cifar10 {
            path,
            train_images,
            test_images,
        } => {
            let first = |images: Cifar10, n: &Option<usize>| First {
                n: n.unwrap_or(usize::MAX).min(images.len()),
                images: Box::new(images),
            };
            (
                Box::new(first(Cifar10::training(path)?, train_images)),
                Box::new(first(Cifar10::test(path)?, test_images)),
            )
        }
        DataSection::Images {
            train,
            validation,
            shorter_side,
        } => (
            Box::new(ClassFolder::open(train, *shorter_side)?),
            Box::new(ClassFolder::open(validation, *shorter_side)?),
        ),
        DataSection::Bundled { .. } | DataSection::Text { .. } => return Err(no_images(recipe)),
    })
}

/// The name without its folders, which are not the same everywhere.
fn file_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default()
}

fn no_images(recipe: &Recipe) -> TrainError {
    TrainError::Invalid {
        field: "data.kind",
        value: recipe.name.clone(),
        must: "cifar10 or images, for a run on images",
    }
}

/// The first images of a set.
#[derive(Debug)]
struct First {
    images: Box<dyn Images>,
    n: usize,
}

impl Images for First {
    fn len(&self) -> usize {
        self.n
    }

    fn classes(&self) -> &[String] {
        self.images.classes()
    }

    fn label(&self, index: usize) -> usize {
        self.images.label(index)
    }

    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        self.images.picture(index)
    }

    fn name(&self, index: usize) -> String {
        self.images.name(index)
    }
}
