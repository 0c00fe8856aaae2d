//! Who uses assets: living workloads that took values from them, and templates that name them.

use std::collections::BTreeMap;

use api_types::{AssetIds, AssetRef, AssetUsageInfo, Compute, EnvironmentAssetSpec};
use api_types::{WorkloadRefAndStatus, WorkloadSpec};
use control::view::{View, WorkloadKind, WorkloadView};

use super::AssetSpec;
use crate::State;
use crate::convert;
use crate::edge::Fault;
use crate::templates::Template;

/// Who uses each asset that is used, by its id.
pub(crate) struct Usage(BTreeMap<String, AssetUsageInfo>);

impl Usage {
    /// As of now.
    pub(crate) fn new(state: &State, view: &View) -> Result<Self, Fault> {
        let mut all: BTreeMap<String, AssetUsageInfo> = BTreeMap::new();
        let mut users: Vec<&WorkloadView> = view.workloads.values().map(AsRef::as_ref).collect();
        users.retain(|workload| !workload.spec.uses.is_empty());
        users.sort_unstable_by_key(|workload| workload.seq);
        for workload in users {
            for (_, id) in workload.spec.uses.iter().filter_map(|key| key.split_once('/')) {
                let of_asset = all.entry(id.to_owned()).or_default();
                let of_kind = match workload.spec.kind {
                    WorkloadKind::Training => &mut of_asset.trainings,
                    WorkloadKind::Workspace => &mut of_asset.workspaces,
                    WorkloadKind::Distributed => &mut of_asset.distributed,
                };
                of_kind.push(reference(workload));
            }
        }
        for template in state.all::<Template>()? {
            let (id, name) = (&template.object.id, &template.object.name);
            for asset in named_in(template.body.spec) {
                let user = AssetRef { id: id.clone(), name: name.clone() };
                all.entry(asset).or_default().templates.push(user);
            }
        }
        Ok(Self(all))
    }

    /// Who uses the asset with this id.
    pub(crate) fn of(&self, id: &str) -> AssetUsageInfo {
        self.0.get(id).cloned().unwrap_or_default()
    }
}

/// A workload among its users that runs, or may run again.
pub(crate) fn living(usage: &AssetUsageInfo) -> Option<&WorkloadRefAndStatus> {
    let AssetUsageInfo { workspaces, trainings, distributed, inferences, .. } = usage;
    let mut all = [workspaces, trainings, distributed, inferences].into_iter().flatten();
    all.find(|user| !matches!(user.status.as_str(), "Completed" | "Failed"))
}

fn reference(workload: &WorkloadView) -> WorkloadRefAndStatus {
    WorkloadRefAndStatus {
        id: workload.id.to_string(),
        name: workload.spec.name.clone(),
        status: convert::phase_name(workload.phase).to_owned(),
    }
}

/// The assets that a template's values name. Those of types that are kept as they are name none.
fn named_in(spec: serde_json::Value) -> impl Iterator<Item = String> {
    let spec: WorkloadSpec = serde_json::from_value(spec).unwrap_or_default();
    let ids = spec.assets.unwrap_or_default();
    let sources = ids.datasources.unwrap_or_default().into_iter().map(|asset| asset.id);
    ids.environment.into_iter().chain(ids.compute).chain(sources)
}

/// The assets among the objects that a workload took values from.
pub(crate) fn ids_of(uses: &[String]) -> Option<AssetIds> {
    let with = |kind: &str| {
        let id = uses.iter().find_map(|key| key.strip_prefix(kind)?.strip_prefix('/'));
        id.map(str::to_owned)
    };
    let ids = AssetIds {
        environment: with(EnvironmentAssetSpec::STORED),
        compute: with(Compute::STORED),
        datasources: None,
    };
    Some(ids).filter(|ids| *ids != AssetIds::default())
}
