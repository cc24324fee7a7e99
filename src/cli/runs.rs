//! Progress of runs side by side: a bar for each on a terminal, a line now and then elsewhere.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

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
    /// The updates done when this process had made its first, and when that was: the first itself is slower.
    warm: Option<(usize, Instant)>,
}

/// Updates by whose mean the time left is told: fewer say little of it.
const TELLING: usize = 5;

/// The time that is left at the mean speed since the first update, once some more are done.
fn left(warm: Option<(usize, Instant)>, done: usize, steps: usize, now: Instant) -> Option<Duration> {
    let (first, since) = warm?;
    let made = done.checked_sub(first).filter(|&made| made >= TELLING)?;
    let rest = steps.checked_sub(done).filter(|&rest| rest > 0)?;
    Some(now.duration_since(since).mul_f64(rest as f64 / made as f64))
}

impl State {
    fn words(&self, steps: usize) -> String {
        let left = left(self.warm, self.done, steps, Instant::now());
        let word = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {v:.3}"));
        [
            left.map(|left| format!("{:#} left", HumanDuration(left))),
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
        let style = ProgressStyle::with_template("{prefix} {bar:24} {pos:>5}/{len}  {msg}")
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
                state.warm.get_or_insert_with(|| (row.step, Instant::now()));
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
        let bar = &self.bars[run];
        let steps = bar.length().unwrap_or(0);
        let words = states[run].words(steps as usize);
        if self.lines && evaluated {
            eprintln!("{}: {}/{steps}  {words}", self.names[run], bar.position());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_by_the_mean_speed_after_the_first_update() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        assert_eq!(left(None, 1, 100, at(9)), None);
        // The first update took long; four more say little yet.
        assert_eq!(left(Some((1, begin)), 5, 100, at(4)), None);
        // Ten updates in 20 s: 89 more in 178 s.
        assert_eq!(
            left(Some((1, begin)), 11, 100, at(20)),
            Some(Duration::from_secs(178))
        );
        // A resumed run goes by its own updates alone.
        assert_eq!(
            left(Some((51, begin)), 61, 100, at(20)),
            Some(Duration::from_secs(78))
        );
        assert_eq!(left(Some((1, begin)), 100, 100, at(20)), None);
    }
}
