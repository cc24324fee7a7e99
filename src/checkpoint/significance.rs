//! The scores of a checkpoint beside those of random matrices.

use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};

use super::{Checkpoint, CheckpointError, LayerReport, ModelReport};
use crate::bilinear::significance::{DirectionalityTests, Observed, Simulation, SymmetryTest, holm};

/// How far the scores of a layer and of its heads lie from those of random matrices.
///
/// The directionality is tested head by head only: a whole layer is a sum of heads, whose simulation would need
/// products of size `d_model²`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerSignificance {
    /// Of the whole layer's symmetry; none for a zero matrix.
    pub symmetry: Option<SymmetryTest>,
    /// Of each head.
    pub heads: Vec<HeadSignificance>,
}

/// How far the scores of a head lie from those of random matrices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadSignificance {
    /// Of its symmetry; none for a zero matrix.
    pub symmetry: Option<SymmetryTest>,
    /// Of its directionality, corrected over the heads of the layer.
    pub directionality: DirectionalityTests,
}

impl Checkpoint {
    /// Adds [`LayerSignificance`] to a report that [`Checkpoint::score`] made with every head of this
    /// checkpoint.
    ///
    /// Reads the layers once more for their singular values, then simulates all heads of one shape together.
    ///
    /// # Errors
    /// A layer that cannot be read, whose singular values do not converge, or a γ that is not finite.
    pub fn add_significance<B: Backend>(
        &self,
        report: &mut ModelReport,
        simulation: &Simulation,
        device: &B::Device,
    ) -> Result<(), CheckpointError> {
        let mut observed = Vec::new();
        for (i, layer) in self.layers::<B>(device).enumerate() {
            let (layer, record) = (layer?, &report.layers[i]);
            for (form, scores) in layer.form.heads().zip(record.scores.heads.iter().flatten()) {
                observed.push(Observed {
                    d_model: record.scores.d_model,
                    singular_values: self
                        .extractor::<B>(i, device)
                        .check(form.spectrum())?
                        .singular_values,
                    directionality: scores.directionality,
                });
            }
        }
        let mut tests = self
            .extractor::<B>(0, device)
            .check(simulation.run(&observed))?
            .into_iter();
        for layer in &mut report.layers {
            let heads = layer.scores.heads.as_ref().map_or(0, Vec::len);
            layer.significance = Some(of_layer(layer, tests.by_ref().take(heads).collect()));
        }
        Ok(())
    }
}

fn of_layer(layer: &LayerReport, mut tests: Vec<DirectionalityTests>) -> LayerSignificance {
    let d_model = layer.scores.d_model;
    let definition = holm(&tests.iter().map(|test| test.definition.p).collect::<Vec<_>>());
    let excess = holm(&tests.iter().map(|test| test.excess.p).collect::<Vec<_>>());
    for (test, (definition, excess)) in tests.iter_mut().zip(definition.into_iter().zip(excess)) {
        test.definition.p_corrected = definition;
        test.excess.p_corrected = excess;
    }
    let symmetry = |score: Option<f64>| score.map(|s| SymmetryTest::new(d_model, s));
    let heads = layer.scores.heads.iter().flatten().zip(tests);
    LayerSignificance {
        symmetry: symmetry(layer.scores.symmetry),
        heads: heads
            .map(|(head, directionality)| HeadSignificance {
                symmetry: symmetry(head.symmetry),
                directionality,
            })
            .collect(),
    }
}
