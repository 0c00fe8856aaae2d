//! Reports of the engine, applied to the state. Owns: distinguishing relevant reports from late
//! ones, duplicates and those about old runs.

use std::collections::BTreeSet;

use records::Desired;
use spec::{
    Exit, GpuOver, Limits, LimitsKept, ListedRun, Observation, PullFailure, Restart, RunKey,
    RunState,
};
use units::{Instant, format_bytes, format_millis};
use uuid::Uuid;

use crate::effect::{Action, Note};
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::Ended;
use view::ReasonView;
use view::codes::{
    GPU_MEMORY_OVER, GPU_NOT_KEPT, IMAGE_PULL, LIMIT_NOT_KEPT, NOT_STARTED, OUT_OF_DISK,
    OUT_OF_MEMORY,
};

impl State {
    /// Applies an observation of the engine.
    pub(crate) fn observe(&mut self, seen: &Observation) {
        let key = seen.key;
        let is_exit = matches!(seen.state, RunState::Exited { .. });
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
        let holds = self.binding(pod).current.is_some();
        // Older runs were handled when they ended; a pod without a place, or waiting in it for its
        // restart, has no process.
        if key.generation != pod.generation || !holds || pod.is_idle() {
            return;
        }
        match &seen.state {
            RunState::Starting => {}
            RunState::Preparing(what) => {
                self.set_condition(id, number, None);
                let event = EventBuilder::new("Preparing", what.clone()).pod(number);
                self.emit(id, event);
            }
            RunState::PullFailed(failure) => self.pull_failed(id, number, failure),
            RunState::Struck(kills) => self.struck(id, number, *kills),
            RunState::GpuOver(over) => self.gpu_over(id, number, over),
            RunState::GpuUnlimited(why) => {
                let text = format!("it may use more than its part of a GPU: {why}");
                let event = EventBuilder::new(LIMIT_NOT_KEPT.name, text).code(LIMIT_NOT_KEPT.code);
                self.emit(id, event.warning().pod(number));
            }
            RunState::Checkpoint(news) => self.checkpoint_news(id, number, news),
            RunState::Running { started_at, .. } => self.running(id, number, *started_at),
            RunState::Exited { exit, at } => self.exited(id, number, exit, *at),
        }
    }

    /// Publishes that an image could not be pulled, since the first failure of this run.
    fn pull_failed(&mut self, id: Uuid, number: usize, failure: &PullFailure) {
        let PullFailure { why, tries, again_in_ms } = failure;
        let seconds = again_in_ms.div_ceil(1000);
        let failed = if *tries == 1 { "once".to_owned() } else { format!("{tries} times") };
        let message = format!("{why}; pulled again in {seconds} s (failed {failed})");
        // Event kinds of a kubelet: the error itself, then the back-off after it.
        let kind = if *tries == 1 { "ErrImagePull" } else { IMAGE_PULL.name };
        let event = EventBuilder::new(kind, message).code(IMAGE_PULL.code).warning().pod(number);
        self.emit(id, event);
        // An event has a time; a duration from now on would be wrong a moment later.
        let state = format!("{why}; the pull is retried (failed {failed})");
        self.set_condition(id, number, Some((IMAGE_PULL, state)));
    }

    /// Sets the fault that keeps a pod from starting or serving; `None` for no fault.
    pub(crate) fn set_condition(
        &mut self,
        id: Uuid,
        number: usize,
        condition: Option<(reasons::Code, String)>,
    ) {
        let now = self.now;
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        let before = pod.condition.take();
        pod.condition = condition.map(|(code, message)| {
            let same = before.as_ref().filter(|before| before.code == code.code);
            let at = same.map_or(now, |before| before.at);
            ReasonView { code: code.code.into(), message: message.into(), at }
        });
        if pod.condition != before {
            self.outbox.show([id]);
        }
    }

    fn orphan_gone(&mut self, id: Uuid, number: usize) {
        self.update_members(id);
        self.touch(id);
        let Some(pod) = self.workloads.pod(id, number) else { return };
        let place = self.binding(pod);
        let held = place.current.is_some() && !place.releasing;
        let due = held && pod.started_at.is_none() && !pod.is_idle();
        if due
            && !self.runs.has_orphan(pod.id)
            && let Some(spec) = self.run_spec(id, number)
        {
            self.outbox.act([Action::Start(Box::new(spec))]);
        }
        self.finish_deletion(id);
    }

    fn running(&mut self, id: Uuid, number: usize, started_at: Instant) {
        let now = self.now;
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        if pod.started_at.is_some() {
            return;
        }
        pod.started_at = Some(started_at.min(now));
        pod.condition = None;
        let model = pod.model;
        self.runs.assembling.insert(id);
        self.touch(id);
        // The start crossed with the request to stop: events already report its end.
        if model.is_some_and(|model| self.cluster.pods()[model].binding.releasing) {
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
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let (desired, restart) = (workload.desired, workload.spec.set_of(number).0.pod.restart);
        let over = workload.completed_at.is_some();
        let Some(pod) = workload.pods.get_mut(number) else { return };
        pod.condition = None;
        let ran_ms = pod.started_at.take().map_or(0, |started| at.since_ms(started));
        let (model, run) = (pod.model, pod.run());
        // Its end may have crossed with the request to stop it.
        let before_stop = pod.released_at.is_none_or(|released| at < released);
        let stopped = pod.released_at.is_none_or(|released| at >= released);
        let given_up = pod.ended.is_some();
        let Some(model) = model else { return };
        let releasing = self.cluster.pods()[model].binding.releasing;
        // The cause of a pod that was given up is known; a stopped one ended because of the stop.
        let is_known = given_up || (releasing && stopped);
        if !is_known && let Some(pod) = self.workloads.pod_mut(id, number) {
            pod.last_exit = Some(text.clone());
            pod.last_exit_kind = Some(exit.kind());
        }
        self.touch(id);
        if !releasing {
            self.say_exit(id, number, exit, text.clone());
            if over {
                // It was allowed to continue when its workload had ended.
                self.cluster.vacate(model);
                self.leave_if_over(id);
            } else {
                self.ended_by_itself(id, number, exit, ran_ms);
            }
            if matches!(exit, Exit::NotStarted(_)) {
                self.set_condition(id, number, Some((NOT_STARTED, text)));
            }
            return;
        }
        let alone = self.workloads[&id].spec.distributed.is_none();
        let completed = before_stop
            && self.workloads[&id].pods[number].released_at.is_some()
            && exit.success()
            && restart != Restart::Always
            && (alone || self.workloads[&id].is_complete_with(number));
        if completed && desired == Desired::Run && !self.halted {
            self.end(id, number, Ended::Succeeded);
        } else {
            if !self.hold_again(id, number) {
                self.cluster.vacate(model);
            }
            self.relaunch(id, number, false);
            self.leave_if_over(id);
            self.rewind_if_stopped(id);
            self.outbox.note(Note::Debug(format!("run {run} stopped as asked: {text}")));
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
            self.observe(&Observation { key, state });
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
        pod.waits_for_others = false;
        let model = pod.model;
        self.workloads.set_restart((id, number), None);
        if let Some(model) = model {
            self.cluster.vacate(model);
        }
        self.touch(id);
    }

    fn reconcile_pod(&mut self, id: Uuid, number: usize, known: &BTreeSet<RunKey>) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(pod) = workload.pods.get(number) else { return };
        let (run, pod_id, idle) = (pod.run(), pod.id, pod.is_idle());
        let over = workload.completed_at.is_some();
        let (grace_ms, model) = (workload.spec.set_of(number).0.pod.grace_ms, pod.model);
        let place = self.binding(pod);
        let Some(model) = model.filter(|_| place.current.is_some()) else {
            self.finish_deletion(id);
            return;
        };
        match (known.contains(&run), place.releasing) {
            _ if idle => {}
            (true, true) => self.outbox.act([Action::Stop(run, grace_ms)]),
            (true, false) => self.limit_gpus(id, number),
            (false, releasing) if releasing || over => {
                self.cluster.vacate(model);
                self.relaunch(id, number, false);
                self.touch(id);
                self.leave_if_over(id);
                self.rewind_if_stopped(id);
                self.finish_deletion(id);
            }
            (false, _) if self.is_at_held_gpu(id, number) => self.leave_held_gpu(id, number),
            (false, _) => {
                if let Some(pod) = self.workloads.pod_mut(id, number) {
                    pod.started_at = None;
                }
                self.touch(id);
                if !self.runs.has_orphan(pod_id)
                    && let Some(spec) = self.run_spec(id, number)
                {
                    self.outbox.act([Action::Start(Box::new(spec))]);
                }
            }
        }
    }
}

/// End of a run with these limits, in words for users.
pub(crate) fn in_words(exit: &Exit, limits: Limits) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::CannotRun(why) => format!("could not be started: {why}"),
        Exit::NotStarted(why) => format!("could not be started now: {why}"),
        Exit::NotKept(why) => {
            format!("could not be started: its part of the GPU would not be kept: {why}")
        }
        Exit::OutOfMemory => {
            let most = limits.memory_bytes_max.map(|most| format!(" of {}", format_bytes(most)));
            format!(
                "out of memory: killed because it had more than its limit{}; submit it again with a \
                 larger one (--memory-limit, --cpu-memory-limit)",
                most.unwrap_or_default()
            )
        }
        Exit::OutOfDisk(grown) => {
            let grown = match grown.bytes {
                0 => format!("{} files", grown.files),
                bytes => format_bytes(bytes),
            };
            format!(
                "killed because the disk of the server was almost full, and of all it had grown \
                 most, by {grown}; let it write less, or to another disk"
            )
        }
        Exit::Lost => {
            "lost: what ran it is gone (a crash, or a restart of the machine or of Docker)"
                .to_owned()
        }
    }
}
