//! A picture of an outcome: one row per GPU, one column per decision, and below it the GPUs held by
//! each queue. Owns: the drawing. Does not know about: the simulation that led to the outcome.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use units::{GPU_MILLIS, format_millis};

use crate::play::Simulation;
use crate::report::{Frame, Place};
use crate::scenario::State;

/// Maximum number of GPUs drawn: with more a picture cannot be read.
const ROWS_MAX: usize = 512;
/// Maximum number of decisions drawn, the newest.
const COLUMNS_MAX: usize = 400;
const LEFT: usize = 130;
const TOP: usize = 44;
const ROW: usize = 22;
const QUEUE_ROW: usize = 56;
const WIDTH: usize = 1200;
const COLOURS: [&str; 10] = [
    "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d",
    "#ff9da6", "#79706e",
];
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#222}.dim{fill:#777;font-size:11px}\
    .on{fill:#fff;font-size:11px;pointer-events:none}.bg{fill:#fff}.row{fill:#f1f3f5}\
    .grid{stroke:#d5d9de;stroke-width:1}.quota{stroke:#111;stroke-dasharray:4 3;fill:none}\
    .fair{stroke:#c0392b;fill:none}\
    @media(prefers-color-scheme:dark){text{fill:#eee}.dim{fill:#9aa}.bg{fill:#15181c}\
    .row{fill:#22272e}.grid{stroke:#3a414a}.quota{stroke:#eee}}";

/// Draws the decisions recorded with [`crate::Record::Everything`].
#[must_use]
pub fn svg(frames: &[Frame], simulation: &Simulation, title: &str) -> String {
    let frames = &frames[frames.len().saturating_sub(COLUMNS_MAX)..];
    let nodes = simulation.cluster().nodes().iter();
    let gpus = nodes.flat_map(|(_, node)| {
        (0_u32..).zip(&node.gpus).map(|(index, _)| (node.name.clone(), index))
    });
    let all: Vec<(String, u32)> = gpus.collect();
    let rows = &all[..all.len().min(ROWS_MAX)];
    let queues = frames.last().map(|frame| frame.queues.as_slice()).unwrap_or_default();
    let mut drawing = Drawing {
        out: String::new(),
        step: (WIDTH - LEFT - 20) as f64 / frames.len().max(1) as f64,
        colours: BTreeMap::new(),
    };
    for (at, queue) in queues.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        drawing.colours.entry(queue.name.clone()).or_insert(colour);
    }
    let below = TOP + rows.len() * ROW + 28;
    let height = below + queues.len() * QUEUE_ROW + 30;
    let _ = write!(
        drawing.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\
         <title>{0}</title><style>{STYLE}</style><defs><pattern id=\"leaving\" width=\"6\" \
         height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect \
         width=\"3\" height=\"6\" fill=\"#fff\" fill-opacity=\".55\"/></pattern></defs><rect \
         class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/><text x=\"10\" y=\"20\" \
         font-weight=\"600\">{0}</text>",
        escape(title)
    );
    if all.len() > rows.len() {
        let more = all.len() - rows.len();
        drawing.text(400, 20, "dim", &format!("{more} more GPUs are not drawn"));
    }
    drawing.axis(frames, below);
    for (at, (node, index)) in rows.iter().enumerate() {
        drawing.gpu(frames, TOP + at * ROW, node, *index);
    }
    for (at, queue) in queues.iter().enumerate() {
        drawing.queue(frames, below + at * QUEUE_ROW, at, queue);
    }
    drawing.out.push_str("</svg>\n");
    drawing.out
}

struct Drawing {
    out: String,
    /// Width of a column.
    step: f64,
    colours: BTreeMap<String, &'static str>,
}

/// The part of one GPU that one task holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    label: String,
    project: String,
    millis: u64,
    state: State,
}

impl Drawing {
    fn x(&self, column: usize) -> f64 {
        LEFT as f64 + self.step * column as f64
    }

    fn text(&mut self, x: usize, y: usize, class: &str, text: &str) {
        let _ =
            write!(self.out, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{}</text>", escape(text));
    }

    fn axis(&mut self, frames: &[Frame], below: usize) {
        let every = frames.len().div_ceil(12).max(1);
        for (at, frame) in frames.iter().enumerate().step_by(every) {
            let x = self.x(at);
            let _ = write!(
                self.out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>\
                 <text class=\"dim\" x=\"{:.1}\" y=\"{}\">{}</text>",
                TOP - 4,
                below - 20,
                x + 2.0,
                TOP - 8,
                time(frame.at_ms)
            );
        }
    }

    fn gpu(&mut self, frames: &[Frame], y: usize, node: &str, index: u32) {
        self.text(10, y + 15, if index == 0 { "" } else { "dim" }, &format!("{node} GPU {index}"));
        let width = WIDTH - LEFT - 20;
        let (rows, height) = (y + 1, ROW - 2);
        let _ = write!(
            self.out,
            "<rect class=\"row\" x=\"{LEFT}\" y=\"{rows}\" width=\"{width}\" height=\"{height}\"/>"
        );
        let mut since = 0;
        let columns: Vec<_> = frames.iter().map(|frame| held(frame, node, index)).collect();
        for (at, column) in columns.iter().enumerate() {
            if columns.get(at + 1) != Some(column) {
                self.boxes(since, at + 1, y + 1, column);
                since = at + 1;
            }
        }
    }

    fn boxes(&mut self, from: usize, to: usize, y: usize, holds: &[Held]) {
        let (left, width) = (self.x(from), self.step * (to - from) as f64);
        let mut top = y as f64;
        for held in holds {
            let height = (ROW - 2) as f64 * held.millis as f64 / GPU_MILLIS as f64;
            let colour = self.colours.get(&held.project).copied().unwrap_or(COLOURS[0]);
            let label = escape(&held.label);
            let _ = write!(
                self.out,
                "<g><title>{label} ({}) {} of this GPU, {}</title><rect x=\"{left:.1}\" \
                 y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"2\" fill=\"{colour}\"/>",
                escape(&held.project),
                format_millis(held.millis),
                held.state.as_str(),
                (width - 1.0).max(0.5)
            );
            if held.state == State::Releasing {
                let _ = write!(
                    self.out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                     fill=\"url(#leaving)\"/>",
                    (width - 1.0).max(0.5)
                );
            }
            // About seven units a letter; a label that does not fit is left to the tooltip.
            if held.label.chars().count() as f64 * 7.0 + 6.0 < width && height >= 12.0 {
                let _ = write!(
                    self.out,
                    "<text class=\"on\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
                    left + 4.0,
                    top + height / 2.0 + 4.0
                );
            }
            self.out.push_str("</g>");
            top += height;
        }
    }

    fn queue(&mut self, frames: &[Frame], y: usize, at: usize, queue: &crate::report::Queue) {
        type Part = fn(&crate::report::Queue) -> Option<u64>;
        let parts: [Part; 3] = [
            |queue| queue.allocated.gpu_millis,
            |queue| queue.quota.gpu_millis,
            |queue| queue.fair_share.gpu_millis,
        ];
        let series = parts.map(|part| {
            let value = |frame: &Frame| frame.queues.get(at).and_then(part);
            frames.iter().map(value).collect::<Vec<_>>()
        });
        let most = series.iter().flatten().flatten().copied().max().unwrap_or(0).max(GPU_MILLIS);
        let colour = self.colours.get(&queue.name).copied().unwrap_or(COLOURS[0]);
        let floor = (y + QUEUE_ROW - 12) as f64;
        let height = (QUEUE_ROW - 18) as f64;
        self.text(10, y + 18, "", &queue.title());
        let now = series[0].last().copied().flatten().unwrap_or(0);
        self.text(10, y + 34, "dim", &format!("holds {} GPUs", format_millis(now)));
        for (values, class) in series.iter().zip(["", "quota", "fair"]) {
            let mut line = String::new();
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let top = floor - height * *value as f64 / most as f64;
                let _ = write!(line, "{:.1},{top:.1} ", self.x(column));
                let _ = write!(line, "{:.1},{top:.1} ", self.x(column + 1));
            }
            let _ = if class.is_empty() {
                let end = self.x(values.len());
                write!(
                    self.out,
                    "<polygon fill=\"{colour}\" fill-opacity=\".55\" points=\"{LEFT},{floor:.1} \
                     {line}{end:.1},{floor:.1}\"><title>{} holds</title></polygon>",
                    escape(&queue.name)
                )
            } else {
                let what = if class == "quota" { "quota" } else { "fair share" };
                write!(
                    self.out,
                    "<polyline class=\"{class}\" points=\"{line}\"><title>{what} of \
                     {}</title></polyline>",
                    escape(&queue.name)
                )
            };
        }
    }
}

fn held(frame: &Frame, node: &str, index: u32) -> Vec<Held> {
    let share = |place: &Place| {
        let here = place.gpus.iter().find(|gpu| place.node == node && gpu.index == index)?;
        // A MIG instance is drawn as a whole.
        Some(here.mig.map_or(here.millis, |_| GPU_MILLIS))
    };
    let tasks = frame.tasks.iter().filter_map(|task| {
        let millis = share(task.place.as_ref()?)?;
        let (label, project) = (task.workload.clone(), task.project.clone());
        Some(Held { label, project, millis, state: task.state })
    });
    tasks.collect()
}

/// `5ms`, `12.3s`, `4m10s`, `2h05m`.
fn time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Escapes text for markup, on one line.
fn escape(text: &str) -> String {
    units::markup(&text.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::{Record, run};

    #[test]
    fn a_picture_shows_every_gpu_and_keeps_names_harmless() {
        let text = "version: 1\nnodes: [{name: n1, gpus: 2}]\nqueues: [{name: \"<q&a>\", quota: {gpu: 1}}]\n\
            workloads: [{name: \"<b>\", project: \"<q&a>\", gpu: 1}]";
        let scenario = Scenario::read(text).unwrap();
        let outcome = run(&scenario, Record::Everything).unwrap();
        let picture = svg(&outcome.frames, &outcome.simulation, "\"x\" < y");
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert!(picture.contains("n1 GPU 1") && picture.contains("&lt;b&gt;"));
        assert!(!picture.contains("<b>") && !picture.contains("<q&a>"));
    }

    #[test]
    fn nothing_at_all_can_be_drawn() {
        let outcome = run(&Scenario::empty(), Record::Everything).unwrap();
        assert!(svg(&outcome.frames, &outcome.simulation, "").contains("</svg>"));
        assert!(svg(&[], &outcome.simulation, "").contains("</svg>"));
    }
}
