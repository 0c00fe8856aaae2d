//! Characters allowed in the texts of a JSON body. Does not know what the fields mean.

use serde_json::Value;

use super::error::ApiError;

/// Fields whose text is one line.
const ONE_LINE: [&str; 5] = ["name", "image", "workingDir", "username", "email"];

/// Refuses text with what cannot be seen: no text has NUL, and a line has no other control
/// character.
pub(super) fn check_text(value: &Value) -> Result<(), ApiError> {
    texts(value, &mut String::new(), false)
}

/// `path` is where the value is; it is grown and cut again, so that a long name of a field is not
/// copied for each value below it.
fn texts(value: &Value, path: &mut String, one_line: bool) -> Result<(), ApiError> {
    let text = |text: &str, path: &str| {
        let wrong = |c: char| c == '\0' || (one_line && c.is_control());
        if !text.contains(wrong) {
            return Ok(());
        }
        // The error does not repeat the text, which may be secret.
        Err(ApiError::field(path, "has a control character; leave it out"))
    };
    match value {
        Value::String(line) => text(line, path),
        Value::Array(items) => {
            let end = path.len();
            for (at, item) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                texts(item, path, one_line)?;
                path.truncate(end);
            }
            Ok(())
        }
        Value::Object(fields) => {
            let end = path.len();
            let is_data = path == "data";
            let is_label = one_line && path.contains("labels");
            for (name, value) in fields {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(name);
                text(name, path)?;
                let of_label = name == "labels" || is_label;
                // The keys of a config map are not fields.
                let one_line = !is_data && (of_label || ONE_LINE.contains(&name.as_str()));
                texts(value, path, one_line)?;
                path.truncate(end);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
