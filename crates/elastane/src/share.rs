//! The share of a project or department. Owns: its flags, and their conversion to requests.

use api_types::{
    ResourceShare, ResourcesMemory, SchedulingRules, ShareRequest, Units, number_from_millis,
};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::Number;

use super::complete;
use cli_kit::exit::Error;
use cli_kit::parse_number::whole;
use dialects::seconds;

/// The command of projects.
pub(crate) const PROJECT: &str = "project";
/// The command of departments.
pub(crate) const DEPARTMENT: &str = "department";

/// Shares and settings of a project or a department.
#[derive(Debug, Default, Args)]
pub(crate) struct Share {
    /// GPUs it deserves, such as 2 or 0.5; for a department `sum` for what its projects deserve together
    #[arg(long, value_name = "N", value_parser = quota)]
    pub(crate) gpu_quota: Option<Quota>,
    /// Most GPUs it may hold; `none` for no limit
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) gpu_limit: Option<Limit>,
    /// Weight when idle GPUs are divided; 0 for those that no project with a weight asks for
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub(crate) over_quota_weight: Option<u64>,
    /// CPU cores it deserves; `none` for no quota, `sum` as for GPUs
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub(crate) cpu_quota: Option<Quota>,
    /// Memory it deserves, such as 64GiB; `none` for no quota, `sum` as for GPUs
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory_quota: Option<Quota>,
    /// Node pool in which the quotas and limits of GPUs, CPU and memory count [default: default]
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::pools))]
    pub(crate) node_pool: Option<String>,
    /// Node pools of workloads that name none, the best first; `none` for all pools
    #[arg(long, value_name = "NAME,NAME", value_parser = pools)]
    #[arg(add = ArgValueCandidates::new(complete::pools))]
    pub(crate) default_node_pools: Option<Pools>,
    /// Free text
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Limits on the run time and idle time of its workloads.
    #[command(flatten)]
    pub(crate) limits: TimeLimits,
}

/// Limits in time of the workloads of a project or a department.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct TimeLimits {
    /// How long a training may run, such as 12h; `none` for no limit
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) training_time_limit: Option<Limit>,
    /// How long a workspace may run
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) workspace_time_limit: Option<Limit>,
    /// How long all GPUs of a training may be idle
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) training_idle_limit: Option<Limit>,
    /// How long all GPUs of a workspace may be idle
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) workspace_idle_limit: Option<Limit>,
}

/// An amount, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Unlimited.
    None,
    /// Amount in the unit of the flag.
    At(u64),
}

/// A quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quota {
    /// The sum of the quotas of the projects of a department.
    Sum,
    /// An amount, or no quota.
    Own(Limit),
}

/// Names of one flag. A named type, as the parser would treat a `Vec` as a repeated flag.
pub(crate) type Pools = Vec<String>;

fn pools(text: &str) -> Result<Pools, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    match names.iter().any(String::is_empty) {
        true => Err("write NAME,NAME, the best first, or none".to_owned()),
        false => Ok(names),
    }
}

/// A number of GPUs, which may have a fraction: a quota is for many workloads.
fn amount(text: &str) -> Result<u64, String> {
    if text.ends_with('m') {
        return Err(units::Error::NotANumber(text.to_owned()).to_string());
    }
    units::parse_cpu_millis(text).map_err(|error| error.to_string())
}

/// A number of GPUs, or the sum of the projects.
fn quota(text: &str) -> Result<Quota, String> {
    unless_sum(text, |text| amount(text).map(Limit::At))
}

fn unless_sum(
    text: &str,
    parse: impl FnOnce(&str) -> Result<Limit, String>,
) -> Result<Quota, String> {
    match text {
        "sum" => Ok(Quota::Sum),
        _ => parse(text).map(Quota::Own),
    }
}

fn limit(text: &str) -> Result<Limit, String> {
    unless_none(text, amount)
}

fn time(text: &str) -> Result<Limit, String> {
    unless_none(text, seconds)
}

fn cores(text: &str) -> Result<Quota, String> {
    let cores = |text: &str| units::parse_cpu_millis(text).map_err(|error| error.to_string());
    unless_sum(text, |text| unless_none(text, cores))
}

fn memory(text: &str) -> Result<Quota, String> {
    let bytes = |text: &str| units::parse_bytes(text).map_err(|error| error.to_string());
    unless_sum(text, |text| unless_none(text, bytes))
}

fn unless_none(
    text: &str,
    parse: impl FnOnce(&str) -> Result<u64, String>,
) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit::None),
        _ => parse(text).map(Limit::At),
    }
}

/// True if a value other than the shares is given.
pub(super) fn has_more(share: &Share) -> bool {
    share.description.is_some()
        || share.default_node_pools.is_some()
        || share.limits != TimeLimits::default()
}

/// Refuses an update without values; and, of a project, a quota that only departments can have.
///
/// # Errors
/// Values that can be given.
pub(super) fn must_change(noun: &str, share: &Share) -> Result<(), Error> {
    let sums = [share.gpu_quota, share.cpu_quota, share.memory_quota].contains(&Some(Quota::Sum));
    if sums && noun == PROJECT {
        let why = "`sum` is for the quota of a department: a project has no projects below it";
        return Err(Error::Usage(why.to_owned()));
    }
    if given(share).is_none() && !has_more(share) && share.node_pool.is_none() {
        return Err(Error::Usage(format!(
            "say what to change, such as --gpu-quota 2; `elastane {noun} update --help` lists what \
             can be given"
        )));
    }
    Ok(())
}

/// The given share, without its node pool; `None` if nothing of it is given.
pub(super) fn given(share: &Share) -> Option<ShareRequest> {
    let (deserved, deserved_from_projects) = deserved(share.gpu_quota, number_from_millis);
    let gpu = ResourceShare {
        deserved,
        limit: share.gpu_limit.map(|limit| bound(limit, number_from_millis)),
        over_quota_weight: share.over_quota_weight.map(Number::from),
        deserved_from_projects,
    };
    let (deserved, deserved_from_projects) = self::deserved(share.cpu_quota, Number::from);
    let cpu = share.cpu_quota.map(|_| ResourceShare {
        deserved,
        deserved_from_projects,
        ..ResourceShare::default()
    });
    let in_mib = |bytes| in_units(bytes, Units::Mib);
    let (deserved, deserved_from_projects) = self::deserved(share.memory_quota, in_mib);
    let memory = share.memory_quota.map(|_| ResourcesMemory {
        deserved,
        limit: None,
        over_quota_weight: None,
        deserved_from_projects,
        units: Units::Mib,
    });
    let gpu = Some(gpu).filter(|gpu| *gpu != ResourceShare::default());
    let given = ShareRequest { gpu, cpu, memory, ..ShareRequest::default() };
    (given != ShareRequest::default()).then_some(given)
}

/// Time limits, which are replaced as a whole: those not given keep their current value. `None` if
/// none is given.
pub(super) fn rules(limits: &TimeLimits, now: Option<&SchedulingRules>) -> Option<SchedulingRules> {
    if *limits == TimeLimits::default() {
        return None;
    }
    let now = now.copied().unwrap_or_default();
    let either = |given: Option<Limit>, now: Option<u64>| match given {
        None => now,
        Some(Limit::None) => None,
        Some(Limit::At(seconds)) => Some(seconds),
    };
    // The limit applies to preemptible and other workspaces.
    let idle = limits.workspace_idle_limit;
    let (non_preemptible, preemptible) = (
        now.interactive_job_max_idle_duration_seconds,
        now.interactive_job_preempt_idle_duration_seconds,
    );
    Some(SchedulingRules {
        training_job_time_limit_seconds: either(
            limits.training_time_limit,
            now.training_job_time_limit_seconds,
        ),
        interactive_job_time_limit_seconds: either(
            limits.workspace_time_limit,
            now.interactive_job_time_limit_seconds,
        ),
        training_job_max_idle_duration_seconds: either(
            limits.training_idle_limit,
            now.training_job_max_idle_duration_seconds,
        ),
        interactive_job_max_idle_duration_seconds: either(idle, non_preemptible),
        interactive_job_preempt_idle_duration_seconds: either(idle, preemptible),
    })
}

/// Text of the time limits, or `-`.
pub(super) fn description_of_rules(rules: &SchedulingRules) -> String {
    let limits = [
        ("training", rules.training_job_time_limit_seconds),
        ("workspace", rules.interactive_job_time_limit_seconds),
        ("idle training", rules.training_job_max_idle_duration_seconds),
        ("idle workspace", rules.interactive_job_max_idle_duration_seconds),
        ("idle preemptible workspace", rules.interactive_job_preempt_idle_duration_seconds),
    ];
    let told = limits.into_iter().filter_map(|(what, seconds)| {
        let seconds = seconds?;
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let parts = [(hours, 'h'), (minutes, 'm'), (rest, 's')];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let time: String = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
        Some(format!("{what} {time}"))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "-".to_owned() } else { told.join(", ") }
}

/// The number of a quota, and `true` instead of one for the sum of the projects.
fn deserved(
    given: Option<Quota>,
    number: impl FnOnce(u64) -> Number,
) -> (Option<Number>, Option<bool>) {
    match given {
        None => (None, None),
        Some(Quota::Sum) => (None, Some(true)),
        Some(Quota::Own(limit)) => (Some(bound(limit, number)), None),
    }
}

/// A new GPU limit, for the line that reports the change.
pub(super) fn new_limit(share: &Share) -> String {
    match share.gpu_limit {
        None => String::new(),
        Some(Limit::None) => ", no GPU limit".to_owned(),
        Some(Limit::At(millis)) => format!(", GPU limit {}", units::format_millis(millis)),
    }
}

fn bound(given: Limit, number: impl FnOnce(u64) -> Number) -> Number {
    match given {
        Limit::None => unlimited(),
        Limit::At(amount) => number(amount),
    }
}

fn unlimited() -> Number {
    Number::from(-1)
}

/// Bytes in a unit of the API, with three decimals.
fn in_units(bytes: u64, units: Units) -> Number {
    let millis = u128::from(bytes) * 1000 / u128::from(units.bytes());
    number_from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_names_only_what_is_given() {
        assert_eq!(given(&Share::default()), None);
        let three = Quota::Own(Limit::At(3000));
        let share = Share { gpu_quota: Some(three), ..Share::default() };
        let only = ResourceShare { deserved: Some(3.into()), ..ResourceShare::default() };
        let want = ShareRequest { gpu: Some(only), ..ShareRequest::default() };
        assert_eq!(given(&share), Some(want));
        let share = Share { cpu_quota: Some(Quota::Own(Limit::None)), ..Share::default() };
        let got = given(&share).unwrap();
        assert_eq!((got.gpu, got.cpu.unwrap().deserved), (None, Some(unlimited())));
        let share = Share { gpu_quota: Some(Quota::Sum), ..Share::default() };
        let gpu = given(&share).unwrap().gpu.unwrap();
        assert_eq!((gpu.deserved, gpu.deserved_from_projects), (None, Some(true)));
    }
}
