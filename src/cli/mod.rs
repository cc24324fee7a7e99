//! The `wqk` command.
//!
//! One file a subcommand, each with its `Args` and a `run` that takes them together with the
//! [`Common`] flags. Errors end here: one line on standard error, exit code 1, or 2 for a usage error.

pub mod common;
pub mod compare;
pub mod demo;
pub mod export;
pub mod families;
mod interrupt;
pub mod output;
pub mod probe;
mod runs;
pub mod score;
mod text_model;
pub mod theory;
pub mod train;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use common::Common;

use crate::report::table::visible;

/// Study self-attention through its bilinear form `W_qk = W_q W_kᵀ`.
#[derive(Debug, Parser)]
#[command(name = "wqk", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// The flags of every subcommand.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a small encoder and decoder on real Wikipedia text, score them as they train, write a report
    Demo(demo::DemoArgs),
    /// Score the symmetry and directionality of pretrained checkpoints
    Score(Box<score::Args>),
    /// Predict and measure how signal and gradients propagate in a model, before it is trained
    Probe(Box<probe::ProbeArgs>),
    /// List the families of models that can be scored
    Families(families::Args),
    /// Try a claim of the structure paper on data: does it hold, are its assumptions met?
    Theory(Box<theory::TheoryArgs>),
    /// Train the runs of a recipe, and resume them
    Train(Box<train::TrainArgs>),
    /// Compare runs: losses, speed-up and scores, with tests over seeds
    Compare(compare::CompareArgs),
    /// Write the model of a run to a folder that Hugging Face's transformers loads
    Export(export::Args),
}

/// A wrong use of the command that clap cannot see: printed as clap prints its own, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Runs the command with the arguments of the process, and gives its exit code.
pub fn run() -> ExitCode {
    run_with(std::env::args_os())
}

fn run_with(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let (cli, subcommand) = match parse(args) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => fail(&error, &subcommand),
    }
}

/// The arguments, and the name of the subcommand.
fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(Cli, String), clap::Error> {
    let matches = Cli::command().try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let (name, of_command) = matches.subcommand().unwrap_or(("", &matches));
    cli.common.seed_given = of_command.value_source("seed") == Some(ValueSource::CommandLine);
    Ok((cli, name.to_owned()))
}

fn dispatch(cli: &Cli) -> anyhow::Result<ExitCode> {
    cli.common.set_threads();
    match &cli.command {
        Command::Demo(args) => demo::run(args, &cli.common),
        Command::Score(args) => score::run(args, &cli.common),
        Command::Probe(args) => probe::run(args, &cli.common),
        Command::Families(args) => families::run(args),
        Command::Theory(args) => theory::run(args, &cli.common),
        Command::Train(args) => train::run(args, &cli.common),
        Command::Compare(args) => compare::run(args, &cli.common),
        Command::Export(args) => export::run(args, &cli.common),
    }
}

/// Prints what clap has to say, be it an error or the help that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    // Nothing is left to tell when the reader has closed the pipe.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn fail(error: &anyhow::Error, subcommand: &str) -> ExitCode {
    if output::is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if let Some(Usage(message)) = error.downcast_ref() {
        return usage(&wrong_use(subcommand, message));
    }
    print_error(error);
    ExitCode::FAILURE
}

/// The error with the usage of the subcommand that it is about, as clap gives it for its own.
fn wrong_use(subcommand: &str, message: &str) -> clap::Error {
    let mut command = Cli::command();
    // Only then does the subcommand know its full name and the common flags.
    command.build();
    let message = visible(message);
    match command.find_subcommand_mut(subcommand) {
        Some(command) => command.error(ErrorKind::ValueValidation, message),
        None => command.error(ErrorKind::ValueValidation, message),
    }
}

/// One line on standard error: `wqk: error: what (where): remedy`.
pub fn print_error(error: &anyhow::Error) {
    eprintln!("wqk: error: {}", visible(&one_line(&with_causes(error))));
}

/// One line on standard error of what is no error: `wqk: note: what`.
fn print_note(note: impl ToString) {
    eprintln!("wqk: note: {}", visible(&one_line(&note.to_string())));
}

/// The error and its causes, without those that it quotes already.
fn with_causes(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |said, cause| match said.as_str() {
            "" => cause,
            _ if said.contains(&cause) => said,
            _ => format!("{said}: {cause}"),
        })
}

/// A message that came with line breaks, such as that of a parser, in one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wrong_use_shows_the_usage_of_its_subcommand() {
        let error = wrong_use("score", "--diff compares two checkpoints").to_string();
        assert!(
            error.contains("--diff compares") && error.contains("Usage: wqk score [OPTIONS] <PATH>"),
            "{error}"
        );
        // Every name that a command has is one that clap knows.
        for subcommand in Cli::command().get_subcommands() {
            let name = subcommand.get_name();
            let error = wrong_use(name, "no").to_string();
            assert!(error.contains(&format!("Usage: wqk {name}")), "{error}");
        }
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = |text: &'static str| anyhow::anyhow!("no such file").context(text);
        assert_eq!(
            with_causes(&error("cannot read x: no such file")),
            "cannot read x: no such file"
        );
        assert_eq!(
            with_causes(&error("cannot read x")),
            "cannot read x: no such file"
        );
    }

    #[test]
    fn messages_fit_one_line() {
        assert_eq!(one_line("a\n  b\tc "), "a b c");
    }
}
