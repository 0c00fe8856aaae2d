//! Node pools, and their effect on the placement of workloads.
//!
//! A pool is stored as an object; its effects on the scheduler are updated after each change
//! (`commands`).

mod commands;
mod placement_defaults;
mod topologies;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{POOL_LABEL, PoolId, Primary};
use sched::Placement;
use serde::Deserialize;
use spec::{NODE_TYPE_LABEL, NodeTypes, PoolSettings};

use crate::Error;
use command::admission;
use units::Resources;
use view::{Object, PoolView};

pub(crate) use topologies::ANNOTATIONS;
pub use topologies::{levels_of, new_topology};

/// Kind of the objects that are pools, in the database and the audit log.
pub(crate) const KIND: &str = "node-pool";
/// Id of the pool of nodes that are in no other.
pub const POOL_DEFAULT_ID: &str = "1";
/// Maximum number of node types in a list.
const TYPES_MAX: usize = 100;
/// Maximum guaranteed run time, in milliseconds: a year.
const RUNTIME_MS_MAX: u64 = 366 * 86_400_000;

/// Placement orders of a pool. Without a setting for devices, the order of nodes for GPU work holds
/// for the GPUs of a node too.
fn placement(settings: &PoolSettings) -> Placement {
    let PoolSettings { gpu, cpu, devices, .. } = *settings;
    Placement { gpu, cpu, devices: devices.unwrap_or(gpu) }
}

/// A node pool.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) object: Arc<Object>,
    pub(crate) settings: PoolSettings,
    /// Its id in the model.
    pub(crate) model: PoolId,
}

impl Pool {
    /// Its view, with the names of its nodes and their capacity.
    pub(crate) fn view(&self, nodes: Vec<String>, capacity: Resources) -> PoolView {
        let object = &self.object;
        PoolView {
            id: object.id.clone(),
            name: object.name.clone(),
            settings: self.settings.clone(),
            nodes,
            capacity,
            created_at: object.created_at,
            created_by: object.created_by.clone(),
            updated_at: object.updated_at,
            updated_by: object.updated_by.clone(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.object.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.object.name
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

/// Refuses an invalid node label, and the label that the server sets.
///
/// # Errors
/// The text says what is allowed.
pub fn check_label(key: &str, value: &str) -> Result<(), Error> {
    let why = units::check_label(key, value).err();
    let why = why.or_else(|| {
        (key == POOL_LABEL)
            .then(|| format!("label {key} says in which pool a node is, and is set by the server"))
    });
    why.map_or(Ok(()), |why| Err(Error::invalid("label", why)))
}

/// Node pools, `default` first, then in order of creation.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    all: Vec<Pool>,
}

impl Pools {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.all.iter()
    }

    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    /// The pool with this id.
    pub(crate) fn get(&self, id: &str) -> Result<&Pool, Error> {
        self.all.iter().find(|pool| pool.id() == id).ok_or_else(|| Error::NotFound {
            what: "node pool",
            name: id.to_owned(),
            hint: "see GET /api/v1/node-pools".to_owned(),
        })
    }

    /// Refuses names of unknown pools, and duplicates.
    pub(crate) fn check_names(&self, field: &'static str, names: &[String]) -> Result<(), Error> {
        let known = |name: &String| self.all.iter().any(|pool| pool.name() == name);
        if let Some(name) = names.iter().find(|name| !known(name)) {
            let all: Vec<_> = self.all.iter().map(Pool::name).collect();
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

    /// The pool of a node with these labels: the oldest whose label it carries, or else the first.
    fn pool_for(&self, labels: &BTreeMap<String, String>) -> Option<&Pool> {
        let takes = |pool: &&Pool| {
            let label = pool.settings.label.as_ref();
            label.is_some_and(|(key, value)| labels.get(key) == Some(value))
        };
        self.all.iter().find(takes).or_else(|| self.all.first())
    }

    /// The labels of a node in the model, and the id of its pool.
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

    /// Placement orders of the pools where they differ from `usual`.
    fn placements(&self, usual: Placement) -> BTreeMap<PoolId, Placement> {
        let own = self.all.iter().map(|pool| (pool.model, placement(&pool.settings)));
        own.filter(|(_, placement)| *placement != usual).collect()
    }
    /// Refuses the label of another pool: two pools would take the same nodes.
    fn label_is_free(&self, settings: &PoolSettings, own: Option<&str>) -> Result<(), Error> {
        let same = |pool: &&Pool| {
            settings.label.is_some()
                && pool.settings.label == settings.label
                && own != Some(pool.id())
        };
        match (self.all.iter().find(same), &settings.label) {
            (Some(pool), Some((key, value))) => Err(Error::conflict(format!(
                "node pool `{}` takes the nodes with label {key}={value} already; choose another",
                pool.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses unknown pools and invalid node types of a project or department.
    pub(crate) fn check_places<'a>(
        &self,
        mut shares: impl Iterator<Item = &'a String>,
        pools: &[String],
        types: &NodeTypes,
    ) -> Result<(), Error> {
        if let Some(id) = shares.find(|id| self.get(id).is_err()) {
            let why = format!(
                "resources: there is no node pool with id `{}`; see GET /api/v1/node-pools",
                units::shown(id)
            );
            return Err(Error::invalid("resources", why));
        }
        self.check_names("defaultNodePools", pools)?;
        for (field, list) in
            [("nodeTypes.training", &types.training), ("nodeTypes.workspace", &types.workspace)]
        {
            if list.len() > TYPES_MAX {
                let why = format!("{field}: at most {TYPES_MAX} types are allowed");
                return Err(Error::invalid(field, why));
            }
            list.iter().try_for_each(|of| check_label(NODE_TYPE_LABEL, of))?;
        }
        Ok(())
    }

    /// Adds a stored pool, and divides the queues of the model by pool from the second one on.
    fn add(&mut self, object: Arc<Object>, cluster: &mut Primary) -> Result<(), Error> {
        let settings = PoolSettings::deserialize(&object.body).map_err(unreadable)?;
        let model = cluster.add_pool(&object.name);
        if model != PoolId::DEFAULT {
            cluster.divide_by_pool();
        }
        self.all.push(Pool { object, settings, model });
        Ok(())
    }

    fn change(&mut self, object: &Arc<Object>, settings: PoolSettings) {
        if let Some(pool) = self.all.iter_mut().find(|pool| pool.id() == object.id) {
            (pool.object, pool.settings) = (object.clone(), settings);
        }
    }

    fn remove(&mut self, id: &str) {
        self.all.retain(|pool| pool.id() != id);
    }
}
