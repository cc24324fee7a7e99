//! Tensors of modules as safetensors files, and back.
//!
//! Tensors keep the precision that the backend computes in. Names are the paths of the parameters in the
//! module, such as `blocks.0.attention.query.weight`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Element, Tensor, TensorData};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// A tensor on the host, by the name under which it is stored.
pub(in crate::train) type Named = (String, TensorData);

/// The floating-point parameters of a module, in its order.
pub(super) fn parameters<B: Backend, M: Module<B>>(module: &M) -> Vec<Named> {
    let mut collect = Collect {
        path: Path::default(),
        tensors: Vec::new(),
    };
    module.visit(&mut collect);
    collect.tensors
}

/// Puts stored tensors into the module, each by its name.
///
/// # Errors
/// What does not fit: a missing or surplus name, another shape or precision.
pub(super) fn set_parameters<B: Backend, M: Module<B>>(
    module: M,
    tensors: BTreeMap<String, TensorData>,
) -> Result<M, String> {
    let mut place = Place {
        path: Path::default(),
        tensors,
        problem: None,
    };
    let module = module.map(&mut place);
    if let Some(problem) = place.problem {
        return Err(problem);
    }
    match place.tensors.keys().next() {
        Some(name) => Err(format!("it holds '{name}', which the model has not")),
        None => Ok(module),
    }
}

/// Where a visit of a module is.
#[derive(Debug, Default)]
pub(super) struct Path(Vec<String>);

impl Path {
    pub(super) fn enter(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    pub(super) fn exit(&mut self) {
        self.0.pop();
    }

    pub(super) fn name(&self) -> String {
        self.0.join(".")
    }
}

struct Collect {
    path: Path,
    tensors: Vec<Named>,
}

impl<B: Backend> ModuleVisitor<B> for Collect {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.tensors.push((self.path.name(), param.val().into_data()));
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}

struct Place {
    path: Path,
    tensors: BTreeMap<String, TensorData>,
    problem: Option<String>,
}

impl<B: Backend> ModuleMapper<B> for Place {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let name = self.path.name();
        let Some(data) = self.tensors.remove(&name) else {
            self.problem.get_or_insert(format!("it lacks '{name}'"));
            return param;
        };
        let (id, old, mapper) = param.consume();
        let new = match fitting(&name, data, &old) {
            Ok(data) => Tensor::from_data(data, &old.device()).set_require_grad(old.is_require_grad()),
            Err(problem) => {
                self.problem.get_or_insert(problem);
                old
            }
        };
        Param::from_mapped_value(id, new, mapper)
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}

/// The data, if it has the shape and precision of the tensor that it is to replace.
pub(in crate::train) fn fitting<B: Backend, const D: usize>(
    name: &str,
    data: TensorData,
    old: &Tensor<B, D>,
) -> Result<TensorData, String> {
    let (shape, want) = (data.shape.to_vec(), old.dims().to_vec());
    if shape != want {
        return Err(format!(
            "'{name}' has the shape {shape:?}, but the model needs {want:?}"
        ));
    }
    if data.dtype != old.dtype() {
        return Err(format!(
            "'{name}' is stored as {:?}, but the backend computes in {:?}",
            data.dtype,
            old.dtype()
        ));
    }
    Ok(data)
}

/// Writes a safetensors file, in the order of the tensors and with nothing else in it: equal tensors give equal
/// files.
pub(super) fn write(sink: &mut dyn Write, tensors: &[Named]) -> io::Result<()> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, data) in tensors {
        let begin = end;
        end += data.bytes.len();
        let entry = serde_json::json!({
            "dtype": stored_as(data.dtype)?,
            "shape": data.shape.to_vec(),
            "data_offsets": [begin, end],
        });
        header.insert(name.clone(), entry);
    }
    let mut header = serde_json::to_vec(&header)?;
    // The content begins at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    sink.write_all(&(header.len() as u64).to_le_bytes())?;
    sink.write_all(&header)?;
    for (_, data) in tensors {
        sink.write_all(&data.bytes)?;
    }
    Ok(())
}

/// The tensors of a safetensors file.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn read(content: &[u8]) -> Result<BTreeMap<String, TensorData>, String> {
    let file =
        SafeTensors::deserialize(content).map_err(|error| format!("not a safetensors file: {error}"))?;
    file.iter()
        .map(|(name, view)| {
            let (bytes, shape) = (view.data(), view.shape().to_vec());
            let data = match view.dtype() {
                Dtype::F32 => decode(bytes, shape, f32::from_le_bytes),
                Dtype::F64 => decode(bytes, shape, f64::from_le_bytes),
                Dtype::F16 => decode(bytes, shape, half::f16::from_le_bytes),
                Dtype::BF16 => decode(bytes, shape, half::bf16::from_le_bytes),
                Dtype::I64 => decode(bytes, shape, i64::from_le_bytes),
                other => return Err(format!("'{name}' is stored as {other:?}")),
            };
            Ok((name.to_owned(), data))
        })
        .collect()
}

/// Elements of `N` bytes each, in memory aligned for them, which a slice of a file is not.
fn decode<E: Element, const N: usize>(
    bytes: &[u8],
    shape: Vec<usize>,
    element: impl Fn([u8; N]) -> E,
) -> TensorData {
    let (elements, _) = bytes.as_chunks::<N>();
    TensorData::new(elements.iter().map(|&bytes| element(bytes)).collect(), shape)
}

fn stored_as(dtype: DType) -> io::Result<&'static str> {
    match dtype {
        DType::F32 => Ok("F32"),
        DType::F64 => Ok("F64"),
        DType::F16 => Ok("F16"),
        DType::BF16 => Ok("BF16"),
        DType::I64 => Ok("I64"),
        other => Err(io::Error::other(format!("tensors of {other:?} cannot be stored"))),
    }
}
