//! A vision transformer on CIFAR-10, twice: from independent queries and keys, and from symmetric ones.
//!
//! Data: the binary version of <https://www.cs.toronto.edu/~kriz/cifar.html>, or any folder with `train` and `test`
//! (or `val`) that hold a folder of JPEG or PNG files for each class.
//!
//! In small, minutes on a CPU:
//! ```sh
//! cargo run --release --example vit_cifar10 -- --data cifar-10-batches-bin --limit 10000 --epochs 10
//! ```
//! The structure paper's ViT-6 at its full size, on a GPU:
//! ```sh
//! cargo run --release --features tch --example vit_cifar10 -- --data cifar-10-batches-bin --backend tch --device 0 \
//!     --size vit6 --epochs 500 --batch 128 --rate 3e-3 --warmup-epochs 30 \
//!     --average-decay 0.99984 --average-every 32
//! ```
//! and its ViT-12 on ImageNet-1k:
//! ```sh
//! cargo run --release --features tch --example vit_cifar10 -- --data imagenet --backend tch --device 0 \
//!     --size vit12 --epochs 200 --batch 256 --accumulation 2 --rate 3e-3 --warmup-epochs 30 \
//!     --average-decay 0.99836 --average-every 32
//! ```
//! The paper states a decay of 0.99998; these are what `AverageConfig::adjusted` makes of it, as torchvision's script
//! does.
//!
//! Logs of each run are in `runs/vit_cifar10/independent` and `…/symmetric`; they are never overwritten.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;
use clap::{Parser, ValueEnum};
use wqk::attention::{AttentionInit, IndependentInit, SymmetricInit};
use wqk::backend::{Autodiff, BackendKind, with_backend};
use wqk::data::vision::{Augmentation, Cifar10, ClassFolder, Images, Normalisation, Subset};
use wqk::model::ViTConfig;
use wqk::train::{
    AverageConfig, Decay, Event, ImageData, ImageTask, Observer, RunLog, ScoreWatch, TrainConfig, TrainError,
    fit,
};

#[derive(Parser)]
#[command(about = "Train a vision transformer from independent and from symmetric queries and keys")]
struct Args {
    /// Folder of the images
    #[arg(long)]
    data: PathBuf,
    /// Train on N images only, spread over all, and test on N/5
    #[arg(long)]
    limit: Option<usize>,
    /// Size of the model
    #[arg(long, value_enum, default_value_t = Size::Small)]
    size: Size,
    /// Passes over the training images
    #[arg(long, default_value_t = 10)]
    epochs: usize,
    /// Passes in which the rate rises
    #[arg(long, default_value_t = 1)]
    warmup_epochs: usize,
    /// Images in a batch
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Batches to an update
    #[arg(long, default_value_t = 1)]
    accumulation: usize,
    /// Highest learning rate
    #[arg(long, default_value_t = 1e-3)]
    rate: f64,
    /// Decay of the matrices
    #[arg(long, default_value_t = 0.01)]
    weight_decay: f64,
    /// Weight of the past in the averaged weights
    #[arg(long, default_value_t = 0.9)]
    average_decay: f64,
    /// Updates between averagings
    #[arg(long, default_value_t = 8)]
    average_every: usize,
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
    #[arg(long, default_value = "runs/vit_cifar10")]
    out: PathBuf,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Size {
    /// 4 layers, 128 wide, for images of 32 pixels
    Small,
    /// 6 layers, 512 wide, for images of 32 pixels
    Vit6,
    /// 12 layers, 768 wide, for images of 224 pixels
    Vit12,
}

impl Size {
    fn config(self, n_classes: usize) -> ViTConfig {
        let config = match self {
            Self::Small => ViTConfig::new(32, 4, n_classes, 128, 4, 4),
            Self::Vit6 => ViTConfig::cifar10(),
            Self::Vit12 => ViTConfig::imagenet(),
        };
        ViTConfig { n_classes, ..config }
    }

    /// The side to which images of a class folder are scaled before they are cut.
    fn shorter_side(self) -> usize {
        if self == Self::Vit12 { 256 } else { 32 }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let [train, test] = open(&args.data, args.size.shorter_side())?;
    let all = args.limit.unwrap_or(usize::MAX);
    let train = Subset::spread(&*train, all);
    let test = Subset::spread(&*test, (all / 5).max(1));
    // A pass over ImageNet would be long, and its values are known.
    let (normalisation, augmentation) = match args.size {
        Size::Vit12 => (Normalisation::IMAGENET, Augmentation::imagenet()),
        _ => (Normalisation::of(&train)?, Augmentation::default()),
    };
    println!(
        "{} training images, {} test images, {} classes",
        train.len(),
        test.len(),
        train.classes().len()
    );
    let data = ImageData {
        train: &train,
        test: &test,
        normalisation: &normalisation,
    };
    for (name, init) in [
        ("independent", AttentionInit::from(IndependentInit::default())),
        ("symmetric", SymmetricInit::tied().into()),
    ] {
        println!("{name}");
        let config = args.size.config(train.classes().len()).with_attention_init(init);
        let folder = args.out.join(name);
        with_backend!(args.backend, args.device, |B, device| {
            run::<Autodiff<B>>(&args, &config, data, augmentation, &folder, &device)
        })??;
    }
    Ok(())
}

/// Training and test images.
fn open(folder: &Path, shorter_side: usize) -> Result<[Box<dyn Images>; 2], Box<dyn std::error::Error>> {
    if Cifar10::is_in(folder) {
        return Ok([
            Box::new(Cifar10::training(folder)?),
            Box::new(Cifar10::test(folder)?),
        ]);
    }
    let test = if folder.join("test").is_dir() {
        "test"
    } else {
        "val"
    };
    let open = |part| ClassFolder::open(folder.join(part), shorter_side);
    Ok([Box::new(open("train")?), Box::new(open(test)?)])
}

fn run<B: AutodiffBackend>(
    args: &Args,
    config: &ViTConfig,
    data: ImageData<'_>,
    augmentation: Augmentation,
    folder: &Path,
    device: &Device<B>,
) -> Result<(), TrainError> {
    let per_epoch = data.train.len().div_ceil(args.batch * args.accumulation);
    let steps = args.epochs * per_epoch;
    let warmup_steps = args.warmup_epochs * per_epoch;
    let average = AverageConfig {
        decay: args.average_decay,
        every: args.average_every,
        from: warmup_steps,
    };
    let settings = TrainConfig {
        steps,
        batch_size: args.batch,
        accumulation: args.accumulation,
        learning_rate: args.rate,
        warmup_steps,
        warmup_from: Some(0.033),
        decay: Decay::Cosine,
        weight_decay: args.weight_decay,
        average: Some(average),
        eval_every: steps.div_ceil(10),
        seed: args.seed,
        ..TrainConfig::default()
    };
    let task = ImageTask::new(data, augmentation, config.image_size, &settings)?;
    let model = config.init::<B>(args.seed, device)?;
    let mut log = RunLog::create(folder, ScoreWatch::<B>::new(steps.div_ceil(100), 2.0, true))?;
    fit::<B, _>(model, &task, &settings, &mut [&mut log, &mut Print])?;
    for row in log.scores().latest() {
        println!("{row}");
    }
    Ok(())
}

struct Print;

impl<M> Observer<M> for Print {
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        if let Event::Evaluated { row } = event {
            println!(
                "update {:>6}  test loss {:.3}  top-1 {:.3}  averaged weights: loss {:.3}  top-1 {:.3}",
                row.step,
                row.loss,
                row.accuracy.unwrap_or(f64::NAN),
                row.averaged_loss.unwrap_or(f64::NAN),
                row.averaged_accuracy.unwrap_or(f64::NAN)
            );
        }
        Ok(())
    }
}
