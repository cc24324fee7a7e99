//! The figures of a comparison.

use std::collections::BTreeMap;

use super::{Comparison, Group, InitArm, Member, Published};
use crate::bilinear::Summary;
use crate::report::experiment::Score;
use crate::report::plot::{Axis, Colour, Curves, Figure, Grid, Series};
use crate::train::ScoreRow;

/// A figure with the name of its file and what it shows.
#[derive(Debug, Clone)]
pub struct NamedFigure {
    /// Name of the file, without the ending.
    pub name: String,
    /// The part of the report that it belongs to.
    pub section: String,
    /// The figure.
    pub figure: Figure,
    /// What it shows.
    pub caption: String,
}

/// How the curves of several runs are laid over each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Canvas<'a> {
    published: Option<&'a Published>,
}

impl Comparison {
    /// All figures: for each model and data, scores by encoder and decoder (Figure 3, Supplementary Figures
    /// 3 and 4) and, where updates were taken apart, what they do; for each group with several initialisations,
    /// these beside each other (Supplementary Figure 5).
    ///
    /// With published curves, all are drawn over the share of the training that is done, since published
    /// runs are rarely as long as one's own.
    pub fn figures(&self, published: Option<&Published>) -> Vec<NamedFigure> {
        let canvas = Canvas { published };
        let mut figures = Vec::new();
        for together in self.by_model() {
            figures.extend(canvas.emergence(&together));
            figures.extend(canvas.updates(&together));
        }
        for group in self.groups.iter().filter(|group| group.arms.len() > 1) {
            figures.extend(canvas.initialisation(group));
        }
        figures
    }

    /// Groups that differ in their objective alone: what Figure 3 has in one picture.
    fn by_model(&self) -> Vec<Vec<&Group>> {
        let mut together: Vec<Vec<&Group>> = Vec::new();
        for group in &self.groups {
            let key = |group: &Group| {
                let setting = &group.setting;
                let mut rest = setting.rest.clone();
                rest.remove("objective");
                (setting.vision, setting.layers, setting.data.clone(), rest)
            };
            match together.iter_mut().find(|others| key(others[0]) == key(group)) {
                Some(others) => others.push(group),
                None => together.push(vec![group]),
            }
        }
        together
    }
}

impl Canvas<'_> {
    /// Figure 3: medians over layers, and every layer, by objective.
    fn emergence(self, groups: &[&Group]) -> Vec<NamedFigure> {
        // The independent arm, as in the paper; where there is none, the first.
        let shown: Vec<(&Group, &InitArm)> = groups
            .iter()
            .filter_map(|group| Some((*group, group.baseline().or(group.arms.first())?)))
            .filter(|(_, arm)| arm.runs.iter().any(|run| !run.run.scores.is_empty()))
            .collect();
        let Some((first, _)) = shown.first() else {
            return Vec::new();
        };
        let title = title(first);
        let section = format!("Symmetry and directionality: {title}");
        let mut figures = Vec::new();
        for score in [Score::Symmetry, Score::Directionality] {
            let mut series = Vec::new();
            for (i, (group, arm)) in shown.iter().enumerate() {
                let mode = &group.setting.mode;
                let colour = mode_colour(mode, i);
                series.push(self.summary(&arm_label(mode, arm), &arm.runs, colour, |run| {
                    rows(run, score, None)
                }));
                series.extend(self.published_scores(group, score, colour));
            }
            figures.push(self.named(
                &format!("{}_{}", file(score), super::setting::slug(&title)),
                &section,
                Curves::new(format!("Median {}: {title}", label(score)), self.x(), Axis::linear(label(score)))
                    .with_all(series)
                    .figure(),
                "Median over the layers of all seeds, with quartiles (the layout of the structure paper's Figure 3a and b). Of several initialisations the independent one is shown.",
            ));
            let mut grid = Grid::new(
                format!("{} of each layer: {title}", capital(label(score))),
                shown.len().clamp(1, 3),
            );
            for (group, arm) in &shown {
                grid = grid.with(self.layers(&arm_label(&group.setting.mode, arm), arm, score));
            }
            figures.push(self.named(
                &format!("{}_layers_{}", file(score), super::setting::slug(&title)),
                &section,
                grid.figure(),
                "Each layer, median over seeds with quartiles (Figure 3c and d).",
            ));
        }
        figures
    }

    /// Supplementary Figure 5: the loss, the median symmetry, and the symmetry of every layer, by
    /// initialisation.
    fn initialisation(self, group: &Group) -> Vec<NamedFigure> {
        let section = format!("Initialisation: {}", group.setting.label());
        let slug = group.setting.slug();
        let mut figures = Vec::new();
        let mut series = Vec::new();
        for (i, arm) in group.arms.iter().enumerate() {
            series.push(self.summary(&arm.name, &arm.runs, arm_colour(arm, i), |run| {
                let points = run.loss.steps.iter().copied().zip(run.loss.loss.iter().copied());
                points.collect()
            }));
            series.extend(self.published_loss(group, arm, arm_colour(arm, i)));
        }
        figures.push(self.named(
            &format!("loss_{slug}"),
            &section,
            Curves::new(format!("Training loss: {}", group.setting.label()), self.x(), Axis::linear("loss (nats a prediction)"))
                .with_all(series)
                .figure(),
            "Median over seeds, with quartiles (the layout of Supplementary Figure 5a). Losses are means over the windows that the table of losses names.",
        ));
        let with_scores = || {
            let scored = |arm: &&InitArm| arm.runs.iter().any(|run| !run.run.scores.is_empty());
            group.arms.iter().filter(scored).enumerate()
        };
        if with_scores().next().is_none() {
            return figures;
        }
        let by_heads = with_scores().all(|(_, arm)| {
            let mut rows = arm.runs.iter().flat_map(|run| &run.run.scores);
            rows.all(|row| row.scores.heads.is_some())
        });
        let of = if by_heads { "heads" } else { "layers" };
        let series = with_scores().map(|(i, arm)| {
            self.summary(&arm.name, &arm.runs, arm_colour(arm, i), |run| {
                symmetries(run, None, by_heads)
            })
        });
        figures.push(
            self.named(
                &format!("symmetry_by_init_{slug}"),
                &section,
                Curves::new(
                    format!("Median symmetry: {}", group.setting.label()),
                    self.x(),
                    Axis::linear("symmetry"),
                )
                .with_all(series.collect::<Vec<_>>())
                .figure(),
                &format!("Median over the {of} of all seeds, with quartiles (Supplementary Figure 5b)."),
            ),
        );
        let mut grid = Grid::new(
            format!("Symmetry of each layer: {}", group.setting.label()),
            with_scores().count().clamp(1, 3),
        );
        for (_, arm) in with_scores() {
            let layers = n_layers(arm);
            let series = (0..layers).map(|layer| {
                let colour = Colour::of_layer(layer, layers);
                self.summary(&format!("layer {layer}"), &arm.runs, colour, |run| {
                    symmetries(run, Some(layer), by_heads)
                })
            });
            grid = grid.with(
                Curves::new(arm.name.clone(), self.x(), Axis::linear("symmetry"))
                    .with_all(series.collect::<Vec<_>>()),
            );
        }
        let spread = if by_heads {
            "over its heads and all seeds"
        } else {
            "over seeds"
        };
        figures.push(self.named(
            &format!("symmetry_layers_by_init_{slug}"),
            &section,
            grid.figure(),
            &format!("Each layer, median {spread}, with quartiles (Supplementary Figure 5c)."),
        ));
        figures
    }

    fn layers(self, title: &str, arm: &InitArm, score: Score) -> Curves {
        let layers = n_layers(arm);
        let series = (0..layers).map(|layer| {
            let colour = Colour::of_layer(layer, layers);
            self.summary(&format!("layer {layer}"), &arm.runs, colour, |run| {
                rows(run, score, Some(layer))
            })
        });
        Curves::new(title, self.x(), Axis::linear(label(score))).with_all(series.collect::<Vec<_>>())
    }

    /// Median and quartiles, over runs and whatever each gives at a step.
    pub(super) fn summary(
        self,
        name: &str,
        runs: &[Member],
        colour: Colour,
        of: impl Fn(&Member) -> Vec<(usize, f64)>,
    ) -> Series {
        // Runs of an arm are planned to be of one length, so that a step is one place on the axis.
        let planned = runs.iter().map(|run| run.info.steps).max().unwrap_or(1);
        let mut by_step: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (step, value) in runs.iter().flat_map(of) {
            by_step.entry(step).or_default().push(value);
        }
        let (mut x, mut y, mut low, mut high) = (vec![], vec![], vec![], vec![]);
        for (step, values) in by_step {
            if let Some(summary) = Summary::of(values) {
                x.push(self.place(step, planned));
                y.push(summary.median);
                low.push(summary.q25);
                high.push(summary.q75);
            }
        }
        Series::new(name, &x, &y, colour).with_band(&low, &high)
    }

    fn published_scores(self, group: &Group, score: Score, colour: Colour) -> Option<Series> {
        let setting = &group.setting;
        let curve = self
            .published?
            .scores_of(setting.layers, &setting.mode, &setting.data)?;
        let values = match score {
            Score::Symmetry => &curve.symmetry_median,
            Score::Directionality => &curve.directionality_median,
        };
        let name = format!("{}, published ({} layers)", setting.mode, curve.n_layers);
        Some(self.drawn_in(&name, &curve.steps, values, colour))
    }

    fn published_loss(self, group: &Group, arm: &InitArm, colour: Colour) -> Option<Series> {
        let setting = &group.setting;
        let symmetric = arm.name == "symmetric";
        if !symmetric && !arm.is_baseline {
            return None;
        }
        let curve = self
            .published?
            .loss_of(setting.layers, &setting.mode, &setting.data, symmetric)?;
        Some(self.drawn_in(
            &format!("{}, published", arm.name),
            &curve.steps,
            &curve.loss,
            colour,
        ))
    }

    fn drawn_in(self, name: &str, steps: &[usize], values: &[f64], colour: Colour) -> Series {
        let total = steps.last().copied().unwrap_or(1);
        let x: Vec<f64> = steps.iter().map(|&step| self.place(step, total)).collect();
        Series::new(name, &x, values, colour).dashed()
    }

    pub(super) fn x(self) -> Axis {
        match self.published {
            Some(_) => Axis::linear("training done (%)"),
            None => Axis::linear("updates"),
        }
    }

    fn place(self, step: usize, total: usize) -> f64 {
        match self.published {
            Some(_) => 100.0 * step as f64 / total.max(1) as f64,
            None => step as f64,
        }
    }

    pub(super) fn named(self, name: &str, section: &str, figure: Figure, caption: &str) -> NamedFigure {
        NamedFigure {
            name: name.to_owned(),
            section: section.to_owned(),
            figure,
            caption: caption.to_owned(),
        }
    }
}

/// A score of every layer, or of one, at every scoring.
fn rows(run: &Member, score: Score, layer: Option<usize>) -> Vec<(usize, f64)> {
    let rows = run.run.scores.iter();
    rows.filter(|row| layer.is_none_or(|layer| row.layer == layer))
        .filter_map(|row| Some((row.step, score.of(&row.scores)?)))
        .collect()
}

/// The symmetry of layers, or of their heads.
fn symmetries(run: &Member, layer: Option<usize>, by_heads: bool) -> Vec<(usize, f64)> {
    let of = |row: &ScoreRow| -> Vec<f64> {
        if by_heads {
            let heads = row.scores.heads.iter().flatten();
            heads.filter_map(|head| head.symmetry).collect()
        } else {
            row.scores.symmetry.into_iter().collect()
        }
    };
    let rows = run.run.scores.iter();
    rows.filter(|row| layer.is_none_or(|layer| row.layer == layer))
        .flat_map(|row| of(row).into_iter().map(|value| (row.step, value)))
        .collect()
}

fn n_layers(arm: &InitArm) -> usize {
    let rows = arm.runs.iter().flat_map(|run| &run.run.scores);
    rows.map(|row| row.layer + 1).max().unwrap_or(0)
}

fn label(score: Score) -> &'static str {
    match score {
        Score::Symmetry => "symmetry",
        Score::Directionality => "directionality (excess)",
    }
}

fn file(score: Score) -> &'static str {
    match score {
        Score::Symmetry => "symmetry",
        Score::Directionality => "directionality",
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// What groups that differ in their objective alone have in common.
pub(super) fn title(group: &Group) -> String {
    let setting = &group.setting;
    let differing = setting
        .differing
        .iter()
        .filter(|(field, _)| !field.starts_with("objective"))
        .map(|(field, value)| format!("{field} = {value}"));
    let first = format!("{} layers on {}", setting.layers, setting.data);
    [first]
        .into_iter()
        .chain(differing)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The mode; with the initialisation where it is not the paper's.
pub(super) fn arm_label(mode: &str, arm: &InitArm) -> String {
    if arm.is_baseline {
        mode.to_owned()
    } else {
        format!("{mode}, {}", arm.name)
    }
}

fn mode_colour(mode: &str, index: usize) -> Colour {
    match mode {
        "encoder" => Colour::Encoder,
        "decoder" => Colour::Decoder,
        "ViT" => Colour::Vision,
        _ => Colour::Category(4 + index),
    }
}

/// The paper draws the symmetric arm dark blue and the independent one light blue.
fn arm_colour(arm: &InitArm, index: usize) -> Colour {
    match arm.name.as_str() {
        "independent" => Colour::Category(5),
        "symmetric" => Colour::Category(0),
        "control" => Colour::Category(1),
        _ => Colour::Category(2 + index),
    }
}
