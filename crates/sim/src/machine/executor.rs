//! The executor of actions on the engine. Owns: their order for each pod, retries, and their
//! outcomes. It ends with the server, like the tasks of a process.

use std::collections::{BTreeMap, VecDeque};

use orchestrator::{Action, Input};
use spec::{Exit, Observation, RunKey, RunState};
use units::Instant;
use uuid::Uuid;

use super::engine::{Engine, Refusal, Run};

/// Maximum number of attempts to remove the remains of a run, or to delete a volume, before the
/// failure is reported.
const TRIES: u32 = 4;

#[derive(Debug)]
enum Task {
    Do(Action),
    /// Stops the remains of a failed start, then reports the failure.
    Undo(RunKey, Exit),
}

/// Actions to be carried out.
#[derive(Debug, Default)]
pub(super) struct Executor {
    /// Tasks of each pod, workload or volume, in order, with the number of attempts at the first.
    chains: BTreeMap<Uuid, (u32, VecDeque<Task>)>,
    /// Outcomes that the server has not received.
    pub(super) told: VecDeque<Input>,
}

impl Executor {
    pub(super) fn act(&mut self, action: Action) {
        let chain = match &action {
            Action::Start(start) => start.spec.key.pod,
            Action::Stop(key, _) | Action::LimitGpus(key, _) | Action::Remove(key) => key.pod,
            Action::Evict { run, .. } | Action::Adopted(run, _) => run.pod,
            Action::Forget(pod) => *pod,
            Action::FindPorts(wanted) => wanted.workload,
            Action::RemoveVolume(name) => Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()),
        };
        self.chains.entry(chain).or_default().1.push_back(Task::Do(action));
    }

    /// Number of pods, workloads and volumes with actions.
    pub(super) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Carries out the next action of the chain with this number.
    pub(super) fn step(&mut self, number: usize, engine: &mut Engine, wall: Instant) {
        let Some((&chain, (tries, tasks))) = self.chains.iter_mut().nth(number) else { return };
        *tries += 1;
        let Some(task) = tasks.front() else { return };
        let again = match task {
            Task::Do(action) => carry_out(action, *tries, engine, &mut self.told),
            Task::Undo(key, exit) => undo(*key, exit, engine, &mut self.told, wall),
        };
        match again {
            Next::Again => return,
            Next::Done => drop(tasks.pop_front()),
            Next::Undo(key, exit) => tasks[0] = Task::Undo(key, exit),
        }
        *tries = 0;
        if tasks.is_empty() {
            self.chains.remove(&chain);
        }
    }
}

enum Next {
    Done,
    Again,
    Undo(RunKey, Exit),
}

fn undo(
    key: RunKey,
    exit: &Exit,
    engine: &mut Engine,
    told: &mut VecDeque<Input>,
    at: Instant,
) -> Next {
    if engine.stop(key).is_err() || engine.runs().get(&key).is_some_and(Run::is_alive) {
        return Next::Again;
    }
    // Remains of the run do not matter here.
    let _ = engine.remove(key);
    let state = RunState::Exited { exit: exit.clone(), at };
    told.push_back(Input::Run(Observation::new(key, state)));
    Next::Done
}

fn carry_out(action: &Action, tries: u32, engine: &mut Engine, told: &mut VecDeque<Input>) -> Next {
    let again = |done: Result<(), Refusal>| if done.is_ok() { Next::Done } else { Next::Again };
    match action {
        Action::Start(start) => match engine.start(start.spec.clone()) {
            Ok(()) => Next::Done,
            Err(Refusal::Never(why)) => Next::Undo(start.spec.key, Exit::CannotRun(why)),
            Err(Refusal::NotNow(why)) => Next::Undo(start.spec.key, Exit::NotStarted(why)),
        },
        // No program of a simulated run uses GPU memory.
        Action::LimitGpus(..) => Next::Done,
        // A simulated engine has no feed.
        Action::Adopted(..) => Next::Done,
        Action::Stop(run, _) | Action::Evict { run, .. } => again(engine.stop(*run)),
        Action::Remove(_) if tries > TRIES => Next::Done,
        Action::Remove(key) => again(engine.remove(*key)),
        Action::Forget(pod) => {
            engine.forget_pod(*pod);
            Next::Done
        }
        Action::FindPorts(wanted) => {
            let count = if engine.faults.ports { 0 } else { wanted.count };
            told.push_back(Input::Ports(wanted.clone(), wanted.candidates().take(count).collect()));
            Next::Done
        }
        Action::RemoveVolume(name) => match engine.remove_volume(name) {
            Ok(()) => {
                told.push_back(Input::Volume(name.clone(), None));
                Next::Done
            }
            Err(Refusal::Never(why) | Refusal::NotNow(why)) => {
                if tries == TRIES {
                    told.push_back(Input::Volume(name.clone(), Some(why)));
                }
                Next::Again
            }
        },
    }
}
