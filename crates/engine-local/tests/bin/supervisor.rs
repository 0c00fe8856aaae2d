//! The supervisor as a program of its own, so that tests need no other crate's binary.
//! Owns: only the dispatch of its subcommands.
#![expect(clippy::print_stderr, reason = "tests read it")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["checkpoint", "--finish", folder] => finish(Path::new(folder)),
        ["nest", levels] => nest(levels.parse().unwrap_or(0)),
        ["session", run_dir] => engine_local::session(Path::new(run_dir)),
        ["echo", port] => echo(port.parse().unwrap_or(0)),
        ["supervise", run_dir] => engine_local::supervise(Path::new(run_dir)),
        ["simulated-driver", ..] => engine_fractions::simulated_driver(&args[1..]),
        ["gpu-check", ..] => print(engine_fractions::gpu_check(&args[1..], environment)),
        ["nvidia-smi", ..] => print(engine_local::nvidia_smi(&args[1..], environment)),
        _ => ExitCode::from(2),
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn print(answer: Result<String, engine::Error>) -> ExitCode {
    match answer {
        Ok(text) => {
            use std::io::Write as _;
            let written = std::io::stdout().write_all(text.as_bytes());
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn finish(folder: &Path) -> ExitCode {
    match engine_channel::finish(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(left) => {
            eprintln!("{left:?}");
            ExitCode::FAILURE
        }
    }
}

/// Makes folders in each other, as a user may.
fn nest(levels: usize) -> ExitCode {
    let enter = |_| std::fs::create_dir("d").and_then(|()| std::env::set_current_dir("d"));
    match (0..levels).try_for_each(enter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print(Err(engine::Error::io("nest", error))),
    }
}

/// Sends back what comes to a port.
fn echo(port: u16) -> ExitCode {
    let Ok(listener) = std::net::TcpListener::bind(("127.0.0.1", port)) else {
        return ExitCode::FAILURE;
    };
    for mut stream in listener.incoming().flatten() {
        std::thread::spawn(move || {
            let mut back = stream.try_clone()?;
            std::io::copy(&mut stream, &mut back)
        });
    }
    ExitCode::SUCCESS
}
