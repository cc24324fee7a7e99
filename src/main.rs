//! The `wqk` command.

fn main() -> std::process::ExitCode {
    wqk::cli::run()
}

/// Rust opens `/dev/null` in place of a standard stream that is closed, before `main` begins. Only what runs still
/// earlier can tell that the results would go nowhere.
#[cfg(target_os = "linux")]
mod at_start {
    use std::sync::atomic::Ordering;

    use wqk::cli::output::STDOUT_IS_CLOSED;

    #[used]
    // SAFETY: the loader calls what this section lists, C functions without a result, once each.
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: asks for the flags of a descriptor; that it may be none is the question.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        STDOUT_IS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }
}
