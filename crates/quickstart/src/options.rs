//! The options of the workload: its arguments and its environment.
//!
//! Owns: the flags, their defaults and limits, and how many GPUs the environment means. Does not
//! know about: what is done with them.

use std::path::PathBuf;
use std::time::Duration;

/// The help text.
pub(crate) const HELP: &str = "\
Trains a small network on the CPU: real data, real gradients, real checkpoints.

Usage: elastane quickstart-workload [OPTIONS]

  --steps N             end after N steps (default: train until stopped)
  --seed N              seed of the data and the weights (default 1)
  --batch N             samples in a step, over all GPUs (default 256)
  --max-gpu-batch N     most samples one GPU takes at a time (default 64)
  --gpus N              GPUs to train on (default: RUNAI_NUM_OF_GPUS, then
                        CUDA_VISIBLE_DEVICES, else 1)
  --checkpoint-dir DIR  where the checkpoint is kept (default:
                        ELASTANE_CHECKPOINT_DIR, else ./checkpoint)
  --learning-rate X     how far a step goes (default 0.05)
  --micro-step-ms N     how long a GPU takes for one batch (default 150)

With one of these words it stands in for another image of the quickstarts:

  hpo                   one experiment of a search in --dir DIR, else HPO_DIR,
                        /hpo or /nfs, which no other pod has done
  page                  a page at PORT, else at 80
  jupyter [ARGUMENT...] Jupyter of this machine at PORT, else at 8888, or a page
                        that says that there is none
  inference             a server at PORT, else at 8888, that answers one request
                        after the other
  inference-client      asks a server and tells how fast it answers; takes
                        --hostname HOST --port PORT [--path PATH], or -u URL,
                        and --processes N
";

/// Options of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// Step to end at; none means never.
    pub steps: Option<u64>,
    /// Seed of data and weights.
    pub seed: u64,
    /// Samples in a step.
    pub global_batch: u32,
    /// Most samples one GPU takes at a time.
    pub max_gpu_batch: u32,
    /// GPUs to train on, at least 1.
    pub gpus: u32,
    /// Step size along the gradient.
    pub learning_rate: f32,
    /// Folder of the checkpoint.
    pub checkpoint_dir: PathBuf,
    /// Time one micro-batch takes.
    pub micro_step: Duration,
    /// Time between two lines of progress.
    pub report_every: Duration,
    /// Time between two checkpoints.
    pub checkpoint_every: Duration,
}

/// A command line that makes sense.
#[derive(Debug, PartialEq)]
pub(crate) enum Parsed {
    /// Train.
    Run(Options),
    /// Print the help.
    Help,
}

/// Reads the arguments (without the program's name) over the environment over the defaults.
pub(crate) fn parse(
    args: impl IntoIterator<Item = String>,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<Parsed, String> {
    let mut options = from_environment(env);
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        if arg == "-h" || arg == "--help" {
            return Ok(Parsed::Help);
        }
        let (flag, inline) = match arg.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (arg, None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| args.next())
                .ok_or(format!("{flag} needs a value; see --help"))
        };
        match flag.as_str() {
            "--steps" => options.steps = Some(number(&flag, &value()?, 1)?),
            "--seed" => options.seed = number(&flag, &value()?, 0)?,
            "--batch" => options.global_batch = number(&flag, &value()?, 1)?,
            "--max-gpu-batch" => options.max_gpu_batch = number(&flag, &value()?, 1)?,
            "--gpus" => options.gpus = number(&flag, &value()?, 1)?,
            "--learning-rate" => options.learning_rate = rate(&value()?)?,
            "--checkpoint-dir" => options.checkpoint_dir = PathBuf::from(value()?),
            "--micro-step-ms" => {
                options.micro_step =
                    Duration::from_millis(number::<u32>(&flag, &value()?, 0)?.into());
            }
            _ => return Err(format!("unknown argument `{flag}`; see --help")),
        }
    }
    const BATCH_MAX: u32 = 1 << 16;
    if options.global_batch > BATCH_MAX {
        return Err(format!("--batch must be at most {BATCH_MAX}, not {}", options.global_batch));
    }
    Ok(Parsed::Run(options))
}

fn from_environment(env: &impl Fn(&str) -> Option<String>) -> Options {
    Options {
        steps: None,
        seed: 1,
        global_batch: 256,
        max_gpu_batch: 64,
        gpus: gpus(env),
        learning_rate: 0.05,
        checkpoint_dir: env("ELASTANE_CHECKPOINT_DIR")
            .filter(|dir| !dir.is_empty())
            .unwrap_or_else(|| "checkpoint".to_owned())
            .into(),
        micro_step: Duration::from_millis(150),
        report_every: Duration::from_secs(1),
        checkpoint_every: Duration::from_secs(3),
    }
}

/// Number of GPUs from the environment of a container. A share of a GPU counts as one device, and
/// so does no GPU: then the processor stands in for it.
fn gpus(env: &impl Fn(&str) -> Option<String>) -> u32 {
    let granted = env("RUNAI_NUM_OF_GPUS").and_then(|text| whole_devices(text.trim()));
    let visible = || {
        let list = env("CUDA_VISIBLE_DEVICES")?;
        u32::try_from(list.split(',').filter(|device| !device.trim().is_empty()).count()).ok()
    };
    granted.or_else(visible).unwrap_or(1).max(1)
}

fn whole_devices(text: &str) -> Option<u32> {
    if let Ok(whole) = text.parse::<u32>() {
        return Some(whole);
    }
    let share = text.parse::<f64>().ok()?;
    (share > 0.0 && share < 1.0).then_some(1)
}

fn rate(text: &str) -> Result<f32, String> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
    rate.ok_or_else(|| {
        format!("--learning-rate must be a number above 0 and at most 1, not `{text}`")
    })
}

fn number<T>(flag: &str, text: &str, least: T) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    text.parse()
        .ok()
        .filter(|value| *value >= least)
        .ok_or_else(|| format!("{flag} must be a whole number of at least {least}, not `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str], env: &[(&str, &str)]) -> Result<Parsed, String> {
        parse(args.iter().map(|arg| (*arg).to_owned()), &|name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn gpus_of(env: &[(&str, &str)]) -> u32 {
        match options(&[], env) {
            Ok(Parsed::Run(options)) => options.gpus,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn gpus_come_from_the_grant_then_from_the_visible_devices() {
        assert_eq!(gpus_of(&[]), 1);
        assert_eq!(gpus_of(&[("CUDA_VISIBLE_DEVICES", "0,2,3")]), 3);
        assert_eq!(gpus_of(&[("CUDA_VISIBLE_DEVICES", "")]), 1);
        assert_eq!(gpus_of(&[("RUNAI_NUM_OF_GPUS", "2"), ("CUDA_VISIBLE_DEVICES", "0")]), 2);
        assert_eq!(gpus_of(&[("RUNAI_NUM_OF_GPUS", "0.5")]), 1);
        assert_eq!(gpus_of(&[("RUNAI_NUM_OF_GPUS", "0")]), 1);
        assert_eq!(gpus_of(&[("RUNAI_NUM_OF_GPUS", "many"), ("CUDA_VISIBLE_DEVICES", "0,1")]), 2);
    }

    #[test]
    fn arguments_win_over_the_environment() {
        let env = [("RUNAI_NUM_OF_GPUS", "2"), ("ELASTANE_CHECKPOINT_DIR", "/from-env")];
        let Ok(Parsed::Run(options)) =
            options(&["--gpus", "4", "--steps=7", "--checkpoint-dir", "/from-args"], &env)
        else {
            panic!("must parse");
        };
        assert_eq!((options.gpus, options.steps), (4, Some(7)));
        assert_eq!(options.checkpoint_dir, PathBuf::from("/from-args"));
    }

    #[test]
    fn a_bad_command_line_says_what_is_allowed() {
        for (args, expected) in [
            (&["--steps", "0"][..], "--steps must be a whole number of at least 1, not `0`"),
            (&["--gpus", "-1"], "--gpus must be a whole number of at least 1, not `-1`"),
            (&["--steps"], "--steps needs a value; see --help"),
            (
                &["--learning-rate", "2"],
                "--learning-rate must be a number above 0 and at most 1, not `2`",
            ),
            (&["--step", "3"], "unknown argument `--step`; see --help"),
            (&["--batch", "99999999"], "--batch must be at most 65536, not 99999999"),
        ] {
            assert_eq!(options(args, &[]), Err(expected.to_owned()));
        }
    }

    #[test]
    fn help_is_asked_for_anywhere_and_fits_a_terminal() {
        assert!(HELP.lines().all(|line| line.len() <= 80));
        assert_eq!(options(&["--steps", "3", "-h"], &[]), Ok(Parsed::Help));
    }
}
