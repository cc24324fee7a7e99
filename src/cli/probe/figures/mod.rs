//! The figures of the propagation paper, each drawn and as numbers.

mod attention;
mod map;
mod norms;
mod training;

use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use crate::backend::{Autodiff, with_backend};
use crate::cli::common::Common;
use crate::cli::output::Output;
use crate::model::Strength;
use crate::report::plot::Figure;
use crate::report::table::{Align, Table};

/// A figure by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureName {
    /// Token cosine by training step and by layer, for several depths, with and without residual scaling (Figure 1).
    Cosine,
    /// Gradient norms of queries, keys and values against width, length, correlation and input variance.
    Gradients,
    /// The distance of attention from uniform, against `d_k` (Figure 7) and against the input.
    Uniformity,
    /// The distribution of token norms with depth.
    Norms,
    /// The ratio of query to value gradient norms in training, under Adam and SGD.
    Ratio,
    /// What trains, over residual strength and variance of queries and keys.
    Map,
}

impl FigureName {
    const ALL: [(&'static str, Self); 6] = [
        ("cosine", Self::Cosine),
        ("gradients", Self::Gradients),
        ("uniformity", Self::Uniformity),
        ("norms", Self::Norms),
        ("ratio", Self::Ratio),
        ("map", Self::Map),
    ];
}

impl FromStr for FigureName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(|(name, _)| name).join(", ");
        Self::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, figure)| figure)
            .ok_or_else(|| format!("choose one of {}", known()))
    }
}

/// What the figures share.
struct Settings {
    seed: u64,
    steps: usize,
    quiet: bool,
}

impl Settings {
    fn say(&self, what: &str) {
        if !self.quiet {
            eprintln!("{what}");
        }
    }
}

/// Residual strengths that are compared, by name.
const STRENGTHS: [(&str, Strength); 2] = [("1", Strength::ONE), ("1/√L", Strength::SCALED)];

/// Pictures by the ends of their file names, and the numbers behind all of them.
struct Drawn {
    figures: Vec<(&'static str, Figure)>,
    numbers: Table,
}

/// Makes a figure: `NAME-….svg` and `NAME.csv` in a folder, which is made if it is absent.
pub(super) fn run(
    figure: FigureName,
    steps: usize,
    folder: &Path,
    common: &Common,
) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| {
        format!(
            "cannot make the folder '{}', name another by -o",
            folder.display()
        )
    })?;
    let (name, _) = FigureName::ALL[figure as usize];
    let csv = folder.join(format!("{name}.csv"));
    let mut numbers = Output::open(&csv)?;
    let settings = Settings {
        seed: common.seed,
        steps,
        quiet: common.quiet,
    };
    let drawn = with_backend!(common.backend()?, common.device, |B, device| {
        draw::<Autodiff<B>>(figure, &settings, &device)
    })??;
    let mut written = Vec::new();
    for (part, picture) in &drawn.figures {
        let path = folder.join(format!("{name}-{part}.svg"));
        let mut output = Output::open(&path)?;
        output.write(picture.to_svg().as_bytes())?;
        output.commit()?;
        written.push(path);
    }
    numbers.write(drawn.numbers.to_csv().as_bytes())?;
    numbers.commit()?;
    written.push(csv);
    let mut stdout = Output::stdout();
    for path in written {
        stdout.write(format!("{}\n", path.display()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn draw<B: AutodiffBackend>(
    figure: FigureName,
    settings: &Settings,
    device: &Device<B>,
) -> anyhow::Result<Drawn> {
    match figure {
        FigureName::Cosine => training::cosine::<B>(settings, device),
        FigureName::Gradients => attention::gradients::<B>(settings, device),
        FigureName::Uniformity => attention::uniformity::<B>(settings, device),
        FigureName::Norms => norms::norms::<B>(settings, device),
        FigureName::Ratio => training::ratio::<B>(settings, device),
        FigureName::Map => map::map::<B>(settings, device),
    }
}

fn table<const N: usize>(columns: [&str; N]) -> Table {
    Table::new(columns.map(|name| (name, Align::Right)))
}
