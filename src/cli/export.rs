//! `wqk export`: the model of a run in a folder that Hugging Face's `transformers` loads.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::common::Common;
use crate::checkpoint::pretrained::{ExportedText, Parameters, export_text};
use crate::data::Tokenizer;
use crate::objective::Visibility;
use crate::train::RunFolder;

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
}

/// Runs the subcommand.
///
/// # Errors
/// A run without a checkpoint, a model that `transformers` has no class for, a folder with something in it.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
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
    let Some(tokenizer) = run.tokenizer() else {
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
    let checkpoint = run.checkpoint(args.step)?;
    let parameters = Parameters::open(&checkpoint.path().join("model.safetensors"))?;
    let files = tokenizer.hub_files(config.max_positions)?;
    let exported = ExportedText {
        config: &config,
        parameters: &parameters,
        causal,
        pad: vocabulary.pad,
        files: files.as_deref().unwrap_or_default(),
    };
    export_text(&exported, &args.to)?;
    if !common.quiet {
        if files.is_none() {
            eprintln!("note: a tokenizer of bytes has no form in transformers, so that none is written");
        }
        eprintln!(
            "{} after {} updates is in {}",
            if causal {
                "BertLMHeadModel"
            } else {
                "BertForMaskedLM"
            },
            checkpoint.info().step,
            args.to.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
