//! Charts of a training: samples per second, workers and loss over time, as SVG. Owns: the drawing.
//! Does not know about: the lines of a master (`progress`).

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr as _;

use api_types::Time;
use cli_kit::exit::Error;
use client::{Client, LogPosition, LogStream, Logs};
use runai::Connected;

use crate::pods;
use crate::progress::ProgressLine;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const HEIGHT: f64 = 120.0;
/// Vertical distance of two charts.
const STEP: f64 = 160.0;
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#222}.dim{fill:#777;font-size:11px}\
    .bg{fill:#fff}.grid{stroke:#d5d9de}.line{fill:none;stroke:#4c78a8;stroke-width:1.5}\
    @media(prefers-color-scheme:dark){text{fill:#eee}.dim{fill:#9aa}.bg{fill:#15181c}\
    .grid{stroke:#3a414a}.line{stroke:#72b7b2}}";

/// Status code for a run whose output has been removed.
const REMOVED: u16 = 409;

/// Progress lines of each run of the master, with their times in milliseconds.
type Runs = [Vec<(u64, ProgressLine)>];
/// Points of each run: seconds since the start of the first one, and a value.
type Points = Vec<Vec<(f64, f64)>>;

/// Draws a job into a file.
pub(crate) async fn run(job: &str, file: &Path, project: Option<String>) -> Result<(), Error> {
    let Connected { client, project } = runai::connected(project).await?;
    let found = pods::job(&client, &project.name, job).await?;
    let written = output(&client, &found.id).await?;
    let seen: Vec<_> = written.iter().map(|run| lines(run)).collect();
    if seen.iter().map(Vec::len).sum::<usize>() < 2 {
        let text = format!(
            "{job} has not written two lines of progress yet; its master writes one a second while \
             records are visited"
        );
        return Err(Error::Failed(text));
    }
    let failed = |error| Error::Failed(format!("cannot write {}: {error}", file.display()));
    std::fs::write(file, svg(job, &seen)).map_err(failed)
}

/// Output of each run of the master, with times, the first run first. Runs whose output is removed,
/// and those before them, are left out.
async fn output(client: &Client, id: &str) -> Result<Vec<String>, Error> {
    let which = Logs { timestamps: true, ..Logs::default() };
    let newest = client.logs(id, None, &which).await?;
    let run = newest.position().and_then(LogPosition::pod_and_generation);
    let run = run.map(|(pod, generation)| (pod.to_owned(), generation));
    let mut all = vec![whole(newest).await?];
    let (pod, newest) = run.unwrap_or_default();
    for generation in (1..newest).rev() {
        match client.logs(id, Some(&format!("{pod}.{generation}")), &which).await {
            Ok(stream) => all.push(whole(stream).await?),
            Err(client::Error::Api { code: REMOVED, .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    all.reverse();
    Ok(all)
}

async fn whole(mut stream: LogStream) -> Result<String, Error> {
    let mut all = Vec::new();
    while let Some(chunk) = stream.next().await? {
        all.extend(chunk);
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// The progress lines, each with its time in milliseconds.
fn lines(written: &str) -> Vec<(u64, ProgressLine)> {
    let line = |text: &str| {
        let (time, text) = text.split_once(' ')?;
        Some((Time::from_str(time).ok()?.0.0, ProgressLine::read(text)?))
    };
    written.lines().filter_map(line).collect()
}

/// The three charts.
fn svg(job: &str, seen: &Runs) -> String {
    let begin = seen.iter().flatten().map(|(at, _)| *at).min().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "pixels are coarser")]
    let points = |value: fn(&ProgressLine) -> Option<f64>| -> Points {
        let point = |(at, line): &(u64, ProgressLine)| {
            Some((at.saturating_sub(begin) as f64 / 1e3, value(line)?))
        };
        seen.iter().map(|run| run.iter().filter_map(point).collect()).collect()
    };
    let charts = [
        ("samples/s", points(|line| Some(f64::from(line.rate)))),
        ("workers", points(|line| Some(f64::from(line.workers)))),
        ("loss", points(|line| line.loss)),
    ];
    let seconds = charts[0].1.iter().flatten().fold(1.0, |most: f64, (at, _)| most.max(*at));
    let height = TOP + STEP * 3.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\
         <title>{0}</title><style>{STYLE}</style><rect class=\"bg\" width=\"{WIDTH}\" \
         height=\"{height}\"/><text x=\"10\" y=\"20\" font-weight=\"600\">{0}</text>\n",
        units::markup(job)
    );
    for (number, (name, points)) in (0_u32..).zip(&charts) {
        chart(&mut out, (name, TOP + STEP * f64::from(number)), points, seconds);
    }
    out.push_str("</svg>\n");
    out
}

fn chart(out: &mut String, (name, top): (&str, f64), points: &Points, seconds: f64) {
    let values = || points.iter().flatten().map(|(_, value)| *value);
    // Most axes start at 0; a loss may be less.
    let (least, most) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let scale = if most > least { most - least } else { 1.0 };
    let (right, bottom) = (WIDTH - RIGHT, top + HEIGHT);
    let mut text = |x: f64, y: f64, class: &str, text: &str| {
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>");
    };
    text(LEFT, top - 6.0, "", name);
    text(10.0, top + 4.0, "dim", &shown(most));
    text(10.0, bottom + 4.0, "dim", &shown(least));
    text(right - 50.0, bottom + 16.0, "dim", &format!("{seconds:.0} s"));
    for y in [top, bottom] {
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>"
        );
    }
    let place = |(second, value): &(f64, f64)| {
        let x = LEFT + (right - LEFT) * second / seconds;
        format!("{x:.1},{:.1}", bottom - HEIGHT * (value - least) / scale)
    };
    // There are no values between two runs of the master.
    for run in points.iter().filter(|run| !run.is_empty()) {
        let places: Vec<_> = run.iter().map(place).collect();
        let _ = writeln!(out, "<polyline class=\"line\" points=\"{}\"/>", places.join(" "));
    }
}

fn shown(value: f64) -> String {
    if value.abs() >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-11-27T02:00:00.500Z epoch 0: 100 of 1500 records, checkpoint of version 0, \
        100 records/s, w-0\n\
        2026-11-27T02:00:01.500Z w-1 failed:\n\
        2026-11-27T02:00:01.600Z   Traceback\n\
        2026-11-27T02:00:02.500Z epoch 0: 500 of 1500 records, checkpoint of version 50, 200 records/s, \
        Loss 0.5000, w-0, w-1\n\
        2026-11-27T02:00:04.500Z job j succeeded: 1500 records (0 unreadable)\n";

    #[test]
    fn a_picture_has_three_lines_over_the_time_that_passed() {
        let seen = lines(LOG);
        assert_eq!(seen.len(), 2);
        let picture = svg("a<b", &[seen]);
        assert!(picture.contains("<title>a&lt;b</title>") && picture.contains(">2 s</text>"));
        for (name, points) in [
            ("samples/s", "points=\"70.0,100.0 740.0,40.0\""),
            ("workers", "points=\"70.0,260.0 740.0,200.0\""),
            // There is no loss before the first step.
            ("loss", "points=\"740.0,360.0\""),
        ] {
            assert!(picture.contains(&format!(">{name}</text>")), "{name}: {picture}");
            assert!(picture.contains(points), "{name}: {picture}");
        }
    }

    #[test]
    fn a_loss_below_zero_stays_in_its_chart() {
        let line = |loss| ProgressLine { rate: 1, loss: Some(loss), workers: 1 };
        let picture = svg("j", &[vec![(0, line(1.0)), (500, line(-3.0)), (1000, line(-1.0))]]);
        assert!(picture.contains("points=\"70.0,360.0 405.0,480.0 740.0,420.0\""), "{picture}");
        assert!(picture.contains("y=\"484\" class=\"dim\">-3</text>"), "{picture}");
    }

    #[test]
    fn each_run_of_the_master_is_a_line_of_its_own() {
        let line = |workers| ProgressLine { rate: 100, loss: None, workers };
        let first = vec![(5000, line(2)), (6000, line(2))];
        let runs = [first, Vec::new(), vec![(9000, line(1)), (15_000, line(1))]];
        let picture = svg("j", &runs);
        for points in ["points=\"70.0,200.0 137.0,200.0\"", "points=\"338.0,260.0 740.0,260.0\""] {
            assert!(picture.contains(points), "{points}: {picture}");
        }
        assert_eq!(picture.matches("<polyline").count(), 4, "no loss is known: {picture}");
        assert!(picture.contains(">10 s</text>"), "{picture}");
    }

    #[test]
    fn what_is_not_about_progress_is_left_out() {
        for text in ["", "epoch 0: 1 records", "2026-11-27T02:00:00Z", "now epoch 0: 1 records"] {
            assert!(lines(text).is_empty(), "{text}");
        }
    }
}
