//! The state of AdamW by the names of the parameters that it belongs to.
//!
//! Burn keys it by numbers that are drawn anew whenever a model is built; names survive a restart.

use std::collections::BTreeMap;

use burn::module::{AutodiffModule, ModuleVisitor, Param};
use burn::optim::Optimizer;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::record::AdaptorRecord;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Tensor, TensorData};

use super::weights::{Named, Path, fitting};
use crate::train::optimiser::{AdamWByRank, Moments};

/// The optimiser of a run of models `M`.
pub(in crate::train) type RunOptimiser<B, M> = OptimizerAdaptor<AdamWByRank, M, B>;

type Records<B, M> = <RunOptimiser<B, M> as Optimizer<M, B>>::Record;

const TIME: &str = "time";
const SUMS: [&str; 2] = ["first", "second"];

/// The moments of every parameter that has been updated, and how often it was.
pub(super) fn moments<B: AutodiffBackend, M: AutodiffModule<B>>(
    optimiser: &RunOptimiser<B, M>,
    model: &M,
) -> Vec<Named> {
    let mut collect = Collect::<B, M> {
        path: Path::default(),
        records: optimiser.to_record(),
        tensors: Vec::new(),
    };
    model.visit(&mut collect);
    collect.tensors
}

/// Gives the optimiser the stored moments.
///
/// # Errors
/// What does not fit the model.
pub(super) fn set_moments<B: AutodiffBackend, M: AutodiffModule<B>>(
    optimiser: RunOptimiser<B, M>,
    model: &M,
    tensors: BTreeMap<String, TensorData>,
) -> Result<RunOptimiser<B, M>, String> {
    let mut place = Place::<B, M> {
        path: Path::default(),
        tensors,
        records: Records::<B, M>::default(),
        problem: None,
    };
    model.visit(&mut place);
    if let Some(problem) = place.problem {
        return Err(problem);
    }
    match place.tensors.keys().next() {
        Some(name) => Err(format!("it holds '{name}', which the model has not")),
        None => Ok(optimiser.load_record(place.records)),
    }
}

struct Collect<B: AutodiffBackend, M: AutodiffModule<B>> {
    path: Path,
    records: Records<B, M>,
    tensors: Vec<Named>,
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> ModuleVisitor<B> for Collect<B, M> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let Some(record) = self.records.remove(&param.id) else {
            return;
        };
        let Moments { time, first, second } = record.into_state::<D>();
        let name = self.path.name();
        let time = TensorData::new(vec![time as i64], [1]);
        self.tensors.push((format!("{name}.{TIME}"), time));
        for (sum, tensor) in SUMS.iter().zip([first, second]) {
            self.tensors.push((format!("{name}.{sum}"), tensor.into_data()));
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}

struct Place<B: AutodiffBackend, M: AutodiffModule<B>> {
    path: Path,
    tensors: BTreeMap<String, TensorData>,
    records: Records<B, M>,
    problem: Option<String>,
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> Place<B, M> {
    fn state<const D: usize>(
        &mut self,
        name: &str,
        time: &TensorData,
        like: &Tensor<B::InnerBackend, D>,
    ) -> Result<Moments<B::InnerBackend, D>, String> {
        let time = time
            .iter::<i64>()
            .next()
            .and_then(|time| usize::try_from(time).ok());
        let time = time.ok_or_else(|| format!("'{name}.{TIME}' is no count"))?;
        let mut sum = |sum: &str| {
            let name = format!("{name}.{sum}");
            let data = self
                .tensors
                .remove(&name)
                .ok_or_else(|| format!("it lacks '{name}'"))?;
            Ok::<_, String>(Tensor::from_data(fitting(&name, data, like)?, &like.device()))
        };
        let [first, second] = SUMS;
        Ok(Moments {
            time,
            first: sum(first)?,
            second: sum(second)?,
        })
    }
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> ModuleVisitor<B> for Place<B, M> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let name = self.path.name();
        // A parameter that no loss has reached yet has no state.
        let Some(time) = self.tensors.remove(&format!("{name}.{TIME}")) else {
            return;
        };
        match self.state(&name, &time, &param.val().inner()) {
            Ok(state) => {
                self.records.insert(param.id, AdaptorRecord::from_state(state));
            }
            Err(problem) => {
                self.problem.get_or_insert(problem);
            }
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}
