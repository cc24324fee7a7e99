//! Models and text that claims are tried on.

use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::TheoryArgs;
use crate::backend::{Autodiff, with_backend};
use crate::cli::common::Common;
use crate::cli::text_model::TextModel;
use crate::data::{Document, Documents, bundled};
use crate::report::table::visible;
use crate::theory::{TextEvidence, TextSettings, TrainedText};

/// Documents that are read of a text: what a brief training can use.
const DOCUMENTS: usize = 4000;

/// The trained models, if they were asked for.
pub(super) fn evidence(
    args: &TheoryArgs,
    common: &Common,
    progress: &Progress,
) -> anyhow::Result<Option<TextEvidence>> {
    let text = match &args.text {
        Some(path) => {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            Some((Documents::open(path)?, name.into_owned()))
        }
        None if args.trained => Some((bundled::documents()?, bundled::NAME.to_owned())),
        None => None,
    };
    if let Some(folder) = &args.run {
        return shown(folder, text, args, common, progress).map(Some);
    }
    let Some((text, source)) = text else {
        return Ok(None);
    };
    let documents = documents(text)?;
    let settings = TextSettings {
        steps: args.steps as usize,
        seed: common.seed,
        ..TextSettings::default()
    };
    let hear = |name: &str, step: usize| progress.trained(name, step, settings.steps);
    let evidence = with_backend!(common.backend()?, common.device, |B, device| {
        TextEvidence::train::<Autodiff<B>>(&documents, &source, &settings, &device, &hear)
    })??;
    Ok(Some(evidence))
}

/// What a model that was trained before shows on a text.
fn shown(
    folder: &Path,
    text: Option<(Documents, String)>,
    args: &TheoryArgs,
    common: &Common,
    progress: &Progress,
) -> anyhow::Result<TextEvidence> {
    /// Longer sequences say no more, and take time by the square of their length.
    const LONGEST: usize = 128;
    let model = TextModel::open(folder, args.step)?;
    let tokenizer = model.tokenizer(args.tokenizer.as_deref())?;
    let (text, source) = text.map_or_else(|| model.documents(), Ok)?;
    let sequence = model
        .length
        .unwrap_or(LONGEST)
        .min(model.config.max_positions)
        .min(LONGEST);
    let settings = TextSettings {
        sequence,
        batch: args.batch as usize,
        seed: common.seed,
        ..TextSettings::default()
    };
    if !common.quiet {
        for note in &model.notes {
            eprintln!("note: {}", visible(note));
        }
    }
    progress.say(&format!("showing {source} to {}", model.name));
    let documents = documents(text)?;
    let source = format!("{}, shown {source}", model.name);
    with_backend!(common.backend()?, common.device, |B, device| {
        let trained = TrainedText::<Autodiff<B>> {
            model: model.model(&device)?,
            start: model.start(&device)?,
            objective: model.objective,
        };
        TextEvidence::of_trained(&trained, &documents, &tokenizer, &source, &settings, &device)
            .map_err(anyhow::Error::from)
    })?
}

/// How far the work is: a line that changes on a terminal, lines now and then elsewhere.
pub(super) struct Progress {
    bar: ProgressBar,
    lines: bool,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::no_length();
        if quiet || !terminal {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self {
            bar,
            lines: !quiet && !terminal,
        }
    }

    pub(super) fn say(&self, what: &str) {
        let what = visible(what);
        if self.lines {
            eprintln!("{what}");
        }
        self.bar.set_message(what.into_owned());
        self.bar.tick();
    }

    /// Hears of every update of a model.
    fn trained(&self, name: &str, step: usize, steps: usize) {
        let quarter = steps.div_ceil(4);
        let text = format!("training the {name}: {step} of {steps} updates");
        if step.is_multiple_of(quarter) || step == steps {
            self.say(&text);
        } else {
            self.bar.set_message(text);
            self.bar.tick();
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn documents(documents: Documents) -> anyhow::Result<Vec<Document>> {
    Ok(documents.take(DOCUMENTS).collect::<Result<_, _>>()?)
}
