//! What each update does to `W_qk` while an encoder and a decoder train on the bundled Wikipedia text.
//!
//! ```text
//! cargo run --release --example update_structure -- [STEPS] [FOLDER]
//! ```
//! Every 100th update is taken apart: the gradient of the raw scores, the gradient G in the form, the exact update that
//! AdamW made of it, and all that training has added. Writes a CSV for each model and two figures.

use std::path::{Path, PathBuf};

use burn::tensor::backend::AutodiffBackend;
use wqk::backend::{Autodiff, Flex};
use wqk::data::{Packed, Tokenizer, bundled};
use wqk::model::TextTransformerConfig;
use wqk::objective::ObjectiveMode;
use wqk::report::plot::{Axis, Colour, Curves, Grid, Series};
use wqk::train::{Event, Observer, TextData, TextTask, TrainConfig, TrainError, UpdateRow, UpdateWatch, fit};

const SEQUENCE: usize = 64;
const EVERY: usize = 100;

/// Remembers how long the run took.
struct Clock(f64);

impl<M> Observer<M> for Clock {
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        if let Event::Step { row, .. } = event {
            self.0 = row.seconds;
        }
        Ok(())
    }
}

fn train<B: AutodiffBackend>(
    objective: ObjectiveMode,
    data: TextData<'_>,
    steps: usize,
) -> Result<(Vec<UpdateRow>, f64), TrainError> {
    let config = TrainConfig {
        steps,
        batch_size: 32,
        accumulation: 1,
        learning_rate: 1e-3,
        warmup_steps: 50.min(steps / 4),
        ..TrainConfig::default()
    };
    let device = Default::default();
    let task = TextTask::<B>::new(objective, data, &config)?;
    let model = TextTransformerConfig::new(data.vocabulary.size, 64, 2, 4)
        .with_max_positions(SEQUENCE)
        .with_dropout(0.0)
        .with_attention_dropout(0.0)
        .init::<B>(0, &device)?;
    let mut watch = UpdateWatch::new(task.clone(), EVERY);
    let mut clock = Clock(0.0);
    fit::<B, _>(model, &task, &config, &mut [&mut watch, &mut clock])?;
    let share = watch.spent().as_secs_f64() / clock.0;
    Ok((watch.into_rows(), share))
}

/// A quantity of a row, by the name that the figure gives it.
type Quantity<'a> = (&'a str, fn(&UpdateRow) -> Option<f64>);

/// A panel of curves over updates: one for each quantity and layer.
fn panel(title: &str, rows: &[UpdateRow], quantities: &[Quantity<'_>]) -> Curves {
    let layers = rows.iter().map(|row| row.layer + 1).max().unwrap_or(0);
    let mut curves = Curves::new(title, Axis::linear("updates"), Axis::linear("score"));
    for (index, (name, of)) in quantities.iter().enumerate() {
        for layer in 0..layers {
            let rows = || rows.iter().filter(|row| row.layer == layer);
            let x: Vec<f64> = rows().map(|row| row.step as f64).collect();
            let y: Vec<f64> = rows().map(|row| of(row).unwrap_or(f64::NAN)).collect();
            let series = Series::new(format!("{name}, layer {layer}"), &x, &y, Colour::Category(index));
            curves = curves.with(if layer == 0 { series } else { series.dashed() });
        }
    }
    curves
}

fn write(folder: &Path, name: &str, rows: &[UpdateRow]) -> std::io::Result<()> {
    UpdateRow::write_csv(
        rows,
        std::fs::File::create(folder.join(format!("updates-{name}.csv")))?,
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let steps = args.next().map_or(Ok(800), |steps| steps.parse())?;
    let folder = PathBuf::from(args.next().unwrap_or_else(|| "update-structure".to_owned()));
    std::fs::create_dir_all(&folder)?;

    let text = bundled::documents()?.map(|document| document.map(|document| document.with_title()));
    let tokenizer = Tokenizer::characters(text, 95)?;
    let (train_text, held_out) = Packed::new(bundled::documents()?, &tokenizer, SEQUENCE)?.hold_out(0.01)?;
    let data = TextData {
        train: &train_text,
        held_out: &held_out,
        vocabulary: tokenizer.vocabulary(),
    };
    let mut symmetry = Grid::new("Symmetry of errors, gradient, update and change", 2);
    let mut along = Grid::new("The update against gradient descent", 2);
    for (name, objective) in [
        ("encoder", ObjectiveMode::masked(0.15)?),
        ("decoder", ObjectiveMode::autoregressive()),
    ] {
        let (rows, share) = train::<Autodiff<Flex>>(objective, data, steps)?;
        println!(
            "{name}: watching every {EVERY}th update took {:.1} % of the run",
            100.0 * share
        );
        println!("  step layer  s(beta)    s(G) s(update) s(change) d(change)  cosine  mutual  missed");
        let show = |value: Option<f64>| value.map_or("       –".to_owned(), |v| format!("{v:+8.3}"));
        for row in &rows {
            println!(
                "{:6} {:5} {} {} {}  {}  {} {} {} {:7.0e}",
                row.step,
                row.layer,
                show(row.pair_symmetry),
                show(row.gradient_symmetry),
                show(row.update_symmetry),
                show(row.change_symmetry),
                show(Some(row.change_directionality)),
                show(row.first_order_cosine),
                show(row.mutual_pairs),
                row.accumulation_error
            );
        }
        write(&folder, name, &rows)?;
        symmetry = symmetry.with(panel(
            name,
            &rows,
            &[
                ("G", |row| row.gradient_symmetry),
                ("update", |row| row.update_symmetry),
                ("W_qk − W_qk(0)", |row| row.change_symmetry),
            ],
        ));
        along = along.with(panel(name, &rows, &[("cosine", |row| row.first_order_cosine)]));
    }
    std::fs::write(folder.join("update_symmetry.svg"), symmetry.figure().to_svg())?;
    std::fs::write(folder.join("update_cosine.svg"), along.figure().to_svg())?;
    println!("wrote {}", folder.display());
    Ok(())
}
