//! What is kept of finished cells, and how it is shown.

use std::path::Path;

use wqk::report::plot::{Axis, Colour, Curves, Grid, Series};
use wqk::report::table::{Align, Table};

use crate::cell::{ARMS, Outcome};
use crate::{Args, Failure};

/// The cells that the folder has, which must be of these settings.
pub fn finished(folder: &Path, settings: &str) -> Result<Vec<Outcome>, Failure> {
    let (about, cells) = (folder.join("settings.txt"), folder.join("cells.csv"));
    std::fs::create_dir_all(folder)?;
    match std::fs::read_to_string(&about) {
        Ok(before) if before != settings => {
            let folder = folder.display();
            return Err(
                format!("{folder} is of other settings: name another by --out. It has {before}").into(),
            );
        }
        Ok(_) if cells.exists() => {
            let rows = csv::Reader::from_path(cells)?.into_deserialize();
            return Ok(rows.collect::<Result<_, _>>()?);
        }
        _ => std::fs::write(&about, settings)?,
    }
    Ok(Vec::new())
}

/// Writes `cells.csv`, whole or not at all.
pub fn write(folder: &Path, outcomes: &[Outcome]) -> Result<(), Failure> {
    let draft = folder.join(".cells.csv");
    let mut rows = csv::Writer::from_path(&draft)?;
    outcomes.iter().try_for_each(|outcome| rows.serialize(outcome))?;
    rows.flush()?;
    Ok(std::fs::rename(draft, folder.join("cells.csv"))?)
}

pub fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new([
        ("layers", Align::Right),
        ("optimiser", Align::Left),
        ("strength", Align::Left),
        ("temperature⁻¹", Align::Left),
        ("∂W_q / ∂W_v", Align::Right),
        ("cosine at start", Align::Right),
        ("at end", Align::Right),
        ("loss", Align::Right),
        ("BLEU", Align::Right),
        ("seconds", Align::Right),
    ]);
    for outcome in outcomes {
        let [optimiser, strength, temperature] = outcome.cell().names();
        let number = |value: f64, digits: usize| match value.is_finite() {
            true => format!("{value:.digits$}"),
            false => "diverged".to_owned(),
        };
        table.push([
            outcome.layers.to_string(),
            optimiser.to_owned(),
            strength.to_owned(),
            temperature.to_owned(),
            format!("{:.1e}", outcome.gradient_ratio),
            number(outcome.cosine_start, 3),
            number(outcome.cosine_end, 3),
            number(outcome.loss, 3),
            number(outcome.bleu, 1),
            format!("{:.0}", outcome.seconds),
        ]);
    }
    table
}

/// Loss and BLEU over depth, a panel for each optimiser and a curve for each arm.
pub fn draw(args: &Args, outcomes: &[Outcome]) -> std::io::Result<()> {
    type Quantity = fn(&Outcome) -> f64;
    let quantities: [(&str, Quantity); 2] =
        [("BLEU", |outcome| outcome.bleu), ("loss", |outcome| outcome.loss)];
    for (name, of) in quantities {
        let mut grid = Grid::new(format!("{name} by depth"), args.optimisers.len());
        for &optimiser in &args.optimisers {
            let is_here = |outcome: &&Outcome| outcome.optimiser == optimiser;
            let title = outcomes
                .iter()
                .find(is_here)
                .map_or("", |outcome| outcome.cell().names()[0]);
            let mut panel = Curves::new(title, Axis::integer("layers"), Axis::linear(name));
            for (index, (scaled, rising)) in ARMS.into_iter().enumerate() {
                let rows = || {
                    let of_arm = |outcome: &&Outcome| (outcome.scaled, outcome.rising) == (scaled, rising);
                    outcomes.iter().filter(is_here).filter(of_arm)
                };
                let Some(first) = rows().next() else { continue };
                let [_, strength, temperature] = first.cell().names();
                let x: Vec<f64> = rows().map(|outcome| outcome.layers as f64).collect();
                let y: Vec<f64> = rows().map(of).collect();
                let label = format!("strength {strength}, 1/temperature {temperature}");
                panel = panel.with(Series::new(label, &x, &y, Colour::Category(index)));
            }
            grid = grid.with(panel);
        }
        let file = args.out.join(format!("{}.svg", name.to_lowercase()));
        std::fs::write(file, grid.figure().to_svg())?;
    }
    Ok(())
}
