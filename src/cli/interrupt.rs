//! Ctrl-C and termination: what is unfinished goes, then the program.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::train::run::Stop;

/// What the first signal asks instead of ending the program.
static STOP: Mutex<Option<Stop>> = Mutex::new(None);

/// The signal that asked it.
static SIGNAL: AtomicI32 = AtomicI32::new(2);

/// The exit code of a program that a signal has ended: 128 and the signal's number, as shells give it.
pub(super) fn exit_code() -> u8 {
    u8::try_from(128 + SIGNAL.load(Ordering::Relaxed)).unwrap_or(u8::MAX)
}

fn stop() -> MutexGuard<'static, Option<Stop>> {
    STOP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`clean_up`], but the first signal asks runs to stop, and only the next one ends the program.
pub(super) fn ask_first(runs: &Stop) {
    *stop() = Some(runs.clone());
    clean_up();
}

/// From now on SIGINT and SIGTERM remove unfinished files and end the program with its [`exit_code`]: 130 after
/// Ctrl-C, 143 after SIGTERM.
///
/// On systems other than Unix nothing changes: there an interruption may leave a file `.wqk-…` behind, and a run
/// is resumed from its last checkpoint.
#[cfg(unix)]
pub(super) fn clean_up() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // Without it an interruption still ends the program, if less tidily.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            SIGNAL.store(signal, Ordering::Relaxed);
            if let Some(runs) = stop().take() {
                eprintln!("wqk: stopping after this update, with a checkpoint; once more ends at once");
                runs.ask();
                continue;
            }
            crate::report::drafts::remove_all();
            std::process::exit(exit_code().into());
        }
    });
}

#[cfg(not(unix))]
pub(super) fn clean_up() {}
