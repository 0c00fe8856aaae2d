//! `elastane usage`: the ledger of GPUs as a table or CSV.

use std::io::Write;
use std::path::PathBuf;

use api_types::{GpuUsage, GpuUsageRow, Micros};

use super::args;
use cli_kit::exit::Error;
use cli_kit::local_time::exact;
use cli_kit::message::Plain;
use cli_kit::output::{OutputOptions, Style, show};
use cli_kit::table::Table;

pub(super) async fn run(state_dir: PathBuf, flags: args::Usage) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let by = flags.by.as_deref().unwrap_or("project");
    let mut query = vec![("by", by)];
    query.extend(flags.from.as_deref().map(|from| ("from", from)));
    query.extend(flags.to.as_deref().map(|to| ("to", to)));
    if flags.csv {
        let text = client.usage_csv(&query).await?;
        return Ok(Plain(std::io::stdout()).write_all(text.as_bytes())?);
    }
    let how = OutputOptions::from(flags.format);
    let look = async |out: &mut dyn Write| {
        let mut usage = client.usage(&query).await?;
        let currency = usage.currency.clone();
        usage.rows = how.order(usage.rows, |rows| table(rows, currency.as_deref()))?;
        if !how.shown.is_text() {
            let name = |row: &GpuUsageRow| {
                let parts = [&row.project_name, &row.user, &row.gpu_model];
                parts.map(|part| part.as_deref().unwrap_or("*").to_owned()).join("/")
            };
            let names: Vec<_> =
                usage.rows.iter().map(|row| format!("usage/{}", name(row))).collect();
            return how.data(&usage, &names, out);
        }
        let span = format!("{} to {}", exact(usage.from.0.0), exact(usage.to.0.0));
        Ok(out.write_all(shown(&usage, &how, &span).as_bytes())?)
    };
    show(&how, &mut std::io::stdout(), None, look).await
}

fn table(rows: &[GpuUsageRow], currency: Option<&str>) -> Table {
    let cost = currency.map_or_else(|| "Cost".to_owned(), |currency| format!("Cost ({currency})"));
    let (time, memory) = (["Allocated", "Measured", "Used", "Idle"], ["Memory", "Memory Used"]);
    let own = ["Project", "User", "GPU Type"].into_iter().chain(time).chain(memory);
    let own: Vec<&str> = own.chain([cost.as_str()]).collect();
    let mut table = Table::new(&own);
    rows.iter().for_each(|row| table.row(cells(row, "*")));
    table
}

/// The table, and notes on what it does not cover.
fn shown(usage: &GpuUsage, how: &OutputOptions, span: &str) -> String {
    let mut table = table(&usage.rows, usage.currency.as_deref());
    if usage.rows.len() != 1 {
        table.row(cells(&usage.total, "all"));
    }
    // Columns of hours are dropped last.
    let drop_first = ["GPU Type", "User", "Memory", "Memory Used", "Measured", "Idle"];
    let table = how.text(table, Style::Ruled, &drop_first);
    if how.no_headers {
        return table;
    }
    let mut text = format!("GPU hours from {span}\n\n{table}");
    let total = &usage.total;
    if total.measured_gpu_hours < total.allocated_gpu_hours {
        text.push_str(
            "\nUsed and Idle count measured time only; simulated GPUs are not measured.\n",
        );
    }
    if total.measured_gpu_memory_gib_hours.is_some() {
        text.push_str(
            "\nMemory and Memory Used are GiB-hours: granted and used, of measured time.\n",
        );
    }
    text
}

fn cells(row: &GpuUsageRow, every: &str) -> [String; 10] {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| every.to_owned());
    let number = |number: Option<Micros>| number.map_or_else(|| "-".to_owned(), three_decimals);
    [
        text(&row.project_name),
        text(&row.user),
        text(&row.gpu_model),
        three_decimals(row.allocated_gpu_hours),
        three_decimals(row.measured_gpu_hours),
        number(row.used_gpu_hours),
        number(row.idle_gpu_hours),
        number(row.measured_gpu_memory_gib_hours),
        number(row.used_gpu_memory_gib_hours),
        number(row.cost),
    ]
}

fn three_decimals(number: Micros) -> String {
    let millis = (u128::from(number.0) + 500) / 1000;
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use units::Instant;

    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash_and_the_sum_comes_last() {
        let row = |project: &str, allocated, measured, used: Option<u64>| GpuUsageRow {
            project_name: Some(project.to_owned()),
            allocated_gpu_hours: Micros(allocated),
            measured_gpu_hours: Micros(measured),
            used_gpu_hours: used.map(Micros),
            idle_gpu_hours: used.map(|used| Micros(measured - used)),
            measured_gpu_memory_gib_hours: used.map(|_| Micros(16_000_000)),
            used_gpu_memory_gib_hours: used.map(|_| Micros(4_500_000)),
            cost: used.map(|_| Micros(12_345_678)),
            ..GpuUsageRow::default()
        };
        let usage = GpuUsage {
            from: Instant(1_700_000_000_000).into(),
            to: Instant(1_700_003_600_000).into(),
            by: vec!["project".to_owned()],
            currency: Some("EUR".to_owned()),
            rows: vec![
                row("team-a", 2_000_000, 1_000_000, Some(250_400)),
                row("team-b", 499_600, 0, None),
            ],
            total: GpuUsageRow {
                project_name: None,
                cost: None,
                ..row("", 2_499_600, 1_000_000, Some(250_400))
            },
        };
        expect![[r#"
            GPU hours from then to now

            Project  User  GPU Type  Allocated  Measured  Used   Idle   Memory  Memory Used  Cost (EUR)
            ───────────────────────────────────────────────────────────────────────────────────────────
            team-a   *     *         2.000      1.000     0.250  0.750  16.000  4.500        12.346
            team-b   *     *         0.500      0.000     -      -      -       -            -
            all      all   all       2.500      1.000     0.250  0.750  16.000  4.500        -

            Used and Idle count measured time only; simulated GPUs are not measured.

            Memory and Memory Used are GiB-hours: granted and used, of measured time.
        "#]]
        .assert_eq(&shown(&usage, &OutputOptions::default(), "then to now"));
        let bare = OutputOptions { no_headers: true, ..OutputOptions::default() };
        assert_eq!(shown(&usage, &bare, "").lines().count(), 3, "rows, and nothing else");
    }
}
