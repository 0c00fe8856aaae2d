//! Users of assets: living workloads that took values from them, and templates that name them.

use std::collections::BTreeMap;

use access::{Backend, Caller, resource_of, scopes};
use api_types::{
    AssetIds, AssetRef, AssetUsageInfo, Compute, ConfigMapAssetSpec, EnvironmentAssetSpec,
    GitAssetSpec, HostPathSpec, NfsAssetSpec, PvcAssetSpec, S3AssetSpec, SecretAssetSpec,
    WorkloadRefAndStatus,
};
use auth::{Action, Resource};
use http_kit::ApiError;
use spec::{UsedObject, WorkloadKind};
use view::{Object, Scope, View, WorkloadView};

use super::AssetSpec;
use crate::data::each_data_source;
use crate::templates::Template;

/// The kinds of data sources.
pub(crate) const DATA_SOURCES: &[&str] = {
    macro_rules! stored {
        ($($spec:ident)+) => { &[$($spec::STORED),+] };
    }
    each_data_source!(stored)
};

/// Users of each asset that is used, by its id.
pub(crate) struct Usage(BTreeMap<String, AssetUsageInfo>);

impl Usage {
    /// Current users, as far as the caller may see them.
    pub(crate) fn new(
        state: &Backend,
        view: &View,
        seen_by: Option<&Caller>,
    ) -> Result<Self, ApiError> {
        let mut all: BTreeMap<String, AssetUsageInfo> = BTreeMap::new();
        let mut users: Vec<&WorkloadView> = view.workloads.values().map(AsRef::as_ref).collect();
        users.retain(|workload| {
            let may = |caller: &Caller| {
                let of = resource_of(workload.spec.kind);
                caller.may(Action::Read, of, Scope::Project(workload.project_id))
            };
            !workload.spec.uses.is_empty() && seen_by.is_none_or(may)
        });
        users.sort_unstable_by_key(|workload| workload.seq);
        for workload in users {
            for (_, id) in workload.spec.uses.iter().map(UsedObject::kind_and_id) {
                let of_asset = all.entry(id.to_owned()).or_default();
                let of_kind = match workload.spec.kind {
                    WorkloadKind::Training => &mut of_asset.trainings,
                    WorkloadKind::Workspace => &mut of_asset.workspaces,
                    WorkloadKind::Distributed => &mut of_asset.distributed,
                    WorkloadKind::Inference => &mut of_asset.inferences,
                };
                of_kind.push(reference(workload));
            }
        }
        let sees =
            |object: &Object| seen_by.is_none_or(|caller| caller.sees(Resource::Templates, object));
        for template in state.all::<Template>()?.into_iter().filter(|item| sees(&item.object)) {
            let (id, name) = (&template.object.id, &template.object.name);
            for (_, asset) in template.body.names.iter().filter_map(|key| key.split_once('/')) {
                let user = AssetRef { id: id.clone(), name: name.clone() };
                all.entry(asset.to_owned()).or_default().templates.push(user);
            }
        }
        Ok(Self(all))
    }

    /// Users of the asset with this id.
    pub(crate) fn of(&self, id: &str) -> AssetUsageInfo {
        self.0.get(id).cloned().unwrap_or_default()
    }
}

fn reference(workload: &WorkloadView) -> WorkloadRefAndStatus {
    WorkloadRefAndStatus {
        id: workload.id.to_string(),
        name: workload.spec.name.clone(),
        status: convert::phase_name(workload.phase).to_owned(),
    }
}

/// The object of one of these kinds that is named from a scope, `<kind>/<id>`.
pub(crate) fn key(view: &View, scope: Scope, kinds: &[&str], id: &str) -> Option<String> {
    let found = kinds.iter().find_map(|kind| view.objects.get(kind, id))?;
    scopes::around(scope, view).contains(&found.scope).then(|| found.key())
}

/// The objects that are named as assets from a scope, `<kind>/<id>`. Each must be there, in that
/// scope or around it; one that lies elsewhere looks as if it were not.
pub(crate) fn keys(
    view: &View,
    scope: Scope,
    ids: &AssetIds,
) -> Result<Vec<String>, orchestrator::Error> {
    let missing = |what, name| {
        let hint = "list them to see the valid ones".to_owned();
        orchestrator::Error::NotFound { what, name, hint }
    };
    let find = |what: &'static str, kinds: &[&str], id: &str| {
        key(view, scope, kinds, id).ok_or_else(|| missing(what, id.to_owned()))
    };
    let environment = ids.environment.iter().map(|id| {
        find("spec.assets.environment: environment-asset", &[EnvironmentAssetSpec::STORED], id)
    });
    let compute = ids
        .compute
        .iter()
        .map(|id| find("spec.assets.compute: compute-asset", &[Compute::STORED], id));
    let sources = ids
        .datasources
        .iter()
        .flatten()
        .map(|one| find("spec.assets.datasources: asset", DATA_SOURCES, &one.id));
    environment.chain(compute).chain(sources).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_show_every_kind_of_data_source() {
        macro_rules! kinds {
            ($($spec:ident)+) => { [$(($spec::STORED, $spec::KIND)),+] };
        }
        assert_eq!(each_data_source!(kinds), convert::DATA_SOURCES);
    }
}
