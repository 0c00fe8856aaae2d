//! `-o jsonpath=TEMPLATE`: the part of kubectl's templates that scripts use. Owns: the templates
//! and the values that they select. A list is its items: `{.items[*].name}` and `{[*].name}` select
//! the same.

use std::str::{Chars, FromStr};

use serde_json::Value;

use crate::suggest;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Path(Vec<Step>),
    /// `{range PATH}…{end}`: the parts, filled in for each value.
    Range(Vec<Step>, Vec<TemplatePart>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.PATH==VALUE)]`, or `!=`.
    Where {
        path: Vec<Step>,
        equal: bool,
        value: Value,
    },
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A path alone needs no braces.
        let braced = if text.contains('{') { text.to_owned() } else { format!("{{{text}}}") };
        let mut rest = braced.as_str();
        let parts = parts(&mut rest, false)?;
        Ok(Self(parts))
    }
}

/// The parts up to the end of the text, or up to `{end}`.
fn parts(rest: &mut &str, in_range: bool) -> Result<Vec<TemplatePart>, String> {
    let mut parts = Vec::new();
    loop {
        let Some((text, after)) = rest.split_once('{') else {
            if in_range {
                return Err("`{range …}` without `{end}`".to_owned());
            }
            if !rest.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(rest).to_owned()));
            }
            return Ok(parts);
        };
        if !text.is_empty() {
            parts.push(TemplatePart::Text(text.to_owned()));
        }
        let inner = braced(after)?;
        *rest = &after[inner.len() + 1..];
        let inner = inner.trim();
        if inner == "end" {
            return if in_range {
                Ok(parts)
            } else {
                Err("`{end}` without `{range …}`".to_owned())
            };
        } else if let Some(path) = inner.strip_prefix("range ") {
            let path = steps(path.trim())?;
            parts.push(TemplatePart::Range(path, self::parts(rest, true)?));
        } else if inner.starts_with(['"', '\'']) {
            parts.push(TemplatePart::Text(quoted(inner)?));
        } else {
            parts.push(TemplatePart::Path(steps(inner)?));
        }
    }
}

/// The text before the closing brace; a brace within quotes does not close.
fn braced(text: &str) -> Result<&str, String> {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Ok(&text[..at]),
            (None, _) => {}
        }
    }
    Err("a `{` is never closed".to_owned())
}

/// A text in quotes, with `\n`, `\t` and escaped quotes.
fn quoted(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    let quote = chars.next();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            }),
            c if Some(c) == quote => {
                return match chars.as_str() {
                    "" => Ok(out),
                    more => Err(format!("`{more}` after a text in quotes")),
                };
            }
            c => out.push(c),
        }
    }
    Err(format!("{text} has no closing quote"))
}

/// A path: `.a.b[0]['c'][*][?(@.d=="e")]`; `$` and `@` at its beginning are the value itself.
fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut chars = text.strip_prefix(['$', '@']).unwrap_or(text).chars();
    let mut steps = Vec::new();
    if chars.as_str().starts_with(|c: char| c.is_alphanumeric()) {
        steps.push(Step::Field(word(&mut chars)));
    }
    while let Some(c) = chars.next() {
        match c {
            '.' if chars.as_str().starts_with('[') => {}
            '.' if chars.as_str().is_empty() => {}
            '.' => match word(&mut chars) {
                word if word == "*" => steps.push(Step::All),
                word if word.is_empty() => return Err(format!("`{text}`: a `.` without a field")),
                word => steps.push(Step::Field(word)),
            },
            '[' => {
                let (inner, rest) = bracketed(chars.as_str())
                    .ok_or_else(|| format!("`{text}`: a `[` is never closed"))?;
                steps.push(selector(inner)?);
                chars = rest.chars();
            }
            c => return Err(format!("`{text}`: `{c}` is not expected; write `.field` or `[0]`")),
        }
    }
    Ok(steps)
}

/// The text within brackets, and the text after them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn word(chars: &mut Chars<'_>) -> String {
    let text = chars.as_str();
    let end = text.find(['.', '[', ']', ' ']).unwrap_or(text.len());
    *chars = text[end..].chars();
    text[..end].to_owned()
}

fn selector(inner: &str) -> Result<Step, String> {
    let inner = inner.trim();
    if inner == "*" {
        return Ok(Step::All);
    }
    if inner.starts_with(['"', '\'']) {
        return Ok(Step::Field(quoted(inner)?));
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let equal = condition.split_once("==").map(|sides| (sides, true));
        let sides = equal.or_else(|| condition.split_once("!=").map(|sides| (sides, false)));
        let Some(((path, value), equal)) = sides else {
            return Err(format!("`[{inner}]`: write `[?(@.field==\"value\")]`"));
        };
        let value = match value.trim() {
            text if text.starts_with('\'') => Value::String(quoted(text)?),
            text => serde_json::from_str(text).map_err(|_| format!("`{text}` is not a value"))?,
        };
        return Ok(Step::Where { path: steps(path.trim())?, equal, value });
    }
    let index =
        inner.parse().map_err(|_| format!("`[{inner}]`: write `[0]`, `[*]` or `['field']`"));
    index.map(Step::Index)
}

impl JsonPath {
    /// Fills in the template.
    ///
    /// # Errors
    /// A field does not exist.
    pub fn fill(&self, root: &Value) -> Result<String, String> {
        let mut out = String::new();
        fill(&self.0, root, &mut out)?;
        Ok(out)
    }
}

fn fill(parts: &[TemplatePart], at: &Value, out: &mut String) -> Result<(), String> {
    for part in parts {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Path(path) => {
                let found = select(path, at)?;
                out.push_str(&found.into_iter().map(shown).collect::<Vec<_>>().join(" "));
            }
            TemplatePart::Range(path, inner) => {
                for value in select(path, at)? {
                    fill(inner, value, out)?;
                }
            }
        }
    }
    Ok(())
}

/// All values that a path selects.
fn select<'v>(path: &[Step], from: &'v Value) -> Result<Vec<&'v Value>, String> {
    let mut found = vec![from];
    // A list is its items.
    let path = match (path, from) {
        ([Step::Field(name), rest @ ..], Value::Array(_)) if name == "items" => rest,
        _ => path,
    };
    for step in path {
        let mut next = Vec::new();
        for value in found {
            match (step, value) {
                (Step::Field(name), Value::Object(fields)) => match fields.get(name) {
                    Some(field) => next.push(field),
                    None => {
                        let near = suggest::hint(name, fields.keys().map(String::as_str));
                        return Err(format!("there is no field `{name}`{near}"));
                    }
                },
                (Step::Field(name), Value::Array(_)) => {
                    return Err(format!("`{name}` is asked of a list; write `[*].{name}`"));
                }
                (Step::Index(index), Value::Array(items)) => {
                    let index = usize::try_from(*index).ok().or_else(|| {
                        items.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
                    });
                    next.extend(index.and_then(|index| items.get(index)));
                }
                (Step::All, Value::Array(items)) => next.extend(items),
                (Step::All, Value::Object(fields)) => next.extend(fields.values()),
                (Step::Where { path, equal, value }, Value::Array(items)) => {
                    let is = |item: &&Value| {
                        select(path, item).is_ok_and(|found| found.contains(&value)) == *equal
                    };
                    next.extend(items.iter().filter(is));
                }
                // A scalar has no parts.
                _ => {}
            }
        }
        found = next;
    }
    Ok(found)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: &str) -> Result<String, String> {
        let list = json!([
            {"name": "a1", "phase": "Running", "extra": {"n.m": [1, 2]}, "gpus": 2},
            {"name": "b1", "phase": "Pending", "extra": {"n.m": [3]}, "gpus": 0.5},
        ]);
        template.parse::<JsonPath>()?.fill(&list)
    }

    #[test]
    fn templates_of_kubectl_are_filled_in() {
        for (template, text) in [
            ("{.items[*].name}", "a1 b1"),
            ("{[*].name}", "a1 b1"),
            ("$[0].name", "a1"),
            ("[-1].gpus", "0.5"),
            ("{[0].extra['n.m'][1]}", "2"),
            ("{.items[?(@.phase==\"Pending\")].name}", "b1"),
            ("{.items[?(@.phase!='Pending')].name}", "a1"),
            (
                "{range .items[*]}{.name}{\"\\t\"}{.phase}{\"\\n\"}{end}",
                "a1\tRunning\nb1\tPending\n",
            ),
            ("first: {[0].name}}", "first: a1}"),
            ("{[1].extra}", "{\"n.m\":[3]}"),
            ("{[7].name}", ""),
        ] {
            assert_eq!(filled(template).as_deref(), Ok(text), "{template}");
        }
    }

    #[test]
    fn what_cannot_be_meant_says_what_to_write() {
        for (template, said) in [
            ("{[*].nmae}", "there is no field `nmae`; did you mean `name`?"),
            ("{.name}", "`name` is asked of a list; write `[*].name`"),
            ("{.items[*].name", "a `{` is never closed"),
            ("{range .items[*]}{.name}", "`{range …}` without `{end}`"),
            ("{end}", "`{end}` without"),
            ("{[x]}", "write `[0]`, `[*]` or `['field']`"),
            ("{.items[*]name}", "`n` is not expected"),
            ("{.a..b}", "a `.` without a field"),
            ("{[?(@.a)]}", "write `[?(@.field==\"value\")]`"),
        ] {
            let error = filled(template).unwrap_err();
            assert!(error.contains(said), "{template}: {error}");
        }
    }
}
