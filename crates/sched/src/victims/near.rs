//! Making room in one place: for pods that belong close together only the nodes of one domain
//! count. Owns: what a node could give at the most, and taking an attempt in one domain back.

use model::{NodeId, PodId, PodMismatch};
use units::Resources;

use super::{Deal, Market, Markets, Refused};
use crate::place::{self, Ask};
use crate::session::Session;
use crate::topology::Placer;

/// Gives the pods of a deal places that others have to make room on.
pub(super) struct Bidder<'a, 'r> {
    deal: &'a mut Deal<'r>,
    markets: &'a mut Markets,
    refused: Refused,
    /// How the deal stood when each attempt that is under way began.
    begun: Vec<(usize, Resources, Refused)>,
}

impl<'a, 'r> Bidder<'a, 'r> {
    pub(super) fn new(deal: &'a mut Deal<'r>, markets: &'a mut Markets) -> Self {
        Self { deal, markets, refused: Refused::default(), begun: Vec::new() }
    }
}

impl Placer for Bidder<'_, '_> {
    fn ask(&self, s: &Session<'_>, pod: PodId) -> Ask {
        Ask::of(s, pod, self.deal.need.gpus)
    }

    fn room(&self, s: &Session<'_>, ask: Ask, node: NodeId) -> (u32, u32) {
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
            Ok(()) => place::fitting(ask.request, host, pods.min(most), devices.iter().copied()),
            Err(_) => 0,
        };
        for &pod in &row.pods {
            let Some(held) = s.cluster.pods()[pod].binding.effective() else { continue };
            let victim = s.cluster.pods()[pod].workload;
            let own = victim == self.deal.need.id;
            if held.node != node
                || own
                || !self.deal.rule.may_be_asked(s, self.deal.need.id, victim)
            {
                continue;
            }
            host += Resources { gpu_millis: 0, ..s.cluster.amounts(pod, held) };
            pods += 1;
            for share in &held.devices {
                let (gpu, free) = &mut devices[share.gpu as usize];
                *free = (*free + share.millis).min(gpu.capacity_millis());
            }
        }
        (free, place::fitting(ask.request, host, pods.min(most), devices.into_iter()))
    }

    fn effort_first(&self) -> bool {
        true
    }

    fn place(&mut self, s: &mut Session<'_>, pods: &[PodId], among: Option<&[NodeId]>) -> bool {
        let Some(&first) = pods.first() else { return true };
        self.deal.need.ask = self.ask(s, first);
        let mut own;
        // What others do changes which nodes come into question: such prices are not kept.
        let kept = !s.cluster.minds_pods(self.deal.need.ask.constraints);
        let market = match among {
            None if kept => self.markets.of(s, self.deal),
            None => {
                own = Market::new(s, self.deal, s.cluster.nodes().ids());
                &mut own
            }
            Some(nodes) => {
                own = Market::new(s, self.deal, nodes.iter().copied());
                &mut own
            }
        };
        pods.iter().all(|&pod| self.deal.place_one(s, market, pod, &mut self.refused))
    }

    fn concludes(&mut self, s: &mut Session<'_>) -> bool {
        let Deal { rule, need, held_before, .. } = &*self.deal;
        rule.fair_outcome(s, need.id, *held_before) && self.deal.go_on(s)
    }

    fn begin(&mut self) {
        let Deal { need, givers, .. } = &*self.deal;
        self.begun.push((givers.len(), need.asked, self.refused.clone()));
    }

    fn end(&mut self, s: &Session<'_>, kept: bool) {
        let Some((givers, asked, refused)) = self.begun.pop().filter(|_| !kept) else { return };
        for (victim, _) in self.deal.givers.drain(givers..) {
            self.deal.causes.remove(&victim);
        }
        self.deal.need.asked = asked;
        self.refused = refused;
        self.markets.forget(s, &self.deal.need);
    }
}
