//! `elastane cdi`: GPU fractions for container runtimes with the Container Device Interface. Owns:
//! its arguments and the destination of the specification. Does not know about: its content.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;

use cli_kit::exit::Error;
use cli_kit::message::print_always;

/// `cdi …`.
#[derive(Debug, Args)]
pub(crate) struct Cdi {
    /// Part of a GPU as a device: half=GPU-7c2f…:40GiB (as `nvidia-smi -L` prints it) or
    /// half=simulated:16GiB:8GiB; with a comma between several GPUs
    #[arg(required = true, value_name = "NAME=GPU:MEMORY")]
    parts: Vec<String>,
    /// Folder for libraries and limits; it has to stay while containers use them
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Forget what containers hold of these parts, after they have ended; none may use them now
    #[arg(long)]
    reset: bool,
    /// File to write, such as /etc/cdi/elastane.json; else it is printed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(what: &Cdi) -> Result<(), Error> {
    let failed = |error: &dyn std::error::Error| match error.source() {
        Some(cause) => Error::Failed(format!("{error}: {cause}")),
        None => Error::Failed(error.to_string()),
    };
    let program = std::env::current_exe()?;
    let made = engine_fractions::cdi(&what.folder, &what.parts, what.reset, &program);
    let made = made.map_err(|error| match error {
        engine::Error::Invalid(why) => Error::Usage(why),
        error => failed(&error),
    })?;
    match &what.output {
        None => std::io::stdout().write_all(made.text.as_bytes())?,
        Some(file) => {
            let aside = file.with_extension("json.new");
            let write = fs::write(&aside, &made.text).and_then(|()| fs::rename(&aside, file));
            write.map_err(|error| {
                Error::Failed(format!("failed to write {}: {error}", file.display()))
            })?;
        }
    }
    for words in made.drivers {
        let line = words.join(" ");
        print_always(&format!("keep this running for its simulated GPU: elastane {line}"));
    }
    Ok(())
}
