//! Queries for assets.

use access::{Backend, scopes};
use api_types::{ScopeType, WorkloadSupportedTypes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use http_kit::Allowed::{Flag, Number, Text, Word};
use http_kit::openapi::{Description, Input};
use http_kit::{ApiError, Parameter, flag, parameters, unknown_word};
use view::{Object, Scope, View};

/// The kinds of scopes.
const SCOPES: [&str; 5] = ["system", "tenant", "cluster", "department", "project"];

/// Every parameter a list of assets takes, and what it does.
const PARAMETERS: [Parameter; 17] = [
    ("name", Text, "Only those with this name"),
    ("scope", Word(&SCOPES), "Only those of this kind of scope"),
    ("projectId", Number(1, u64::MAX), "Those that a workload of this project can use"),
    ("departmentId", Text, "Those of this department and of what is around it"),
    ("clusterId", Text, "Those of the cluster and of what is around it"),
    ("includeDescendants", Flag, "Also those of what lies within"),
    ("assetIds", Text, "Only these, separated by commas"),
    ("usageInfo", Flag, "Say who uses them"),
    ("isTraining", Flag, "Only those that trainings may use, or may not"),
    ("isWorkspace", Flag, "Only those that workspaces may use, or may not"),
    ("isInference", Flag, "Only those that inferences may use, or may not"),
    ("isDistributed", Flag, "Only those that distributed trainings may use, or may not"),
    ("distributedFramework", Text, "Taken and ignored"),
    ("complyToProject", Number(1, u64::MAX), "Taken and ignored"),
    ("complyToWorkloadType", Text, "Taken and ignored"),
    ("complyToReplicaType", Text, "Taken and ignored"),
    ("statusInfo", Flag, "Taken and ignored: nothing is copied elsewhere"),
];

/// Parameters among them that the request for one asset accepts as well.
const OF_ONE: [&str; 5] =
    ["usageInfo", "complyToProject", "complyToWorkloadType", "complyToReplicaType", "statusInfo"];

/// Test that a type of workload is among the supported ones.
type Supports = fn(&WorkloadSupportedTypes) -> bool;

/// The parameters of a list.
#[derive(Debug, Default)]
pub(crate) struct AssetQuery {
    name: Option<String>,
    kind: Option<ScopeType>,
    project: Option<u64>,
    department: Option<String>,
    cluster: Option<String>,
    descendants: bool,
    ids: Option<Vec<String>>,
    supports: Vec<(Supports, bool)>,
    pub(crate) usage: bool,
}

/// The parameters of the request for one asset.
#[derive(Debug)]
pub(crate) struct OneAssetQuery {
    pub(crate) usage: bool,
}

impl Input for AssetQuery {
    fn describe(to: &mut Description) {
        for (name, allowed, about) in PARAMETERS {
            to.parameter_of(name, allowed.schema(), about);
        }
    }
}

impl Input for OneAssetQuery {
    fn describe(to: &mut Description) {
        for (name, allowed, about) in PARAMETERS {
            if OF_ONE.contains(&name) {
                to.parameter_of(name, allowed.schema(), about);
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for AssetQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parse(&parameters(&parts.uri)?, &PARAMETERS.map(|row| row.0))
    }
}

impl<S: Sync> FromRequestParts<S> for OneAssetQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self { usage: parse(&parameters(&parts.uri)?, &OF_ONE)?.usage })
    }
}

fn parse(pairs: &[(String, String)], known: &[&str]) -> Result<AssetQuery, ApiError> {
    let mut query = AssetQuery::default();
    for (name, value) in pairs {
        if !known.contains(&name.as_str()) {
            return Err(unknown_word("parameter", name, known));
        }
        for (_, allowed, _) in PARAMETERS.iter().filter(|(own, ..)| own == name) {
            allowed.check(name, value)?;
        }
        match name.as_str() {
            "name" => query.name = Some(value.clone()),
            "scope" => query.kind = Some(scopes::named(name, value)?),
            "projectId" => query.project = Some(access::project_id(name, value)?),
            "departmentId" => query.department = Some(value.clone()),
            "clusterId" => query.cluster = Some(value.clone()),
            "includeDescendants" => query.descendants = flag(name, value)?,
            "assetIds" => query.ids = Some(value.split(',').map(str::to_owned).collect()),
            "usageInfo" => query.usage = flag(name, value)?,
            "isTraining" => query.supports.push((|types| types.training, flag(name, value)?)),
            "isWorkspace" => query.supports.push((|types| types.workspace, flag(name, value)?)),
            "isInference" => query.supports.push((|types| types.inference, flag(name, value)?)),
            "isDistributed" => query.supports.push((|types| types.distributed, flag(name, value)?)),
            _ => {}
        }
    }
    Ok(query)
}

impl AssetQuery {
    /// The scope around which assets are listed, if the query names one.
    fn centre(&self, state: &Backend) -> Result<Option<Scope>, ApiError> {
        state.check_cluster(self.cluster.as_deref())?;
        match (self.project, &self.department, &self.cluster) {
            (Some(id), ..) => state.project(id).map(Some),
            (None, Some(id), _) => state.department(id).map(Some),
            (None, None, Some(_)) => Ok(Some(Scope::Cluster)),
            (None, None, None) => Ok(None),
        }
    }

    /// A test of what lies around an asset.
    pub(crate) fn test<'a>(
        &'a self,
        state: &Backend,
        view: &'a View,
    ) -> Result<impl Fn(&Object) -> bool + 'a, ApiError> {
        let centre = self.centre(state)?;
        let outer = centre.map(|scope| scopes::around(scope, view));
        Ok(move |object: &Object| {
            let scope = object.scope;
            let within = |centre| self.descendants && scopes::around(scope, view).contains(&centre);
            let near = outer.as_ref().is_none_or(|outer| outer.contains(&scope))
                || centre.is_some_and(within);
            near && self.name.as_ref().is_none_or(|name| *name == object.name)
                && self.kind.is_none_or(|kind| kind == scopes::kind_of(scope))
                && self.ids.as_ref().is_none_or(|ids| ids.contains(&object.id))
        })
    }

    /// True if workloads of the types in the query may use it.
    pub(crate) fn fits(&self, supports: Option<&WorkloadSupportedTypes>) -> bool {
        self.supports
            .iter()
            .all(|(supported, wanted)| super::restricts(supports).is_none_or(supported) == *wanted)
    }
}
