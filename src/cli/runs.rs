//! Progress of runs side by side: a bar for each on a terminal, a line now and then elsewhere.

use std::sync::Mutex;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::train::{Experiment, RunEvent};

/// Shows an experiment as it goes.
#[derive(Debug)]
pub struct RunProgress {
    bars: Vec<ProgressBar>,
    names: Vec<String>,
    state: Mutex<Vec<State>>,
    lines: bool,
}

#[derive(Debug, Clone, Default)]
struct State {
    loss: Option<f64>,
    held_out: Option<f64>,
    symmetry: Option<f64>,
    directionality: Option<f64>,
}

impl State {
    fn words(&self) -> String {
        let word = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {v:.3}"));
        [
            word("loss", self.loss),
            word("held out", self.held_out),
            word("symmetry", self.symmetry),
            word("directionality (excess)", self.directionality),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("  ")
    }
}

impl RunProgress {
    /// Prepares a bar for each run; nothing is shown if `quiet`.
    pub fn new(experiment: &Experiment<'_>, quiet: bool) -> Self {
        let runs = experiment.runs();
        let steps = experiment.train.steps;
        let names: Vec<String> = runs
            .iter()
            .map(|(arm, seed)| format!("{} seed {seed}", arm.name))
            .collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let terminal = console_is_terminal();
        let target = if quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let all = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{prefix} {bar:24} {pos:>5}/{len} {eta:>4}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bars = names
            .iter()
            .map(|name| {
                let bar = all.add(ProgressBar::new(steps as u64));
                bar.set_style(style.clone());
                bar.set_prefix(format!("{name:width$}"));
                bar
            })
            .collect();
        Self {
            bars,
            state: Mutex::new(vec![State::default(); names.len()]),
            names,
            lines: !quiet && !terminal,
        }
    }

    /// Takes in one event.
    pub fn hear(&self, event: RunEvent) {
        let mut states = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (run, evaluated) = match event {
            RunEvent::Step { run, row } => {
                let state = &mut states[run];
                // A running mean, so that the figure can be read.
                state.loss = Some(
                    state
                        .loss
                        .map_or(row.loss, |loss| loss + 0.05 * (row.loss - loss)),
                );
                self.bars[run].set_position(row.step as u64);
                (run, false)
            }
            RunEvent::Evaluated { run, loss, .. } => {
                states[run].held_out = Some(loss);
                (run, true)
            }
            RunEvent::Scored {
                run,
                symmetry,
                directionality,
                ..
            } => {
                states[run].symmetry = symmetry;
                states[run].directionality = directionality;
                (run, false)
            }
            RunEvent::Finished { run } => {
                self.bars[run].finish();
                (run, false)
            }
        };
        let words = states[run].words();
        if self.lines && evaluated {
            eprintln!(
                "{}: {}/{}  {words}",
                self.names[run],
                self.bars[run].position(),
                self.bars[run].length().unwrap_or(0)
            );
        }
        self.bars[run].set_message(words);
    }

    /// Leaves the bars as they are and frees the line below them.
    pub fn finish(&self) {
        self.bars.iter().for_each(ProgressBar::abandon);
    }
}

fn console_is_terminal() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal()
}
