//! The operator's command line, and every process of the server.

fn main() -> std::process::ExitCode {
    elastane::main(std::env::args_os().collect())
}
