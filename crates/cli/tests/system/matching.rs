//! Compares printed output with the output in a document. Owns: the placeholders and the diff. Does
//! not know about: the source of either text.
//!
//! `[..]` stands for anything within a line, a line `...` for any lines. The width of a column
//! depends on its content (an age, a user's name), so runs of blanks count as one, and so do the
//! rules under a table's head. Empty lines do not count.

/// Compares two outputs; the error shows both and the first difference.
pub(crate) fn compare(expected: &[String], actual: &str) -> Result<(), String> {
    let expected: Vec<String> = expected.iter().filter_map(|line| normal(line)).collect();
    let actual: Vec<String> = actual.lines().filter_map(normal).collect();
    if matches(&expected, &actual) { Ok(()) } else { Err(diff(&expected, &actual)) }
}

/// The line with its blanks and rules reduced; `None` if nothing is left.
fn normal(line: &str) -> Option<String> {
    let words: Vec<String> = line.split_whitespace().map(reduce_rule).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn reduce_rule(word: &str) -> String {
    let is_rule = word.chars().all(|letter| matches!(letter, '─' | '-'));
    if is_rule { "─".to_owned() } else { word.to_owned() }
}

fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]))
        }
        Some((first, rest)) => actual
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others)),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((head, tail)) => line.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| line_matches(tail, &rest[at..]))
        }),
    }
}

/// Both texts, with a mark at the first line that does not match.
fn diff(expected: &[String], actual: &[String]) -> String {
    let agree = (0..expected.len())
        .take_while(|upto| {
            let mut head = expected[..=*upto].to_vec();
            head.push("...".to_owned());
            matches(&head, actual)
        })
        .count();
    let mut text = String::from("expected (> marks the first line that was not found):\n");
    for (index, line) in expected.iter().enumerate() {
        text += &format!("  {} {line}\n", if index == agree { '>' } else { ' ' });
    }
    if agree == expected.len() {
        text += "  > (nothing more)\n";
    }
    text += "actual:\n";
    for line in actual {
        text += &format!("    {line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::compare;

    fn agrees(expected: &str, actual: &str) -> bool {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        compare(&expected, actual).is_ok()
    }

    #[test]
    fn text_must_be_the_same_but_for_blanks_and_rules() {
        assert!(agrees("NAME  STATUS\na     Running", "NAME    STATUS  \na       Running\n\n"));
        assert!(agrees("A\n────", "A\n──────────\n"));
        assert!(!agrees("a Running", "a Pending"));
        assert!(!agrees("a", "a\nb"));
        assert!(!agrees("a\nb", "a"));
        assert!(!agrees("", "a"));
    }

    #[test]
    fn a_placeholder_stands_for_part_of_a_line() {
        assert!(agrees("a [..] Train", "a Running 5s node-1 Train"));
        assert!(agrees("id [..]", "id 1"));
        assert!(agrees("[..]", "anything at all"));
        assert!(!agrees("a [..] Train", "a Running Interactive"));
        assert!(!agrees("a [..]", "b 1"));
    }

    #[test]
    fn dots_stand_for_any_lines() {
        assert!(agrees("a\n...\nz", "a\nz"));
        assert!(agrees("a\n...\nz", "a\nb\nc\nz"));
        assert!(agrees("...", ""));
        assert!(!agrees("a\n...\nz", "a\nb"));
    }

    #[test]
    fn the_diff_marks_where_the_texts_part() {
        let expected = ["a".to_owned(), "b [..]".to_owned(), "c".to_owned()];
        let error = compare(&expected, "a\nb 1\nd\n").expect_err("they differ");
        assert!(error.contains("  > c\n"), "{error}");
        let error = compare(&expected, "a\nb 1\nc\nd\n").expect_err("they differ");
        assert!(error.contains("  > (nothing more)\n"), "{error}");
    }
}
