//! The supervisor as a program of its own, so that tests need no other crate's binary.
//! Owns: nothing but the dispatch of its two subcommands.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["supervise", run_dir] => engine_local::supervise(Path::new(run_dir)),
        ["nvidia-smi", ..] => {
            match engine_local::nvidia_smi(&args[1..], |name| std::env::var(name).ok()) {
                Ok(text) => {
                    use std::io::Write as _;
                    let written = std::io::stdout().write_all(text.as_bytes());
                    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
                }
                Err(_) => ExitCode::FAILURE,
            }
        }
        _ => ExitCode::from(2),
    }
}
