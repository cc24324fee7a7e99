//! Progress of runs side by side: a bar for each on a terminal, a line now and then elsewhere.

use std::sync::Mutex;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::train::{Arm, Experiment, RunEvent};

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
    /// Updates done at the last scoring, and by now.
    scored: usize,
    done: usize,
}

impl State {
    fn words(&self) -> String {
        let word = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {v:.3}"));
        [
            word("loss", self.loss),
            word("held out", self.held_out),
            word("symmetry", self.symmetry),
            word("directionality (excess)", self.directionality),
            (self.symmetry.is_some() && self.scored != self.done)
                .then(|| format!("(scored at {})", self.scored)),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("  ")
    }
}

impl RunProgress {
    /// Prepares a bar for each run of an experiment; nothing is shown if `quiet`.
    pub fn of(experiment: &Experiment<'_>, quiet: bool) -> Self {
        let runs = experiment.runs().into_iter();
        let name = |(arm, seed): (&Arm, u64)| (format!("{} seed {seed}", arm.name), experiment.train.steps);
        Self::new(runs.map(name).collect(), quiet)
    }

    /// Prepares a bar for each run, by its name and number of updates; nothing is shown if `quiet`.
    pub fn new(runs: Vec<(String, usize)>, quiet: bool) -> Self {
        let (names, steps): (Vec<String>, Vec<usize>) = runs.into_iter().unzip();
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
            .zip(steps)
            .map(|(name, steps)| {
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
            RunEvent::Started { run, done } => {
                states[run].done = done;
                self.bars[run].set_position(done as u64);
                // Updates that an earlier process did say nothing of this one's speed.
                self.bars[run].reset_eta();
                self.bars[run].reset_elapsed();
                (run, false)
            }
            RunEvent::Step { run, row } => {
                let state = &mut states[run];
                // A running mean, so that the figure can be read.
                state.loss = Some(
                    state
                        .loss
                        .map_or(row.loss, |loss| loss + 0.05 * (row.loss - loss)),
                );
                state.done = row.step;
                self.bars[run].set_position(row.step as u64);
                (run, false)
            }
            RunEvent::Evaluated { run, row } => {
                states[run].held_out = Some(row.final_loss());
                (run, true)
            }
            RunEvent::Scored {
                run,
                step,
                symmetry,
                directionality,
            } => {
                states[run].scored = step;
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
            let bar = &self.bars[run];
            eprintln!(
                "{}: {}/{}  {words}  {} left",
                self.names[run],
                bar.position(),
                bar.length().unwrap_or(0),
                indicatif::HumanDuration(bar.eta())
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
