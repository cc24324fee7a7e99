//! The `wqk` command.

fn main() -> std::process::ExitCode {
    wqk::cli::run()
}
