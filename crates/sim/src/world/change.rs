//! What happens to a world: the actions of a step. Owns: what each does to the model. Refuses to
//! know: decisions.

use std::collections::BTreeSet;

use model::{Placement, PodBinding, WorkloadId};

use super::{Simulation, convert};
use crate::Error;
use crate::scenario::{At, Gone, OneOrMany, Place, QuotaChange, State, Step};

/// Whether the scheduler has a say after an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    /// It is asked as the scenario says.
    Schedule,
    /// So many decisions, and no more.
    Cycles(u32, Vec<sched::Action>),
    /// Time passes up to this instant.
    Until(units::Instant),
    /// Nothing happened.
    Nothing,
}

impl Simulation {
    /// Carries out the action of a step.
    pub(super) fn act(&mut self, step: &At<Step>) -> Result<After, Error> {
        let given = actions(step);
        if given.len() > 1 {
            return Err(
                step.fault(format!("a step has one action; this one has {}", given.join(", ")))
            );
        }
        if let Some(workloads) = step.submitted() {
            for workload in &workloads {
                self.add_workload(workload)?;
            }
            return Ok(After::Schedule);
        }
        if let Some(node) = &step.add_node {
            self.add_node(node)?;
            return Ok(After::Schedule);
        }
        let fault = |fault| step.fault(fault);
        if let Some(cycles) = &step.cycles {
            let own = || Ok(self.policy.actions.clone());
            let given = |wire: &Vec<_>| convert::actions(self.policy.profile, wire);
            let actions = cycles.actions.as_ref().map_or_else(own, given);
            return Ok(After::Cycles(cycles.count, actions.map_err(|e| cycles.fault(e))?));
        }
        if let Some(span) = step.advance {
            return Ok(After::Until(self.now.plus_ms(span.0)));
        }
        match &step.gone {
            Some(Gone::All) => self.vacate(|_| true),
            Some(Gone::Of(names)) => {
                let jobs = self.jobs_named(names).map_err(fault)?;
                self.vacate(|job| jobs.contains(&job));
            }
            None => {}
        }
        if let Some(change) = &step.quota {
            self.change_quota(change).map_err(fault)?;
        }
        self.act_on_jobs(step).map_err(fault)?;
        self.act_on_nodes(step).map_err(fault)?;
        Ok(if given.is_empty() { After::Nothing } else { After::Schedule })
    }

    fn act_on_jobs(&mut self, step: &Step) -> Result<(), String> {
        type Change = fn(&mut Simulation, usize) -> Result<(), String>;
        let changes: [(&Option<OneOrMany<String>>, Change); 6] = [
            (&step.delete, Self::delete),
            (&step.finish, Self::finish),
            (&step.suspend, Self::suspend),
            (&step.resume, Self::resume),
            (&step.ungate, Self::ungate),
            (&step.fail, Self::fail),
        ];
        for (names, change) in changes {
            let Some(names) = names else { continue };
            for job in self.jobs_named(names)? {
                change(self, job)?;
            }
        }
        Ok(())
    }

    fn act_on_nodes(&mut self, step: &Step) -> Result<(), String> {
        for (names, schedulable) in [(&step.cordon, false), (&step.uncordon, true)] {
            for name in names.iter().flat_map(OneOrMany::as_slice) {
                let node = self.node(name)?;
                self.cluster.set_schedulable(node, schedulable);
            }
        }
        for name in step.drain.iter().flat_map(OneOrMany::as_slice) {
            let node = self.node(name)?;
            self.cluster.drain(node);
        }
        for name in step.remove_node.iter().flat_map(OneOrMany::as_slice) {
            self.remove_node(name)?;
        }
        for name in step.lose_node.iter().flat_map(OneOrMany::as_slice) {
            self.lose_node(name)?;
        }
        if let Some(gpus) = &step.lose_gpu {
            self.lose_gpus(gpus)?;
        }
        if let Some(gpus) = &step.return_gpu {
            self.set_in_service(gpus, true)?;
        }
        Ok(())
    }

    /// What runs on a lost GPU is stopped at once; its pods wait again.
    fn lose_gpus(&mut self, gpus: &Place) -> Result<(), String> {
        self.set_in_service(gpus, false)?;
        let id = self.node(&gpus.node)?;
        let lost =
            |place: &Placement| place.node == id && gpus.gpus.iter().any(|&at| place.uses(at));
        let there = self.cluster.nodes()[id].pods.iter().copied();
        let stopped = there.filter(|&pod| {
            let PodBinding { current, releasing, .. } = &self.cluster.pods()[pod].binding;
            !releasing && current.as_ref().is_some_and(lost)
        });
        for pod in stopped.collect::<Vec<_>>() {
            self.cluster.release(pod);
        }
        Ok(())
    }

    pub(super) fn set_in_service(&mut self, of: &Place, in_service: bool) -> Result<(), String> {
        let id = self.node(&of.node)?;
        let count = self.cluster.nodes()[id].gpus.len();
        for &gpu in &of.gpus {
            if gpu as usize >= count {
                return Err(format!("node `{}` has no GPU {gpu}; it has {count}", of.node));
            }
            self.cluster.set_in_service(id, gpu, in_service);
        }
        Ok(())
    }

    fn jobs_named(&self, names: &OneOrMany<String>) -> Result<Vec<usize>, String> {
        names.as_slice().iter().map(|name| self.job(name)).collect()
    }

    pub(super) fn alive(&self, job: usize) -> Result<WorkloadId, String> {
        let row = &self.jobs[job];
        row.model.ok_or_else(|| {
            let how = row.ended.map_or("gone", State::as_str);
            format!("workload `{}` is {how} already", self.label(row))
        })
    }

    pub(super) fn delete(&mut self, job: usize) -> Result<(), String> {
        let id = self.alive(job)?;
        self.want(id, false);
        self.jobs[job].leaving = true;
        self.bury();
        Ok(())
    }

    /// Its processes end by themselves: its places are free at once.
    pub(super) fn finish(&mut self, job: usize) -> Result<(), String> {
        let id = self.alive(job)?;
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, false);
            self.cluster.set_binding(pod, PodBinding::default());
        }
        self.end(id, job, State::Finished);
        Ok(())
    }

    pub(super) fn suspend(&mut self, job: usize) -> Result<(), String> {
        let id = self.alive(job)?;
        self.want(id, false);
        self.jobs[job].suspended = true;
        Ok(())
    }

    pub(super) fn resume(&mut self, job: usize) -> Result<(), String> {
        let id = self.alive(job)?;
        if self.jobs[job].leaving {
            return Err(format!("workload `{}` is being deleted", self.label(&self.jobs[job])));
        }
        self.want(id, true);
        self.jobs[job].suspended = false;
        self.spare_pods(job);
        Ok(())
    }

    fn want(&mut self, id: WorkloadId, wants: bool) {
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, wants);
            if !wants {
                self.cluster.release(pod);
            }
        }
    }

    pub(super) fn change_quota(&mut self, change: &QuotaChange) -> Result<(), String> {
        let id = self.queue(&change.project)?;
        let id = match &change.pool {
            Some(_) if !self.cluster.is_divided() => {
                return Err("no queue has `pools`: a quota is for all of them together".into());
            }
            Some(pool) => self.cluster.queue_in(id, self.pool(pool)?),
            None => id,
        };
        let mut share = self.cluster.queues()[id].share;
        share.quota = convert::amounts(&change.quota, share.quota);
        share.limit = convert::amounts(&change.limit, share.limit);
        share.over_quota_weight = convert::weights(&change.weight, share.over_quota_weight);
        share.priority = change.priority.unwrap_or(share.priority);
        self.cluster.set_share(id, share).map_err(|error| error.to_string())
    }

    /// A node goes away with all that runs on it; its pods wait again. To hear of it a second time
    /// changes nothing.
    pub(crate) fn lose_node(&mut self, name: &str) -> Result<(), String> {
        if self.lost.contains(name) {
            return Ok(());
        }
        let id = self.node(name)?;
        self.cluster.remove_node(id);
        self.nodes.remove(name);
        self.lost.insert(name.to_owned());
        self.bury();
        Ok(())
    }

    /// A node that nothing is on goes away for good.
    fn remove_node(&mut self, name: &str) -> Result<(), String> {
        let id = self.node(name)?;
        let pods = self.cluster.nodes()[id].pods.iter();
        let there: BTreeSet<_> =
            pods.map(|&pod| self.cluster.workload_of(pod).spec.name.as_str()).collect();
        if !there.is_empty() {
            let there = Vec::from_iter(there).join(", ");
            return Err(format!("node `{name}` is still used by {there}; `drain` it first"));
        }
        self.cluster.remove_node(id);
        self.nodes.remove(name);
        Ok(())
    }
}

/// The actions a step has.
pub(crate) fn actions(step: &Step) -> Vec<&'static str> {
    let given = [
        ("submit", step.submit.is_some()),
        ("delete", step.delete.is_some()),
        ("finish", step.finish.is_some()),
        ("suspend", step.suspend.is_some()),
        ("resume", step.resume.is_some()),
        ("ungate", step.ungate.is_some()),
        ("fail", step.fail.is_some()),
        ("quota", step.quota.is_some()),
        ("advance", step.advance.is_some()),
        ("cycles", step.cycles.is_some()),
        ("gone", step.gone.is_some()),
        ("add_node", step.add_node.is_some()),
        ("cordon", step.cordon.is_some()),
        ("uncordon", step.uncordon.is_some()),
        ("drain", step.drain.is_some()),
        ("remove_node", step.remove_node.is_some()),
        ("lose_node", step.lose_node.is_some()),
        ("lose_gpu", step.lose_gpu.is_some()),
        ("return_gpu", step.return_gpu.is_some()),
    ];
    given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect()
}
