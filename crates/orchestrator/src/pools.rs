//! Node pools: which there are, which nodes each takes, and how each is used. Owns: that every node
//! is in one pool, the oldest whose label it carries or else `default`; and that each pool has
//! queues of its own as soon as there is a second one. Refuses to know: how quotas are divided
//! inside a pool.
//!
//! A pool is kept as an object; what it means for the scheduler is settled here after each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{HOST_LABEL, POOL_DEFAULT, POOL_LABEL, PoolId};
use records::{Change, NodeBody, PoolBody};
use sched::{Fill, Placement};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::Subject;
use crate::objects::{NewId, NewObject, Object, Scope};
use crate::state::State;
use crate::topologies::TOPOLOGY;
use crate::view::PoolView;
use crate::words::given;
use crate::{Error, admission, persist};

/// What pools are called in the database and the audit log.
pub(crate) const KIND: &str = "node-pool";
/// Labels that nodes were given while the server ran; an object for each node.
const LABELS: &str = "node";
/// Id of the pool of nodes that are in no other.
pub const POOL_DEFAULT_ID: &str = "1";
/// Most pools.
const POOLS_MAX: usize = 100;
/// Longest guaranteed run time: a year.
const RUNTIME_MS_MAX: u64 = 366 * 86_400_000;

/// A node pool to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Name, unique.
    pub name: String,
    /// What it is made of and how it is used.
    pub settings: PoolSettings,
}

/// What a node pool is made of and how it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSettings {
    /// Key and value of the label that its nodes carry; none for `default`.
    pub label: Option<(String, String)>,
    /// How nodes fill up with work that has GPUs.
    #[serde(with = "FillWire")]
    pub gpu: Fill,
    /// How nodes fill up with work that has none.
    #[serde(with = "FillWire")]
    pub cpu: Fill,
    /// How long preemptible work that started there is left alone, in milliseconds.
    pub min_runtime_ms: Option<u64>,
    /// Id of the network topology by which its nodes are near or far.
    pub topology: Option<String>,
}

impl PoolSettings {
    /// A pool of nodes with this label, used as usual.
    #[must_use]
    pub const fn new(label: Option<(String, String)>) -> Self {
        Self { label, gpu: Fill::BinPack, cpu: Fill::BinPack, min_runtime_ms: None, topology: None }
    }

    /// These with a change, except for the label.
    #[must_use]
    pub fn changed(self, change: &PoolChange) -> Self {
        Self {
            label: self.label,
            gpu: change.gpu.unwrap_or(self.gpu),
            cpu: change.cpu.unwrap_or(self.cpu),
            min_runtime_ms: change.min_runtime_ms.unwrap_or(self.min_runtime_ms),
            topology: change.topology.clone().unwrap_or(self.topology),
        }
    }

    /// Which places are taken. Where work with GPUs is spread over nodes, shares are over GPUs.
    const fn placement(&self) -> Placement {
        Placement { gpu: self.gpu, cpu: self.cpu, devices: self.gpu }
    }
}

/// What to change of a node pool. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolChange {
    /// Key of the label.
    pub label_key: Option<String>,
    /// Its value.
    pub label_value: Option<String>,
    /// How nodes fill up with work that has GPUs.
    #[serde(with = "fill_wire")]
    pub gpu: Option<Fill>,
    /// How nodes fill up with work that has none.
    #[serde(with = "fill_wire")]
    pub cpu: Option<Fill>,
    /// How long preemptible work that started there is left alone, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub min_runtime_ms: Option<Option<u64>>,
    /// Id of the network topology.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub topology: Option<Option<String>>,
}

/// How nodes fill up, in documents.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Fill")]
enum FillWire {
    BinPack,
    Spread,
}

/// The same, where it may be left out.
mod fill_wire {
    use sched::Fill;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Wire(#[serde(with = "super::FillWire")] Fill);

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(fill: &Option<Fill>, to: S) -> Result<S::Ok, S::Error> {
        fill.map(Wire).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Fill>, D::Error> {
        Ok(Option::deserialize(from)?.map(|Wire(fill)| fill))
    }
}

const fn fill(spread: bool) -> Fill {
    if spread { Fill::Spread } else { Fill::BinPack }
}

/// As it is stored.
fn body(settings: &PoolSettings) -> Result<Value, Error> {
    let (label_key, label_value) = settings.label.clone().unzip();
    let body = PoolBody {
        label_key,
        label_value,
        gpu_spread: settings.gpu == Fill::Spread,
        cpu_spread: settings.cpu == Fill::Spread,
        min_runtime_ms: settings.min_runtime_ms,
        names: settings.topology.iter().map(|id| format!("{TOPOLOGY}/{id}")).collect(),
    };
    serde_json::to_value(body).map_err(unreadable)
}

/// From what is stored.
fn settings(body: &Value) -> Result<PoolSettings, Error> {
    let body: PoolBody = serde_json::from_value(body.clone()).map_err(unreadable)?;
    Ok(PoolSettings {
        label: body.label_key.zip(body.label_value),
        gpu: fill(body.gpu_spread),
        cpu: fill(body.cpu_spread),
        min_runtime_ms: body.min_runtime_ms,
        topology: body
            .names
            .iter()
            .find_map(|name| name.strip_prefix(TOPOLOGY)?.strip_prefix('/').map(ToOwned::to_owned)),
    })
}

/// A node pool.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) object: Arc<Object>,
    pub(crate) settings: PoolSettings,
    /// Its place in the model.
    pub(crate) model: PoolId,
}

impl Pool {
    pub(crate) fn id(&self) -> &str {
        &self.object.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.object.name
    }

    /// How it stands.
    pub(crate) fn view(&self, nodes: Vec<String>, capacity: units::Resources) -> PoolView {
        PoolView {
            id: self.object.id.clone(),
            name: self.object.name.clone(),
            settings: self.settings.clone(),
            nodes,
            capacity,
            created_at: self.object.created_at,
            created_by: self.object.created_by.clone(),
            updated_at: self.object.updated_at,
            updated_by: self.object.updated_by.clone(),
        }
    }
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::Internal { message: format!("a node pool cannot be read or written: {error}") }
}

fn check_settings(settings: &PoolSettings) -> Result<(), Error> {
    if let Some((key, value)) = &settings.label {
        check_label(key, value)?;
    }
    if settings.min_runtime_ms.is_some_and(|ms| ms > RUNTIME_MS_MAX) {
        let why = "minGuaranteedRuntime is longer than the 366 days allowed";
        return Err(Error::invalid("minGuaranteedRuntime", why));
    }
    Ok(())
}

/// Refuses what cannot be a label of a node, and the one that is the server's.
///
/// # Errors
/// Says what is allowed.
pub fn check_label(key: &str, value: &str) -> Result<(), Error> {
    let why = units::check_label(key, value).err();
    let why = why.or_else(|| {
        (key == POOL_LABEL)
            .then(|| format!("label {key} says in which pool a node is, and is set by the server"))
    });
    why.map_or(Ok(()), |why| Err(Error::invalid("label", why)))
}

/// The state after a start.
impl State {
    /// Takes over the pools that are stored, and the one that is always there. Nodes come later.
    pub(crate) fn add_pools(&mut self) -> Result<(), Error> {
        if self.objects.get(KIND, POOL_DEFAULT_ID).is_none() {
            let at = self.cluster_created_at;
            self.objects.put(Arc::new(Object {
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
            }));
        }
        for object in self.objects.all(KIND) {
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
        self.objects.shelf(LABELS)?.values().find(|object| object.name == node)
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
        self.outbox.shown.extend(self.by_model.values());
        self.outbox.projects.extend(self.projects.keys());
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
        let before = self.object(KIND, id)?;
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
        for project in self.projects.values_mut() {
            if project.unit.shares.remove(id).is_some() {
                self.outbox.changes.push(Change::Project(persist::project_row(project, None)));
            }
        }
        for department in self.departments.values_mut() {
            if department.unit.shares.remove(id).is_some() {
                let row = persist::department_row(department, None);
                self.outbox.changes.push(Change::Department(row));
            }
        }
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
        let projects = self.projects.values().filter(|project| names(&project.unit.default_pools));
        let projects: Vec<_> = projects.map(|project| project.unit.name.as_str()).collect();
        let departments = self.departments.values().filter(|one| names(&one.unit.default_pools));
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
                let before = self.object(LABELS, &given)?;
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
