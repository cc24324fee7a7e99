//! `wqk export`: the model of a run in a folder that Hugging Face's `transformers` loads.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::common::Common;
use crate::checkpoint::pretrained::{
    ExportedText, ExportedViT, Parameters, check_target, export_text, export_vit,
};
use crate::data::Tokenizer;
use crate::objective::Visibility;
use crate::train::recipe::ModelSection;
use crate::train::{ImageInput, Recipe, RunFolder};

/// Arguments of `wqk export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder of a run, or the runs' folder if there is one run in it
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The folder to write; it must be new or empty
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// The checkpoint after this many updates [default: the latest]
    #[arg(long, value_name = "N")]
    step: Option<usize>,

    /// The averaged weights, where the run keeps an average
    #[arg(long)]
    averaged: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A run without a checkpoint, a model that `transformers` has no class for, a folder with something in it.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    check_target(&args.to)?;
    let run = match RunFolder::find(&args.run)?.as_slice() {
        [run] => run.clone(),
        runs => {
            let names: Vec<String> = runs.iter().map(|run| run.path().display().to_string()).collect();
            bail!(
                "'{}' holds several runs: name one of {}",
                args.run.display(),
                names.join(", ")
            );
        }
    };
    let recipe = run.recipe()?;
    let checkpoint = run.checkpoint(args.step)?;
    let file = if args.averaged {
        "average.safetensors"
    } else {
        "model.safetensors"
    };
    let weights = checkpoint.path().join(file);
    if args.averaged && !checkpoint.has_average() {
        bail!(
            "the run '{}' keeps no averaged weights: leave out --averaged",
            run.path().display()
        );
    }
    let parameters = Parameters::open(&weights)?;
    let (class, note) = match &recipe.model {
        ModelSection::Text(_) => text(&run, &recipe, &parameters, args)?,
        ModelSection::Vision(_) => vision(&run, &recipe, &parameters, args)?,
    };
    if !common.quiet {
        if let Some(note) = note {
            eprintln!("note: {note}");
        }
        eprintln!(
            "{class} after {} updates is in {}",
            checkpoint.info().step,
            args.to.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The class that was written, and what a user should know.
type Written = (&'static str, Option<&'static str>);

fn text(run: &RunFolder, recipe: &Recipe, parameters: &Parameters, args: &Args) -> anyhow::Result<Written> {
    let Some(tokenizer) = run.tokenizer()? else {
        bail!(
            "the run '{}' has no tokenizer.json: restore it from where the run was made",
            run.path().display()
        );
    };
    let tokenizer = Tokenizer::from_file(tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    let config = recipe.text_model(vocabulary.size, &run.recipe_file())?;
    let visibility = recipe
        .objective
        .as_ref()
        .map(|objective| objective.attention_mask(config.max_positions));
    let causal = match visibility {
        None | Some(Visibility::Full) => false,
        Some(Visibility::Causal) => true,
        Some(Visibility::Prefix(_)) => bail!(
            "the run '{}' has the attention of a prefix language model, which BERT's classes in transformers have not: \
             its checkpoints are safetensors files that any program can read",
            run.path().display()
        ),
    };
    // Positions beyond the sequences of the training are as they were drawn.
    let trained = recipe
        .data
        .length()
        .map_or(config.max_positions, |length| length.min(config.max_positions));
    let files = tokenizer.hub_files(trained)?;
    let exported = ExportedText {
        config: &config,
        parameters,
        causal,
        pad: vocabulary.pad,
        files: files.as_deref().unwrap_or_default(),
    };
    export_text(&exported, &args.to)?;
    let class = if causal {
        "BertLMHeadModel"
    } else {
        "BertForMaskedLM"
    };
    let note = "a tokenizer of bytes has no form in transformers, so that none is written";
    Ok((class, files.is_none().then_some(note)))
}

fn vision(run: &RunFolder, recipe: &Recipe, parameters: &Parameters, args: &Args) -> anyhow::Result<Written> {
    // The data decide the number of classes, and the head has one bias for each.
    let n_classes = parameters.get("head.bias").map_or(0, |bias| bias.values.len());
    let config = recipe.vision_model(n_classes, &run.recipe_file())?;
    // Runs that began before it was written down still have their data.
    let of_data = || {
        let input = ImageInput::open(recipe).ok()?;
        (input.sha256() == run.info().data_sha256).then(|| input.about())
    };
    let about = run.images()?.or_else(of_data);
    let processor = about.as_ref().map(|about| {
        about
            .normalisation
            .hub_file(about.shorter_side, config.image_size)
    });
    let exported = ExportedViT {
        config: &config,
        parameters,
        classes: about.as_ref().map_or(&[], |about| &about.classes),
        files: processor.as_slice(),
    };
    export_vit(&exported, &args.to)?;
    let note = "the run has no images.json and its images are not where the recipe has them, so that classes have no \
                names in config.json and there is no preprocessor_config.json";
    Ok(("ViTForImageClassification", about.is_none().then_some(note)))
}
