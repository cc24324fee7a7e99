//! Element types, those that are read and those that are only recognised.

use std::fmt;

macro_rules! dtypes {
    ($($variant:ident, $bits:literal, $st:literal, $doc:literal;)*) => {
        /// The element type of a stored tensor.
        ///
        /// Only the four floating-point types of [`Dtype::is_float`] can be read as weights; the
        /// others are known so that an error can name them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Dtype { $(#[doc = $doc] $variant,)* }

        impl Dtype {
            /// The type that a safetensors header calls `name`.
            pub(super) fn from_safetensors(name: &str) -> Option<Self> {
                match name { $($st => Some(Self::$variant),)* _ => None }
            }

            /// The name that safetensors gives the type, such as `BF16`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $st,)* }
            }

            /// Bits of one element.
            pub fn bits(self) -> u64 {
                match self { $(Self::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    F64, 64, "F64", "IEEE double precision.";
    F32, 32, "F32", "IEEE single precision.";
    F16, 16, "F16", "IEEE half precision.";
    Bf16, 16, "BF16", "The upper half of a single.";
    Bool, 8, "BOOL", "One byte a truth value.";
    U8, 8, "U8", "Unsigned byte; also the container of many quantised layouts.";
    I8, 8, "I8", "Signed byte.";
    U16, 16, "U16", "Unsigned 16-bit integer.";
    I16, 16, "I16", "Signed 16-bit integer.";
    U32, 32, "U32", "Unsigned 32-bit integer.";
    I32, 32, "I32", "Signed 32-bit integer.";
    U64, 64, "U64", "Unsigned 64-bit integer.";
    I64, 64, "I64", "Signed 64-bit integer.";
    F8E4M3, 8, "F8_E4M3", "Eight-bit float with 4 exponent bits.";
    F8E5M2, 8, "F8_E5M2", "Eight-bit float with 5 exponent bits.";
    F8E4M3Fnuz, 8, "F8_E4M3FNUZ", "Eight-bit float with 4 exponent bits, no negative zero.";
    F8E5M2Fnuz, 8, "F8_E5M2FNUZ", "Eight-bit float with 5 exponent bits, no negative zero.";
    F8E8M0, 8, "F8_E8M0", "Power-of-two scale of the microscaling formats.";
    F6E2M3, 6, "F6_E2M3", "Six-bit float with 2 exponent bits.";
    F6E3M2, 6, "F6_E3M2", "Six-bit float with 3 exponent bits.";
    F4, 4, "F4", "Four-bit float.";
    C32, 32, "C32", "Complex number of two halves.";
    C64, 64, "C64", "Complex number of two singles.";
    C128, 128, "C128", "Complex number of two doubles.";
}

impl Dtype {
    /// Whether the elements are f64, f32, f16 or bf16, the types that weights are read from.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Bytes of one element, for the types that PyTorch's format holds (all of whole bytes).
    pub(super) fn size(self) -> usize {
        (self.bits() as usize).div_ceil(8)
    }

    /// The type behind a storage class such as `HalfStorage` or a dtype such as `bfloat16`.
    pub(super) fn from_torch(name: &str) -> Option<Self> {
        Some(match name {
            "DoubleStorage" | "float64" => Self::F64,
            "FloatStorage" | "float32" => Self::F32,
            "HalfStorage" | "float16" => Self::F16,
            "BFloat16Storage" | "bfloat16" => Self::Bf16,
            "BoolStorage" | "bool" => Self::Bool,
            "ByteStorage" | "UntypedStorage" | "uint8" => Self::U8,
            "CharStorage" | "int8" => Self::I8,
            "ShortStorage" | "int16" => Self::I16,
            "IntStorage" | "int32" => Self::I32,
            "LongStorage" | "int64" => Self::I64,
            "uint16" => Self::U16,
            "uint32" => Self::U32,
            "uint64" => Self::U64,
            "float8_e4m3fn" => Self::F8E4M3,
            "float8_e5m2" => Self::F8E5M2,
            "float8_e4m3fnuz" => Self::F8E4M3Fnuz,
            "float8_e5m2fnuz" => Self::F8E5M2Fnuz,
            "float8_e8m0fnu" => Self::F8E8M0,
            "complex32" => Self::C32,
            "ComplexFloatStorage" | "complex64" => Self::C64,
            "ComplexDoubleStorage" | "complex128" => Self::C128,
            _ => return None,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
