//! The flags that every subcommand takes.

use std::num::NonZeroUsize;

use burn::tensor::Device;
use clap::Args;

use crate::backend::{BackendError, BackendKind, with_backend};

/// Flags of every subcommand.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Backend to compute on: flex, ndarray, wgpu, tch or cuda [default: the first that is built in]
    #[arg(long, global = true, value_name = "NAME", value_parser = backend)]
    pub backend: Option<BackendKind>,

    /// Number of the device, where the backend has several
    #[arg(long, global = true, value_name = "N")]
    pub device: Option<usize>,

    /// Threads to use [default: one for each core]
    #[arg(long, global = true, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,

    /// Seed of everything that is random
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Whether it was given.
    #[arg(skip)]
    pub seed_given: bool,

    /// No progress on standard error: only errors, and what was left out of a result
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// A backend by name that this build holds.
fn backend(name: &str) -> Result<BackendKind, BackendError> {
    let kind: BackendKind = name.parse()?;
    if kind.is_compiled() {
        Ok(kind)
    } else {
        Err(BackendError::NotCompiled(kind))
    }
}

/// A number of threads that a machine may have: pools of thousands take minutes to start, or cannot.
fn threads(text: &str) -> Result<NonZeroUsize, String> {
    const MOST: usize = 256;
    text.parse::<NonZeroUsize>()
        .ok()
        .filter(|threads| threads.get() <= MOST)
        .ok_or_else(|| format!("must be a whole number from 1 to {MOST}"))
}

impl Common {
    /// The backend that was asked for, or else the default one of this build.
    ///
    /// # Errors
    /// Where the build holds no backend at all, or the backend has no device of the number that was asked for.
    pub fn backend(&self) -> anyhow::Result<BackendKind> {
        let backend = self
            .backend
            .or_else(BackendKind::default_compiled)
            .ok_or_else(|| {
                anyhow::anyhow!("no backend in this build: build with `--features flex` or another backend")
            })?;
        // Before any work.
        with_backend!(backend, self.device, |B, device| {
            let _: Device<B> = device;
        })?;
        Ok(backend)
    }

    /// The number of threads to use: as asked, or one for each core.
    pub fn threads(&self) -> usize {
        self.threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }

    /// Bounds every thread pool by `--threads`. To be called before anything else computes.
    ///
    /// The pools belong to the backends (rayon, matrixmultiply, OpenMP under libtorch, OpenBLAS), which
    /// share no interface but the environment, and read it when they are first used.
    pub(super) fn set_threads(&self) {
        let Some(threads) = self.threads else { return };
        for name in [
            "RAYON_NUM_THREADS",
            "MATMUL_NUM_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
        ] {
            // SAFETY: the process has one thread only: this runs at the start of the command, before
            // any pool is made and any thread started.
            unsafe { std::env::set_var(name, threads.to_string()) };
        }
    }
}
