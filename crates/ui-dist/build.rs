//! Compresses the files below `dist/`, and writes the table of them. Does not know about: their
//! contents, and how they are served.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Not served: the digest of what the others were made from.
const SOURCES: &str = "SOURCES";

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=dist");
    let missing = |name| move |_| Error::other(format!("{name} is set by cargo"));
    let out = PathBuf::from(env::var("OUT_DIR").map_err(missing("OUT_DIR"))?);
    let dist = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(missing("its folder"))?);
    let dist = dist.join("dist");
    let mut table = String::from("[\n");
    for (at, path) in files(&dist)?.iter().enumerate() {
        let content = fs::read(dist.join(path))?;
        let compressed = out.join(format!("{at}.gz"));
        let mut gzip = GzEncoder::new(fs::File::create(&compressed)?, Compression::best());
        gzip.write_all(&content)?;
        gzip.finish()?;
        // Fixed keys: the same content has the same tag in each build.
        let mut digest = DefaultHasher::new();
        content.hash(&mut digest);
        let tag = format!("\"{:016x}\"", digest.finish());
        let media_type = media_type(path)?;
        table += &format!(
            "File {{ path: {path:?}, media_type: {media_type:?}, tag: {tag:?}, gzip: \
             include_bytes!({compressed:?}) }},\n"
        );
    }
    fs::write(out.join("files.rs"), table + "]\n")?;
    let sources = fs::read_to_string(dist.join(SOURCES))?;
    let digest = sources.split_whitespace().next().unwrap_or_default();
    println!("cargo::rustc-env=UI_DIGEST={digest}");
    Ok(())
}

/// The paths of all files, from `dist` on, in order.
fn files(dist: &Path) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![dist.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(own) = path.strip_prefix(dist)
                && own != Path::new(SOURCES)
            {
                let own = own.to_str().ok_or_else(|| Error::other("a name is not UTF-8"))?;
                found.push(own.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn media_type(path: &str) -> Result<&'static str, Error> {
    let ending = path.rsplit('.').next().unwrap_or_default();
    Ok(match ending {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/vnd.microsoft.icon",
        _ => return Err(Error::other(format!("{path}: no media type for `.{ending}`; add it"))),
    })
}
