//! Scores every layer and head of a checkpoint folder, layer by layer as they are read:
//! ```sh
//! cargo run --release --example score_checkpoint -- path/to/bert-base-uncased
//! ```

use wqk::backend::Flex;
use wqk::bilinear::Directionality;
use wqk::checkpoint::{self, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: score_checkpoint FOLDER")?;
    let checkpoint = checkpoint::open(&path, &Options::default())?;
    let device = Default::default();
    for layer in checkpoint.layers::<Flex>(&device) {
        let layer = layer?;
        let scores = layer.form.measure(Directionality::GAMMA, true)?;
        let heads = scores.over_heads(|head| head.symmetry);
        println!(
            "{:<40} symmetry {:+.4}  directionality (excess) {:+.4}  median head {:+.4}",
            layer.module,
            scores.symmetry.unwrap_or(f64::NAN),
            scores.directionality.excess,
            heads.map_or(f64::NAN, |summary| summary.median),
        );
    }
    Ok(())
}
