//! Ctrl-C and termination: what is unfinished goes, then the program.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::train::run::Stop;

/// What the first signal asks instead of ending the program.
static STOP: Mutex<Option<Stop>> = Mutex::new(None);

fn stop() -> MutexGuard<'static, Option<Stop>> {
    STOP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`clean_up`], but the first signal asks runs to stop, and only the next one ends the program.
pub(super) fn ask_first(runs: &Stop) {
    *stop() = Some(runs.clone());
    clean_up();
}

/// From now on SIGINT and SIGTERM remove unfinished files and end the program with the code that shells give it,
/// 128 and the signal's number: 130 after Ctrl-C.
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
            if let Some(runs) = stop().take() {
                eprintln!("wqk: stopping after this update, with a checkpoint; once more ends at once");
                runs.ask();
                continue;
            }
            crate::report::drafts::remove_all();
            std::process::exit(128 + signal);
        }
    });
}

#[cfg(not(unix))]
pub(super) fn clean_up() {}
