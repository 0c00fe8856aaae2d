//! Lowers the commands about manifests and about objects other than workloads. Pure.

use super::page;
use crate::args::objects::{OfObjects, Verb};
use crate::args::v2;
use crate::intent::{Dialect, Intent, ListObjects, Manifest, Name, Objects};

pub(super) fn manifest(typed: v2::Manifest) -> Manifest {
    let prefix = typed.name_prefix.map(Name::Numbered);
    Manifest {
        file: typed.file,
        name: typed.name.map(Name::Given).or(prefix),
        category: typed.category,
        priority: typed.priority,
        preemptible: typed.preemptibility.map(v2::Preemptibility::is_preemptible),
        strict: typed.strict,
    }
}

pub(super) fn verb(of: OfObjects) -> Intent {
    let (of, verb) = match of {
        OfObjects::Template(verb) => (Objects::Template, verb),
        OfObjects::Environment(verb) => (Objects::Environment, verb),
        OfObjects::Compute(verb) => (Objects::Compute, verb),
        OfObjects::Datasource(verb) => (Objects::Datasource, verb),
        OfObjects::Pvc(verb) => (Objects::Pvc, verb),
        OfObjects::Datavolume(verb) => (Objects::Datavolume, verb),
        OfObjects::Credential(verb) => (Objects::Credential, verb),
        OfObjects::Department(verb) => (Objects::Department, verb),
        OfObjects::Nodepool(verb) => (Objects::Nodepool, verb),
        OfObjects::WorkloadType(verb) => (Objects::WorkloadType, verb),
    };
    match verb {
        Verb::List(list) => Intent::ListObjects(ListObjects {
            of,
            dialect: Dialect::V2,
            all_projects: list.all,
            page: page(&list.paging),
            how: list.format.into(),
        }),
        Verb::Describe(describe) | Verb::Get(describe) => {
            Intent::DescribeObject(of, describe.name, describe.one.into())
        }
    }
}
