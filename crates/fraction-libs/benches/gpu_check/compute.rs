//! Cost and division of compute time. Owns: measuring both, and what counts as passed. Does not
//! know about: memory.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use fraction_lease::{Policy, Run, Share, Turner};

use crate::frameworks::TORCH_TIMES;
use crate::support::Result;
use crate::{Check, Failed, Outcome, Passed, Untried, Way, output};

/// How long runs compete for the device, and how long each of their kernels is.
const WORK_MS: u64 = 10_000;
const KERNEL_US: u64 = 500;

impl Check {
    pub(crate) fn launches(&self) -> Result<Outcome> {
        let pages = self.pages("launches", self.half())?;
        let at = |name: &str| self.folder.path().join(name);
        let mut command = self.command(&at("calls"), Way::None, &pages)?;
        let printed = output(command.args(["times", "1000000"]).arg(at("preload.so")))?;
        let numbers: Vec<f64> = printed.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [0.0, launch, launch_with, graph, graph_with] = numbers[..] else {
            return Ok(Failed(printed));
        };
        let detail =
            format!("{launch:.0} -> {launch_with:.0} ns, {graph:.0} -> {graph_with:.0} ns");
        // One per cent of a few nanoseconds means nothing.
        let within = |before: f64, after: f64| self.broker.is_some() || after <= before * 1.01;
        let is =
            launch_with - launch < 20.0 && within(launch, launch_with) && within(graph, graph_with);
        Ok(if is { Passed(detail) } else { Failed(detail) })
    }

    pub(crate) fn measure_whole(&self) -> Result<Outcome> {
        let count: f64 = self.compete(&[(100, Policy::Fair)])?.iter().sum();
        Ok(Passed(format!("{} kernels", self.whole.get_or_init(|| count))))
    }

    /// Work that a program alone on the device does.
    fn whole(&self) -> Result<f64> {
        let whole = self.whole.get().copied();
        Ok(whole.ok_or("what a program alone does is not known, as measuring it failed")?)
    }

    pub(crate) fn shares(&self, shares: [u32; 2]) -> Result<Outcome> {
        let whole = self.whole()?;
        let counts = self.compete(&shares.map(|share| (share, Policy::Fair)))?;
        let sum: f64 = counts.iter().sum();
        let mut detail = String::new();
        let mut is = sum >= whole * 0.97;
        for (count, share) in counts.iter().zip(shares) {
            let part = count / sum * 100.0;
            is &= (part - f64::from(share)).abs() <= 2.0;
            write!(detail, "{part:.1} % ")?;
        }
        write!(detail, "of {:.1} % of the device alone", sum / whole * 100.0)?;
        Ok(if is { Passed(detail) } else { Failed(detail) })
    }

    pub(crate) fn strict(&self) -> Result<Outcome> {
        let whole = self.whole()?;
        let part = self.compete(&[(30, Policy::Strict)])?.iter().sum::<f64>() / whole * 100.0;
        let detail = format!("{part:.1} % of the device alone");
        Ok(if (28.0..=31.0).contains(&part) { Passed(detail) } else { Failed(detail) })
    }

    pub(crate) fn compete(&self, shares: &[(u32, Policy)]) -> Result<Vec<f64>> {
        let turner = Turner::start()?;
        let mut children = Vec::new();
        for (at, (share, policy)) in shares.iter().enumerate() {
            let pages = self.pages(&format!("share-{at}"), self.half() / 2)?;
            let share = Share { millionths: share * 10_000, policy: *policy };
            turner.set(&Run { pages: pages.clone(), device: self.uuid, share })?;
            let mut command =
                self.command(&self.folder.path().join("calls"), Way::Preload, &pages)?;
            command.args(["work", &WORK_MS.to_string(), &KERNEL_US.to_string()]);
            children.push(command.stdout(Stdio::piped()).spawn()?);
        }
        let mut counts = Vec::new();
        for child in children {
            let text = String::from_utf8(child.wait_with_output()?.stdout)?;
            let count = text.trim().strip_prefix("0 ").ok_or_else(|| format!("work: {text}"))?;
            counts.push(count.parse()?);
        }
        Ok(counts)
    }

    pub(crate) fn python_times(&self) -> Result<Outcome> {
        if let Some(untried) = self.lacks("torch") {
            return Ok(untried);
        }
        let pages = self.pages("times", self.half())?;
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..4 {
            for (way, runs) in [Way::None, Way::Preload].into_iter().zip(&mut runs) {
                let mut command = self.command(Path::new("python3"), way, &pages)?;
                let printed = output(command.args(["-c", TORCH_TIMES]))?;
                let mut numbers = printed.split(' ').filter_map(|word| word.parse().ok());
                runs.push(numbers.next().zip(numbers.next()).ok_or_else(|| printed.clone())?);
            }
        }
        let least = |runs: &[(f64, f64)]| {
            runs.iter().fold((f64::INFINITY, f64::INFINITY), |(launch, step), run| {
                (launch.min(run.0), step.min(run.1))
            })
        };
        let [(launch, step), (launch_with, step_with)] = runs.each_ref().map(|runs| least(runs));
        let most = runs[0].iter().map(|run| run.1).fold(0.0, f64::max);
        let detail = format!(
            "{launch:.0} -> {launch_with:.0} ns, {step:.1} -> {step_with:.1} us a step (processes \
             without it took up to {most:.1})"
        );
        Ok(match () {
            () if step_with <= step * 1.005 => Passed(detail),
            () if step_with <= most => Untried(format!("processes differ by more: {detail}")),
            () => Failed(detail),
        })
    }
}
