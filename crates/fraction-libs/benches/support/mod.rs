//! Helpers for the measurements and the check of a real GPU. Owns: compiling their programs, and
//! pages of runs. Does not know about: the measurements.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use fraction_abi::control::{Control, Limit};
use fraction_abi::{claim, control};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Compiles a C file of this package.
pub(crate) fn compile(source: &str, to: &Path, options: &[&str]) -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut command = Command::new("cc");
    command.args(["-O2", "-w", "-o"]).arg(to).args(options).arg(source);
    let status = command.args(["-ldl", "-lpthread"]).status()?;
    if status.success() { Ok(()) } else { Err("the C compiler failed".into()) }
}

/// The pages of a run with this limit, in a new folder.
pub(crate) fn pages(folder: PathBuf, limit: Limit) -> Result<PathBuf> {
    std::fs::create_dir_all(&folder)?;
    let mut bytes = Control::new(&[limit], 0).as_bytes().to_vec();
    bytes.resize(control::BYTES, 0);
    std::fs::write(folder.join("control"), bytes)?;
    let mut bytes = claim::header().to_vec();
    bytes.resize(claim::BYTES, 0);
    std::fs::write(folder.join("claim"), bytes)?;
    Ok(folder)
}
