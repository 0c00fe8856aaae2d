//! Diagnostics for a support request: versions, addresses, reachability of the server, login and
//! clocks. Owns: that nothing of it is a secret, and that a fault is a line and does not end the
//! report.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value};

use super::account::expiry;
use super::config::{ConfigReport, write_file};
use super::context::{Context, now_ms};
use super::session;
use cli_kit::exit::Error;
use cli_kit::message::plain;
use cli_kit::output::data;
use dialects::intent::OutputFormat;

/// Variables that change the behaviour of this program. Only their presence is printed, not their
/// value.
const VARIABLES: [&str; 19] = [
    "RUNAI_TOKEN",
    "RUNAI_CP_URL",
    "RUNAI_CLI_CONFIG_PATH",
    "RUNAI_CLI_CONFIG_FILE",
    "RUNAI_TABLE",
    "RUNAI_GPU_ALLOC",
    "ELASTANE_STATE_DIR",
    "XDG_STATE_HOME",
    "ELASTANE_CA",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
/// Tolerance between the clocks; the server sends its time in whole seconds.
const SAME_CLOCK_MS: u64 = 2_000;

/// A line of the report: a title and a text.
type Row = (&'static str, String);

/// Prints all rows, or writes them to a file; invalid settings are a row as well.
pub(super) async fn run(
    shown: OutputFormat,
    file: Option<&Path>,
    context: Result<&mut Context, Error>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut rows = program();
    match context {
        Ok(context) => {
            rows.extend(ConfigReport::of(context).rows());
            rows.extend(connection(context).await);
            rows.extend(login(context).await);
        }
        Err(fault) => rows.push(("Settings", format!("cannot be used: {fault}"))),
    }
    let mut text = Vec::new();
    write_rows(&rows, shown, &mut text)?;
    match file {
        None => out.write_all(&text)?,
        Some(file) => {
            write_file(file, &String::from_utf8_lossy(&text))?;
            writeln!(out, "Written to {}", file.display())?;
        }
    }
    Ok(())
}

/// Rows as lines for people; as data, an object with a field for each row.
fn write_rows(rows: &[Row], shown: OutputFormat, out: &mut dyn Write) -> Result<(), Error> {
    if shown.is_text() {
        let mut rows = rows.iter();
        return rows.try_for_each(|(title, value)| Ok(writeln!(out, "{title}: {}", plain(value))?));
    }
    let field = |(title, value): &Row| (camel_case(title), Value::from(value.as_str()));
    data(&rows.iter().map(field).collect::<Map<_, _>>(), &shown, &[], out)
}

/// `Server version` as a field: `serverVersion`.
fn camel_case(title: &str) -> String {
    let mut name = String::new();
    for (at, word) in title.split(' ').enumerate() {
        let (first, rest) = word.split_at(word.len().min(1));
        let first = if at == 0 { first.to_lowercase() } else { first.to_uppercase() };
        name.push_str(&(first + rest));
    }
    name
}

fn program() -> Vec<Row> {
    let program = std::env::current_exe().map(|path| path.display().to_string());
    let program = program.unwrap_or_else(|error| format!("not found ({error})"));
    let (system, kind) = (std::env::consts::OS, std::env::consts::ARCH);
    let set: Vec<&str> =
        VARIABLES.into_iter().filter(|name| std::env::var_os(name).is_some()).collect();
    let set = if set.is_empty() { "none".to_owned() } else { set.join(", ") };
    vec![
        ("Version", env!("CARGO_PKG_VERSION").to_owned()),
        ("Program", program),
        ("Machine", format!("{system}/{kind}")),
        ("Variables that are set", set),
    ]
}

/// Reachability of the server without a token, and the difference of its clock.
async fn connection(context: &Context) -> Vec<Row> {
    let client = context.client.clone().with_token(None);
    let since = Instant::now();
    match client.health().await {
        Ok(clock) => {
            let told = clock.map_or_else(
                || "the server does not tell its own".to_owned(),
                |clock| difference(now_ms(), clock.0.0),
            );
            let answer = format!("after {} ms", since.elapsed().as_millis());
            vec![("Answer", answer), ("Clock", told)]
        }
        Err(error) => vec![("Answer", format!("none: {error}"))],
    }
}

/// The difference between the local clock and that of the server, both in milliseconds.
pub(super) fn difference(here_ms: u64, there_ms: u64) -> String {
    let apart_ms = here_ms.abs_diff(there_ms);
    let seconds = apart_ms / 1000;
    match here_ms.cmp(&there_ms) {
        _ if apart_ms < SAME_CLOCK_MS => "the same as the server's".to_owned(),
        std::cmp::Ordering::Greater => format!("{seconds} s ahead of the server's"),
        _ => format!("{seconds} s behind the server's"),
    }
}

/// Validity of the login, and the server version reported to a logged-in user.
async fn login(context: &mut Context) -> Vec<Row> {
    if let Err(error) = session::renew(context).await {
        return vec![("Login accepted", format!("no, it cannot be renewed: {error}"))];
    }
    if let Err(error) = context.client.count_own_rules().await {
        return vec![("Login accepted", format!("no: {error}"))];
    }
    let end = context.client.token().and_then(expiry);
    let end = end.map(|end| format!(", until {end}")).unwrap_or_default();
    let server = match context.client.status().await {
        Ok(status) => format!("{}, workloads run as {}", status.version, status.runtime),
        Err(error) => format!("not told: {error}"),
    };
    vec![("Login accepted", format!("yes{end}")), ("Server version", server)]
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn clocks_that_differ_are_told_with_the_side() {
        assert_eq!(difference(10_000, 9_001), "the same as the server's");
        assert_eq!(difference(70_000, 10_000), "60 s ahead of the server's");
        assert_eq!(difference(10_000, 12_500), "2 s behind the server's");
    }
}
