//! The figures that `wqk score` draws.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use burn::tensor::backend::Backend;

use crate::bilinear::BilinearForm;
use crate::checkpoint::family::StackKind;
use crate::checkpoint::{Checkpoint, ModelReport};
use crate::cli::Usage;
use crate::cli::output::Output;
use crate::report::plot::Figure;
use crate::report::scores::{Score, by_head, by_layer, crop, over_steps, size_against};

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Layers,
    Heads,
    Size,
    Matrix,
    Series,
}

impl Kind {
    const ALL: [(&'static str, Self); 5] = [
        ("layers", Self::Layers),
        ("heads", Self::Heads),
        ("size", Self::Size),
        ("matrix", Self::Matrix),
        ("series", Self::Series),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileType {
    Svg,
    Png,
}

/// A figure as it is asked for: `[KIND=]FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plot {
    kind: Option<Kind>,
    pub(super) path: PathBuf,
    file_type: FileType,
}

impl FromStr for Plot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HOW: &str = "a figure is [KIND=]FILE.svg or .png, KIND layers, heads, size, matrix or series";
        // A word before `=` is a kind; `./a=b.svg` is a path.
        let (kind, path) = match text
            .split_once('=')
            .filter(|(name, _)| !name.contains(['/', '\\', '.']))
        {
            None => (None, text),
            Some((name, path)) => match Kind::ALL.into_iter().find(|(known, _)| *known == name) {
                Some((_, kind)) => (Some(kind), path),
                None => return Err(format!("'{name}' is no kind: {HOW}")),
            },
        };
        let extension = Path::new(path)
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        let file_type = match extension.to_ascii_lowercase().as_str() {
            "svg" => FileType::Svg,
            "png" if cfg!(feature = "png") => FileType::Png,
            "png" => {
                return Err("this build draws no PNG: build with `--features png`, or ask for .svg".into());
            }
            _ => {
                return Err(HOW.into());
            }
        };
        Ok(Self {
            kind,
            path: path.into(),
            file_type,
        })
    }
}

impl Plot {
    pub(super) fn needs_heads(&self) -> bool {
        self.kind == Some(Kind::Heads)
    }

    /// Refuses kinds that do not fit the number of checkpoints.
    pub(super) fn check(&self, checkpoints: usize, series: bool) -> Result<(), Usage> {
        let refuse = |why: &str| Err(Usage(format!("--plot {}: {why}", self.path.display())));
        match self.kind {
            Some(Kind::Heads | Kind::Matrix) if checkpoints > 1 => refuse("this kind shows one checkpoint"),
            Some(Kind::Series) if !series => refuse("this kind needs --series"),
            _ => Ok(()),
        }
    }
}

/// A figure whose file is open.
pub(super) struct Open {
    plot: Plot,
    output: Output,
}

/// Opens the file of each figure.
pub(super) fn open(plots: &[Plot]) -> anyhow::Result<Vec<Open>> {
    plots
        .iter()
        .map(|plot| {
            Ok(Open {
                plot: plot.clone(),
                output: Output::open(&plot.path)?,
            })
        })
        .collect()
}

/// All that figures are made of.
pub(super) struct Drawing {
    pub(super) models: Vec<ModelReport>,
    pub(super) steps: Vec<f64>,
    pub(super) matrix: Option<Matrix>,
    pub(super) score: Score,
    /// Whether the two models are one before and after.
    pub(super) diff: bool,
}

impl Open {
    pub(super) fn needs_matrix(&self) -> bool {
        self.plot.kind == Some(Kind::Matrix)
    }

    pub(super) fn draw(mut self, drawing: &Drawing) -> anyhow::Result<()> {
        let figure = self.figure(drawing)?;
        let bytes = match self.plot.file_type {
            FileType::Svg => figure.to_svg().into_bytes(),
            FileType::Png => png(&figure)?,
        };
        self.output.write(&bytes)?;
        self.output.commit()
    }

    fn figure(&self, drawing: &Drawing) -> anyhow::Result<Figure> {
        let Drawing {
            models,
            steps,
            matrix,
            score,
            diff,
        } = drawing;
        let kind = self.plot.kind.unwrap_or(match models.len() {
            _ if !steps.is_empty() => Kind::Series,
            _ if *diff => Kind::Layers,
            1 => Kind::Layers,
            _ => Kind::Size,
        });
        Ok(match kind {
            Kind::Layers => by_layer(models, *score),
            Kind::Heads => by_head(
                models.first().context("no checkpoint to draw the heads of")?,
                *score,
            ),
            Kind::Size => size_against(models, *score),
            Kind::Series => {
                let revisions: Vec<_> = steps.iter().copied().zip(models).collect();
                over_steps(&revisions, *score)
            }
            Kind::Matrix => {
                let Matrix {
                    model,
                    layer,
                    n,
                    values,
                } = matrix.as_ref().context("no layer to draw")?;
                crop(model, layer, *n, values)
            }
        })
    }
}

#[cfg(feature = "png")]
fn png(figure: &Figure) -> anyhow::Result<Vec<u8>> {
    Ok(figure.to_png(2.0)?)
}

#[cfg(not(feature = "png"))]
fn png(_: &Figure) -> anyhow::Result<Vec<u8>> {
    anyhow::bail!("this build draws no PNG: build with `--features png`")
}

/// The upper left corner of the form of a layer.
pub(super) struct Matrix {
    model: String,
    layer: String,
    n: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// Reads the layer at a place of the checkpoint's list.
    pub(super) fn read<B: Backend>(
        checkpoint: &Checkpoint,
        place: usize,
        crop: usize,
        device: &B::Device,
    ) -> anyhow::Result<Self> {
        let layer = checkpoint.layer::<B>(place, device)?;
        let n = crop.clamp(1, layer.form.d_model());
        // The corner of a product of factors is the product of their first rows.
        let corner = BilinearForm::<B>::new(
            layer.form.w_q().narrow(0, 0, n),
            layer.form.w_k().narrow(0, 0, n),
            layer.form.heads_layout(),
        )?;
        let values = corner.full().into_data().convert::<f64>();
        Ok(Self {
            model: checkpoint.name().to_owned(),
            layer: format!("{} layer {}", layer.stack.name(), layer.index),
            n,
            values: values.to_vec().map_err(|error| anyhow::anyhow!("{error:?}"))?,
        })
    }
}

/// A layer as the table numbers it: `N`, or `STACK:N` where several stacks have that number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlotLayer {
    stack: Option<String>,
    index: usize,
}

impl FromStr for PlotLayer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (stack, index) = match text.rsplit_once(':') {
            Some((stack, index)) => (Some(stack.to_owned()), index),
            None => (None, text),
        };
        let index = index
            .parse()
            .map_err(|_| format!("'{text}' is no layer: a number such as 3, or decoder:3"))?;
        Ok(Self { stack, index })
    }
}

impl PlotLayer {
    /// Its place in the list of a checkpoint's layers.
    pub(super) fn place(&self, checkpoint: &Checkpoint) -> anyhow::Result<usize> {
        let places: Vec<_> = checkpoint.places().collect();
        self.among(&places)
            .map_err(|problem| anyhow::anyhow!("--plot-layer: {problem} ({})", checkpoint.name()))
    }

    fn among(&self, places: &[(StackKind, usize)]) -> Result<usize, String> {
        let name = |&(stack, index): &(StackKind, usize)| format!("{}:{index}", stack.name());
        let is_it = |&(stack, index): &(StackKind, usize)| {
            index == self.index && self.stack.as_deref().is_none_or(|wanted| wanted == stack.name())
        };
        let found: Vec<usize> = (0..places.len()).filter(|&i| is_it(&places[i])).collect();
        match found.as_slice() {
            [place] => Ok(*place),
            [] => {
                let all: Vec<_> = places.iter().map(name).collect();
                Err(match all.as_slice() {
                    [first, .., last] if all.len() > 8 => {
                        format!("there is no such layer: choose of {first} to {last}")
                    }
                    all => format!("there is no such layer: choose of {}", all.join(", ")),
                })
            }
            several => {
                let several: Vec<_> = several.iter().map(|&i| name(&places[i])).collect();
                Err(format!("several stacks have it: choose {}", several.join(" or ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_named_as_in_the_table() {
        let layer = |stack: Option<&str>, index| PlotLayer {
            stack: stack.map(str::to_owned),
            index,
        };
        assert_eq!("10".parse(), Ok(layer(None, 10)));
        assert_eq!("decoder:3".parse(), Ok(layer(Some("decoder"), 3)));
        assert!("decoder".parse::<PlotLayer>().is_err());

        // Numbers have gaps where only a part of a checkpoint is there.
        let (encoder, decoder) = (StackKind::Encoder, StackKind::Decoder);
        let places = [(encoder, 0), (encoder, 1), (decoder, 0), (decoder, 10)];
        assert_eq!(layer(None, 10).among(&places), Ok(3));
        assert_eq!(layer(Some("decoder"), 0).among(&places), Ok(2));
        let error = layer(None, 0).among(&places).unwrap_err();
        assert!(error.contains("encoder:0 or decoder:0"), "{error}");
        let error = layer(None, 3).among(&places).unwrap_err();
        assert!(error.contains("decoder:10"), "{error}");
    }

    #[test]
    fn figures_are_asked_for_by_kind_and_extension() {
        let plot: Plot = "heads=out/a=b.svg".parse().unwrap();
        assert_eq!(
            (plot.kind, plot.path),
            (Some(Kind::Heads), PathBuf::from("out/a=b.svg"))
        );
        let plain: Plot = "./other=x.SVG".parse().unwrap();
        assert_eq!((plain.kind, plain.path), (None, PathBuf::from("./other=x.SVG")));
        assert!("head=x.svg".parse::<Plot>().unwrap_err().contains("'head'"));
        assert!("layers=x.pdf".parse::<Plot>().is_err());
        assert!("figure".parse::<Plot>().is_err());
    }

    #[test]
    fn a_kind_must_fit_the_checkpoints() {
        let heads: Plot = "heads=x.svg".parse().unwrap();
        assert!(heads.check(1, false).is_ok());
        assert!(heads.check(2, false).is_err());
        let series: Plot = "series=x.svg".parse().unwrap();
        assert!(series.check(2, false).is_err());
        assert!(series.check(2, true).is_ok());
    }
}
