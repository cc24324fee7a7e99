//! Will it train? The token cosine of deep encoders, predicted in microseconds and measured on the model.
//!
//! ```text
//! cargo run --release --example signal_propagation
//! ```

use wqk::backend::{Autodiff, Flex};
use wqk::model::{Strength, TextTransformerConfig};
use wqk::signal::probe::TextProbe;
use wqk::signal::theory::Stack;
use wqk::signal::{Thresholds, Verdict};

const LENGTH: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("layers  strength     predicted  measured (3 seeds)");
    for n_layers in [2, 6, 12, 24] {
        for strength in [Strength::ONE, Strength::SCALED] {
            // BERT's layout with weights of unit gain, as the propagation paper draws them.
            let config = TextTransformerConfig::new(4096, 128, n_layers, 4)
                .with_max_positions(LENGTH)
                .with_init_std(1.0 / (128_f64).sqrt())
                .with_attention_strength(strength.clone())
                .with_feed_forward_strength(strength.clone());
            let stack = Stack::of_text(&config, LENGTH)?;
            let predicted = match stack.predict() {
                Ok(prediction) if prediction.ended.is_none() => format!("{:.3}", prediction.output().cosine),
                // Never a guess: outside its assumptions the theory gives a reason.
                _ => "–".to_owned(),
            };
            let survey =
                TextProbe::new(LENGTH).survey::<Autodiff<Flex>>(&config, 0..3, &Default::default())?;
            let cosine = survey.output().cosine;
            println!(
                "{n_layers:>6}  {:<11}  {predicted:>9}  {:.3} ({:.3} to {:.3})",
                strength.to_string(),
                cosine.mean,
                cosine.low,
                cosine.high
            );
            let verdict = Verdict::of(&survey, Some(&stack), config.norm, Thresholds::default());
            if !verdict.propagates {
                println!("        {}", verdict.lines().join("\n        "));
            }
        }
    }
    Ok(())
}
