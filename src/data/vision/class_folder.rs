//! Folders of image files, one for each class.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::{DynamicImage, ImageReader};

use super::{ImageError, Images, Picture};
use crate::files;

/// Endings of the files that are read, in any letter case.
const ENDINGS: [&str; 3] = ["jpg", "jpeg", "png"];

/// Images in files, each class in a folder of its own, as ImageNet and `torchvision`'s `ImageFolder` lie.
///
/// Classes are numbered by the order of their names, images by class and name. Files are decoded when they are
/// asked for, every time, and brought to a common size of the shorter side; grey images become coloured, transparent
/// ones lose their transparency. Files of other kinds are passed over and counted.
#[derive(Debug, Clone)]
pub struct ClassFolder {
    shorter_side: usize,
    classes: Vec<String>,
    files: Vec<(PathBuf, u32)>,
    passed_over: usize,
}

impl ClassFolder {
    /// Finds the images; none is read yet. `shorter_side` is the size to which they will be scaled: 256 is usual for
    /// models of 224 pixels.
    ///
    /// # Errors
    /// [`ImageError`] where the folder cannot be read, has no folders in it, or one of these holds no images.
    pub fn open(folder: impl AsRef<Path>, shorter_side: usize) -> Result<Self, ImageError> {
        let folder = folder.as_ref();
        if shorter_side == 0 {
            return Err(ImageError::Invalid {
                field: "shorter_side",
                value: "0".to_owned(),
                must: "at least 1",
            });
        }
        let no_classes = |path: &Path, what: &str| ImageError::NoClasses {
            path: path.to_owned(),
            what: what.to_owned(),
        };
        let mut images = Self {
            shorter_side,
            classes: Vec::new(),
            files: Vec::new(),
            passed_over: 0,
        };
        for class in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let number = images.classes.len() as u32;
            let before = images.files.len();
            for file in entries(&class)? {
                if is_image(&file) {
                    images.files.push((file, number));
                } else {
                    images.passed_over += 1;
                }
            }
            if images.files.len() == before {
                return Err(no_classes(&class, "holds no JPEG or PNG files"));
            }
            let name = class.file_name().unwrap_or_default().to_string_lossy();
            images.classes.push(name.into_owned());
        }
        match images.classes.len() {
            0 => Err(no_classes(folder, "holds no folders")),
            _ => Ok(images),
        }
    }

    /// How many files and folders within the class folders were of other kinds.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ImageError> {
    let unreadable = |source| ImageError::Unreadable {
        path: folder.to_owned(),
        source,
        remedy: "check the path and its permissions",
    };
    let mut paths = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

impl Images for ClassFolder {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn label(&self, index: usize) -> usize {
        self.files[index].1 as usize
    }

    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        let path = &self.files[index].0;
        let unreadable = |source| ImageError::Unreadable {
            path: path.clone(),
            source,
            remedy: "check the path and its permissions",
        };
        let decoded = files::open(path)
            .map(|file| ImageReader::new(BufReader::new(file)))
            .and_then(ImageReader::with_guessed_format)
            .map_err(unreadable)?
            .decode()
            .map_err(|error| ImageError::Damaged {
                path: path.clone(),
                message: error.to_string(),
            })?;
        Ok(scaled(decoded, self.shorter_side))
    }

    fn name(&self, index: usize) -> String {
        self.files[index].0.display().to_string()
    }
}

/// An image whose shorter side has a given size, its channels one after the other.
fn scaled(image: DynamicImage, shorter_side: usize) -> Picture {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let shorter = width.min(height).max(1);
    let rgb = if shorter == shorter_side {
        image.into_rgb8()
    } else {
        let scale = |side: usize| {
            let exact = side as f64 * shorter_side as f64 / shorter as f64;
            (exact.round() as u32).max(1)
        };
        // Triangle filtering over the area that a pixel comes from, which is bilinear with anti-aliasing.
        image
            .resize_exact(scale(width), scale(height), FilterType::Triangle)
            .into_rgb8()
    };
    let (width, height) = (rgb.width() as usize, rgb.height() as usize);
    let interleaved = rgb.into_raw();
    let pixels = (0..super::CHANNELS)
        .flat_map(|channel| interleaved.iter().skip(channel).step_by(super::CHANNELS).copied())
        .collect();
    Picture::new(height, width, pixels)
}
