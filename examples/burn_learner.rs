//! Our scores in a plain Burn learner: what is marked `wqk` is all that it takes, fourteen lines.
//!
//! ```sh
//! cargo run --release --no-default-features --features flex,learner --example burn_learner
//! ```
//! The learner predicts the next character of Wikipedia text from the 32 before it, by one layer of Burn's own
//! attention. Its logs, with the scores in them, are in `runs/burn_learner`. Two numbers may follow: the epochs, and
//! how many sequences to train on.

use std::path::PathBuf;

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::{AutodiffModule, Module};
use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::AdamWConfig;
use burn::optim::lr_scheduler::constant::ConstantLr;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_train::metric::{AccuracyMetric, LossMetric};
use burn_train::{ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep};
use wqk::attention::{AttentionLayer, HasAttention}; // wqk
use wqk::bilinear::Directionality; // wqk
use wqk::data::{Packed, Tokenizer, bundled};
use wqk::train::learner::{ScoreMetric, Scored}; // wqk

const LENGTH: usize = 32;
const WIDTH: usize = 64;

#[derive(Module, Debug)]
struct Model<B: Backend> {
    tokens: Embedding<B>,
    positions: Embedding<B>,
    attention: MultiHeadAttention<B>,
    norm: LayerNorm<B>,
    output: Linear<B>,
}

impl<B: Backend> HasAttention<B> for Model<B> {
    fn attention_layers(&self) -> Vec<AttentionLayer<'_, B>> {
        vec![AttentionLayer::new("text", 0, "attention", &self.attention)]
    }
} // wqk: these five lines

impl<B: Backend> Model<B> {
    fn new(vocabulary: usize, device: &Device<B>) -> Self {
        Self {
            tokens: EmbeddingConfig::new(vocabulary, WIDTH).init(device),
            positions: EmbeddingConfig::new(LENGTH, WIDTH).init(device),
            attention: MultiHeadAttentionConfig::new(WIDTH, 4)
                .with_dropout(0.0)
                .init(device),
            norm: LayerNormConfig::new(WIDTH).init(device),
            output: LinearConfig::new(WIDTH, vocabulary).init(device),
        }
    }

    fn classify(&self, batch: Batch<B>) -> ClassificationOutput<B> {
        let [n, length] = batch.tokens.dims();
        let positions = self.positions.weight.val().unsqueeze::<3>();
        let x = self.tokens.forward(batch.tokens) + positions;
        let x = x.clone() + self.attention.forward(MhaInput::self_attn(x)).context;
        let last = x.slice([0..n, length - 1..length]).reshape([n, WIDTH]);
        let logits = self.output.forward(self.norm.forward(last));
        let loss = CrossEntropyLossConfig::new()
            .init(&logits.device())
            .forward(logits.clone(), batch.next.clone());
        ClassificationOutput::new(loss, logits, batch.next)
    }
}

impl<B: AutodiffBackend> TrainStep for Model<B> {
    type Input = Batch<B>;
    type Output = Scored<ClassificationOutput<B>, B::InnerBackend>; // wqk

    fn step(&self, batch: Batch<B>) -> TrainOutput<Self::Output> {
        let output = self.classify(batch);
        let gradients = output.loss.backward();
        TrainOutput::new(self, gradients, Scored::new(output, &self.valid())) // wqk
    }
}

impl<B: Backend> InferenceStep for Model<B> {
    type Input = Batch<B>;
    type Output = Scored<ClassificationOutput<B>, B>; // wqk

    fn step(&self, batch: Batch<B>) -> Self::Output {
        Scored::new(self.classify(batch), self) // wqk
    }
}

/// Characters, and those that follow them.
#[derive(Clone, Debug)]
struct Batch<B: Backend> {
    tokens: Tensor<B, 2, Int>,
    next: Tensor<B, 1, Int>,
}

struct Stack;

impl<B: Backend> Batcher<B, Vec<i32>, Batch<B>> for Stack {
    fn batch(&self, items: Vec<Vec<i32>>, device: &Device<B>) -> Batch<B> {
        let n = items.len();
        let tokens: Vec<i32> = items.iter().flat_map(|item| item[..LENGTH].to_vec()).collect();
        let next: Vec<i32> = items.iter().map(|item| item[LENGTH]).collect();
        Batch {
            tokens: Tensor::from_data(TensorData::new(tokens, [n, LENGTH]), device),
            next: Tensor::from_data(TensorData::new(next, [n]), device),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    type B = wqk::backend::Autodiff<wqk::backend::Flex>;

    let mut numbers = std::env::args().skip(1).map(|number| number.parse());
    let epochs = numbers.next().transpose()?.unwrap_or(3);
    let sequences = numbers.next().transpose()?.unwrap_or(20_000);
    let texts = bundled::documents()?.map(|document| document.map(|document| document.with_title()));
    let tokenizer = Tokenizer::characters(texts, 95)?;
    let (train, valid) = Packed::new(bundled::documents()?, &tokenizer, LENGTH + 1)?.hold_out(0.02)?;
    let items = |packed: &Packed| {
        let items = packed.tokens().chunks_exact(LENGTH + 1).take(sequences);
        InMemDataset::new(
            items
                .map(|item| item.iter().map(|&t| t as i32).collect())
                .collect::<Vec<Vec<i32>>>(),
        )
    };
    let loader = |packed| {
        DataLoaderBuilder::<B, _, _>::new(Stack)
            .batch_size(64)
            .shuffle(1)
            .build(items(packed))
    };
    let valid_loader = DataLoaderBuilder::new(Stack).batch_size(64).build(items(&valid));

    let model = Model::<B>::new(tokenizer.vocabulary().size, &Default::default());
    let folder = PathBuf::from("runs/burn_learner");
    let result = SupervisedTraining::new(&folder, loader(&train), valid_loader)
        .metrics((LossMetric::new(), AccuracyMetric::new()))
        .metrics((ScoreMetric::symmetry().every(50),)) // wqk
        .metrics((ScoreMetric::directionality(Directionality::excess()).every(50),)) // wqk
        .num_epochs(epochs)
        .summary()
        .launch(Learner::new(
            model,
            AdamWConfig::new().init(),
            ConstantLr::new(1e-3),
        ));
    for layer in result.model.attention_layers() {
        let form = layer.attention.form()?;
        println!(
            "{}: symmetry {:+.3}, directionality (excess) {:+.3}",
            layer.module,
            form.symmetry()?,
            form.directionality(Directionality::excess())?
        );
    }
    Ok(())
}
