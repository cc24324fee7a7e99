//! The elements of tensors as slices, where they lie in this process's own memory.

use std::any::TypeId;

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};

#[cfg(feature = "tch")]
use super::Tch;

/// Runs a loop over the elements of `N` tensors that it changes and of one that it reads, all of one shape, and
/// gives the changed ones back.
///
/// Such a loop stands for several operations on whole tensors, each of which would pass over all of the memory.
/// It needs tensors of f32 in host memory: on flex, ndarray, and libtorch's CPU.
///
/// # Errors
/// The tensors as they were, where their elements are elsewhere or of another type.
#[allow(clippy::type_complexity)]
pub fn in_host_memory<B: Backend, const D: usize, const N: usize>(
    changed: [Tensor<B, D>; N],
    read: Tensor<B, D>,
    run: impl FnOnce([&mut [f32]; N], &[f32]),
) -> Result<[Tensor<B, D>; N], ([Tensor<B, D>; N], Tensor<B, D>)> {
    if !changed
        .iter()
        .chain([&read])
        .all(|tensor| tensor.dtype() == DType::F32)
    {
        return Err((changed, read));
    }
    if lies_in_host_memory::<B>() {
        return Ok(by_buffer(changed, read, run));
    }
    #[cfg(feature = "tch")]
    if TypeId::of::<B>() == TypeId::of::<Tch>() {
        let same = "Tch is B";
        let changed = changed.map(|tensor| cast::<_, Tensor<Tch, D>>(tensor).expect(same));
        let read = cast::<_, Tensor<Tch, D>>(read).expect(same);
        let back = |tensor| cast::<_, Tensor<B, D>>(tensor).expect(same);
        return match libtorch::by_pointer(changed, read, run) {
            Ok(changed) => Ok(changed.map(back)),
            Err((changed, read)) => Err((changed.map(back), back(read))),
        };
    }
    Err((changed, read))
}

/// Whether the tensors of a backend lie in this process's own memory on every device that it has.
pub(crate) fn lies_in_host_memory<B: Backend>() -> bool {
    let host: &[TypeId] = &[
        #[cfg(feature = "flex")]
        TypeId::of::<super::Flex>(),
        #[cfg(feature = "ndarray")]
        TypeId::of::<super::NdArray>(),
    ];
    host.contains(&TypeId::of::<B>())
}

/// By `into_data`, which on these backends hands over the buffer itself if nobody shares it.
fn by_buffer<B: Backend, const D: usize, const N: usize>(
    changed: [Tensor<B, D>; N],
    read: Tensor<B, D>,
    run: impl FnOnce([&mut [f32]; N], &[f32]),
) -> [Tensor<B, D>; N] {
    const F32: &str = "tensors of f32";
    let device = read.device();
    let mut changed = changed.map(Tensor::into_data);
    let read = read.into_data();
    run(
        changed
            .each_mut()
            .map(|data: &mut TensorData| data.as_mut_slice().expect(F32)),
        read.as_slice().expect(F32),
    );
    changed.map(|data| Tensor::from_data(data, &device))
}

/// A value as the type that it has anyway, which only the compiler does not know.
#[cfg(feature = "tch")]
fn cast<T: 'static, U: 'static>(value: T) -> Option<U> {
    let mut value = Some(value);
    (&mut value as &mut dyn std::any::Any)
        .downcast_mut::<Option<U>>()?
        .take()
}

/// libtorch copies what `into_data` gives, so its memory is used where it is.
#[cfg(feature = "tch")]
mod libtorch {
    use std::slice;

    use burn::backend::libtorch::{LibTorchDevice, TchTensor};
    use burn::tensor::TensorPrimitive;

    use super::*;

    #[allow(clippy::type_complexity)]
    pub(super) fn by_pointer<const D: usize, const N: usize>(
        changed: [Tensor<Tch, D>; N],
        read: Tensor<Tch, D>,
        run: impl FnOnce([&mut [f32]; N], &[f32]),
    ) -> Result<[Tensor<Tch, D>; N], ([Tensor<Tch, D>; N], Tensor<Tch, D>)> {
        if read.device() != LibTorchDevice::Cpu || read.shape().num_elements() == 0 {
            return Err((changed, read));
        }
        let primitive = |tensor: Tensor<Tch, D>| tensor.into_primitive().tensor();
        let mut changed = changed.map(primitive).map(owned);
        let read = primitive(read).tensor.contiguous();
        // SAFETY: dense f32 tensors of the CPU, so that `numel` elements lie at the pointer. Those that change
        // are shared with no other tensor (`owned`), so no two slices overlap.
        #[allow(unsafe_code)]
        run(
            changed.each_mut().map(|changed| unsafe {
                slice::from_raw_parts_mut(changed.tensor.data_ptr().cast::<f32>(), changed.tensor.numel())
            }),
            unsafe { slice::from_raw_parts(read.data_ptr().cast::<f32>(), read.numel()) },
        );
        Ok(changed.map(|changed| Tensor::from_primitive(TensorPrimitive::Float(changed))))
    }

    /// A dense tensor whose memory is its own alone: the same, or a copy.
    fn owned(tensor: TchTensor) -> TchTensor {
        if tensor.can_mut() && tensor.tensor.is_contiguous() {
            tensor
        } else {
            TchTensor::new(tensor.tensor.contiguous().copy())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a += b` where `a` is shared with a clone and `b` is a transposed view: the clone stays as it was, and the
    /// elements of both are met in the order of rows.
    #[cfg(any(feature = "flex", feature = "ndarray", feature = "tch"))]
    fn shared_tensors_are_copied<B: Backend>() {
        let device = Default::default();
        let a = Tensor::<B, 2>::from_data([[1f32, 2.0], [3.0, 4.0]], &device);
        let b = Tensor::<B, 2>::from_data([[10f32, 20.0], [30.0, 40.0]], &device).transpose();
        let shared = a.clone();
        let add = |[a]: [&mut [f32]; 1], b: &[f32]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        let [sum] = in_host_memory([a], b.clone(), add).expect("in host memory");
        let [twice] = in_host_memory([sum.clone().transpose()], b, add).expect("in host memory");
        let values = |x: Tensor<B, 2>| x.into_data().to_vec::<f32>().expect("f32");
        assert_eq!(values(shared), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values(sum), [11.0, 32.0, 23.0, 44.0]);
        assert_eq!(values(twice), [21.0, 53.0, 52.0, 84.0]);
    }

    #[cfg(feature = "flex")]
    #[test]
    fn shared_tensors_are_copied_on_flex() {
        shared_tensors_are_copied::<crate::backend::Flex>();
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn shared_tensors_are_copied_on_ndarray() {
        shared_tensors_are_copied::<crate::backend::NdArray>();
    }

    #[cfg(feature = "tch")]
    #[test]
    fn shared_tensors_are_copied_on_tch() {
        shared_tensors_are_copied::<crate::backend::Tch>();
    }

    #[cfg(feature = "flex")]
    #[test]
    fn what_is_elsewhere_or_of_another_type_is_given_back() {
        use crate::backend::{Autodiff, Flex};
        let device = Default::default();
        let double = Tensor::<Flex, 1>::from_data([1.0f64], (&device, DType::F64));
        assert!(in_host_memory([double.clone()], double, |_, _| unreachable!()).is_err());
        let tracked = Tensor::<Autodiff<Flex>, 1>::from_data([1.0f32], &device);
        assert!(in_host_memory([tracked.clone()], tracked, |_, _| unreachable!()).is_err());
    }
}
