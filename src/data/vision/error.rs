//! What can be wrong with images.

use std::io;
use std::path::PathBuf;

/// Images that cannot be read or used. The message is one line: the file, what is wrong there and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The system refused.
    #[error("{path}: cannot be read ({source}): {remedy}", path = .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A file without images in it.
    #[error("{path}: is empty: fetch the file again", path = .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A CIFAR-10 batch that ends within a record, or is none.
    #[error(
        "{path}: {bytes} bytes are not whole records of 3073 (a label and 3072 pixels): {remedy}",
        path = .path.display()
    )]
    Records {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: usize,
        /// What to do.
        remedy: String,
    },
    /// A label that is no class.
    #[error(
        "{path}: record {record} (byte {byte}) has the label {label}, but there are the classes 0 to 9: the file is \
         damaged or of another data set, fetch it again",
        path = .path.display()
    )]
    Label {
        /// The file.
        path: PathBuf,
        /// The record, from 0.
        record: usize,
        /// The byte of the label in the file, from 0.
        byte: usize,
        /// What stands there.
        label: u8,
    },
    /// A list of class names that does not fit.
    #[error("{path}: lists {found} class names, not {expected}: fetch the data again", path = .path.display())]
    ClassNames {
        /// The file.
        path: PathBuf,
        /// How many it lists.
        found: usize,
        /// How many there are.
        expected: usize,
    },
    /// A folder that is no set of class folders.
    #[error("{path}: {what}: give a folder with one folder of JPEG or PNG files for each class", path = .path.display())]
    NoClasses {
        /// The folder.
        path: PathBuf,
        /// What was found instead.
        what: String,
    },
    /// An image file that cannot be decoded.
    #[error("{path}: cannot be decoded ({message}): repair the file or take it away", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        message: String,
    },
    /// An image that is smaller than what is to be cut out of it.
    #[error(
        "{image}: {height} × {width} pixels with {padding} around them are less than the {size} of the model: {remedy}"
    )]
    TooSmall {
        /// Which image.
        image: String,
        /// Its height.
        height: usize,
        /// Its width.
        width: usize,
        /// Pixels of padding on each side.
        padding: usize,
        /// What is to be cut out of it.
        size: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// A setting outside its range.
    #[error("images: {field} is {value}, but must be {must}")]
    Invalid {
        /// The setting.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        must: &'static str,
    },
}
