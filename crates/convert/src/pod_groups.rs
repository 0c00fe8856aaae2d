//! Conversion of groups of pods, each of a leader and workers. Owns: their maximum number, their
//! names and pod sets, and that the workload can run with one of them.

use api_types::{CreationRequest, PodGroups};
use http_kit::ApiError;
use spec::{GROUPS_MAX, Group, LEADER, PodSet};

/// Validates a number of groups.
pub(super) fn check_number(field: &str, number: u32) -> Result<u32, ApiError> {
    match number {
        0 => {
            let why = "0 is too few; use 1 or more, and suspend the workload to stop all of it";
            Err(ApiError::field(field, why))
        }
        number if number as usize > GROUPS_MAX => {
            let why = format!("{number} is too many; 1 to {GROUPS_MAX} are allowed");
            Err(ApiError::field(field, why))
        }
        number => Ok(number),
    }
}

fn number(request: &CreationRequest) -> Result<u32, ApiError> {
    let number = request.pod_groups.map_or(1, |groups| groups.number);
    check_number("podGroups.number", number)
}

fn name(at: u32) -> String {
    format!("group-{at}")
}

/// The pod sets of the leader and the workers, once for each group.
pub(super) fn sets(
    request: &CreationRequest,
    master: &PodSet,
    worker: &PodSet,
) -> Result<(PodSet, Vec<PodSet>), ApiError> {
    let specs = [("spec", &request.spec), ("masterSpec", &request.master_spec)];
    if let Some((at, _)) =
        specs.into_iter().find(|(_, spec)| spec.as_ref().is_some_and(|s| s.pod_names.is_some()))
    {
        let why = "goes without groups, whose pods are called after them; leave it out";
        return Err(ApiError::field(&format!("{at}.podNames"), why));
    }
    let number = number(request)?;
    let leader = PodSet { role: LEADER.to_owned(), ..master.clone() };
    let of = |at: u32, set: &PodSet| PodSet { group: Some(name(at)), ..set.clone() };
    let others = (1..number).flat_map(|at| [of(at, &leader), of(at, worker)]);
    Ok((of(0, &leader), std::iter::once(of(0, worker)).chain(others).collect()))
}

/// The groups, and the minimum number of them.
pub(super) fn tree(request: &CreationRequest) -> Result<(Vec<Group>, Option<u32>), ApiError> {
    let recreate = request.pod_groups.and_then(|groups| groups.recreate).unwrap_or(true);
    let group = |at| Group { name: name(at), recreate, ..Group::default() };
    Ok(((0..number(request)?).map(group).collect(), Some(1)))
}

/// Converts the groups to the form of a request.
pub(super) fn to_wire(spec: &spec::WorkloadSpec) -> Option<PodGroups> {
    let first = spec.groups.first().filter(|_| spec.is_of_groups())?;
    let number = u32::try_from(spec.groups.len()).unwrap_or(u32::MAX);
    Some(PodGroups { number, recreate: Some(first.recreate) })
}
