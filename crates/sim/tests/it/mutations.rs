//! Thousands of scenario files with errors: bytes and words of the examples changed by a seed. None
//! may panic, and every error is reported with its line.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use sim::scenario::Scenario;
use sim::{Error, Record, run};

/// Mutants of each file.
const MUTANTS: usize = 100;

/// Replacements of words: wrong types, extremes, nothing.
const WORDS: [&str; 22] = [
    "",
    "0",
    "-1",
    "1.5",
    ".nan",
    ".inf",
    "1e300",
    "4294967296",
    "18446744073709551616",
    "null",
    "true",
    "[]",
    "{}",
    "[a, b]",
    "{a: b}",
    "'",
    "\"",
    "&x",
    "*x",
    "unlimited",
    "a/b",
    "version",
];

/// Replacements of bytes: special characters of YAML, and bytes that no file should have.
const BYTES: &[u8] = b" :-{}[]#&*!|>'\"%@`\t\n\0a9,~\xff";

struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap_or(0)
    }
}

fn examples() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/reference/scenario.md")).expect("a page");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let mut all = vec![("scenario.md".to_owned(), example.expect("an example").to_owned())];
    for entry in std::fs::read_dir(root.join("examples/scenarios")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a file");
        all.push((path.display().to_string(), text));
    }
    all.sort();
    all
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-/".contains(c)
}

/// The start and end of a random word.
fn word(rng: &mut Rng, text: &str) -> (usize, usize) {
    let starts: Vec<_> =
        text.char_indices().filter(|(_, c)| is_word(*c)).map(|(at, _)| at).collect();
    let Some(&at) = starts.get(rng.below(starts.len())) else { return (0, 0) };
    let start = text[..at].rfind(|c| !is_word(c)).map_or(0, |before| before + 1);
    let start = (start..=at).find(|&start| text.is_char_boundary(start)).unwrap_or(at);
    let end = text[at..].find(|c| !is_word(c)).map_or(text.len(), |length| at + length);
    (start, end)
}

fn mutate(rng: &mut Rng, text: &str) -> String {
    let mut text = text.to_owned();
    match rng.below(6) {
        // A byte becomes another.
        0 => {
            let mut bytes = text.into_bytes();
            let at = rng.below(bytes.len());
            bytes[at] = BYTES[rng.below(BYTES.len())];
            String::from_utf8_lossy(&bytes).into_owned()
        }
        // A byte is removed.
        1 => {
            let mut bytes = text.into_bytes();
            bytes.remove(rng.below(bytes.len()));
            String::from_utf8_lossy(&bytes).into_owned()
        }
        // The file is truncated.
        2 => {
            let at = rng.below(text.len());
            let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(at);
            text
        }
        // A line is doubled.
        3 => {
            let lines: Vec<_> = text.lines().collect();
            let at = rng.below(lines.len());
            let twice = lines[..=at].iter().chain(&lines[at..]);
            twice.map(|line| format!("{line}\n")).collect()
        }
        // A word is replaced by another of the file, or by one of `WORDS`.
        choice => {
            let (start, end) = word(rng, &text);
            let other = word(rng, &text);
            let other = text[other.0..other.1].to_owned();
            let by = if choice == 4 { other.as_str() } else { WORDS[rng.below(WORDS.len())] };
            text.replace_range(start..end, by);
            text
        }
    }
}

/// `true` if the file is accepted.
fn check(name: &str, text: &str) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        Scenario::read(text).and_then(|scenario| run(&scenario, Record::Decisions))
    }));
    match outcome {
        Err(_) => panic!("a mutant of {name} panics:\n{text}"),
        Ok(Ok(outcome)) => {
            assert_eq!(outcome.simulation.cluster().verify(), Ok(()), "{name}\n{text}");
            true
        }
        Ok(Err(error)) => {
            let placed =
                matches!(&error, Error::Scenario { line: 1.., message, .. } if !message.is_empty());
            assert!(placed, "a fault in a mutant of {name} has no line: {error:?}\n{text}");
            false
        }
    }
}

#[test]
fn no_mutant_of_an_example_panics_and_every_fault_has_a_line() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    for (name, text) in examples() {
        assert!(check(&name, &text), "{name} itself is refused");
        for _ in 0..MUTANTS {
            let mut mutant = mutate(&mut rng, &text);
            if rng.below(3) == 0 && !mutant.is_empty() {
                mutant = mutate(&mut rng, &mutant);
            }
            if check(&name, &mutant) { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 50 && refused > 300, "{accepted} accepted, {refused} refused");
}
