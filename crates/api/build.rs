//! Writes the table of the pages of reason codes, `docs/reference/codes/`. Does not know about:
//! their contents, and how they are served.

use std::io::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Error> {
    let missing = |name| move |_| Error::other(format!("{name} is set by cargo"));
    let out = PathBuf::from(env::var("OUT_DIR").map_err(missing("OUT_DIR"))?);
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(missing("its folder"))?);
    let pages = own.join("../../docs/reference/codes");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", pages.display());
    let files = fs::read_dir(&pages)?.map(|file| Ok(file?.path()));
    let mut files = files.collect::<Result<Vec<_>, Error>>()?;
    files.sort();
    let entry = |file: &PathBuf| {
        let code = file.file_stem()?.to_str().filter(|code| *code != "README")?;
        Some(format!("({code:?}, include_str!({file:?})),\n"))
    };
    let table: String = files.iter().filter_map(entry).collect();
    fs::write(out.join("codes.rs"), format!("[\n{table}]\n"))
}
