//! Replies about a job to workers, servers and people. Owns: these messages. Does not know about:
//! when they are sent.

use elastic::{Epochs, Job, WorkerId};
use elastic_proto::v1::{
    AttendReply, JobPhase, Member, StatusReply, WatchReply, WorkerStatus, World,
};

use crate::desk::Desk;
use crate::entry::Parting;

fn parting((worker_id, parting): &(u32, Parting)) -> elastic_proto::v1::Parting {
    let Parting { pod, unreached, leaves, for_ms } = parting.clone();
    elastic_proto::v1::Parting { worker_id: *worker_id, pod, unreached, leaves, for_ms }
}

impl Desk {
    /// Addresses of all parameter servers, or nothing.
    pub(crate) fn servers(&self) -> Vec<String> {
        let servers = &self.state.servers;
        if servers.len() < self.state.config.parameter_servers as usize {
            return Vec::new();
        }
        servers.values().map(|server| server.address.clone()).collect()
    }

    fn rank(&self, worker: u32) -> Option<u32> {
        let world = self.state.world.as_ref()?;
        let rank = world.members.iter().position(|member| *member == WorkerId(worker))?;
        u32::try_from(rank).ok()
    }

    pub(crate) fn watch_reply(&self, worker: u32) -> WatchReply {
        let known = self.state.workers.get(&worker);
        let leaves_at = known.and_then(|worker| worker.leaves_at);
        WatchReply {
            revision: self.revision,
            model_generation: self.state.generation,
            parameter_servers: self.servers(),
            world: self.rank(worker).and_then(|rank| self.world(rank)),
            // A worker that was given up has to leave too.
            leaving: leaves_at.is_some() || known.is_none(),
            leave_within_ms: leaves_at.map(|at| at.since_ms(self.now())).unwrap_or_default(),
            ended: self.state.is_over(),
            parted: known.is_some_and(|worker| worker.is_parted),
        }
    }

    fn world(&self, rank: u32) -> Option<World> {
        let world = self.state.world.as_ref()?;
        let member = |member: &WorkerId| Member {
            worker_id: member.0,
            host: self.state.workers.get(&member.0).map(|w| w.host.clone()).unwrap_or_default(),
        };
        let members: Vec<_> = world.members.iter().map(member).collect();
        let size = u32::try_from(members.len()).ok()?;
        Some(World { generation: world.generation, rank, size, members })
    }

    pub(crate) fn attend_reply(&self, server: u32) -> AttendReply {
        let state = &self.state;
        let unsettled = state.job.as_ref().map(Job::unsettled).unwrap_or_default();
        AttendReply {
            revision: self.revision,
            job_id: state.job_id.clone(),
            model_generation: state.generation,
            checkpoint_version: state.restored,
            parameter_servers: self.servers(),
            workers: state.workers.keys().copied().collect(),
            workers_numbered: state.numbered,
            settings: Some(state.config.for_servers()),
            ended: state.is_over() && (server == 0 || state.servers_done),
            unsettled_workers: match server {
                0 => unsettled.iter().map(|worker| worker.0).collect(),
                _ => Vec::new(),
            },
        }
    }

    pub(crate) fn status(&self) -> StatusReply {
        let state = &self.state;
        let progress = state.job.as_ref().map(Job::progress).unwrap_or_default();
        let failure = state.failure();
        let phase = match (&failure, &state.job) {
            (Some(_), _) => JobPhase::Failed,
            (None, _) if state.has_ended() => JobPhase::Succeeded,
            (None, Some(_)) => JobPhase::Running,
            (None, None) => JobPhase::Pending,
        };
        let whole = (state.measured.records > 0).then(|| state.measured.clone());
        StatusReply {
            job_name: state.config.name.clone(),
            phase: phase.into(),
            message: failure.unwrap_or_default(),
            model_generation: state.generation,
            model_version: state.version,
            checkpoint_version: state.checkpoints.last().copied().unwrap_or_default(),
            epoch: state.job.as_ref().map(Job::epoch).unwrap_or_default(),
            records: progress.records,
            records_total: self.records_total(),
            bad_records: progress.bad_records,
            tasks_finished: progress.tasks,
            tasks_handed_back: progress.handed_back,
            tasks_lost: progress.lost,
            tasks_failed: progress.failed,
            workers: state.workers.keys().map(|worker| self.worker_status(*worker)).collect(),
            evaluations: state.evaluations.iter().cloned().chain(whole).collect(),
            exec_counters: state.counters.clone(),
            world_generation: state.world.as_ref().map_or(0, |world| world.generation),
            saved: self.saved,
            gradients_accepted: self.gradients.0,
            gradients_rejected: self.gradients.1,
            applied_records: self.applied_records,
            rows: self.rows.values().sum(),
            partings: state.partings.iter().map(parting).collect(),
        }
    }

    fn records_total(&self) -> u64 {
        let Some(job) = &self.state.job else { return 0 };
        let plan = &job.training().plan;
        let Epochs::Count(epochs) = plan.epochs else { return plan.records_max.unwrap_or(0) };
        let all = plan.shards.iter().map(|shard| shard.count).sum::<u64>();
        let all = all.saturating_mul(u64::from(epochs));
        plan.records_max.map_or(all, |max| max.min(all))
    }

    fn worker_status(&self, worker_id: u32) -> WorkerStatus {
        let worker = self.state.workers.get(&worker_id);
        let job = self.state.job.as_ref();
        let tasks = job.into_iter().flat_map(|job| job.held_by(WorkerId(worker_id)));
        let seen = self.seen.get(&worker_id).copied().unwrap_or(self.now());
        WorkerStatus {
            worker_id,
            pod: worker.map(|worker| worker.pod.clone()).unwrap_or_default(),
            host: worker.map(|worker| worker.host.clone()).unwrap_or_default(),
            rank: self.rank(worker_id),
            task_ids: tasks.map(|task| task.id.0).collect(),
            leaving: worker.is_some_and(|worker| worker.leaves_at.is_some()),
            report: self.reports.get(&worker_id).copied(),
            silent_ms: self.now().since_ms(seen),
        }
    }
}
