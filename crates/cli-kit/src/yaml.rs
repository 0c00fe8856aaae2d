//! JSON values as YAML, block style. Owns the writing of YAML; does not read it.

use serde_json::Value;

/// Writes a value as a YAML document.
#[must_use]
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn write(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&" ".repeat(depth));
                out.push_str("- ");
                let mut inner = String::new();
                write(&mut inner, item, depth + 2);
                out.push_str(inner.trim_start_matches(' '));
                end_line(out);
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                out.push_str(&format!("{}{}:", " ".repeat(depth), scalar(key)));
                out.push(if is_block(field) { '\n' } else { ' ' });
                write(out, field, depth + 2);
                end_line(out);
            }
        }
        Value::String(text) => out.push_str(&scalar(text)),
        plain => out.push_str(&plain.to_string()),
    }
}

fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// Words stay unquoted; a text that YAML could read as another value is quoted as in JSON, which
/// YAML reads the same way.
fn scalar(text: &str) -> String {
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let taken = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if word && !taken.contains(&text.to_ascii_lowercase().as_str()) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_values_are_blocks_and_doubtful_words_are_quoted() {
        let value = json!([
            {"name": "a1", "gpus": [0.5, 1], "labels": {}, "said": "no", "at": "2026-01-01T00:00:00Z"},
            {"nested": {"deep": ["x: y", null, true]}, "rows": [[1, 2], []]},
            "plain"
        ]);
        expect![[r#"
            - at: "2026-01-01T00:00:00Z"
              gpus:
                - 0.5
                - 1
              labels: {}
              name: a1
              said: "no"
            - nested:
                deep:
                  - "x: y"
                  - null
                  - true
              rows:
                - - 1
                  - 2
                - []
            - plain
        "#]]
        .assert_eq(&document(&value));
    }
}
