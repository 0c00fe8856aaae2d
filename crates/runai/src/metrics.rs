//! Allocation and usage of a workload over time. Owns: the columns and their units. Does not know
//! how values are measured; the server does.

use std::collections::BTreeMap;
use std::io::Write;

use api_types::{MeasurementResponse, MetricsResponse, Time};

use super::context::{Context, now_ms};
use cli_kit::exit::Error;
use cli_kit::local_time::exact;
use cli_kit::output::Style;
use cli_kit::table::{Table, ago};
use dialects::intent::Metrics;

/// Unit of a series.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Count,
    Percent,
    Bytes,
}

/// The columns, with the series of each.
const COLUMNS: [(&str, &str, Unit); 9] = [
    ("GPU Alloc.", "GPU_ALLOCATION", Unit::Count),
    ("GPU Use", "GPU_UTILIZATION", Unit::Percent),
    ("GPU Memory", "GPU_MEMORY_USAGE_BYTES", Unit::Bytes),
    ("CPU Request", "CPU_REQUEST_CORES", Unit::Count),
    ("CPU", "CPU_USAGE_CORES", Unit::Count),
    ("Memory Request", "CPU_MEMORY_REQUEST_BYTES", Unit::Bytes),
    ("Memory", "CPU_MEMORY_USAGE_BYTES", Unit::Bytes),
    ("Pods", "POD_COUNT", Unit::Count),
    ("Running", "RUNNING_POD_COUNT", Unit::Count),
];
/// Columns that the table can do without, the least important first.
const DROPPED_FIRST: [&str; 4] = ["CPU Request", "Memory Request", "Pods", "Running"];

pub(super) async fn run(
    asked: &Metrics,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(&asked.of).await?;
    let now_ms = now_ms();
    let begin_ms = now_ms.saturating_sub(asked.since_s.saturating_mul(1000));
    // There are no values before the creation of the workload. The server's clock may be ahead of
    // this one.
    let begin_ms = begin_ms.max(workload.created_at.0.0);
    let start = Time(units::Instant(begin_ms)).to_string();
    let end = Time(units::Instant(now_ms.max(begin_ms + 1000))).to_string();
    let (types, samples) = (COLUMNS.map(|(_, kind, _)| kind).join(","), asked.samples.to_string());
    let query = [
        ("metricType", types.as_str()),
        ("start", &start),
        ("end", &end),
        ("numberOfSamples", &samples),
    ];
    let answer = context.client.workload_metrics(&workload.id, &query).await?;
    let how = &asked.how;
    if !how.shown.is_text() {
        let name = format!("{}/{}", workload.kind.to_lowercase(), workload.name);
        return how.data(&answer, &[name], out);
    }
    let table = table(&answer, now_ms, how.is_wide());
    Ok(out.write_all(how.text(table, Style::Ruled, &DROPPED_FIRST).as_bytes())?)
}

/// A row for each sample, the oldest first; `-` if nothing was measured.
fn table(answer: &MetricsResponse, now_ms: u64, is_exact: bool) -> Table {
    let titles: Vec<&str> = [&["Time"][..], &COLUMNS.map(|(title, ..)| title)].concat();
    let mut rows: BTreeMap<u64, [Option<String>; COLUMNS.len()]> = BTreeMap::new();
    for MeasurementResponse { kind, values, .. } in &answer.measurements {
        let column = COLUMNS.iter().position(|(_, own, _)| own == kind);
        let Some((column, (_, _, unit))) = column.map(|at| (at, COLUMNS[at])) else { continue };
        for value in values {
            rows.entry(value.timestamp.0.0).or_default()[column] = Some(cell(&value.value, unit));
        }
    }
    let mut table = Table::new(&titles);
    for (at, cells) in rows {
        let at = if is_exact { exact(at) } else { ago(now_ms.saturating_sub(at)) };
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        table.cells(std::iter::once(at).chain(cells));
    }
    table
}

/// A number in readable form; any other text stays as it is.
fn cell(value: &str, unit: Unit) -> String {
    match (unit, value.parse::<f64>()) {
        (Unit::Percent, Ok(percent)) => format!("{percent:.0}%"),
        (Unit::Bytes, Ok(_)) => {
            let whole = value.split('.').next().unwrap_or(value);
            whole.parse().map_or_else(|_| value.to_owned(), units::format_bytes)
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_moment_is_a_row_and_what_was_not_measured_a_dash() {
        let value = |value: &str, second: u32| json!({"value": value, "timestamp": format!("2026-01-31T12:00:{second:02}Z")});
        let answer = json!({"measurements": [
            {"type": "GPU_ALLOCATION", "values": [value("2", 0), value("0.5", 30)]},
            {"type": "GPU_UTILIZATION", "values": []},
            {"type": "CPU_MEMORY_USAGE_BYTES", "values": [value("1073741824", 30)]},
            {"type": "CPU_USAGE_CORES", "values": [value("0.007", 0)]},
            {"type": "RUNNING_POD_COUNT", "values": [value("1", 0), value("1", 30)]},
            {"type": "OTHER", "values": [value("7", 0)]},
        ]});
        let answer = serde_json::from_value(answer).unwrap();
        let table = table(&answer, 1_769_860_860_000, false).fitted(Some(80), &DROPPED_FIRST);
        expect![[r#"
            Time       GPU Alloc.  GPU Use  GPU Memory  CPU    Memory  Pods  Running
            ────────────────────────────────────────────────────────────────────────
            1 min ago  2           -        -           0.007  -       -     1
            30 s ago   0.5         -        -           -      1GiB    -     1
        "#]]
        .assert_eq(&table.ruled());
        assert_eq!(cell("34.567", Unit::Percent), "35%");
    }
}
