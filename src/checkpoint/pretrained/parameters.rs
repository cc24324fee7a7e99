//! The parameters of a module on the host, by their paths in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

use super::PretrainedError;
use crate::checkpoint::format::Store;

/// One parameter, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
}

/// The parameters of a model by their paths in the module, such as `blocks.0.attention.query.weight`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Where they are from, for messages.
    pub(super) path: PathBuf,
    pub(super) by_name: BTreeMap<String, Parameter>,
}

impl Parameters {
    /// Those of a module in memory.
    pub fn of<B: Backend, M: Module<B>>(module: &M) -> Self {
        let mut collect = Collect {
            place: Place::default(),
            by_name: BTreeMap::new(),
        };
        module.visit(&mut collect);
        Self {
            path: "model in memory".into(),
            by_name: collect.by_name,
        }
    }

    /// Those of a file that has our own names, such as a checkpoint of a run.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(path: &Path) -> Result<Self, PretrainedError> {
        let store = Store::open(path)?;
        let names: Vec<String> = store.names().map(str::to_owned).collect();
        let mut by_name = BTreeMap::new();
        for name in names {
            let shape = store
                .info(&name)
                .map(|info| info.shape.clone())
                .unwrap_or_default();
            let values = store.read_f32(&name)?;
            by_name.insert(name, Parameter { shape, values });
        }
        Ok(Self {
            path: path.to_owned(),
            by_name,
        })
    }

    /// A parameter by its path in the module.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.by_name.get(name)
    }

    /// Their paths, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Puts them into a module, each at its path.
    ///
    /// # Errors
    /// A parameter that is missing, left over or of another shape; nothing is applied then.
    pub fn into_module<B: Backend, M: Module<B>>(self, module: M) -> Result<M, PretrainedError> {
        let mut shapes = Shapes::default();
        module.visit(&mut shapes);
        for (name, wanted) in &shapes.found {
            let path = self.path.clone();
            match self.by_name.get(name) {
                None => {
                    return Err(PretrainedError::Missing {
                        path,
                        name: name.clone(),
                        remedy: "give a checkpoint of the same model",
                    });
                }
                Some(parameter) if parameter.shape != *wanted => {
                    return Err(PretrainedError::Shape {
                        path,
                        name: name.clone(),
                        found: parameter.shape.clone(),
                        wanted: wanted.clone(),
                    });
                }
                Some(_) => {}
            }
        }
        let mut surplus = self
            .by_name
            .keys()
            .filter(|name| !shapes.found.contains_key(*name));
        if let Some(name) = surplus.next() {
            return Err(PretrainedError::Surplus {
                name: name.clone(),
                others: surplus.count(),
                path: self.path.clone(),
            });
        }
        Ok(module.map(&mut Fill {
            place: Place::default(),
            by_name: self.by_name,
        }))
    }
}

/// Where a walk through a module is.
#[derive(Debug, Default)]
struct Place(Vec<String>);

impl Place {
    fn name(&self) -> String {
        self.0.join(".")
    }
}

/// The steps of a walk, which are the same in all visitors and mappers.
macro_rules! walk {
    () => {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.place.0.push(name.to_owned());
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.place.0.pop();
        }
    };
}

struct Collect {
    place: Place,
    by_name: BTreeMap<String, Parameter>,
}

impl<B: Backend> ModuleVisitor<B> for Collect {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let tensor = param.val();
        let parameter = Parameter {
            shape: tensor.dims().to_vec(),
            values: tensor.into_data().iter::<f32>().collect(),
        };
        self.by_name.insert(self.place.name(), parameter);
    }

    walk!();
}

#[derive(Default)]
struct Shapes {
    place: Place,
    found: BTreeMap<String, Vec<usize>>,
}

impl<B: Backend> ModuleVisitor<B> for Shapes {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.found.insert(self.place.name(), param.val().dims().to_vec());
    }

    walk!();
}

/// Replaces every parameter; names and shapes were checked before.
struct Fill {
    place: Place,
    by_name: BTreeMap<String, Parameter>,
}

impl<B: Backend> ModuleMapper<B> for Fill {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let Some(Parameter { shape, values }) = self.by_name.remove(&self.place.name()) else {
            return param;
        };
        param.map(|old| {
            let data = TensorData::new(values, shape).convert_dtype(old.dtype());
            Tensor::from_data(data, &old.device()).set_require_grad(old.is_require_grad())
        })
    }

    walk!();
}
