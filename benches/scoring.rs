//! Scoring one attention layer: `cargo bench --bench scoring [-- FILTER]`.
//!
//! Shapes are those of real models, weights random. `layer` scores the whole form by either path, `heads` every
//! head, `measure` both, as `wqk score --heads` does.

use std::hint::black_box;
use std::time::Duration;

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use criterion::{Criterion, criterion_group, criterion_main};
use wqk::bilinear::{BilinearForm, Heads, Path};
use wqk::random;

struct Shape {
    name: &'static str,
    d_model: usize,
    head_dim: usize,
    heads: Heads,
}

const SHAPES: [Shape; 3] = [
    Shape {
        name: "bert-base 768, 12 heads of 64",
        d_model: 768,
        head_dim: 64,
        heads: Heads::multi(12),
    },
    Shape {
        name: "bert-large 1024, 16 heads of 64",
        d_model: 1024,
        head_dim: 64,
        heads: Heads::multi(16),
    },
    Shape {
        name: "llama-3-8b 4096, 32 on 8 heads of 128",
        d_model: 4096,
        head_dim: 128,
        heads: Heads::grouped(32, 8),
    },
];

fn form<B: Backend>(shape: &Shape) -> BilinearForm<B> {
    let device = Default::default();
    let mut rng = random::stream(0, ["bench", shape.name]);
    // Rows are outputs, as in a PyTorch checkpoint.
    let mut weight = |heads: usize| {
        let dims = [heads * shape.head_dim, shape.d_model];
        let values = random::normal(&mut rng, dims[0] * dims[1], 0.02);
        Tensor::<B, 2>::from_data(TensorData::new(values, dims), &device).transpose()
    };
    let (w_q, w_k) = (weight(shape.heads.n_heads()), weight(shape.heads.n_kv_heads()));
    BilinearForm::new(w_q, w_k, shape.heads).expect("finite weights of matching shapes")
}

fn score<B: Backend>(criterion: &mut Criterion, backend: &str) {
    for shape in &SHAPES {
        let form = form::<B>(shape);
        let mut group = criterion.benchmark_group(format!("{backend}/{}", shape.name));
        group.sample_size(10).measurement_time(Duration::from_secs(3));
        for (name, path) in [("layer, factored", Path::Factored), ("layer, dense", Path::Dense)] {
            group.bench_function(name, |b| b.iter(|| black_box(form.moments_by(path))));
        }
        group.bench_function("heads, factored", |b| b.iter(|| black_box(form.head_moments())));
        group.bench_function("heads, dense", |b| {
            b.iter(|| {
                form.heads()
                    .for_each(|head| drop(black_box(head.moments_by(Path::Dense))))
            });
        });
        group.bench_function("measure, with heads", |b| {
            b.iter(|| black_box(form.measure(2.0, true)))
        });
        group.finish();
    }
}

fn scoring(criterion: &mut Criterion) {
    #[cfg(feature = "flex")]
    score::<wqk::backend::Flex>(criterion, "flex");
    #[cfg(feature = "tch")]
    score::<wqk::backend::Tch>(criterion, "tch");
}

criterion_group!(benches, scoring);
criterion_main!(benches);
