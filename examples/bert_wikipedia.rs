//! BERT on Wikipedia, twice: as an encoder (masked tokens) and as a decoder (next token), from the same
//! weights, with every layer's `W_qk` scored on the way.
//!
//! In small, on the bundled articles, in characters:
//! ```sh
//! cargo run --release --example bert_wikipedia
//! ```
//! The structure paper's BERT-Mini in word pieces, on a dump as Wikipedia offers it:
//! ```sh
//! cargo run --release --features tch --example bert_wikipedia -- --backend tch --device 0 \
//!     --text enwiki-latest-pages-articles.xml.bz2 --tokenizer bert-base-uncased/tokenizer.json \
//!     --size mini --length 512 --batch 32 --accumulation 8 --rate 5e-5 --warmup 200 --steps 200000
//! ```
//! Logs of each run are in `runs/bert_wikipedia/encoder` and `…/decoder`; they are never overwritten.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;
use clap::{Parser, ValueEnum};
use wqk::backend::{Autodiff, BackendKind, with_backend};
use wqk::data::{DataError, Document, Documents, Packed, Tokenizer, bundled};
use wqk::model::TextTransformerConfig;
use wqk::objective::ObjectiveMode;
use wqk::train::{Event, Observer, RunLog, ScoreWatch, TextData, TextTask, TrainConfig, TrainError, fit};

#[derive(Parser)]
#[command(about = "Train BERT as an encoder and as a decoder, and score its attention")]
struct Args {
    /// Text or MediaWiki dumps, compressed or not [default: the bundled articles]
    #[arg(long)]
    text: Vec<PathBuf>,
    /// tokenizer.json or vocab.txt [default: characters]
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// Size of the model
    #[arg(long, value_enum, default_value_t = Size::Small)]
    size: Size,
    /// Tokens in a sequence
    #[arg(long, default_value_t = 64)]
    length: usize,
    /// Sequences in a batch
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Batches to an update
    #[arg(long, default_value_t = 1)]
    accumulation: usize,
    /// Highest learning rate
    #[arg(long, default_value_t = 1e-3)]
    rate: f64,
    /// Updates over which the rate rises
    #[arg(long, default_value_t = 50)]
    warmup: usize,
    /// Updates
    #[arg(long, default_value_t = 800)]
    steps: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// flex, ndarray, wgpu, tch or cuda
    #[arg(long, default_value = "flex")]
    backend: BackendKind,
    /// Number of the device
    #[arg(long)]
    device: Option<usize>,
    /// Folder of the logs
    #[arg(long, default_value = "runs/bert_wikipedia")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Size {
    /// 2 layers, 64 wide, no dropout: minutes on a CPU
    Small,
    /// 4 layers, 256 wide
    Mini,
    /// 12 layers, 768 wide
    Base,
    /// 24 layers, 1024 wide
    Large,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let tokenizer = match &args.tokenizer {
        Some(file) => Tokenizer::from_file(file)?,
        None => Tokenizer::characters(documents(&args.text)?.map(|d| d.map(|d| d.with_title())), 95)?,
    };
    let (train, held_out) = Packed::new(documents(&args.text)?, &tokenizer, args.length)?.hold_out(0.01)?;
    let vocabulary = tokenizer.vocabulary();
    println!(
        "{} sequences of {} tokens, {} distinct",
        train.len(),
        args.length,
        vocabulary.size
    );

    let data = TextData {
        train: &train,
        held_out: &held_out,
        vocabulary,
    };
    for (name, objective) in [
        ("encoder", ObjectiveMode::masked(0.15)?),
        ("decoder", ObjectiveMode::autoregressive()),
    ] {
        println!("{name}");
        let folder = args.out.join(name);
        with_backend!(args.backend, args.device, |B, device| {
            run::<Autodiff<B>>(&args, objective, data, &folder, &device)
        })??;
    }
    Ok(())
}

type Items = Box<dyn Iterator<Item = Result<Document, DataError>>>;

fn documents(files: &[PathBuf]) -> Result<Items, DataError> {
    if files.is_empty() {
        return Ok(Box::new(bundled::documents()?));
    }
    let opened = files.iter().map(Documents::open).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(opened.into_iter().flatten()))
}

fn run<B: AutodiffBackend>(
    args: &Args,
    objective: ObjectiveMode,
    data: TextData<'_>,
    folder: &Path,
    device: &Device<B>,
) -> Result<(), TrainError> {
    let size = data.vocabulary.size;
    let model = match args.size {
        Size::Small => TextTransformerConfig::new(size, 64, 2, 4)
            .with_dropout(0.0)
            .with_attention_dropout(0.0),
        Size::Mini => TextTransformerConfig::mini(),
        Size::Base => TextTransformerConfig::base(),
        Size::Large => TextTransformerConfig::large(),
    };
    let config = TextTransformerConfig {
        vocab_size: size,
        ..model
    };
    let settings = TrainConfig {
        steps: args.steps,
        batch_size: args.batch,
        accumulation: args.accumulation,
        learning_rate: args.rate,
        warmup_steps: args.warmup,
        eval_every: (args.steps / 10).max(1),
        seed: args.seed,
        ..TrainConfig::default()
    };
    let mut log = RunLog::create(folder, ScoreWatch::<B>::new((args.steps / 100).max(1), 2.0, true))?;
    let task = TextTask::<B>::new(objective, data, &settings)?;
    fit::<B, _>(
        config.init(args.seed, device)?,
        &task,
        &settings,
        &mut [&mut log, &mut Print],
    )?;
    for row in log.scores().latest() {
        println!("{row}");
    }
    Ok(())
}

/// Your own observer: anything that wants to see a run.
struct Print;

impl<M> Observer<M> for Print {
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        if let Event::Evaluated { row } = event {
            println!("update {:>6}  held-out loss {:.3}", row.step, row.loss);
        }
        Ok(())
    }
}
