//! Models that were trained on real text, briefly or before, and what they show of their attention.

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use super::evidence::{Evidence, LayerEvidence};
use super::observe::Observed;
use crate::bilinear::Summary;
use crate::data::{DataError, Document, Packed, Tokenizer};
use crate::model::{TextTransformer, TextTransformerConfig};
use crate::objective::{ObjectiveError, ObjectiveMode};
use crate::train::{
    CaptureError, Event, Observer, Task, TextData, TextTask, TrainConfig, TrainError, UpdateWatch, fit,
};

/// How the models are made and trained.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSettings {
    /// Updates of each model.
    pub steps: usize,
    /// Tokens of a sequence.
    pub sequence: usize,
    /// The width of the models.
    pub width: usize,
    /// Their layers.
    pub layers: usize,
    /// Their heads.
    pub heads: usize,
    /// Sequences in a batch.
    pub batch: usize,
    /// Different characters that get a token of their own.
    pub alphabet: usize,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for TextSettings {
    /// As `wqk demo`, with fewer updates.
    fn default() -> Self {
        Self {
            steps: 400,
            sequence: 64,
            width: 64,
            layers: 2,
            heads: 4,
            batch: 32,
            alphabet: 95,
            seed: 0,
        }
    }
}

/// What can go wrong on the way to a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TheoryError {
    /// A claim that does not exist.
    #[error("there is no claim '{name}': choose from {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The text cannot be read or is too short.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A model cannot be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A model does not show its attention.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An objective cannot be built.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
}

/// A model that was trained before.
#[derive(Debug, Clone)]
pub struct TrainedText<B: AutodiffBackend> {
    /// The model as it is now.
    pub model: TextTransformer<B>,
    /// As its training began, where that is known.
    pub start: Option<TextTransformer<B>>,
    /// What it was trained for.
    pub objective: ObjectiveMode,
}

/// Models on the same text, and the text.
#[derive(Debug, Clone)]
pub struct TextEvidence {
    /// What each model shows.
    pub models: Vec<Evidence>,
    /// The text in sequences of equal length, cut without regard to documents, as the models are fed it.
    pub packed: Vec<Vec<u32>>,
    /// The first tokens of each document that is long enough.
    pub openings: Vec<Vec<u32>>,
    /// How each token is written.
    pub symbols: Vec<String>,
    /// Where it comes from, for a report.
    pub source: String,
}

/// The most sequences that are kept for counting: enough that a standard error is far below any effect.
const COUNTED: usize = 20_000;

impl TextEvidence {
    /// Trains both models on a text, and runs one more batch through each.
    ///
    /// `progress` is called after every update with the name of the model and the updates done.
    ///
    /// # Errors
    /// [`TheoryError`], where the text is too short, a setting impossible, or training goes astray.
    pub fn train<B: AutodiffBackend>(
        documents: &[Document],
        source: &str,
        settings: &TextSettings,
        device: &Device<B>,
        progress: &dyn Fn(&str, usize),
    ) -> Result<Self, TheoryError> {
        let n = settings.sequence;
        let texts = || documents.iter().map(|document| Ok(document.clone()));
        let tokenizer =
            Tokenizer::characters(documents.iter().map(|d| Ok(d.with_title())), settings.alphabet)?;
        let (train, held_out) = Packed::new(texts(), &tokenizer, n)?.hold_out(0.02)?;
        let data = TextData {
            train: &train,
            held_out: &held_out,
            vocabulary: tokenizer.vocabulary(),
        };
        let run = |name: &str, objective| train_one::<B>(name, objective, data, settings, device, progress);
        let models = vec![
            run("encoder", ObjectiveMode::masked(0.15)?)?,
            run("decoder", ObjectiveMode::autoregressive())?,
        ];
        let source = format!(
            "{source}, {} layers {} wide, {} updates, seed {}",
            settings.layers, settings.width, settings.steps, settings.seed
        );
        Self::of(models, &train, documents, &tokenizer, source)
    }

    /// Runs a batch of a text through a model that was trained before.
    ///
    /// Of the settings, `sequence`, `batch` and `seed` count: the batch is drawn from the text by the seed. Costs a
    /// training step; the claims then compute with matrices of the model's width on one core.
    ///
    /// # Errors
    /// [`TheoryError`], where the text is too short, or the tokenizer or the length do not fit the model.
    pub fn of_trained<B: AutodiffBackend>(
        trained: &TrainedText<B>,
        documents: &[Document],
        tokenizer: &Tokenizer,
        source: &str,
        settings: &TextSettings,
        device: &Device<B>,
    ) -> Result<Self, TheoryError> {
        let texts = documents.iter().map(|document| Ok(document.clone()));
        let packed = Packed::new(texts, tokenizer, settings.sequence)?;
        let data = TextData {
            train: &packed,
            held_out: &packed,
            vocabulary: tokenizer.vocabulary(),
        };
        let config = TrainConfig {
            batch_size: settings.batch,
            accumulation: 1,
            seed: settings.seed,
            ..TrainConfig::default()
        };
        let task = TextTask::<B>::new(trained.objective, data, &config)?;
        // What a batch shows must not depend on what dropout leaves out.
        let model = trained.model.clone().without_dropout();
        task.check(&model)?;
        let observed = Observed {
            model: &model,
            start: trained.start.as_ref(),
            objective: trained.objective,
            vocabulary: data.vocabulary,
        };
        let models = vec![observed.on(&task, 0, device)?];
        let source = format!(
            "{source}, {} sequences of {} tokens, seed {}",
            settings.batch, settings.sequence, settings.seed
        );
        Self::of(models, &packed, documents, tokenizer, source)
    }

    fn of(
        models: Vec<Evidence>,
        packed: &Packed,
        documents: &[Document],
        tokenizer: &Tokenizer,
        source: String,
    ) -> Result<Self, TheoryError> {
        let n = packed.n();
        let mut openings = Vec::new();
        for document in documents {
            let tokens = tokenizer.encode(&document.with_title())?;
            openings.extend(tokens.get(..n).map(<[u32]>::to_vec));
        }
        let symbols = (0..tokenizer.vocabulary().size as u32)
            .map(|id| tokenizer.decode(&[id]))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            models,
            packed: packed
                .tokens()
                .chunks_exact(n)
                .take(COUNTED)
                .map(<[u32]>::to_vec)
                .collect(),
            openings,
            symbols,
            source,
        })
    }

    /// The layers of the encoders.
    pub fn encoder_layers(&self) -> impl Iterator<Item = &LayerEvidence> {
        let encoders = self.models.iter().filter(|model| model.is_encoder());
        encoders.flat_map(|model| &model.layers)
    }

    /// The layers of the decoders.
    pub fn decoder_layers(&self) -> impl Iterator<Item = &LayerEvidence> {
        let decoders = self.models.iter().filter(|model| model.is_decoder());
        decoders.flat_map(|model| &model.layers)
    }
}

/// Tells how far a run is.
struct Follow<'a> {
    name: &'a str,
    progress: &'a dyn Fn(&str, usize),
}

impl<M> Observer<M> for Follow<'_> {
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        if let Event::Step { row, .. } = event {
            (self.progress)(self.name, row.step);
        }
        Ok(())
    }
}

fn train_one<B: AutodiffBackend>(
    name: &str,
    objective: ObjectiveMode,
    data: TextData<'_>,
    settings: &TextSettings,
    device: &Device<B>,
    progress: &dyn Fn(&str, usize),
) -> Result<Evidence, TheoryError> {
    let config = TrainConfig {
        steps: settings.steps,
        batch_size: settings.batch,
        accumulation: 1,
        learning_rate: 1e-3,
        warmup_steps: 50.min(settings.steps / 4),
        seed: settings.seed,
        ..TrainConfig::default()
    };
    let model = TextTransformerConfig::new(
        data.vocabulary.size,
        settings.width,
        settings.layers,
        settings.heads,
    )
    .with_max_positions(settings.sequence)
    .with_dropout(0.0)
    .with_attention_dropout(0.0)
    .init::<B>(settings.seed, device)
    .map_err(TrainError::from)?;
    let task = TextTask::<B>::new(objective, data, &config)?;
    let mut watch = UpdateWatch::new(task.clone(), (settings.steps / 8).max(1));
    let mut follow = Follow { name, progress };
    let start = model.clone();
    let model = fit::<B, _>(model, &task, &config, &mut [&mut watch, &mut follow])?;
    let observed = Observed {
        model: &model,
        start: Some(&start),
        objective,
        vocabulary: data.vocabulary,
    };
    // The batch that would have come next: the models have not been trained on it, or not of late.
    let evidence = observed.on(&task, settings.steps, device)?;
    Ok(Evidence {
        updates: updates(&watch, evidence.layers.len()),
        ..evidence
    })
}

/// Medians over the watched steps.
fn updates<B: AutodiffBackend>(
    watch: &UpdateWatch<TextTask<'_, B>, B>,
    layers: usize,
) -> Vec<(usize, f64, f64)> {
    (0..layers)
        .filter_map(|layer| {
            let rows = || watch.rows().iter().filter(move |row| row.layer == layer);
            let symmetry = Summary::of(rows().filter_map(|row| row.update_symmetry))?;
            let cosine = Summary::of(rows().filter_map(|row| row.first_order_cosine))?;
            Some((layer, symmetry.median, cosine.median))
        })
        .collect()
}
