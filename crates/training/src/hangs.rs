//! When a training hangs. Owns: what a step is, and how long none may come. Does not know about: what
//! follows from it.

use std::time::Duration;

use elastic_proto::v1::{JobPhase, StatusReply};

/// So long a training may make no step.
const PATIENCE: Duration = Duration::from_secs(600);

/// What changes with each step of a worker, the newest first to be known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Steps {
    records: u64,
    tasks: u64,
    generation: u64,
    of_workers: u64,
}

/// The steps of one training.
#[derive(Debug, Default)]
pub(crate) struct Hangs {
    last: Option<(Steps, Duration)>,
    is_said: bool,
}

impl Hangs {
    /// What its master says, so long after some start. Returns for how long its workers have made no
    /// step, once, if that is too long.
    pub(crate) fn see(&mut self, status: &StatusReply, passed: Duration) -> Option<Duration> {
        let steps = Steps {
            records: status.records,
            tasks: status.tasks_finished,
            generation: status.model_generation,
            of_workers: status.workers.iter().filter_map(|worker| Some(worker.report?.steps)).sum(),
        };
        // One without workers waits for them, and why is said of their pods.
        let works = status.phase() == JobPhase::Running && !status.workers.is_empty();
        let (before, since) = *self.last.get_or_insert((steps, passed));
        if !works || before != steps {
            (self.last, self.is_said) = (Some((steps, passed)), false);
            return None;
        }
        let idle = passed.saturating_sub(since);
        if idle < PATIENCE || self.is_said {
            return None;
        }
        self.is_said = true;
        Some(idle)
    }
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::{WorkerReport, WorkerStatus};

    use super::*;

    fn status(workers: usize, records: u64, steps: u64) -> StatusReply {
        let report = Some(WorkerReport { steps, ..WorkerReport::default() });
        StatusReply {
            phase: JobPhase::Running.into(),
            records,
            workers: vec![WorkerStatus { report, ..WorkerStatus::default() }; workers],
            ..StatusReply::default()
        }
    }

    fn at(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[test]
    fn one_without_a_step_for_ten_minutes_is_said_once_until_it_goes_on() {
        let mut hangs = Hangs::default();
        assert_eq!(hangs.see(&status(2, 100, 5), at(0)), None);
        assert_eq!(hangs.see(&status(2, 100, 5), at(9)), None);
        assert_eq!(hangs.see(&status(2, 100, 5), at(10)), Some(at(10)));
        assert_eq!(hangs.see(&status(2, 100, 5), at(30)), None, "it was said");
        assert_eq!(hangs.see(&status(2, 100, 6), at(31)), None, "a step within a task");
        assert_eq!(hangs.see(&status(2, 100, 6), at(41)), Some(at(10)));
    }

    #[test]
    fn one_that_waits_for_workers_or_has_ended_does_not_hang() {
        let mut hangs = Hangs::default();
        for minutes in [0, 20, 40] {
            assert_eq!(hangs.see(&status(0, 100, 0), at(minutes)), None);
        }
        assert_eq!(hangs.see(&status(1, 100, 0), at(45)), None, "its worker has just come");
        let mut ended = status(1, 100, 0);
        ended.phase = JobPhase::Succeeded.into();
        assert_eq!(hangs.see(&ended, at(90)), None);
    }
}
