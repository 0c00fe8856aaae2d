//! Node pools: creation, settings and deletion. Owns: that every node is in one pool, the oldest
//! whose label it carries or else `default`; and that each pool has queues of its own as soon as
//! there is a second one. Does not know about: the division of quotas inside a pool.
//!
//! A pool is stored as an object; its effects on the scheduler are updated here after each change.

use std::collections::BTreeMap;

use command::{NewId, NewObject, PoolChange, Subject, admission};
use model::{NodeId, POOL_DEFAULT, PoolId};
use sched::Placement;

use crate::Error;
use crate::pools::{KIND, POOL_DEFAULT_ID, check_settings, unreadable};
use crate::state::State;
use spec::{PoolFractions, PoolSettings, PoolSpec, TimeSlicing};
use view::{Object, Scope};

/// Maximum number of pools.
const POOLS_MAX: usize = 100;
/// Advice that frees a pool named by one project or department, or by several of them.
const OFF_DEFAULTS: [&str; 2] =
    ["take the pool off its defaultNodePools", "take the pool off their defaultNodePools"];

/// State after a start.
impl State {
    /// Restores stored pools, and the default one. Nodes are added later.
    pub(crate) fn add_pools(&mut self) -> Result<(), Error> {
        if self.documents.get(KIND, POOL_DEFAULT_ID).is_none() {
            let at = self.cluster_created_at;
            self.documents.add_built_in(Object {
                seq: 0,
                kind: KIND.into(),
                id: POOL_DEFAULT_ID.to_owned(),
                scope: Scope::Cluster,
                owner: String::new(),
                name: POOL_DEFAULT.to_owned(),
                body: serde_json::to_value(PoolSettings::new(None)).map_err(unreadable)?,
                created_at: at,
                created_by: crate::org::SYSTEM.to_owned(),
                updated_at: at,
                updated_by: crate::org::SYSTEM.to_owned(),
            });
        }
        for object in self.documents.all(KIND) {
            self.pools.add(object, &mut self.cluster)?;
        }
        Ok(())
    }
}

/// Members and settings of pools.
impl State {
    /// Assigns every node to its pool, after a change of pools.
    fn settle_pools(&mut self) -> Result<(), Error> {
        let ids: Vec<_> = self.nodes.iter().map(|node| node.id).collect();
        ids.into_iter().for_each(|id| self.settle_node(id));
        self.outbox.show_nodes();
        self.settle_shares()?;
        // Workloads show the pool they are in, and whether they are above the quota there.
        self.outbox.show(self.workloads.in_model());
        self.outbox.recount(self.org.project_ids());
        Ok(())
    }

    /// Division of the compute time of GPUs on a node; `None` if its pool does not set it.
    pub(crate) fn time_slicing_on(&self, node: NodeId) -> Option<TimeSlicing> {
        self.settings_on(node)?.time_slicing
    }

    /// Enforcement of parts of GPUs on a node; `None` if its pool does not set it.
    pub(crate) fn fractions_on(&self, node: NodeId) -> Option<PoolFractions> {
        self.settings_on(node)?.fractions
    }

    fn settings_on(&self, node: NodeId) -> Option<&PoolSettings> {
        let pool = self.cluster.nodes().get(node)?.pool;
        Some(&self.pools.iter().find(|known| known.model == pool)?.settings)
    }

    /// Placement orders of the pools where they differ from `usual`.
    pub fn placements(&self, usual: Placement) -> BTreeMap<PoolId, Placement> {
        self.pools.placements(usual)
    }
}

/// Commands for pools.
impl State {
    pub(crate) fn create_pool(&mut self, by: String, spec: PoolSpec) -> Result<Subject, Error> {
        let PoolSpec { name, settings } = spec;
        units::check_name(&name).map_err(|error| Error::invalid("name", error.to_string()))?;
        check_settings(&settings)?;
        settings.topology.iter().try_for_each(|id| self.topology(id).map(|_| ()))?;
        if self.pools.len() >= POOLS_MAX {
            let why = format!("there are {POOLS_MAX} node pools, which is the most; delete some");
            return Err(Error::conflict(why));
        }
        self.pools.label_is_free(&settings, None)?;
        let body = serde_json::to_value(&settings).map_err(unreadable)?;
        let (owner, scope) = (String::new(), Scope::Cluster);
        let new = NewObject { kind: KIND, id: NewId::Any, scope, owner, name, body, newest: None };
        let object = self.create_object(by, new)?;
        self.pools.add(object.clone(), &mut self.cluster)?;
        self.settle_pools()?;
        Ok(Subject::Object(object))
    }

    pub(crate) fn update_pool(
        &mut self,
        by: String,
        id: &str,
        change: PoolChange,
    ) -> Result<Subject, Error> {
        let mut settings = change.made_to(self.pools.get(id)?.settings.clone());
        match &mut settings.label {
            Some((key, value)) => {
                change.label_key.into_iter().for_each(|new| *key = new);
                change.label_value.into_iter().for_each(|new| *value = new);
            }
            None if change.label_key.is_some() || change.label_value.is_some() => {
                let why =
                    "node pool `default` has no label: it has the nodes that no other pool has";
                return Err(Error::invalid("label", why));
            }
            None => {}
        }
        check_settings(&settings)?;
        settings.topology.iter().try_for_each(|id| self.topology(id).map(|_| ()))?;
        self.pools.label_is_free(&settings, Some(id))?;
        let body = serde_json::to_value(&settings).map_err(unreadable)?;
        let before = self.documents.known(KIND, id)?;
        let object = self.update_object(by, &before, (before.name.clone(), body))?;
        self.pools.change(&object, settings);
        self.settle_pools()?;
        Ok(Subject::Object(object))
    }

    /// Deletes a pool that no project or workload names. Its nodes move to the other pools whose
    /// labels they carry, or to `default`; running pods continue, and are charged there.
    pub(crate) fn delete_pool(&mut self, by: &str, id: &str) -> Result<Subject, Error> {
        let pool = self.pools.get(id)?;
        let name = pool.name().to_owned();
        if pool.model == PoolId::DEFAULT {
            let why =
                "node pool `default` cannot be deleted: it has the nodes that no other pool has";
            return Err(Error::conflict(why));
        }
        self.pool_is_unnamed(&name)?;
        let object = self.delete_object(by, KIND, id)?;
        self.pools.remove(id);
        self.org.forget_pool(id, &mut self.outbox);
        self.settle_pools()?;
        self.cluster.remove_pool(&name).map_err(unreadable)?;
        Ok(Subject::Object(object))
    }

    fn pool_is_unnamed(&self, name: &str) -> Result<(), Error> {
        let names = |pools: &[String]| pools.iter().any(|pool| pool == name);
        // An ended workload no longer counts, unless some of it is still in the model.
        let living = self.workloads.values().filter(|w| !w.is_over() || w.model.is_some());
        let workloads: Vec<_> = living
            .filter(|w| names(&w.spec.node_pools))
            .map(|w| self.workloads.known_name(w))
            .collect();
        let projects = self.org.projects().filter(|project| names(&project.unit.default_pools));
        let projects: Vec<_> = projects.map(|project| project.unit.name.as_str()).collect();
        let departments = self.org.departments().filter(|one| names(&one.unit.default_pools));
        let departments: Vec<_> = departments.map(|one| one.unit.name.as_str()).collect();
        for (what, who, cure) in [
            ("workload", workloads, ["delete it", "delete them"]),
            ("project", projects, OFF_DEFAULTS),
            ("department", departments, OFF_DEFAULTS),
        ] {
            if !who.is_empty() {
                let cure = cure[usize::from(who.len() > 1)];
                let some = admission::some_of(who.iter().copied());
                return Err(Error::conflict(format!(
                    "node pool `{name}` is named by {} ({some}); {cure} first",
                    units::counted(who.len(), what)
                )));
            }
        }
        Ok(())
    }
}
