//! Text input of commands: a file, or standard input. Owns: that a text that is too long is refused
//! and not truncated. Does not know about its content.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::exit::Error;

/// Stands for standard input in place of a file.
const INPUT: &str = "-";

/// Reads a file, or standard input for `-`; a text of more bytes is refused.
pub fn read_text(file: &Path, bytes_max: u64) -> Result<String, Error> {
    let read = |from: &mut dyn Read| {
        let mut bytes = Vec::new();
        // One more byte distinguishes a text of the maximum size from a longer one.
        from.take(bytes_max + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let read = match file.as_os_str() == INPUT {
        true => read(&mut io::stdin()),
        false => File::open(file).and_then(|mut file| read(&mut file)),
    };
    let cannot = |why: String| Error::Failed(format!("cannot read {}: {why}", file.display()));
    let bytes = read.map_err(|error| cannot(error.to_string()))?;
    if bytes.len() as u64 > bytes_max {
        return Err(cannot(format!("it is larger than {}", units::format_bytes(bytes_max))));
    }
    String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.yaml");
        let written = |text: &[u8]| {
            std::fs::write(&file, text).unwrap();
            read_text(&file, 1024).map_err(|error| error.to_string())
        };
        assert_eq!(written(&[b'#'; 1024]).unwrap().len(), 1024);
        // Truncated, it would end within a character.
        for long in [&[b'#'; 1025][..], "ü".repeat(513).as_bytes()] {
            let refused = written(long).unwrap_err();
            assert!(refused.ends_with("m.yaml: it is larger than 1KiB"), "{refused}");
        }
        assert!(written(b"a\xff").unwrap_err().ends_with("it is not UTF-8 text"));
    }
}
