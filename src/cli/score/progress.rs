//! How far the work has come, on standard error where that is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::checkpoint::LayerReport;
use crate::report::table::visible;

/// A bar that counts layers, one checkpoint after the other.
pub(super) struct Progress {
    shown: bool,
    checkpoints: usize,
    started: usize,
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new(quiet: bool, checkpoints: usize) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self {
            shown,
            checkpoints,
            started: 0,
            bar: ProgressBar::hidden(),
        }
    }

    pub(super) fn start(&mut self, name: &str, layers: usize) {
        self.started += 1;
        if !self.shown {
            return;
        }
        let style = ProgressStyle::with_template("{prefix}{msg} {bar:30} {pos}/{len} layers, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar = ProgressBar::new(layers as u64)
            .with_style(style)
            .with_message(visible(name).into_owned());
        if self.checkpoints > 1 {
            self.bar
                .set_prefix(format!("[{}/{}] ", self.started, self.checkpoints));
        }
        self.bar.tick();
    }

    /// Begins a bar of bytes.
    #[cfg(feature = "hub")]
    pub(super) fn fetch(&mut self, name: &str) {
        if self.shown {
            let style = ProgressStyle::with_template(
                "fetching {msg} {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}",
            )
            .unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = ProgressBar::new(0)
                .with_style(style)
                .with_message(visible(name).into_owned());
        }
    }

    /// How many bytes are here, and how many are to come in all.
    #[cfg(feature = "hub")]
    pub(super) fn fetched(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
    }

    pub(super) fn layer(&self, _: &LayerReport) {
        self.bar.inc(1);
    }

    /// Says what goes on after the layers.
    pub(super) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Clears the line for what comes next.
    pub(super) fn stop(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }
}
