//! Stored elements to f32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;

use super::Dtype;

/// Elements converted at a time, through buffers that stay in the first-level cache.
const BLOCK: usize = 1024;

/// Elements one task of the thread pool converts.
const TASK: usize = 1 << 18;

/// An element that is not a finite f32: its position, and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NotFinite {
    pub index: usize,
    pub value: f64,
}

/// Converts elements that lie side by side, on the threads of the pool if there are many.
///
/// `dtype` is one of the float types, `bytes` holds `out.len()` elements of it.
pub(super) fn decode(dtype: Dtype, big_endian: bool, bytes: &[u8], out: &mut [f32]) -> Result<(), NotFinite> {
    debug_assert_eq!(bytes.len(), out.len() * dtype.size());
    if out.len() <= TASK {
        return decode_here(dtype, big_endian, bytes, out);
    }
    let first = out
        .par_chunks_mut(TASK)
        .zip(bytes.par_chunks(TASK * dtype.size()))
        .enumerate()
        .filter_map(|(task, (out, bytes))| {
            let fault = decode_here(dtype, big_endian, bytes, out).err()?;
            Some(NotFinite {
                index: task * TASK + fault.index,
                value: fault.value,
            })
        })
        .min_by_key(|fault| fault.index);
    first.map_or(Ok(()), Err)
}

/// Converts on this thread.
fn decode_here(dtype: Dtype, big_endian: bool, bytes: &[u8], out: &mut [f32]) -> Result<(), NotFinite> {
    match (dtype, big_endian) {
        (Dtype::F32, false) => blocks(bytes, out, f32::from_le_bytes, copy),
        (Dtype::F32, true) => blocks(bytes, out, f32::from_be_bytes, copy),
        (Dtype::F16, false) => blocks(bytes, out, f16::from_le_bytes, |from, to| {
            from.convert_to_f32_slice(to)
        }),
        (Dtype::F16, true) => blocks(bytes, out, f16::from_be_bytes, |from, to| {
            from.convert_to_f32_slice(to)
        }),
        (Dtype::Bf16, false) => blocks(bytes, out, bf16::from_le_bytes, |from, to| {
            from.convert_to_f32_slice(to)
        }),
        (Dtype::Bf16, true) => blocks(bytes, out, bf16::from_be_bytes, |from, to| {
            from.convert_to_f32_slice(to)
        }),
        (Dtype::F64, false) => blocks(bytes, out, f64::from_le_bytes, narrow),
        (Dtype::F64, true) => blocks(bytes, out, f64::from_be_bytes, narrow),
        // Callers ask `is_float` first; an integer that got here would only read as no value.
        _ => Err(NotFinite {
            index: 0,
            value: f64::NAN,
        }),
    }
}

fn copy(from: &[f32], to: &mut [f32]) {
    to.copy_from_slice(from);
}

fn narrow(from: &[f64], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from as f32;
    }
}

/// Block by block: bytes, which may lie at any address, to elements, to f32; and the check, while the
/// block is still in the cache.
fn blocks<T, const SIZE: usize>(
    bytes: &[u8],
    out: &mut [f32],
    from_bytes: impl Fn([u8; SIZE]) -> T,
    convert: impl Fn(&[T], &mut [f32]),
) -> Result<(), NotFinite>
where
    T: Copy + Default + Into<f64>,
{
    let mut buffer = [T::default(); BLOCK];
    for (block, (bytes, out)) in bytes.chunks(BLOCK * SIZE).zip(out.chunks_mut(BLOCK)).enumerate() {
        let buffer = &mut buffer[..out.len()];
        let (elements, _) = bytes.as_chunks::<SIZE>();
        for (element, bytes) in buffer.iter_mut().zip(elements) {
            *element = from_bytes(*bytes);
        }
        convert(buffer, out);
        // Without a branch an element, so that it is done many at a time.
        if !out.iter().fold(true, |all, value| all & value.is_finite()) {
            let at = out.iter().position(|value| !value.is_finite()).unwrap_or(0);
            return Err(NotFinite {
                index: block * BLOCK + at,
                value: buffer[at].into(),
            });
        }
    }
    Ok(())
}
