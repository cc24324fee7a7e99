//! Where one tensor lies.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::Dtype;

/// One tensor of a checkpoint: its type, its shape, and where its bytes are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TensorInfo {
    /// The name, as in the file.
    pub name: String,
    /// The element type.
    pub dtype: Dtype,
    /// The shape; empty for a scalar.
    pub shape: Vec<usize>,
    /// The file, or the shard.
    pub file: Arc<Path>,
    /// The bytes of the file from the tensor's first element to its last. A strided view need not
    /// own all that lies between.
    pub bytes: Range<u64>,
    /// Which of the store's files.
    pub(super) file_index: usize,
    pub(super) layout: Layout,
}

impl TensorInfo {
    /// The number of elements.
    pub fn elements(&self) -> usize {
        // Checked against overflow when the entry was made.
        self.shape.iter().product()
    }
}

/// How elements lie within their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Elements between neighbours along each axis.
    pub strides: Vec<usize>,
    /// Whether multi-byte elements are stored most significant byte first.
    pub big_endian: bool,
    /// Whether elements repeat (a broadcast view), so that the tensor is larger than what it is made of.
    pub repeats: bool,
}

/// What a format's parser says of one tensor, before a store gives it a place among its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Range<usize>,
    pub layout: Layout,
}

/// The number of elements of a shape, if it and the number of their bits can be counted.
pub(super) fn elements(shape: &[usize], dtype: Dtype) -> Option<usize> {
    // In order, as other readers do: [2^40, 2^40, 0] overflows although it is empty.
    let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    elements.checked_mul(dtype.bits() as usize)?;
    Some(elements)
}

/// Row-major strides of a shape whose elements have been counted.
pub(super) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        // An axis of size 0 makes the tensor empty; its strides are never used.
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

/// A strided tensor as runs of elements that lie side by side.
#[derive(Debug)]
pub(super) struct Runs {
    /// Elements of a run.
    pub length: usize,
    /// Length and stride of each axis that is not within the runs, outermost first.
    outer: Vec<(usize, usize)>,
}

impl Runs {
    /// The runs of a shape with these strides, as long as they can be.
    pub(super) fn of(shape: &[usize], strides: &[usize]) -> Self {
        let mut length = 1;
        // An axis of one index adds nothing, whatever its stride.
        let mut outer: Vec<_> = shape
            .iter()
            .copied()
            .zip(strides.iter().copied())
            .filter(|&(n, _)| n != 1)
            .collect();
        while let Some(&(n, stride)) = outer.last()
            && stride == length
            && n > 0
        {
            length *= n;
            outer.pop();
        }
        Self { length, outer }
    }

    /// Whether the whole tensor is one run.
    pub(super) fn is_single(&self) -> bool {
        self.outer.is_empty()
    }

    /// Where each run starts, in row-major order.
    pub(super) fn offsets(&self) -> impl Iterator<Item = usize> {
        let count: usize = self.outer.iter().map(|&(n, _)| n).product();
        (0..count).map(|mut run| {
            let mut offset = 0;
            for &(n, stride) in self.outer.iter().rev() {
                offset += run % n * stride;
                run /= n;
            }
            offset
        })
    }
}

/// The index of a row-major position within a non-empty shape.
pub(super) fn unravel(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, &length) in index.iter_mut().zip(shape).rev() {
        *at = position % length;
        position /= length;
    }
    index
}
