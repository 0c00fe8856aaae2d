//! Walk-through documents as scripts. Owns: the split of a Markdown file into commands and their
//! output. Does not know about: how commands are run.
//!
//! Only fenced blocks marked `console` count. In them a line that starts with `$ ` is a command (a
//! trailing backslash continues it) and the lines up to the next command are its output. A command
//! that starts with `elastane up` is the server: it stays in the background. So does one that ends
//! in ` &`, until `kill %N` ends the Nth of them; its lines are those it has printed so far.

/// One command of a document with what it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Line of the command in the file, from 1.
    pub line: usize,
    /// The command, exactly as a person would paste it.
    pub command: String,
    /// Its output with placeholders (see `matching`).
    pub expected: Vec<String>,
}

impl Step {
    /// True if this is the server, which does not end by itself.
    pub(crate) fn is_server(&self) -> bool {
        self.command.split_whitespace().take(2).eq(["elastane", "up"])
    }

    /// The command without its `&`, if it stays in the background.
    pub(crate) fn in_background(&self) -> Option<&str> {
        self.command.strip_suffix(" &")
    }

    /// Index of the background command that this ends, from 0.
    pub(crate) fn ends(&self) -> Option<usize> {
        self.command.strip_prefix("kill %")?.parse::<usize>().ok()?.checked_sub(1)
    }

    /// True if the command changes nothing, so that it may be repeated until the cluster has
    /// stabilized.
    pub(crate) fn is_read_only(&self) -> bool {
        const LOOKS: [&str; 7] = ["list", "describe", "logs", "explain", "status", "pods", "jobs"];
        let mut words = self.command.split_whitespace();
        match words.next() {
            Some("runai" | "elastane" | "elasticdl") => {
                words.take(2).any(|word| LOOKS.contains(&word))
            }
            first => first == Some("curl"),
        }
    }
}

/// Reads the steps of a document.
///
/// # Errors
/// A block that is never closed, or output before the first command of a block.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if line.trim_start() == "```console" {
            parse_block(&mut lines, number, &mut steps)?;
        }
    }
    Ok(steps)
}

fn parse_block<'a>(
    lines: &mut impl Iterator<Item = (&'a str, usize)>,
    opened: usize,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    let first = steps.len();
    while let Some((line, number)) = lines.next() {
        if line.trim_start() == "```" {
            return Ok(());
        }
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                let (next, _) = lines.next().ok_or("the last line continues nowhere")?;
                command = format!("{command}\n{next}");
            }
            steps.push(Step { line: number, command, expected: Vec::new() });
        } else if steps.len() == first {
            return Err(format!("line {number}: a console block must begin with `$ `"));
        } else if let Some(step) = steps.last_mut() {
            step.expected.push(line.to_owned());
        }
    }
    Err(format!("the block opened in line {opened} is not closed"))
}

#[test]
fn commands_and_outputs_are_told_apart() {
    let text = "prose\n```sh\n$ not this\n```\n```console\n$ elastane up --gpus 2x16GiB\nready\n```\n\
                more\n```console\n$ runai submit a \\\n    -g 1\n$ runai list\nNAME\na\n```\n";
    let steps = parse(text).expect("parses");
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(
        steps,
        [
            step(6, "elastane up --gpus 2x16GiB", &["ready"]),
            step(11, "runai submit a \\\n    -g 1", &[]),
            step(13, "runai list", &["NAME", "a"]),
        ]
    );
    assert_eq!(steps.iter().map(Step::is_server).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(steps.iter().map(Step::is_read_only).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn what_stays_in_the_background_is_ended_by_its_number() {
    let steps = parse("```console\n$ runai port-forward a &\n$ kill %2\n$ curl -s a\n```\n");
    let steps = steps.expect("parses");
    let background: Vec<_> = steps.iter().map(Step::in_background).collect();
    assert_eq!(background, [Some("runai port-forward a"), None, None]);
    assert_eq!(steps.iter().map(Step::ends).collect::<Vec<_>>(), [None, Some(1), None]);
    assert_eq!(steps.iter().map(Step::is_read_only).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_block_that_cannot_be_read_is_refused() {
    assert!(parse("```console\n$ runai list\n").is_err());
    assert!(parse("```console\noutput of nothing\n```\n").is_err());
}
