//! The propagation paper's translation experiment in small: post-norm encoder-decoders of several depths, trained by Adam
//! and by SGD, with residual strengths of 1 and of 1/√L, with an inverse temperature of 1 and one that rises to 8.5; BLEU
//! on held-out sentences.
//!
//! ```sh
//! cargo run --release --example translation -- pairs.tsv              # source, tab, target
//! cargo run --release --example translation -- train.de train.en      # line n of one translates line n of the other
//! cargo run --release --example translation -- pairs.tsv --short      # the whole grid, in under a minute
//! ```
//! Cells of the grid that are finished are in `cells.csv` of the folder `--out`, and are not run again.

mod cell;
mod report;

use std::path::PathBuf;
use std::sync::Mutex;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use wqk::data::{ParallelText, Tokenizer};
use wqk::train::{TranslationData, in_pool, side_by_side};

use cell::{ARMS, Cell, Optimiser, Outcome};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
#[command(about = "Translation with deep post-norm transformers: what residual scaling and temperature do")]
struct Args {
    /// One file with source, tab and target in a line, or two files with a sentence in a line
    #[arg(required = true, num_args = 1..=2)]
    files: Vec<PathBuf>,
    /// Word pieces, which are made of the text
    #[arg(long, default_value_t = 2000)]
    pieces: usize,
    /// Layers of the encoder, and as many of the decoder
    #[arg(long, value_delimiter = ',', default_value = "2,6")]
    depths: Vec<usize>,
    #[arg(long, value_enum, value_delimiter = ',', default_value = "adam,sgd")]
    optimisers: Vec<Optimiser>,
    /// Updates of each cell
    #[arg(long, default_value_t = 1500)]
    steps: usize,
    #[arg(long, default_value_t = 64)]
    width: usize,
    /// Sentences in an update
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Longest sentence, in word pieces
    #[arg(long, default_value_t = 16)]
    longest: usize,
    /// Pairs that are held out for BLEU
    #[arg(long, default_value_t = 200)]
    held_out: usize,
    #[arg(long, default_value_t = 0.0)]
    dropout: f64,
    /// Highest learning rate of Adam
    #[arg(long, default_value_t = 1e-3)]
    adam_rate: f64,
    /// Highest learning rate of SGD
    #[arg(long, default_value_t = 0.3)]
    sgd_rate: f64,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Cells that run at the same time, each on one thread [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    #[arg(long, default_value = "runs/translation")]
    out: PathBuf,
    /// 20 updates of models 32 wide: to see that it runs
    #[arg(long)]
    short: bool,
}

fn main() -> Result<(), Failure> {
    let mut args = Args::parse();
    if args.short {
        (args.steps, args.width, args.batch, args.held_out) = (20, 32, 16, 20);
        args.out.push("short");
    }
    let text = match args.files.as_slice() {
        [source, target] => ParallelText::from_lines(source, target)?,
        files => ParallelText::from_tabs(&files[0])?,
    };
    let tokenizer = word_pieces(&text, args.pieces)?;
    let data = TranslationData::new(&text, &tokenizer, args.longest)?;
    let (train, held_out) = data.hold_out(args.held_out)?;
    let mut cells = Vec::new();
    for &layers in &args.depths {
        for &optimiser in &args.optimisers {
            for (scaled, rising) in ARMS {
                cells.push(Cell {
                    layers,
                    optimiser,
                    scaled,
                    rising,
                });
            }
        }
    }
    let settings = format!(
        "{} pairs to train on, {} held out, at most {} tokens of {}; width {}, dropout {}, {} updates of {} sentences, rates {} and {}, seed {}\n",
        train.len(),
        held_out.len(),
        args.longest,
        tokenizer.vocabulary().size,
        args.width,
        args.dropout,
        args.steps,
        args.batch,
        args.adam_rate,
        args.sgd_rate,
        args.seed
    );
    let done = report::finished(&args.out, &settings)?;
    let left: Vec<Cell> = cells
        .iter()
        .copied()
        .filter(|cell| done.iter().all(|outcome| outcome.cell() != *cell))
        .collect();
    print!("{settings}");
    println!("{} cells, {} of them left to run", cells.len(), left.len());

    let bar = ProgressBar::new((left.len() * args.steps) as u64).with_style(ProgressStyle::with_template(
        "{elapsed} {wide_bar} {pos} of {len} updates, {eta} left",
    )?);
    let done = Mutex::new(done);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let results = side_by_side(left.len(), args.jobs.unwrap_or(cores), |index| {
        let cell = left[index];
        let outcome = in_pool(1, || cell.run(&args, (&train, &held_out), &tokenizer, &bar))?;
        let mut done = done.lock().map_err(|_| "another cell failed")?;
        done.push(outcome);
        report::write(&args.out, &done)?;
        let [optimiser, strength, temperature] = cell.names();
        bar.suspend(|| {
            println!(
                "{} of {}: {} layers, {optimiser}, strength {strength}, 1/temperature {temperature}: loss {:.3}, BLEU {:.1}",
                done.len(),
                cells.len(),
                cell.layers,
                outcome.loss,
                outcome.bleu
            );
        });
        Ok::<_, Failure>(())
    });
    bar.finish_and_clear();
    results.into_iter().collect::<Result<(), _>>()?;

    let done = done.into_inner()?;
    let outcomes: Vec<Outcome> = cells
        .iter()
        .filter_map(|cell| done.iter().find(|outcome| outcome.cell() == *cell).copied())
        .collect();
    print!("{}", report::table(&outcomes).to_text());
    report::draw(&args, &outcomes)?;
    println!("wrote {}", args.out.display());
    Ok(())
}

/// Byte-pair encoding, trained on both sides of the text, with a mark for the blank before a word.
fn word_pieces(text: &ParallelText, size: usize) -> Result<Tokenizer, Failure> {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(|name| tokenizers::AddedToken::from(name, true));
    let trainer = BpeTrainer::builder()
        .vocab_size(size)
        .special_tokens(special.to_vec());
    let mut inner = tokenizers::Tokenizer::new(BPE::default());
    inner
        .with_pre_tokenizer(Some(Metaspace::default()))
        .with_decoder(Some(Metaspace::default()));
    let sides = text.pairs.iter().flat_map(|(source, target)| [source, target]);
    inner.train(
        &mut TrainerWrapper::from(trainer.show_progress(false).build()),
        sides,
    )?;
    Ok(Tokenizer::from_content(
        "word pieces",
        inner.to_string(false)?.as_bytes(),
    )?)
}
