//! Objects from which a workload took values, with their names at the submission. Owns: the kinds
//! under which they are stored, and their form on the wire.

use api_types::{AssetKind, AssetRef, UsedDataSource, UsedEnvironment};
use http_kit::Scalar;
use spec::{UsedObject, WorkloadSpec};

/// Kind of the objects that are compute assets.
pub const COMPUTE_ASSET: &str = "compute-asset";
/// Kind of the objects that are environment assets.
pub const ENVIRONMENT_ASSET: &str = "environment-asset";
/// Kind of stored templates.
pub const TEMPLATE: &str = "template";

/// Kinds of stored data sources, and of these assets.
pub const DATA_SOURCES: [(&str, AssetKind); 7] = [
    ("nfs-asset", AssetKind::Nfs),
    ("pvc-asset", AssetKind::Pvc),
    ("s3-asset", AssetKind::S3),
    ("git-asset", AssetKind::Git),
    ("host-path-asset", AssetKind::HostPath),
    ("config-map-asset", AssetKind::ConfigMap),
    ("secret-asset", AssetKind::SecretVolume),
];

/// The environments of a workload.
pub(crate) fn environments(spec: &WorkloadSpec) -> Vec<UsedEnvironment> {
    let of =
        |(id, name): (&str, &str)| UsedEnvironment { id: id.to_owned(), name: name.to_owned() };
    used(spec, ENVIRONMENT_ASSET).map(of).collect()
}

/// The data sources of a workload.
pub(crate) fn data_sources(spec: &WorkloadSpec) -> Vec<UsedDataSource> {
    let of = |object: &UsedObject| {
        let (stored, id) = object.kind_and_id();
        let (_, kind) = DATA_SOURCES.into_iter().find(|(kind, _)| *kind == stored)?;
        Some(UsedDataSource { kind, id: id.to_owned(), name: object.name.clone() })
    };
    spec.uses.iter().filter_map(of).collect()
}

/// The first object of a kind.
pub(crate) fn one(spec: &WorkloadSpec, kind: &str) -> Option<AssetRef> {
    let (id, name) = used(spec, kind).next()?;
    Some(AssetRef { id: id.to_owned(), name: name.to_owned() })
}

/// The names of the objects of a kind, as a value that lists are sorted and filtered by.
pub(crate) fn names<'a>(spec: &'a WorkloadSpec, kind: &str) -> Scalar<'a> {
    Scalar::Texts(used(spec, kind).map(|(_, name)| name.into()).collect())
}

/// Ids and names of the objects of a kind.
fn used<'a>(spec: &'a WorkloadSpec, kind: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    spec.uses.iter().filter_map(move |object| {
        let (of, id) = object.kind_and_id();
        (of == kind).then_some((id, &*object.name))
    })
}
