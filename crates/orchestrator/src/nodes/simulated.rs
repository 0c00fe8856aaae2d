//! Simulated nodes added and removed by command. Owns: the nodes that exist after a restart of the
//! server. Their number and the sizes of their GPUs are checked before (`control`).

use std::sync::Arc;

use command::{NewId, NewObject, Subject};
use records::Snapshot;
use serde::{Deserialize, Serialize};
use spec::{CPU_MILLIS_MAX, MEMORY_BYTES_MAX, NodeSpec};
use units::Instant;

use crate::Error;
use crate::input::NodeEvent;
use crate::node_list::NodeList;
use crate::org::SYSTEM;
use crate::pools::check_label;
use crate::state::State;
use view::{Object, Scope};

/// Kind of the objects of simulated nodes that were added or removed.
const SIMULATED: &str = "simulated-node";

/// Body of such an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Body {
    /// Origin of the list of nodes at that time. The object is valid while this is unchanged.
    origin: String,
    /// Time of the change, in milliseconds since 1970.
    at_ms: u64,
    /// The node; `None` if it was removed.
    node: Option<NodeSpec>,
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    let message = format!("a simulated node cannot be read or written: {error}");
    Error::Internal { message }
}

fn body_of(body: &serde_json::Value) -> Result<Body, Error> {
    serde_json::from_value(body.clone()).map_err(unreadable)
}

/// The nodes that a server starts with, and the creation time of added ones: those of the list,
/// with the changes by commands.
///
/// # Errors
/// A stored object cannot be read.
pub(crate) fn at_start(
    list: &NodeList,
    snapshot: &Snapshot,
) -> Result<Vec<(NodeSpec, Option<Instant>)>, Error> {
    let mut nodes: Vec<_> = list.nodes.iter().map(|node| (node.clone(), None)).collect();
    for row in snapshot.objects.iter().filter(|row| row.kind == SIMULATED) {
        let body = body_of(&row.body)?;
        if body.origin == list.origin {
            nodes.retain(|(node, _)| node.name != row.name);
            nodes.extend(body.node.map(|node| (node, Some(Instant(body.at_ms)))));
        }
    }
    Ok(nodes)
}

impl State {
    /// Deletes the changes that commands made to another list than that of the server's start.
    pub(crate) fn forget_other_simulated(&mut self) -> Result<(), Error> {
        for object in self.documents.all(SIMULATED) {
            if body_of(&object.body)?.origin != self.nodes.origin {
                self.delete_object(SYSTEM, SIMULATED, &object.id)?;
            }
        }
        Ok(())
    }

    fn simulated_object(&self, node: &str) -> Option<&Arc<Object>> {
        self.documents.named(SIMULATED, Scope::Cluster, node)
    }

    /// Adds simulated nodes: all of them, or none.
    pub(crate) fn add_simulated_nodes(
        &mut self,
        by: &str,
        specs: Vec<NodeSpec>,
    ) -> Result<Subject, Error> {
        self.nodes_are_simulated()?;
        for (at, spec) in specs.iter().enumerate() {
            self.check_simulated(spec, &specs[..at])?;
        }
        for spec in specs {
            self.note_simulated(by.to_owned(), &spec.name, Some(spec.clone()))?;
            self.node_event(NodeEvent::Applied(spec));
        }
        Ok(Subject::Nothing)
    }

    fn check_simulated(&self, spec: &NodeSpec, before: &[NodeSpec]) -> Result<(), Error> {
        let name = &spec.name;
        units::check_name(name).map_err(|error| Error::invalid("name", error.to_string()))?;
        if self.nodes.named(name).is_some() || before.iter().any(|other| other.name == *name) {
            return Err(Error::conflict(format!(
                "there is a node {name} already; choose another name"
            )));
        }
        spec.labels.iter().try_for_each(|(key, value)| check_label(key, value))?;
        if !(1..=CPU_MILLIS_MAX).contains(&spec.cpu_millis) {
            let most = CPU_MILLIS_MAX / 1000;
            return Err(Error::invalid("cpu", format!("cpu: a node has 0.001 to {most} cores")));
        }
        if !(1..=MEMORY_BYTES_MAX).contains(&spec.memory_bytes) {
            let most = units::format_bytes(MEMORY_BYTES_MAX);
            return Err(Error::invalid("memory", format!("memory: a node has up to {most}")));
        }
        Ok(())
    }

    /// Removes a simulated node at once, with all its pods.
    pub(crate) fn remove_simulated_node(
        &mut self,
        by: String,
        name: &str,
    ) -> Result<Subject, Error> {
        self.nodes.named(name).ok_or_else(|| Error::no_node(name))?;
        self.nodes_are_simulated()?;
        match self.simulated_object(name).map(|object| object.id.clone()) {
            Some(id) if !self.nodes.listed.contains(name) => {
                self.delete_object(&by, SIMULATED, &id)?;
            }
            _ => self.note_simulated(by, name, None)?,
        }
        self.node_event(NodeEvent::Deleted(name.to_owned()));
        Ok(Subject::Nothing)
    }

    fn note_simulated(
        &mut self,
        by: String,
        name: &str,
        node: Option<NodeSpec>,
    ) -> Result<(), Error> {
        let (origin, at_ms) = (self.nodes.origin.clone(), self.now.0);
        let body = serde_json::to_value(Body { origin, at_ms, node }).map_err(unreadable)?;
        let name = name.to_owned();
        match self.simulated_object(&name).cloned() {
            Some(before) => drop(self.update_object(by, &before, (name, body))?),
            None => {
                let (owner, scope) = (String::new(), Scope::Cluster);
                let (kind, id) = (SIMULATED, NewId::Any);
                let new = NewObject { kind, id, scope, owner, name, body, newest: None };
                self.create_object(by, new)?;
            }
        }
        Ok(())
    }

    /// Refuses to add and remove nodes if any has real GPUs.
    fn nodes_are_simulated(&self) -> Result<(), Error> {
        match self.nodes.iter().find(|node| node.spec.has_real_gpus()) {
            None => Ok(()),
            Some(real) => Err(Error::conflict(format!(
                "{} has real GPUs; nodes can be added and removed only where all are simulated: start \
                 a server with `elastane up --nodes 2x4x16GiB` and another --state-dir",
                real.spec.name
            ))),
        }
    }
}
