//! Difference between two views. Owns: which objects a published view changed, found from the parts
//! that the views do not share; also those that look different only because of another object, such
//! as a department that lists its projects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use super::key::{Key, Place};
use spec::TOPOLOGY;
use view::{
    NodeView, Object, OrgUnit, PendingClasses, PodState, PodView, PoolView, ProjectView, Scope,
    SharedMap, View, WorkloadView,
};

/// The stored kind of the name of the cluster.
const CLUSTER: &str = "cluster";

/// An object that is another, is new or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) key: Key,
    pub(super) place: Place,
    pub(super) kind: Kind,
}

/// Kind of change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The object is new or changed.
    Changed,
    /// The object was deleted.
    Deleted,
    /// The object had left memory, and was deleted.
    ArchivedDeleted,
}

/// Last view of workloads that left memory between two views.
pub(super) type Archived = BTreeMap<Uuid, Arc<WorkloadView>>;

/// Differences for the deletion of an archived workload with its pods.
pub(super) fn deleted(workload: &WorkloadView) -> impl Iterator<Item = Difference> {
    let scope = Scope::Project(workload.project_id);
    let department = Some(workload.department_id);
    keys(workload).map(move |key| {
        let place = Place { scope, department };
        Difference { key, place, kind: Kind::ArchivedDeleted }
    })
}

/// The workloads of a view that are not in the next: they were deleted, or archived.
pub(super) fn gone(before: &View, now: &View) -> Vec<Uuid> {
    if now.archived.is_empty() {
        return Vec::new();
    }
    let gone = SharedMap::diff(&before.workloads, &now.workloads);
    gone.filter(|(_, _, is)| is.is_none()).map(|(id, _, _)| *id).collect()
}

/// Keys of a workload and of its pods.
pub(super) fn keys(workload: &WorkloadView) -> impl Iterator<Item = Key> {
    let pods = pods(Some(workload)).into_keys().map(|pod| Key::Pod(workload.id, pod));
    pods.chain([Key::Workload(workload.id), Key::Row(workload.id)])
}

/// Two views, the workloads that left memory between them, and the differences found so far.
struct Between<'a> {
    before: &'a View,
    now: &'a View,
    archived: &'a Archived,
    found: BTreeMap<Key, (Place, bool)>,
}

/// Differences in the order of [`Key`]; an archived object counts as if the second view had it.
/// With `all_nodes` every node differs: an outage of the engine began or ended.
pub(super) fn between(
    before: &View,
    now: &View,
    archived: &Archived,
    all_nodes: bool,
) -> Vec<Difference> {
    let mut both = Between { before, now, archived, found: BTreeMap::new() };
    both.organisation();
    both.pools();
    both.nodes(all_nodes);
    both.objects();
    both.workloads();
    both.reasons();
    let one = |(key, (place, deleted))| {
        let kind = if deleted { Kind::Deleted } else { Kind::Changed };
        Difference { key, place, kind }
    };
    both.found.into_iter().map(one).collect()
}

impl Between<'_> {
    fn note(&mut self, key: Key, scope: Scope, deleted: bool) {
        let department = match scope {
            Scope::Department(id) => Some(id),
            Scope::Project(id) => {
                let project = self.now.projects.get(&id).or_else(|| self.before.projects.get(&id));
                project.map(|project| project.department_id)
            }
            _ => None,
        };
        self.found.insert(key, (Place { scope, department }, deleted));
    }

    fn organisation(&mut self) {
        let (before, now) = (self.before, self.now);
        let mut listing = BTreeSet::new();
        for (id, was, is) in SharedMap::diff(&before.projects, &now.projects) {
            let named = |project: &Arc<ProjectView>| project.unit.name.clone();
            if was.map(named) != is.map(named) {
                listing.extend(is.or(was).map(|project| project.department_id));
            }
            self.note(Key::Project(*id), Scope::Project(*id), is.is_none());
        }
        for (id, was, is) in SharedMap::diff(&before.departments, &now.departments) {
            self.note(Key::Department(*id), Scope::Department(*id), is.is_none());
            let shares =
                |unit: &Arc<OrgUnit>| unit.pools.iter().map(|p| p.share).collect::<Vec<_>>();
            // A project says where it was given more than its department has.
            if was.map(shares) != is.map(shares) {
                let inside = |project: &&Arc<ProjectView>| project.department_id == *id;
                for project in now.projects.values().filter(inside) {
                    self.note(
                        Key::Project(project.unit.id),
                        Scope::Project(project.unit.id),
                        false,
                    );
                }
            }
        }
        for id in listing {
            if now.departments.contains_key(&id) {
                self.note(Key::Department(id), Scope::Department(id), false);
            }
        }
    }

    fn pools(&mut self) {
        let (before, now) = (self.before, self.now);
        let renamed = renamed_topologies(before, now);
        let cluster = |view: &View| view.objects.shelf(CLUSTER).cloned();
        let all = cluster(before) != cluster(now);
        let uses = |pool: &PoolView| {
            pool.settings.topology.as_ref().is_some_and(|id| renamed.contains(id.as_str()))
        };
        let id = |pool: &PoolView| pool.id.clone();
        for (was, is) in paired(&before.pools, &now.pools, id) {
            let same = was.is_some() && was == is;
            if !same || all || is.is_some_and(|pool| uses(pool)) {
                self.cluster_wide(is.or(was).map(|pool| Key::Pool(pool.id.as_str().into())), is);
            }
        }
        let names =
            |view: &View| view.pools.iter().map(|pool| pool.name.clone()).collect::<Vec<_>>();
        // A workload that names no pool shows all of them, and one with a topology its name.
        let others = names(before) != names(now);
        if others || !renamed.is_empty() {
            for workload in now.workloads.values() {
                let topology = workload.spec.topology.as_ref();
                let shows = topology.is_some_and(|of| renamed.contains(of.id.as_str()));
                if shows || (others && workload.spec.node_pools.is_empty()) {
                    let scope = Scope::Project(workload.project_id);
                    self.note(Key::Workload(workload.id), scope, false);
                }
            }
        }
    }

    fn nodes(&mut self, all: bool) {
        let (before, now) = (self.before, self.now);
        for (was, is) in paired(&before.nodes, &now.nodes, |node: &NodeView| node.name.clone()) {
            if all || was.is_none() || was != is {
                self.cluster_wide(is.or(was).map(|node| Key::Node(node.name.as_str().into())), is);
                self.gpus(was.map(AsRef::as_ref), is.map(AsRef::as_ref));
            }
        }
    }

    /// The GPUs of a node that look different.
    fn gpus(&mut self, was: Option<&NodeView>, is: Option<&NodeView>) {
        let name: Option<Arc<str>> = is.or(was).map(|node| node.name.as_str().into());
        for index in 0.. {
            let (was, is) =
                (was.and_then(|node| node.gpu(index)), is.and_then(|node| node.gpu(index)));
            if was.or(is).is_none() {
                return;
            }
            if was != is {
                self.cluster_wide(name.clone().map(|name| Key::Gpu(name, index)), is);
            }
        }
    }

    fn cluster_wide<T>(&mut self, key: Option<Key>, is: Option<T>) {
        if let Some(key) = key {
            self.note(key, Scope::Cluster, is.is_none());
        }
    }

    fn objects(&mut self) {
        let (before, now) = (self.before, self.now);
        let kinds: BTreeSet<&Arc<str>> =
            before.objects.kinds().chain(now.objects.kinds()).collect();
        let none = SharedMap::default();
        for kind in kinds {
            let (was, is) = (before.objects.shelf(kind), now.objects.shelf(kind));
            if was.zip(is).is_some_and(|(was, is)| Arc::ptr_eq(was, is)) {
                continue;
            }
            let (was, is) = (was.map_or(&none, |was| &**was), is.map_or(&none, |is| &**is));
            for (id, was, is) in SharedMap::diff(was, is) {
                let key = Key::Object(kind.clone(), id.as_str().into());
                if let Some(object) = is.or(was) {
                    self.note(key, object.scope, is.is_none());
                }
            }
        }
    }

    fn workloads(&mut self) {
        let (before, now) = (self.before, self.now);
        for (id, was, is) in SharedMap::diff(&before.workloads, &now.workloads) {
            let archived = self.archived.get(id);
            let is = is.or(archived);
            // Most archived workloads have been shown with their end already.
            let is_seen = archived.is_some() && was == is;
            if let Some(workload) = is.or(was).filter(|_| !is_seen) {
                let scope = Scope::Project(workload.project_id);
                self.note(Key::Workload(*id), scope, is.is_none());
                self.note(Key::Row(*id), scope, is.is_none());
                self.pods(scope, was.map(AsRef::as_ref), is.map(AsRef::as_ref));
            }
        }
    }

    /// Classes whose pending reason has changed, and workloads of classes that had one before; an
    /// inference shows the reasons of its revisions.
    fn reasons(&mut self) {
        for (class, was, is) in PendingClasses::diff(&self.before.pending, &self.now.pending) {
            // All of a class are in one project.
            let view = if is { self.now } else { self.before };
            let scope =
                view.pending.members(class).find_map(|id| scope_of(view, shown_as(view, id)));
            if let Some(scope) = scope {
                self.note(Key::Reason(class), scope, !is);
            }
            // A workload that joined or left the class is itself a change.
            for id in self.now.pending.members(class).filter(|_| was && is) {
                let shown = shown_as(self.now, id);
                if let Some(scope) = scope_of(self.now, shown) {
                    self.note(Key::Workload(shown), scope, false);
                }
            }
        }
    }

    fn pods(&mut self, scope: Scope, was: Option<&WorkloadView>, is: Option<&WorkloadView>) {
        // Parts of its workload that a pod shows.
        let same = was.zip(is).is_some_and(|(was, is)| {
            let of = |one: &WorkloadView| {
                (one.pool.clone(), one.phase_since, one.completed_at, one.requested)
            };
            of(was) == of(is) && Arc::ptr_eq(&was.spec, &is.spec)
        });
        let (before, now) = (pods(was), pods(is));
        let workload = was.or(is).map_or(Uuid::nil(), |workload| workload.id);
        for id in before.keys().chain(now.keys().filter(|id| !before.contains_key(*id))) {
            let (was, is) = (before.get(id), now.get(id));
            if !same || was != is {
                self.note(Key::Pod(workload, *id), scope, is.is_none());
            }
            if let Some(((_, was), (_, is))) = was.zip(is) {
                self.renamed_pod(was, is);
            }
        }
    }

    /// A pod that is started again in its place has another name, and a GPU shows the names of its
    /// pods.
    fn renamed_pod(&mut self, was: &PodView, is: &PodView) {
        let Some(node) = is.node_name.as_deref().filter(|_| was.name != is.name) else { return };
        for (gpu, _) in &is.gpus {
            self.cluster_wide(Some(Key::Gpu(node.into(), *gpu)), Some(()));
        }
    }
}

/// The pods of a workload that are there, with their numbers. One whose turn has not come is not.
fn pods(of: Option<&WorkloadView>) -> BTreeMap<Uuid, (usize, &PodView)> {
    let pods = of.into_iter().flat_map(|workload| workload.pods.iter().enumerate());
    let there = pods.filter(|(_, pod)| pod.state != PodState::Later);
    there.map(|(number, pod)| (pod.id, (number, pod))).collect()
}

/// The workload that shows what this one waits for: of a revision its inference.
fn shown_as(view: &View, id: Uuid) -> Uuid {
    let revision = view.revisions.get(&id).and_then(|one| one.spec.revision.as_ref());
    revision.map_or(id, |revision| revision.of)
}

fn scope_of(view: &View, workload: Uuid) -> Option<Scope> {
    view.workloads.get(&workload).map(|workload| Scope::Project(workload.project_id))
}

/// The ids of topologies that are new, are gone or have another name.
fn renamed_topologies<'a>(before: &'a View, now: &'a View) -> BTreeSet<&'a str> {
    let shelf = |view: &'a View| view.objects.shelf(TOPOLOGY);
    let (Some(was), Some(is)) = (shelf(before), shelf(now)) else {
        let only = shelf(before).or(shelf(now)).into_iter().flat_map(|all| all.keys());
        return only.map(String::as_str).collect();
    };
    let name = |one: Option<&Arc<Object>>| one.map(|object| object.name.clone());
    let renamed = SharedMap::diff(was, is).filter(|(_, was, is)| name(*was) != name(*is));
    renamed.map(|(id, _, _)| id.as_str()).collect()
}

/// An object before and now; `None` where it does not exist.
type Pair<'a, T> = (Option<&'a Arc<T>>, Option<&'a Arc<T>>);

/// Two short lists by an id: each with the one before and the one now.
fn paired<'a, T>(
    before: &'a [Arc<T>],
    now: &'a [Arc<T>],
    id: impl Fn(&T) -> String,
) -> Vec<Pair<'a, T>> {
    let is_aligned = before.len() == now.len()
        && before.iter().zip(now).all(|(was, is)| Arc::ptr_eq(was, is) || id(was) == id(is));
    if is_aligned {
        return before.iter().map(Some).zip(now.iter().map(Some)).collect();
    }
    let mut both: BTreeMap<String, Pair<'a, T>> = BTreeMap::new();
    before.iter().for_each(|was| both.entry(id(was)).or_default().0 = Some(was));
    now.iter().for_each(|is| both.entry(id(is)).or_default().1 = Some(is));
    both.into_values().collect()
}
