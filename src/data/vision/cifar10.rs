//! CIFAR-10 in its official binary files.

use std::path::{Path, PathBuf};

use super::{CHANNELS, ImageError, Images, Picture};
use crate::files;

/// Height and width of an image.
const SIZE: usize = 32;
/// Bytes of an image.
const PIXELS: usize = CHANNELS * SIZE * SIZE;
/// A label and an image.
const RECORD: usize = 1 + PIXELS;

const CLASSES: [&str; 10] = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
];

const TRAINING: [&str; 5] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
];
const TEST: &str = "test_batch.bin";

/// Images of CIFAR-10, in memory: 32 × 32 pixels, ten classes.
///
/// Reads the binary version of <https://www.cs.toronto.edu/~kriz/cifar.html>: files of records, each a label byte
/// and 3072 pixel bytes, red, green, blue, row by row. Batches of any number of records are read, so that parts of
/// the data set can be used.
///
/// # Source
/// A. Krizhevsky, Learning multiple layers of features from tiny images, 2009.
#[derive(Debug, Clone)]
pub struct Cifar10 {
    files: Vec<(PathBuf, usize)>,
    labels: Vec<u8>,
    pixels: Vec<u8>,
    classes: Vec<String>,
}

impl Cifar10 {
    /// Height and width of an image.
    pub const SIZE: usize = SIZE;

    /// The images to train on: `data_batch_1.bin` to `data_batch_5.bin` of a folder, or of `cifar-10-batches-bin` in
    /// it, as the official archive unpacks.
    ///
    /// # Errors
    /// [`ImageError`] with the first file that is missing, empty, cut off, of another layout, or has a label that is
    /// none.
    pub fn training(folder: impl AsRef<Path>) -> Result<Self, ImageError> {
        Self::in_folder(folder.as_ref(), &TRAINING)
    }

    /// The images to test on: `test_batch.bin` of the folder.
    ///
    /// # Errors
    /// As [`training`](Self::training).
    pub fn test(folder: impl AsRef<Path>) -> Result<Self, ImageError> {
        Self::in_folder(folder.as_ref(), &[TEST])
    }

    /// Whether a folder looks like one of CIFAR-10's, so that [`training`](Self::training) can say what is wrong with
    /// it.
    pub fn is_in(folder: impl AsRef<Path>) -> bool {
        let folder = unpacked(folder.as_ref());
        TRAINING
            .iter()
            .chain([&TEST])
            .any(|file| folder.join(file).exists())
    }

    /// The files of a folder, those to train on first.
    pub(crate) fn paths(folder: &Path) -> Vec<PathBuf> {
        let folder = unpacked(folder);
        let names = TRAINING.iter().chain([&TEST]);
        names.map(|name| folder.join(name)).collect()
    }

    fn in_folder(folder: &Path, names: &[&str]) -> Result<Self, ImageError> {
        let folder = unpacked(folder);
        let files: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let mut images = Self::files(&files)?;
        let names = folder.join("batches.meta.txt");
        if names.exists() {
            images.classes = class_names(&names)?;
        }
        Ok(images)
    }

    /// The images of any batch files, one after the other.
    ///
    /// # Errors
    /// As [`training`](Self::training).
    pub fn files(files: &[PathBuf]) -> Result<Self, ImageError> {
        let mut images = Self {
            files: Vec::new(),
            labels: Vec::new(),
            pixels: Vec::new(),
            classes: CLASSES.map(str::to_owned).to_vec(),
        };
        for path in files {
            let bytes = files::read(path).map_err(|source| unreadable(path, source))?;
            images.add(path, &bytes)?;
        }
        Ok(images)
    }

    fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
        let path = path.to_owned();
        if bytes.is_empty() {
            return Err(ImageError::Empty { path });
        }
        if !bytes.len().is_multiple_of(RECORD) {
            let remedy = if bytes.len().is_multiple_of(RECORD + 1) {
                "records of 3074 bytes are CIFAR-100's, give the binary version of CIFAR-10".to_owned()
            } else {
                format!(
                    "after {} records {} bytes are left, the file is cut off or of another kind, fetch the binary \
                     version again",
                    bytes.len() / RECORD,
                    bytes.len() % RECORD
                )
            };
            return Err(ImageError::Records {
                path,
                bytes: bytes.len(),
                remedy,
            });
        }
        for (record, bytes) in bytes.chunks_exact(RECORD).enumerate() {
            let label = bytes[0];
            if usize::from(label) >= CLASSES.len() {
                return Err(ImageError::Label {
                    path,
                    record,
                    byte: record * RECORD,
                    label,
                });
            }
            self.labels.push(label);
            self.pixels.extend_from_slice(&bytes[1..]);
        }
        self.files.push((path, bytes.len() / RECORD));
        Ok(())
    }
}

/// The folder itself, or the one in it that the official archive unpacks to.
fn unpacked(folder: &Path) -> PathBuf {
    let inner = folder.join("cifar-10-batches-bin");
    if inner.is_dir() { inner } else { folder.to_owned() }
}

fn unreadable(path: &Path, source: std::io::Error) -> ImageError {
    let python = path.with_extension("").exists();
    ImageError::Unreadable {
        path: path.to_owned(),
        source,
        remedy: if python {
            "this is the Python version, fetch the binary version (cifar-10-binary.tar.gz)"
        } else {
            "give the folder of the binary version (cifar-10-binary.tar.gz, unpacked)"
        },
    }
}

fn class_names(path: &Path) -> Result<Vec<String>, ImageError> {
    let text = files::read_to_string(path).map_err(|source| ImageError::Unreadable {
        path: path.to_owned(),
        source,
        remedy: "fetch the data again",
    })?;
    let names: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    if names.len() != CLASSES.len() {
        return Err(ImageError::ClassNames {
            path: path.to_owned(),
            found: names.len(),
            expected: CLASSES.len(),
        });
    }
    Ok(names)
}

impl Images for Cifar10 {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn label(&self, index: usize) -> usize {
        self.labels[index].into()
    }

    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        let pixels = self.pixels[index * PIXELS..][..PIXELS].to_vec();
        Ok(Picture::new(SIZE, SIZE, pixels))
    }

    fn name(&self, index: usize) -> String {
        let mut record = index;
        for (path, records) in &self.files {
            if record < *records {
                return format!("record {record} of {}", path.display());
            }
            record -= records;
        }
        format!("image {index}")
    }
}
