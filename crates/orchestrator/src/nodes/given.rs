//! Settings of nodes: labels, taints and scheduling mode. Owns: that they are stored by the name of
//! the node, and take effect at once.

use std::sync::Arc;

use command::{NewId, NewObject, NodeChange, Subject};

use super::change;
use crate::Error;
use crate::state::State;
use view::{Object, Scope};

/// Kind of the objects with the settings of nodes.
const GIVEN: &str = "node";

pub(super) fn unreadable(error: impl std::fmt::Display) -> Error {
    let message = format!("what a node was given cannot be read or written: {error}");
    Error::Internal { message }
}

impl State {
    /// The object with the settings of a node.
    pub(super) fn given_object(&self, node: &str) -> Option<&Arc<Object>> {
        self.documents.named(GIVEN, Scope::Cluster, node)
    }

    /// Changes the settings of a node.
    pub(crate) fn change_node(
        &mut self,
        by: String,
        name: &str,
        change: NodeChange,
    ) -> Result<Subject, Error> {
        let node = self.nodes.named(name).ok_or_else(|| Error::no_node(name))?;
        let id = node.id;
        self.nodes_are_own(name)?;
        change::check(&change)?;
        let given = change::settings_after(change, node)?;
        if given == node.given {
            return Ok(Subject::Nothing);
        }
        let body = serde_json::to_value(&given).map_err(unreadable)?;
        match self.given_object(name).cloned() {
            Some(before) => drop(self.update_object(by, &before, (name.to_owned(), body))?),
            None => {
                let (owner, scope, name) = (String::new(), Scope::Cluster, name.to_owned());
                let (kind, id) = (GIVEN, NewId::Any);
                let new = NewObject { kind, id, scope, owner, name, body, newest: None };
                self.create_object(by, new)?;
            }
        }
        if let Some(node) = self.nodes.rows.get_mut(&id) {
            node.given = given;
        }
        self.settle_node(id);
        Ok(Subject::Nothing)
    }
}
