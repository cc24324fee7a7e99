//! Ctrl-C and termination: what is unfinished goes, then the program.

/// From now on SIGINT and SIGTERM remove unfinished files and end the program with the code that shells give it,
/// 128 and the signal's number: 130 after Ctrl-C.
///
/// On systems other than Unix nothing changes: there an interruption may leave a file `.wqk-…` behind.
#[cfg(unix)]
pub(super) fn clean_up() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // Without it an interruption still ends the program, if less tidily.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            crate::report::drafts::remove_all();
            std::process::exit(128 + signal);
        }
    });
}

#[cfg(not(unix))]
pub(super) fn clean_up() {}
