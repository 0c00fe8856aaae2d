//! Node pools: which there are, which nodes each takes, and how each is used. Owns: that every node
//! is in one pool, the oldest whose label it carries or else `default`; and that each pool has
//! queues of its own as soon as there is a second one. Refuses to know: how quotas are divided
//! inside a pool.
//!
//! A pool is kept as an object; what it means for the scheduler is settled here after each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{HOST_LABEL, POOL_DEFAULT, POOL_LABEL, PoolId};
use records::NodeBody;
use sched::Placement;

use crate::command::Subject;
use crate::documents::{NewId, NewObject, Object, Scope};
use crate::pools::{
    KIND, POOL_DEFAULT_ID, Pool, PoolChange, PoolSettings, PoolSpec, body, check_label,
    check_settings, settings, unreadable,
};
use crate::state::State;
use crate::{Error, admission};

/// Labels that nodes were given while the server ran; an object for each node.
const LABELS: &str = "node";
/// Most pools.
const POOLS_MAX: usize = 100;

/// The state after a start.
impl State {
    /// Takes over the pools that are stored, and the one that is always there. Nodes come later.
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
                body: body(&PoolSettings::new(None))?,
                created_at: at,
                created_by: crate::org::SYSTEM.to_owned(),
                updated_at: at,
                updated_by: crate::org::SYSTEM.to_owned(),
            });
        }
        for object in self.documents.all(KIND) {
            self.add_pool(object)?;
        }
        Ok(())
    }

    fn add_pool(&mut self, object: Arc<Object>) -> Result<(), Error> {
        let settings = settings(&object.body)?;
        let model = self.cluster.add_pool(&object.name);
        if model != PoolId::DEFAULT {
            self.cluster.divide_by_pool();
        }
        self.pools.push(Pool { object, settings, model });
        Ok(())
    }

    /// Labels that a node was given while the server ran.
    ///
    /// # Errors
    /// What is stored cannot be understood.
    pub(crate) fn labels_given(&self, node: &str) -> Result<BTreeMap<String, String>, Error> {
        let Some(given) = self.labelled(node) else { return Ok(BTreeMap::new()) };
        let body = serde_json::from_value(given.body.clone()).map_err(unreadable)?;
        let NodeBody { labels } = body;
        Ok(labels)
    }

    /// What keeps the labels that were given to a node.
    fn labelled(&self, node: &str) -> Option<&Arc<Object>> {
        self.documents.shelf(LABELS)?.values().find(|object| object.name == node)
    }
}

/// What is in which pool.
impl State {
    /// The pool with this id.
    pub(crate) fn pool(&self, id: &str) -> Result<&Pool, Error> {
        self.pools.iter().find(|pool| pool.id() == id).ok_or_else(|| Error::NotFound {
            what: "node pool",
            name: id.to_owned(),
            hint: "see GET /api/v1/node-pools".to_owned(),
        })
    }

    /// Refuses a pool of another name than those there are, or one twice.
    pub(crate) fn check_pool_names(
        &self,
        field: &'static str,
        names: &[String],
    ) -> Result<(), Error> {
        let known = |name: &String| self.pools.iter().any(|pool| pool.name() == name);
        if let Some(name) = names.iter().find(|name| !known(name)) {
            let all: Vec<_> = self.pools.iter().map(Pool::name).collect();
            let why = format!(
                "{field}: there is no node pool `{}`; there are {}",
                units::shown(name),
                all.join(", ")
            );
            return Err(Error::invalid(field, why));
        }
        let why = |name| Err(Error::invalid(field, format!("{field}: {name} is there twice")));
        admission::twice(names).map_or(Ok(()), why)
    }

    /// The pool of a node with these labels: the oldest whose label it carries.
    fn pool_for(&self, labels: &BTreeMap<String, String>) -> Option<&Pool> {
        let takes = |pool: &&Pool| {
            let label = pool.settings.label.as_ref();
            label.is_some_and(|(key, value)| labels.get(key) == Some(value))
        };
        self.pools.iter().find(takes).or_else(|| self.pools.first())
    }

    /// The labels of a node as the model gets them, and the id of its pool.
    pub(crate) fn labels_in_model(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> (BTreeMap<String, String>, String) {
        let mut labels = labels.clone();
        labels.remove(POOL_LABEL);
        let Some(pool) = self.pool_for(&labels) else { return (labels, String::new()) };
        if pool.model != PoolId::DEFAULT {
            labels.insert(POOL_LABEL.to_owned(), pool.name().to_owned());
        }
        (labels, pool.id().to_owned())
    }

    /// Puts every node into its pool, after pools or labels have changed.
    fn settle_pools(&mut self) -> Result<(), Error> {
        for id in self.nodes.keys().copied().collect::<Vec<_>>() {
            let Some(node) = self.nodes.get(&id) else { continue };
            let (labels, pool) = self.labels_in_model(&node.labels);
            if self.cluster.nodes()[id].labels != labels {
                self.cluster.set_labels(id, labels, Vec::new());
            }
            if let Some(node) = self.nodes.get_mut(&id) {
                node.pool = pool;
            }
        }
        self.outbox.machines = true;
        self.settle_shares()?;
        // Workloads show the pool they are in, and whether they are above the quota there.
        self.outbox.shown.extend(self.workloads.in_model());
        self.outbox.projects.extend(self.org.project_ids());
        Ok(())
    }

    /// How places are taken in pools where that is not the usual way.
    pub fn placements(&self, usual: Placement) -> BTreeMap<PoolId, Placement> {
        let own = self.pools.iter().map(|pool| (pool.model, pool.settings.placement()));
        own.filter(|(_, placement)| *placement != usual).collect()
    }
}

/// What people ask for.
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
        self.label_is_free(&settings, None)?;
        let body = body(&settings)?;
        let (owner, scope) = (String::new(), Scope::Cluster);
        let new = NewObject { kind: KIND, id: NewId::Any, scope, owner, name, body, newest: None };
        let object = self.create_object(by, new)?;
        self.add_pool(object.clone())?;
        self.settle_pools()?;
        Ok(Subject::Object(object))
    }

    /// Two pools of the same label would fight for their nodes.
    fn label_is_free(&self, settings: &PoolSettings, own: Option<&str>) -> Result<(), Error> {
        let same = |pool: &&Pool| {
            settings.label.is_some()
                && pool.settings.label == settings.label
                && own != Some(pool.id())
        };
        match (self.pools.iter().find(same), &settings.label) {
            (Some(pool), Some((key, value))) => Err(Error::conflict(format!(
                "node pool `{}` takes the nodes with label {key}={value} already; choose another",
                pool.name()
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn update_pool(
        &mut self,
        by: String,
        id: &str,
        change: PoolChange,
    ) -> Result<Subject, Error> {
        let mut settings = self.pool(id)?.settings.clone().changed(&change);
        match &mut settings.label {
            Some((key, value)) => {
                change.label_key.into_iter().for_each(|new| *key = new);
                change.label_value.into_iter().for_each(|new| *value = new);
            }
            None if change.label_key.is_some() || change.label_value.is_some() => {
                let why = "node pool `default` has no label: it takes the nodes of no other pool";
                return Err(Error::invalid("label", why));
            }
            None => {}
        }
        check_settings(&settings)?;
        settings.topology.iter().try_for_each(|id| self.topology(id).map(|_| ()))?;
        self.label_is_free(&settings, Some(id))?;
        let body = body(&settings)?;
        let before = self.documents.known(KIND, id)?;
        let object = self.update_object(by, &before, (before.name.clone(), body))?;
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.id() == id) {
            (pool.object, pool.settings) = (object.clone(), settings);
        }
        self.settle_pools()?;
        Ok(Subject::Object(object))
    }

    /// Deletes a pool that nobody names. Its nodes go to the other pools whose labels they carry, or
    /// to `default`; what runs on them runs on, and is charged there.
    pub(crate) fn delete_pool(&mut self, by: &str, id: &str) -> Result<Subject, Error> {
        let pool = self.pool(id)?;
        let name = pool.name().to_owned();
        if pool.model == PoolId::DEFAULT {
            let why = "node pool `default` takes the nodes of no other pool; it cannot be deleted";
            return Err(Error::conflict(why));
        }
        self.pool_is_unnamed(&name)?;
        let object = self.delete_object(by, KIND, id)?;
        self.pools.retain(|pool| pool.id() != id);
        self.org.forget_pool(id, &mut self.outbox);
        self.settle_pools()?;
        self.cluster.remove_pool(&name).map_err(unreadable)?;
        Ok(Subject::Object(object))
    }

    fn pool_is_unnamed(&self, name: &str) -> Result<(), Error> {
        let names = |pools: &[String]| pools.iter().any(|pool| pool == name);
        // What has ended names nothing any more, unless some of it is still there.
        let living = self.workloads.values().filter(|w| !w.is_over() || w.model.is_some());
        let workloads: Vec<_> =
            living.filter(|w| names(&w.spec.node_pools)).map(|w| self.known_name(w)).collect();
        let projects = self.org.projects().filter(|project| names(&project.unit.default_pools));
        let projects: Vec<_> = projects.map(|project| project.unit.name.as_str()).collect();
        let departments = self.org.departments().filter(|one| names(&one.unit.default_pools));
        let departments: Vec<_> = departments.map(|one| one.unit.name.as_str()).collect();
        for (what, who, cure) in [
            ("workload", workloads, "delete them"),
            ("project", projects, "take it off their defaultNodePools"),
            ("department", departments, "take it off their defaultNodePools"),
        ] {
            if !who.is_empty() {
                let some = admission::some_of(who.iter().copied());
                return Err(Error::conflict(format!(
                    "node pool `{name}` is named by {} {what}(s) ({some}); {cure} first",
                    who.len()
                )));
            }
        }
        Ok(())
    }

    /// Gives a node these labels, beside those it came with.
    pub(crate) fn label_node(
        &mut self,
        by: String,
        name: &str,
        labels: BTreeMap<String, String>,
    ) -> Result<Subject, Error> {
        let found = self.nodes.values().find(|node| node.spec.name == name);
        let node = found.ok_or_else(|| Error::no_node(name))?;
        for (key, value) in &labels {
            check_label(key, value)?;
            if key == HOST_LABEL {
                let why = format!("label {key} is the name of the node, and is set by the server");
                return Err(Error::invalid("label", why));
            }
        }
        let id = node.id;
        let all = node.spec.labels_with(labels.clone());
        let body = serde_json::to_value(NodeBody { labels }).map_err(unreadable)?;
        let given = self.labelled(name).map(|given| given.id.clone());
        let object = match given {
            Some(given) => {
                let before = self.documents.known(LABELS, &given)?;
                self.update_object(by, &before, (name.to_owned(), body))?
            }
            None => {
                let (owner, scope) = (String::new(), Scope::Cluster);
                let name = name.to_owned();
                let new = NewObject {
                    kind: LABELS,
                    id: NewId::Any,
                    scope,
                    owner,
                    name,
                    body,
                    newest: None,
                };
                self.create_object(by, new)?
            }
        };
        if let Some(node) = self.nodes.get_mut(&id) {
            node.labels = all;
        }
        self.settle_pools()?;
        Ok(Subject::Object(object))
    }
}
