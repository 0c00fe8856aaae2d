//! The rendezvous of the pods of one workload for `torchrun`. Owns: which of their runs are in a
//! world, when all of them have arrived in it, and that a world goes on after a restart of the
//! server. Does not know about: sockets, processes, and what the pods exchange in the store of a
//! world.
//!
//! Membership follows from runs that begin and end, and from agents that go on saying something, so
//! the loss of any pod, the first included, is the next world of the others. That world waits for a
//! replacement that is seconds away, so that a loss is one restart of the others, not two.

use std::collections::{BTreeMap, BTreeSet};

use elastic::{Rendezvous, WorkerId, WorldLimits};
use engine::RunKey;
use units::Instant;
use uuid::Uuid;

use crate::protocol::{Meet, Seat, World};

/// How long joins are gathered while a world is there.
const GATHER_MS: u64 = 1000;
/// How long the next world waits for a run that has begun and loads its program. Importing PyTorch
/// takes several seconds.
const LOADS_MS: u64 = 20_000;
/// How long the next world waits for the restart of a pod that failed. The first delay of a restart
/// is one second; the others go on during longer ones.
const RESTARTS_MS: u64 = 2000;
/// How long the next world waits in all while pods begin one after another.
const AWAITS_MS: u64 = 30_000;
/// How long runs of an earlier server are waited for. A run says something every second.
const RESUME_MS: u64 = 30_000;
/// Silence after which an agent counts as gone, although its run goes on: the program that started
/// the agent may do something else. An agent that looks for a store is silent for up to a minute.
const SILENT_MS: u64 = 90_000;
/// Time without any request after which the server itself counts as stalled.
const STEADY_MS: u64 = 10_000;

/// The runs of a workload.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    /// Runs that have not ended.
    open: BTreeSet<RunKey>,
    /// Runs of an earlier server that have not reported their world yet. No world is decided
    /// without them until `silent_until`.
    silent: BTreeSet<RunKey>,
    silent_until: Instant,
    /// Last world of each run.
    seats: BTreeMap<RunKey, Seat>,
    group: Option<Group>,
    /// Moment of the last request of each run.
    heard: BTreeMap<RunKey, Instant>,
    /// Pods whose runs are about to arrive, with the time until which the next world waits for
    /// them.
    coming: BTreeMap<Uuid, Instant>,
    /// Start of the current wait for such pods.
    awaits_since: Option<Instant>,
    /// Runs that the server stops: they are not replaced.
    stopped: BTreeSet<RunKey>,
    /// Start of the current series of requests without a long pause, and its last request.
    steady_since: Instant,
    last: Instant,
    /// Runs whose script has ended well, also after their end: one that begins then has nothing to
    /// do.
    done: BTreeSet<RunKey>,
}

/// Runs that have met.
#[derive(Debug)]
struct Group {
    rendezvous: Rendezvous,
    /// Runs by their numbers.
    runs: Vec<RunKey>,
    /// Generation in which each run waits for the others.
    arrived: BTreeMap<RunKey, u64>,
    /// Generation and address of the store that its first run has opened.
    store: Option<(u64, String)>,
    /// The newest world in which all runs have arrived.
    complete: Option<Complete>,
}

#[derive(Debug)]
struct Complete {
    generation: u64,
    members: Vec<RunKey>,
    store: String,
    /// True if one of them knows: then all have to go there.
    is_known: bool,
}

impl Meeting {
    /// A run begins, or is one of an earlier server.
    pub(crate) fn open(&mut self, key: RunKey, begins: bool, now: Instant) {
        self.open.insert(key);
        if begins {
            self.coming.insert(key.pod, now.plus_ms(LOADS_MS));
        } else {
            self.silent.insert(key);
            self.silent_until = now.plus_ms(RESUME_MS);
        }
    }

    /// The server stops a run.
    pub(crate) fn stop(&mut self, key: RunKey) {
        self.stopped.insert(key);
    }

    /// A run has ended. Returns whether nothing has to be known any more.
    pub(crate) fn close(&mut self, key: RunKey, now: Instant) -> bool {
        let is_stopped = self.stopped.remove(&key);
        if self.open.remove(&key) {
            self.coming.remove(&key.pod);
            if !is_stopped {
                self.coming.insert(key.pod, now.plus_ms(RESTARTS_MS));
            }
        }
        self.silent.remove(&key);
        self.leave(key);
        self.open.is_empty() && self.done.is_empty()
    }

    fn leave(&mut self, key: RunKey) {
        self.seats.remove(&key);
        self.heard.remove(&key);
        if let Some(group) = &mut self.group {
            group.leave(key);
        }
    }

    /// Notes that a run says something, and takes out those whose agents do not any more.
    fn hear(&mut self, key: RunKey, now: Instant) {
        if now.since_ms(self.last) > STEADY_MS {
            self.steady_since = now;
        }
        self.last = now;
        self.heard.insert(key, now);
        self.coming.remove(&key.pod);
        let is_gone = |heard: &Instant| now.since_ms((*heard).max(self.steady_since)) > SILENT_MS;
        let gone: Vec<_> =
            self.heard.iter().filter(|(_, heard)| is_gone(heard)).map(|(key, _)| *key).collect();
        gone.into_iter().for_each(|key| self.leave(key));
    }

    /// True if the next world waits for runs that are about to arrive.
    fn awaits(&mut self, now: Instant) -> bool {
        self.coming.retain(|_, until| now < *until);
        if self.coming.is_empty() {
            self.awaits_since = None;
            return false;
        }
        let since = *self.awaits_since.get_or_insert(now);
        now.since_ms(since) < AWAITS_MS
    }

    /// Answers a request of a run.
    ///
    /// # Errors
    /// Reason why the request is invalid.
    pub(crate) fn meet(
        &mut self,
        key: RunKey,
        request: &Meet,
        now: Instant,
    ) -> Result<World, String> {
        if !self.open.contains(&key) {
            return Err("this run has ended".to_owned());
        }
        if request.arrives && self.done.contains(&key) {
            return Err(
                "the training of this pod has ended well, and one `torchrun` of a pod meets at \
                        the server: use --rdzv_backend c10d for another"
                    .to_owned(),
            );
        }
        if request.done {
            self.done.insert(key);
        }
        if !self.done.is_empty() {
            let used = self.done.contains(&key);
            return Ok(World { over: true, used, ..World::default() });
        }
        self.silent.remove(&key);
        self.hear(key, now);
        if request.leaves {
            self.leave(key);
            return Ok(World::default());
        }
        if let Some(seat) = request.of {
            self.seats.insert(key, seat);
        }
        let awaits = self.awaits(now);
        let group = match &mut self.group {
            Some(group) => group,
            None if !self.silent.is_empty() && now < self.silent_until => {
                return Ok(World::default());
            }
            none => none.insert(Group::new(request, &self.seats)?),
        };
        Ok(group.meet(key, request, awaits, now))
    }
}

impl Group {
    /// Goes on in the newest world that a run is in.
    fn new(request: &Meet, seats: &BTreeMap<RunKey, Seat>) -> Result<Self, String> {
        let limits = WorldLimits {
            min: request.min,
            max: request.max,
            unit: request.unit,
            first_ms: request.wait_ms,
            gather_ms: GATHER_MS,
        };
        let newest = seats.values().max_by_key(|seat| seat.generation).copied();
        let newest = newest.unwrap_or_default();
        let is_newest = |(_, seat): &(&RunKey, &Seat)| seat.generation == newest.generation;
        let mut runs: Vec<_> = seats.iter().filter(is_newest).collect();
        runs.sort_by_key(|(_, seat)| seat.rank);
        let runs: Vec<_> = runs.into_iter().map(|(key, _)| *key).collect();
        let world = elastic::World {
            generation: newest.generation,
            members: (0..).map(WorkerId).take(runs.len()).collect(),
        };
        let is_whole = runs.len() == newest.size as usize;
        let rendezvous = Rendezvous::resume(limits, world, is_whole);
        let rendezvous = rendezvous.map_err(|error| error.to_string())?;
        Ok(Self { rendezvous, runs, arrived: BTreeMap::new(), store: None, complete: None })
    }

    fn leave(&mut self, key: RunKey) {
        if let Some(id) = self.id(key) {
            self.rendezvous.leave(id);
        }
        self.arrived.remove(&key);
        let is_void =
            |complete: &mut Complete| !complete.is_known && complete.members.contains(&key);
        self.complete.take_if(is_void);
    }

    /// `awaits`: the world does not change yet.
    fn meet(&mut self, key: RunKey, request: &Meet, awaits: bool, now: Instant) -> World {
        let before = request.of.map_or(0, |seat| seat.generation);
        if request.arrives {
            // It may have begun before the world changed again: all others of that world are on
            // their way.
            if let Some(world) = self.completed(key, before) {
                return world;
            }
            let id = self.id(key).unwrap_or_else(|| self.add(key));
            if before == self.rendezvous.world().generation {
                self.rendezvous.renew(id);
            }
            self.rendezvous.join(id, now);
        }
        if awaits {
            let world = self.rendezvous.world();
            let (generation, size) = (world.generation, size(&world.members));
            return World { generation, size, changed: generation != before, ..World::default() };
        }
        self.rendezvous.turn(now);
        if request.arrives {
            self.arrive(key, request);
            if let Some(world) = self.completed(key, before) {
                return world;
            }
        }
        let world = self.rendezvous.world();
        World {
            generation: world.generation,
            rank: self.id(key).and_then(|id| rank(&world.members, id)),
            size: size(&world.members),
            changed: world.generation != before,
            ..World::default()
        }
    }

    /// A member waits for the others; the first of them has opened the store before that.
    fn arrive(&mut self, key: RunKey, request: &Meet) {
        let world = self.rendezvous.world();
        let generation = world.generation;
        let Some(rank) = self.id(key).and_then(|id| rank(&world.members, id)) else { return };
        if let Some(store) = request.store.as_ref().filter(|store| store.generation == generation)
            && rank == 0
        {
            self.store = Some((generation, store.address.clone()));
        }
        let is_open = |store: &&(u64, String)| store.0 == generation;
        let store = self.store.as_ref().filter(is_open).map(|(_, address)| address.clone());
        if rank > 0 || store.is_some() {
            self.arrived.insert(key, generation);
        }
        let members: Vec<_> = world.members.iter().map(|id| self.runs[id.0 as usize]).collect();
        let has_arrived = |key: &RunKey| self.arrived.get(key) == Some(&generation);
        let is_new = self.complete.as_ref().is_none_or(|now| now.generation < generation);
        if let Some(store) = store.filter(|_| is_new && members.iter().all(has_arrived)) {
            self.complete = Some(Complete { generation, members, store, is_known: false });
        }
    }

    /// The newest world in which all have arrived, for a member of it that does not know that yet.
    fn completed(&mut self, key: RunKey, before: u64) -> Option<World> {
        let complete = self.complete.as_mut().filter(|complete| before < complete.generation)?;
        let rank = complete.members.iter().position(|member| *member == key)?;
        complete.is_known = true;
        Some(World {
            generation: complete.generation,
            rank: u32::try_from(rank).ok(),
            size: size(&complete.members),
            changed: true,
            store: Some(complete.store.clone()),
            ..World::default()
        })
    }

    fn id(&self, key: RunKey) -> Option<WorkerId> {
        let number = self.runs.iter().position(|run| *run == key)?;
        u32::try_from(number).ok().map(WorkerId)
    }

    fn add(&mut self, key: RunKey) -> WorkerId {
        self.runs.push(key);
        WorkerId(size(&self.runs) - 1)
    }
}

fn rank(members: &[WorkerId], id: WorkerId) -> Option<u32> {
    u32::try_from(members.iter().position(|member| *member == id)?).ok()
}

fn size<T>(members: &[T]) -> u32 {
    u32::try_from(members.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
