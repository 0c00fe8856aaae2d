//! The researcher's command line.

fn main() -> std::process::ExitCode {
    cli::runai::main(std::env::args_os().collect())
}
