//! Topologies of the cluster, and their use by workloads. Owns: that a workload is added only with
//! a valid tree of parts and with topologies that exist.

use crate::{Cluster, Error, PodSetSpec, Topology, TopologyId, WorkloadSpec};

impl Cluster {
    /// Topology with this id.
    #[must_use]
    pub fn topology(&self, id: TopologyId) -> &Topology {
        &self.topologies[id.0 as usize]
    }

    /// Id of the topology of this name.
    #[must_use]
    pub fn topology_named(&self, name: &str) -> Option<TopologyId> {
        let at = self.topologies.iter().position(|topology| topology.name == name)?;
        u32::try_from(at).ok().map(TopologyId)
    }

    /// All topologies.
    #[must_use]
    pub fn topologies(&self) -> &[Topology] {
        &self.topologies
    }

    /// Adds a topology: a name, and the node labels of its levels from coarse to fine.
    ///
    /// # Errors
    /// Another topology has this name, or there is no level.
    pub fn add_topology(&mut self, name: &str, levels: Vec<String>) -> Result<TopologyId, Error> {
        let twice = (1..).zip(&levels).any(|(next, level)| levels[next..].contains(level));
        if levels.is_empty() || twice || self.topology_named(name).is_some() {
            return Err(Error::BadTopology(name.to_owned()));
        }
        let mut topology = Topology::new(name.to_owned(), levels);
        self.nodes.iter().for_each(|(id, node)| topology.update(id, node));
        self.topologies.push(topology);
        self.tracker.touch();
        Ok(TopologyId(u32::try_from(self.topologies.len() - 1).unwrap_or(u32::MAX)))
    }

    /// Forgets the name of a topology; existing constraints stay in force.
    pub fn retire_topology(&mut self, name: &str) {
        let named = self.topologies.iter_mut().find(|topology| topology.name == name);
        if let Some(topology) = named.filter(|_| !name.is_empty()) {
            topology.name.clear();
            self.tracker.touch();
        }
    }

    fn knows_topologies(&self, spec: &WorkloadSpec) -> bool {
        let groups = spec.groups.iter().map(|group| group.topology);
        let sets = spec.pod_sets.iter().map(|set| set.topology);
        groups.chain(sets).chain([spec.topology]).flatten().all(|constraint| {
            let topology = self.topologies.get(constraint.topology.0 as usize);
            let levels = topology.map_or(0, |topology| topology.levels.len());
            constraint.required.iter().chain(&constraint.preferred).all(|&level| level < levels)
        })
    }

    /// Checks the pod sets, the groups and the topology constraints of a workload.
    pub(crate) fn check_parts(&self, spec: &WorkloadSpec) -> Result<(), Error> {
        let sound = |set: &PodSetSpec| set.pods > 0 && set.pods_min <= set.pods;
        if spec.pods_min() == 0 || !spec.pod_sets.iter().all(sound) {
            return Err(Error::BadGang(spec.name.clone()));
        }
        if spec.elastic && spec.pod_sets.len() > 1 {
            return Err(Error::ElasticPodSets(spec.name.clone()));
        }
        if !spec.is_tree() {
            return Err(Error::BadGroups(spec.name.clone()));
        }
        if !self.knows_topologies(spec) {
            return Err(Error::NoSuchTopology(spec.name.clone()));
        }
        Ok(())
    }
}
