//! The researcher's command line.

fn main() -> std::process::ExitCode {
    runai::main(std::env::args_os().collect())
}
