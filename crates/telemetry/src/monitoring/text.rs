//! The text format 0.0.4 of Prometheus, from OpenMetrics. The formats differ in the names of
//! counters, which end in `_total` also where they are described, and in lines that only
//! OpenMetrics has.

/// These metrics in the text format 0.0.4.
pub(super) fn prometheus(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut lines = openmetrics.lines().peekable();
    while let Some(line) = lines.next() {
        let told = line.strip_prefix("# HELP ").and_then(|told| told.split_once(' '));
        let described = line.strip_prefix("# TYPE ").and_then(|told| told.split_once(' '));
        if let Some((name, about)) = told {
            let is_counter = lines.peek() == Some(&&*format!("# TYPE {name} counter"));
            let total = if is_counter { "_total" } else { "" };
            text.push_str(&format!("# HELP {name}{total} {about}\n"));
        } else if let Some((name, "counter")) = described {
            text.push_str(&format!("# TYPE {name}_total counter\n"));
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
