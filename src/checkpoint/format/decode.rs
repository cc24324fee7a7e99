//! Stored elements to f32.

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use super::Dtype;

/// Elements converted at a time, which stay in the first-level cache.
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
    // A bf16 is the upper half of an f32. half's own conversion also quiets NaN, of which none passes here.
    let bf16 = |bits: u16| f32::from_bits(u32::from(bits) << 16);
    match (dtype, big_endian) {
        (Dtype::F32, false) => elements(bytes, out, f32::from_le_bytes, |x| x),
        (Dtype::F32, true) => elements(bytes, out, f32::from_be_bytes, |x| x),
        (Dtype::F16, false) => halves(bytes, out, f16::from_le_bytes),
        (Dtype::F16, true) => halves(bytes, out, f16::from_be_bytes),
        (Dtype::Bf16, false) => elements(bytes, out, |b| bf16(u16::from_le_bytes(b)), |x| x),
        (Dtype::Bf16, true) => elements(bytes, out, |b| bf16(u16::from_be_bytes(b)), |x| x),
        (Dtype::F64, false) => elements(bytes, out, f64::from_le_bytes, |x| x as f32),
        (Dtype::F64, true) => elements(bytes, out, f64::from_be_bytes, |x| x as f32),
        // Callers ask `is_float` first; an integer that got here would only read as no value.
        _ => Err(NotFinite {
            index: 0,
            value: f64::NAN,
        }),
    }
}

/// Element by element, without a branch in between, so that many are converted at a time.
fn elements<T: Into<f64>, const SIZE: usize>(
    bytes: &[u8],
    out: &mut [f32],
    from_bytes: impl Fn([u8; SIZE]) -> T,
    narrow: impl Fn(T) -> f32,
) -> Result<(), NotFinite> {
    let (elements, _) = bytes.as_chunks::<SIZE>();
    for (block, (elements, out)) in elements.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).enumerate() {
        for (out, element) in out.iter_mut().zip(elements) {
            *out = narrow(from_bytes(*element));
        }
        check(block, out, |at| from_bytes(elements[at]).into())?;
    }
    Ok(())
}

/// Halves, which half converts eight at a time where the processor can.
fn halves(bytes: &[u8], out: &mut [f32], from_bytes: impl Fn([u8; 2]) -> f16) -> Result<(), NotFinite> {
    let mut buffer = [f16::ZERO; BLOCK];
    let (elements, _) = bytes.as_chunks::<2>();
    for (block, (elements, out)) in elements.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).enumerate() {
        let buffer = &mut buffer[..out.len()];
        for (half, element) in buffer.iter_mut().zip(elements) {
            *half = from_bytes(*element);
        }
        buffer.convert_to_f32_slice(out);
        check(block, out, |at| buffer[at].into())?;
    }
    Ok(())
}

/// Refuses a block that is not finite, while it is still in the cache.
fn check(block: usize, out: &[f32], stored: impl Fn(usize) -> f64) -> Result<(), NotFinite> {
    if out.iter().fold(true, |all, value| all & value.is_finite()) {
        return Ok(());
    }
    let at = out.iter().position(|value| !value.is_finite()).unwrap_or(0);
    Err(NotFinite {
        index: block * BLOCK + at,
        value: stored(at),
    })
}
