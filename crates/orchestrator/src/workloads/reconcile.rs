//! Reports of the engine, applied to the state. Owns: distinguishing relevant reports from late
//! ones, duplicates and those about old runs.

use std::collections::BTreeSet;

use model::Activity;
use pod_life::{Effect, Ended, Input, Life, in_words};
use records::Desired;
use spec::{
    Exit, GpuOver, Limits, LimitsKept, ListedRun, Observation, PullFailure, Restart, RunEvent,
    RunKey, RunNews, RunState,
};
use units::{Instant, format_bytes, format_millis};
use uuid::Uuid;

use crate::effect::{Action, Note};
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::transitions::Transition;
use view::codes::{
    GPU_MEMORY_OVER, GPU_NOT_KEPT, IMAGE_PULL, LIMIT_NOT_KEPT, NOT_STARTED, OUT_OF_DISK,
    OUT_OF_MEMORY,
};

impl State {
    /// Applies an observation of the engine.
    pub(crate) fn observe(&mut self, seen: &Observation) {
        let key = seen.key;
        let is_exit = matches!(seen.news, RunNews::State(RunState::Exited { .. }));
        let orphan_gone = is_exit && self.orphan_ended(key);
        let Some((id, number)) = self.workloads.home(key.pod) else {
            if is_exit {
                self.outbox.act([Action::Remove(key)]);
            }
            return;
        };
        if orphan_gone {
            self.orphan_gone(id, number);
            return;
        }
        let Some(pod) = self.workloads.pod(id, number) else { return };
        // Older runs were handled when they ended; a pod without a place, or waiting in it for its
        // restart, has no process.
        if key.generation != pod.generation || !pod.life().has_run() {
            return;
        }
        match &seen.news {
            RunNews::State(state) => self.run_is(id, number, state),
            RunNews::Event(event) => self.run_says(id, number, event),
        }
    }

    /// Applies the state of the present run of a pod.
    fn run_is(&mut self, id: Uuid, number: usize, state: &RunState) {
        match state {
            RunState::Starting => {}
            RunState::Running { started_at, .. } => self.running(id, number, *started_at),
            RunState::Exited { exit, at } => self.exited(id, number, exit, *at),
        }
    }

    /// Applies an event of the present run of a pod.
    fn run_says(&mut self, id: Uuid, number: usize, event: &RunEvent) {
        match event {
            RunEvent::Preparing(what) => {
                if self.happens((id, number), &Input::Prepares).is_some() {
                    self.note_at_rest(id, Activity::Prepares);
                    let event = EventBuilder::new("Preparing", what.clone()).pod(number);
                    self.emit(id, event);
                }
            }
            RunEvent::PullFailed(failure) => self.pull_failed(id, number, failure),
            RunEvent::Struck(kills) => self.struck(id, number, *kills),
            RunEvent::GpuOver(over) => self.gpu_over(id, number, over),
            RunEvent::GpuUnlimited(why) => {
                let text = format!("it may use more than its part of a GPU: {why}");
                let event = EventBuilder::new(LIMIT_NOT_KEPT.name, text).code(LIMIT_NOT_KEPT.code);
                self.emit(id, event.warning().pod(number));
            }
            RunEvent::Checkpoint(news) => self.checkpoint_news(id, number, news),
            RunEvent::Meets(meets) => {
                if let Some(pod) = self.workloads.pod_mut(id, number) {
                    pod.meets = *meets;
                    self.touch(id);
                }
            }
        }
    }

    /// Publishes that an image could not be pulled, since the first failure of this run.
    fn pull_failed(&mut self, id: Uuid, number: usize, failure: &PullFailure) {
        let input = Input::PullFails(failure.clone(), self.now);
        if self.happens((id, number), &input).is_none() {
            return;
        }
        let PullFailure { why, tries, again_in_ms } = failure;
        let seconds = again_in_ms.div_ceil(1000);
        let failed = failure.times();
        let message = format!("{why}; pulled again in {seconds} s (failed {failed})");
        // Event kinds of a kubelet: the error itself, then the back-off after it.
        let kind = if *tries == 1 { "ErrImagePull" } else { IMAGE_PULL.name };
        let event = EventBuilder::new(kind, message).code(IMAGE_PULL.code).warning().pod(number);
        self.emit(id, event);
    }

    fn orphan_gone(&mut self, id: Uuid, number: usize) {
        self.update_members(id);
        self.touch(id);
        let found = self.workloads.pod(id, number);
        if found.is_some_and(|pod| matches!(pod.life(), Life::Starting { .. })) {
            self.start_again(id, number);
        }
        self.finish_deletion(id);
    }

    /// Requests the present run of a pod again, which the engine does not know; as soon as no
    /// orphan of the pod is left.
    fn start_again(&mut self, id: Uuid, number: usize) {
        let again = self.happens((id, number), &Input::Unknown);
        let Some(pod) = self.workloads.pod(id, number) else { return };
        if again.and_then(|again| again.effect) == Some(Effect::StartAgain)
            && !self.runs.has_orphan(pod.id)
            && let Some(spec) = self.run_spec(id, number)
        {
            self.outbox.act([Action::Start(Box::new(spec))]);
        }
    }

    fn running(&mut self, id: Uuid, number: usize, started_at: Instant) {
        let runs = Input::Runs(started_at.min(self.now));
        let Some(Transition { from, .. }) = self.happens((id, number), &runs) else { return };
        self.note_begun(id);
        self.runs.assembling.insert(id);
        self.touch(id);
        // The start crossed with the request to stop: events already report its end.
        if from.is_stopping() {
            return;
        }
        self.emit(id, EventBuilder::new("Started", "running").pod(number));
        self.say_limits(id, number);
    }

    /// Reports requested limits that are not enforced.
    fn say_limits(&mut self, id: Uuid, number: usize) {
        let Limits { cpu_millis_max, memory_bytes_max } = self.limits_given(id, number);
        let LimitsKept { cpu, memory, why } = &self.runs.limits_kept;
        let cpu =
            cpu_millis_max.filter(|_| !cpu).map(|most| format!("{} cores", format_millis(most)));
        let memory = memory_bytes_max
            .filter(|_| !memory)
            .map(|most| format!("{} of memory", format_bytes(most)));
        let lost: Vec<String> = cpu.into_iter().chain(memory).collect();
        if !lost.is_empty() {
            let text = format!("it may use more than its limit of {}: {why}", lost.join(" and "));
            let event = EventBuilder::new(LIMIT_NOT_KEPT.name, text).code(LIMIT_NOT_KEPT.code);
            self.emit(id, event.warning().pod(number));
        }
    }

    /// Reports processes that were killed while the main one continues.
    fn struck(&mut self, id: Uuid, number: usize, kills: u64) {
        let limits = self.limits_given(id, number);
        let most = limits.memory_bytes_max.map(|most| format!(" of {}", format_bytes(most)));
        let text = format!(
            "out of memory: {kills} of its processes killed because it had more than its limit{}; the \
             main one goes on",
            most.unwrap_or_default()
        );
        let event = EventBuilder::new(OUT_OF_MEMORY.name, text).code(OUT_OF_MEMORY.code);
        self.emit(id, event.warning().pod(number));
    }

    /// Reports GPU memory that a run holds beyond its limit.
    fn gpu_over(&mut self, id: Uuid, number: usize, over: &GpuOver) {
        let [held, limit] = [over.held_bytes, over.limit_bytes].map(format_bytes);
        let gpu = &over.gpu;
        let text = match over.ended {
            None => format!(
                "holds {held} of GPU {gpu}, more than its limit of {limit}: it keeps what it has, and \
                 gets no more until it holds less"
            ),
            Some(pid) => format!(
                "held {held} of GPU {gpu} and was granted no more than {limit}: its newest process \
                 there ({pid}) was ended, as --gpu-memory-over says"
            ),
        };
        let event = EventBuilder::new(GPU_MEMORY_OVER.name, text).code(GPU_MEMORY_OVER.code);
        self.emit(id, event.warning().pod(number));
    }

    fn limits_given(&self, id: Uuid, number: usize) -> Limits {
        let spec = self.workloads.get(&id).map(|workload| workload.spec.set_of(number).0);
        spec.map(|set| set.pod.container.limits).unwrap_or_default()
    }

    fn exited(&mut self, id: Uuid, number: usize, exit: &Exit, at: Instant) {
        let text = in_words(exit, self.limits_given(id, number));
        let not_started = matches!(exit, Exit::NotStarted(_)).then(|| text.clone());
        let exits = Input::Exits(not_started, self.now);
        let Some(Transition { from, .. }) = self.happens((id, number), &exits) else { return };
        let asked_at = from.asked_to_stop_at();
        // Its end may have crossed with the request to stop it.
        let stopped = from.is_stopping() && asked_at.is_none_or(|asked| at >= asked);
        // The cause of a pod that was given up is known; a stopped one ended because of the stop.
        if !stopped
            && from.ended().is_none()
            && let Some(pod) = self.workloads.pod_mut(id, number)
        {
            pod.last_exit = Some(text.clone());
            pod.last_exit_kind = Some(exit.kind());
        }
        self.touch(id);
        if from.is_stopping() {
            let by_itself = asked_at.is_some_and(|asked| at < asked);
            self.stopped(id, number, exit, by_itself);
            self.outbox.note(Note::Debug(format!("a stopped run of pod {number} of {id}: {text}")));
            return;
        }
        self.say_exit(id, number, exit, text);
        if self.workloads[&id].completed_at.is_some() {
            // It was allowed to continue when its workload had ended.
            self.happens((id, number), &Input::LeavesPlace);
            self.leave_if_over(id);
        } else {
            let ran_ms = from.started_at().map_or(0, |started| at.since_ms(started));
            if let Some(pod) = self.workloads.pod_mut(id, number) {
                pod.failed_after_ms = (!exit.kind().is_of_machine()).then_some(ran_ms);
            }
            self.ended_by_itself(id, number, exit, ran_ms);
        }
    }

    /// Handles the exit of a run that was to stop; `by_itself`: it had ended before.
    fn stopped(&mut self, id: Uuid, number: usize, exit: &Exit, by_itself: bool) {
        let workload = &self.workloads[&id];
        let is_last = workload.spec.distributed.is_none() || workload.is_complete_with(number);
        let completed = by_itself
            && exit.success()
            && workload.spec.set_of(number).0.pod.restart != Restart::Always
            && is_last;
        let is_over = workload.pods[number].life().ended().is_some();
        if completed && !is_over && workload.desired == Desired::Run && !self.halted {
            self.end(id, number, Ended::Succeeded);
        } else {
            if !self.hold_again(id, number) {
                self.happens((id, number), &Input::LeavesPlace);
            }
            self.relaunch(id, number, false);
            self.leave_if_over(id);
            self.rewind_if_stopped(id);
        }
        self.finish_deletion(id);
    }

    fn say_exit(&mut self, id: Uuid, number: usize, exit: &Exit, text: String) {
        let event = match exit {
            Exit::OutOfMemory => {
                EventBuilder::new(OUT_OF_MEMORY.name, text).code(OUT_OF_MEMORY.code)
            }
            Exit::OutOfDisk(_) => EventBuilder::new(OUT_OF_DISK.name, text).code(OUT_OF_DISK.code),
            Exit::NotStarted(_) => EventBuilder::new(NOT_STARTED.name, text).code(NOT_STARTED.code),
            Exit::NotKept(_) => EventBuilder::new(GPU_NOT_KEPT.name, text).code(GPU_NOT_KEPT.code),
            _ => EventBuilder::new("Exited", text),
        };
        let event = event.pod(number);
        self.emit(id, if exit.success() { event } else { event.warning() });
    }

    /// Compares the runs of the engine with those of the state, after a start: the engine has the
    /// actual state, this state the desired one.
    pub(crate) fn reconcile(&mut self, listed: Vec<ListedRun>, limits_kept: LimitsKept) {
        self.runs.limits_kept = limits_kept;
        for run in &listed {
            self.reconcile_run(run);
        }
        if self.runs.has_orphans() {
            self.settle_gpus();
        }
        let known: BTreeSet<RunKey> = listed.iter().map(|run| run.key).collect();
        for (id, number) in self.workloads.homes() {
            self.reconcile_pod(id, number, &known);
        }
        for ListedRun { key, state, .. } in listed {
            self.observe(&Observation::new(key, state));
        }
        let gated = self.cluster.gated().iter().map(|&pod| self.cluster.pods()[pod].workload);
        for model in self.cluster.waiting().chain(gated).collect::<BTreeSet<_>>() {
            if let Some(id) = self.workloads.of_model(model) {
                self.explain_unconsidered(id);
                self.outbox.show([id]);
            }
        }
    }

    /// Forgets pods of deleted workloads, except for those with an orphaned run: when that has
    /// ended, the next start forgets them.
    pub(crate) fn forget_left(&mut self, pods: Vec<Uuid>) {
        let is_left =
            |pod: &Uuid| !self.runs.has_orphan(*pod) && self.workloads.home(*pod).is_none();
        self.outbox.act(pods.into_iter().filter(is_left).map(Action::Forget));
    }

    fn reconcile_run(&mut self, run: &ListedRun) {
        let key = run.key;
        let alive = !matches!(run.state, RunState::Exited { .. });
        let wanted = self.workloads.home(key.pod).is_some_and(|(id, number)| {
            self.keep_generations_ahead(id, number, key.generation);
            let found = self.workloads.pod(id, number);
            found.is_some_and(|pod| {
                pod.generation == key.generation && self.binding(pod).current.is_some()
            })
        });
        if alive && !wanted {
            self.orphan_found(run);
        }
    }

    /// The engine may know a later run than the state, if an older copy of the state was restored:
    /// its number must not be used again.
    fn keep_generations_ahead(&mut self, id: Uuid, number: usize, generation: u32) {
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        if generation <= pod.generation {
            return;
        }
        pod.generation = generation;
        self.happens((id, number), &Input::LeavesPlace);
        self.touch(id);
    }

    fn reconcile_pod(&mut self, id: Uuid, number: usize, known: &BTreeSet<RunKey>) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(pod) = workload.pods.get(number) else { return };
        let (run, stopping) = (pod.run(), pod.life().is_stopping());
        let over = workload.completed_at.is_some();
        let grace_ms = workload.spec.set_of(number).0.pod.grace_ms;
        if !pod.life().holds_place() {
            self.finish_deletion(id);
            return;
        }
        match (known.contains(&run), stopping) {
            _ if pod.is_idle() => {}
            (true, true) => self.outbox.act([Action::Stop(run, grace_ms)]),
            (true, false) => self.limit_gpus(id, number),
            (false, stopping) if stopping || over => {
                self.happens((id, number), &Input::LeavesPlace);
                self.relaunch(id, number, false);
                self.touch(id);
                self.leave_if_over(id);
                self.rewind_if_stopped(id);
                self.finish_deletion(id);
            }
            (false, _) if self.is_at_held_gpu(id, number) => self.leave_held_gpu(id, number),
            (false, _) => {
                self.start_again(id, number);
                self.touch(id);
            }
        }
    }
}
