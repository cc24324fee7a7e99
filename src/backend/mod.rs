//! The backends, by name: the only place of the library that knows any of them.
//!
//! Everything else is generic over `B: Backend`. The [`with_backend!`](crate::with_backend) macro turns a
//! [`BackendKind`], which a user names by a flag, into that parameter.

mod host;
mod precision;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The autodiff decorator, by which a backend becomes one that trains.
pub use burn::backend::Autodiff;
pub use host::in_host_memory;
pub(crate) use host::lies_in_host_memory;
pub use precision::Precision;

/// Flex: pure Rust on the CPU, the default.
#[cfg(feature = "flex")]
pub type Flex = burn::backend::Flex;

/// ndarray on the CPU, with OpenBLAS under the feature `openblas`.
#[cfg(feature = "ndarray")]
pub type NdArray = burn::backend::NdArray<f32>;

/// wgpu: Vulkan, Metal, DirectX 12 or WebGPU.
#[cfg(feature = "wgpu")]
pub type Wgpu = burn::backend::Wgpu<f32, i32>;

/// libtorch, on the CPU or on CUDA.
#[cfg(feature = "tch")]
pub type Tch = burn::backend::LibTorch<f32>;

/// Burn's own CUDA backend.
#[cfg(feature = "cuda")]
pub type Cuda = burn::backend::Cuda<f32, i32>;

/// A backend, by the name that users give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// Pure Rust on the CPU.
    Flex,
    /// ndarray on the CPU.
    NdArray,
    /// The graphics interfaces, through wgpu.
    Wgpu,
    /// libtorch: the CPU, or CUDA when a device number is given.
    Tch,
    /// CUDA through CubeCL.
    Cuda,
}

impl BackendKind {
    /// Every backend that the library knows, compiled in or not.
    pub const ALL: [Self; 5] = [Self::Flex, Self::NdArray, Self::Wgpu, Self::Tch, Self::Cuda];

    /// The name by which a user chooses it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::NdArray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Tch => "tch",
            Self::Cuda => "cuda",
        }
    }

    /// Whether this build holds it. The cargo feature has the name of the backend.
    pub const fn is_compiled(self) -> bool {
        match self {
            Self::Flex => cfg!(feature = "flex"),
            Self::NdArray => cfg!(feature = "ndarray"),
            Self::Wgpu => cfg!(feature = "wgpu"),
            Self::Tch => cfg!(feature = "tch"),
            Self::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// Whether its operations run on rayon's threads, or on the caller's alone, so that several at a time share
    /// the processor well. The others bring threads of their own.
    pub const fn shares_threads(self) -> bool {
        matches!(self, Self::Flex | Self::NdArray)
    }

    /// The first backend that this build holds, flex before the others.
    ///
    /// `None` where the crate was built without any.
    pub fn default_compiled() -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.is_compiled())
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A backend that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The name is none of ours.
    #[error("backend '{0}' is unknown: choose flex, ndarray, wgpu, tch or cuda")]
    Unknown(String),
    /// The name is known, but its feature was off at the build.
    #[error("backend '{0}' is not in this build: build with `--features {0}`")]
    NotCompiled(BackendKind),
    /// A device that is not there.
    #[error(
        "backend '{kind}' has no device {number}: {count} can be chosen by number here, counted from 0; choose another, \
         or leave --device out"
    )]
    NoDevice {
        /// The backend.
        kind: BackendKind,
        /// The number that was asked for.
        number: usize,
        /// How many devices there are.
        count: usize,
    },
}

impl FromStr for BackendKind {
    type Err = BackendError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| BackendError::Unknown(name.to_owned()))
    }
}

/// The device of each backend for an optional number, as a user gives it by `--device`.
#[doc(hidden)]
pub mod device {
    use super::{BackendError, BackendKind};

    #[allow(dead_code, reason = "a build may hold no backend")]
    type Found<B> = Result<burn::tensor::Device<B>, BackendError>;

    #[cfg(feature = "flex")]
    pub fn flex(number: Option<usize>) -> Found<super::Flex> {
        there(BackendKind::Flex, number, || 1)?;
        Ok(Default::default())
    }

    #[cfg(feature = "ndarray")]
    pub fn ndarray(number: Option<usize>) -> Found<super::NdArray> {
        there(BackendKind::NdArray, number, || 1)?;
        Ok(Default::default())
    }

    #[cfg(feature = "wgpu")]
    pub fn wgpu(number: Option<usize>) -> Found<super::Wgpu> {
        use burn::backend::wgpu::WgpuDevice;
        there(BackendKind::Wgpu, number, || {
            count::<super::Wgpu>(&WgpuDevice::DiscreteGpu(0))
        })?;
        Ok(number.map_or(WgpuDevice::DefaultDevice, WgpuDevice::DiscreteGpu))
    }

    #[cfg(feature = "tch")]
    pub fn tch(number: Option<usize>) -> Found<super::Tch> {
        use burn::backend::libtorch::LibTorchDevice;
        // Burn does not pass on how many devices libtorch knows of: the first use of one that is not there fails.
        there(BackendKind::Tch, number, || usize::MAX)?;
        Ok(number.map_or(LibTorchDevice::Cpu, LibTorchDevice::Cuda))
    }

    #[cfg(feature = "cuda")]
    pub fn cuda(number: Option<usize>) -> Found<super::Cuda> {
        use burn::backend::cuda::CudaDevice;
        there(BackendKind::Cuda, number, || {
            count::<super::Cuda>(&CudaDevice::new(0))
        })?;
        Ok(CudaDevice::new(number.unwrap_or(0)))
    }

    /// Refuses a number that no device has; without one nothing is counted.
    #[allow(dead_code, reason = "a build may hold no backend")]
    fn there(
        kind: BackendKind,
        number: Option<usize>,
        count: impl Fn() -> usize,
    ) -> Result<(), BackendError> {
        match number.map(|number| (number, count())) {
            Some((number, count)) if number >= count => Err(BackendError::NoDevice { kind, number, count }),
            _ => Ok(()),
        }
    }

    /// How many devices there are of the type of one.
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    fn count<B: burn::tensor::backend::Backend>(like: &burn::tensor::Device<B>) -> usize {
        use burn::tensor::backend::DeviceOps;
        B::device_count(like.id().type_id)
    }
}

/// Runs an expression with a type alias for the backend that a [`BackendKind`] names.
///
/// `with_backend!(kind, number, |B, device| expression)` evaluates `expression` with `B` the backend and
/// `device` its device of that number (`None` for the default one), and gives `Ok` of its value,
/// [`BackendError::NotCompiled`] where this build lacks the backend, or [`BackendError::NoDevice`] where the backend
/// can tell that it has no such device. `B` trains as `Autodiff<B>`.
///
/// # Examples
/// ```
/// use burn::tensor::Tensor;
/// use wqk::backend::{BackendKind, with_backend};
///
/// let kind = BackendKind::default_compiled().unwrap();
/// let sum: f32 = with_backend!(kind, None, |B, device| {
///     Tensor::<B, 1>::ones([3], &device).sum().into_scalar()
/// })?;
/// assert_eq!(sum, 3.0);
/// # Ok::<(), wqk::backend::BackendError>(())
/// ```
#[macro_export]
macro_rules! with_backend {
    ($kind:expr, $number:expr, |$B:ident, $device:ident| $body:expr) => {
        match $kind {
            $crate::backend::BackendKind::Flex => {
                $crate::backend::arms::flex!(Flex, flex, $number, $B, $device, $body)
            }
            $crate::backend::BackendKind::NdArray => {
                $crate::backend::arms::ndarray!(NdArray, ndarray, $number, $B, $device, $body)
            }
            $crate::backend::BackendKind::Wgpu => {
                $crate::backend::arms::wgpu!(Wgpu, wgpu, $number, $B, $device, $body)
            }
            $crate::backend::BackendKind::Tch => {
                $crate::backend::arms::tch!(Tch, tch, $number, $B, $device, $body)
            }
            $crate::backend::BackendKind::Cuda => {
                $crate::backend::arms::cuda!(Cuda, cuda, $number, $B, $device, $body)
            }
        }
    };
}
pub use with_backend;

#[doc(hidden)]
#[macro_export]
macro_rules! __compiled {
    ($kind:ident, $module:ident, $number:expr, $B:ident, $device:ident, $body:expr) => {{
        type $B = $crate::backend::$kind;
        match $crate::backend::device::$module($number) {
            ::core::result::Result::Ok($device) => ::core::result::Result::Ok($body),
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __not_compiled {
    ($kind:ident, $module:ident, $number:expr, $B:ident, $device:ident, $body:expr) => {
        ::core::result::Result::Err($crate::backend::BackendError::NotCompiled(
            $crate::backend::BackendKind::$kind,
        ))
    };
}

/// The arm of each backend, chosen by the features of this crate: a `cfg` inside an exported macro would be
/// judged by the features of the crate that calls it.
#[doc(hidden)]
pub mod arms {
    macro_rules! arms {
        ($($name:ident: $feature:literal),+) => {$(
            #[cfg(feature = $feature)]
            pub use crate::__compiled as $name;
            #[cfg(not(feature = $feature))]
            pub use crate::__not_compiled as $name;
        )+};
    }
    arms!(flex: "flex", ndarray: "ndarray", wgpu: "wgpu", tch: "tch", cuda: "cuda");
}
