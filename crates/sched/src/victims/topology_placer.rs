//! Making room in one domain for pods with topology constraints. Owns: an upper bound of the room
//! of a node, and the rollback of an attempt in one domain.

use model::{NodeId, PodId, PodMismatch};
use units::Resources;

use super::{NodeCostCache, PreemptionAttempt, Rejections};
use crate::place::{self, PodRequirements};
use crate::session::Session;
use crate::session::topology::Placer;

/// Places the pods of an attempt where others have to make room.
pub(super) struct TopologyPlacer<'a, 'r> {
    attempt: &'a mut PreemptionAttempt<'r>,
    cost_cache: &'a mut NodeCostCache,
    rejections: Rejections,
    /// State of the attempt at the beginning of each nested attempt.
    begun: Vec<(usize, Resources, Rejections)>,
}

impl<'a, 'r> TopologyPlacer<'a, 'r> {
    pub(super) fn new(
        attempt: &'a mut PreemptionAttempt<'r>,
        cost_cache: &'a mut NodeCostCache,
    ) -> Self {
        Self { attempt, cost_cache, rejections: Rejections::default(), begun: Vec::new() }
    }
}

impl Placer for TopologyPlacer<'_, '_> {
    fn ask(&self, s: &Session<'_>, pod: PodId) -> PodRequirements {
        s.requirements(pod, self.attempt.need.gpus)
    }

    fn room(&self, s: &Session<'_>, ask: PodRequirements, node: NodeId) -> (u32, u32) {
        if !s.cluster.allows(ask.constraints, node) {
            return (0, 0);
        }
        let row = &s.cluster.nodes()[node];
        let mut host = row.free(false);
        let mut pods = u64::from(row.pods_max.saturating_sub(row.pods_committed));
        let most = place::most_pods(s.cluster, ask, u32::MAX);
        let lets_in = s.cluster.check_pods(ask.constraints, node, false);
        if lets_in == Err(PodMismatch::Affinity) {
            return (0, 0);
        }
        let devices = row.gpus.iter().map(|gpu| (gpu, gpu.free_millis(false)));
        let mut devices: Vec<_> = devices.collect();
        let free = match lets_in {
            Ok(()) => model::fitting(ask.request, host, pods.min(most), devices.iter().copied()),
            Err(_) => 0,
        };
        for &pod in &row.pods {
            let Some(held) = s.cluster.pods()[pod].binding.effective() else { continue };
            let victim = s.cluster.pods()[pod].workload;
            let own = victim == self.attempt.need.id;
            if held.node != node
                || own
                || !self.attempt.rule.is_victim(s, self.attempt.need.id, victim)
            {
                continue;
            }
            host += Resources { gpu_millis: 0, ..s.cluster.amounts(pod, held) };
            pods += 1;
            for share in &held.devices {
                let (gpu, free) = &mut devices[share.gpu as usize];
                *free = (*free + gpu.taken_by(share.millis)).min(gpu.capacity_millis());
            }
        }
        (free, model::fitting(ask.request, host, pods.min(most), devices.into_iter()))
    }

    fn effort_first(&self) -> bool {
        true
    }

    fn place(&mut self, s: &mut Session<'_>, pods: &[PodId], among: Option<&[NodeId]>) -> bool {
        let Some(&first) = pods.first() else { return true };
        self.attempt.need.ask = self.ask(s, first);
        let mut own;
        // Nodes are ruled out by pods of others, so these costs are not cached.
        let kept = !s.cluster.minds_pods(self.attempt.need.ask.constraints);
        let costs = match among {
            None if kept => self.cost_cache.of(s, self.attempt),
            _ => {
                own = self.cost_cache.among(s, self.attempt, among);
                &mut own
            }
        };
        pods.iter().all(|&pod| self.attempt.place_one(s, costs, pod, &mut self.rejections))
    }

    fn concludes(&mut self, s: &mut Session<'_>) -> bool {
        let PreemptionAttempt { rule, need, held_before, .. } = &*self.attempt;
        rule.fair_outcome(s, need.id, *held_before) && self.attempt.go_on(s)
    }

    fn begin(&mut self) {
        let PreemptionAttempt { need, givers, .. } = &*self.attempt;
        self.begun.push((givers.len(), need.asked, self.rejections.clone()));
    }

    fn end(&mut self, s: &Session<'_>, kept: bool) {
        let Some((givers, asked, rejections)) = self.begun.pop().filter(|_| !kept) else { return };
        for (victim, _) in self.attempt.givers.drain(givers..) {
            self.attempt.causes.remove(&victim);
        }
        self.attempt.need.asked = asked;
        self.rejections = rejections;
        self.cost_cache.forget(s, &self.attempt.need);
    }
}
