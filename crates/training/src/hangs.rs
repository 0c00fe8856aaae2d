//! Hangs of a training. Owns: the definition of a step, and the maximum time without one. Does not
//! know about: the consequences.

use std::collections::BTreeMap;
use std::time::Duration;

use elastic_proto::v1::{JobPhase, StatusReply};

/// Maximum time without a step.
const PATIENCE: Duration = Duration::from_secs(600);

/// Counters that grow with each step.
#[derive(Debug, Clone, Default)]
struct Steps {
    records: u64,
    tasks: u64,
    generation: u64,
    /// Steps by worker id: a worker that comes or goes makes none.
    of_workers: BTreeMap<u32, u64>,
}

impl Steps {
    fn of(status: &StatusReply) -> Self {
        let of_workers = status.workers.iter();
        Self {
            records: status.records,
            tasks: status.tasks_finished,
            generation: status.model_generation,
            of_workers: of_workers
                .filter_map(|worker| Some((worker.worker_id, worker.report?.steps)))
                .collect(),
        }
    }

    /// Updates the counters; true if a step was made. The count of a worker that is absent for a
    /// moment is kept.
    fn advance(&mut self, now: Self) -> bool {
        let counted = |of: &Self| (of.records, of.tasks, of.generation);
        let mut made = counted(self) != counted(&now);
        (self.records, self.tasks, self.generation) = counted(&now);
        for (worker, steps) in now.of_workers {
            let known = self.of_workers.entry(worker).or_default();
            made |= steps > *known;
            *known = steps.max(*known);
        }
        made
    }
}

/// The steps of one training.
#[derive(Debug, Default)]
pub(crate) struct Hangs {
    last: Option<(Steps, Duration)>,
    is_reported: bool,
}

impl Hangs {
    /// Records the status of a master at a time since some start. Returns how long its workers have
    /// made no step, once, if that is too long.
    pub(crate) fn see(&mut self, status: &StatusReply, passed: Duration) -> Option<Duration> {
        let now = Steps::of(status);
        let (steps, since) = self.last.get_or_insert_with(|| (now.clone(), passed));
        if steps.advance(now) {
            (*since, self.is_reported) = (passed, false);
            return None;
        }
        // A training without workers waits for them; the events of their pods have the reason.
        if status.phase() != JobPhase::Running || status.workers.is_empty() {
            *since = passed;
            return None;
        }
        let idle = passed.saturating_sub(*since);
        if idle < PATIENCE || self.is_reported {
            return None;
        }
        self.is_reported = true;
        Some(idle)
    }
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::{WorkerReport, WorkerStatus};

    use super::*;

    fn status(workers: u32, records: u64, steps: u64) -> StatusReply {
        let report = Some(WorkerReport { steps, ..WorkerReport::default() });
        let worker = |worker_id| WorkerStatus { worker_id, report, ..WorkerStatus::default() };
        StatusReply {
            phase: JobPhase::Running.into(),
            records,
            workers: (0..workers).map(worker).collect(),
            ..StatusReply::default()
        }
    }

    fn at(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[test]
    fn one_without_a_step_for_ten_minutes_is_reported_once_until_it_goes_on() {
        let mut hangs = Hangs::default();
        assert_eq!(hangs.see(&status(2, 100, 5), at(0)), None);
        assert_eq!(hangs.see(&status(2, 100, 5), at(9)), None);
        assert_eq!(hangs.see(&status(2, 100, 5), at(10)), Some(at(10)));
        assert_eq!(hangs.see(&status(2, 100, 5), at(30)), None, "it was reported");
        assert_eq!(hangs.see(&status(2, 100, 6), at(31)), None, "a step within a task");
        assert_eq!(hangs.see(&status(2, 100, 6), at(41)), Some(at(10)));
    }

    #[test]
    fn workers_that_come_and_go_make_no_step() {
        let mut hangs = Hangs::default();
        assert_eq!(hangs.see(&status(2, 100, 5), at(0)), None);
        assert_eq!(hangs.see(&status(1, 100, 5), at(4)), None, "one goes");
        let mut joined = status(2, 100, 5);
        joined.workers[1].report = None;
        joined.workers[1].worker_id = 7;
        assert_eq!(hangs.see(&joined, at(9)), None, "another comes");
        assert_eq!(hangs.see(&joined, at(10)), Some(at(10)));
        assert_eq!(hangs.see(&status(0, 100, 0), at(15)), None, "all go");
        assert_eq!(hangs.see(&status(2, 100, 5), at(16)), None);
        assert_eq!(hangs.see(&status(2, 100, 5), at(40)), None, "it was reported");
        joined.workers[1].report = Some(WorkerReport { steps: 1, ..WorkerReport::default() });
        assert_eq!(hangs.see(&joined, at(41)), None, "the first step of the new one");
        assert_eq!(hangs.see(&joined, at(51)), Some(at(10)));
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
