//! Quotas, limits and weights in both directions. Owns: their defaults, and what of the published
//! resources one node pool can express.

use std::collections::BTreeMap;

use api_types::{
    self as wire, Millis, NODE_POOL_ID, NODE_POOL_NAME, NodePoolQuota, QuotaResource, QuotaStatus,
    ResourceShare, Resources, ResourcesMemory, ResourcesNodePool, ShareRequest, TotalResources,
    Units, number_from_millis,
};
use control::ShareChange;
use control::view::{Rank, Share, Standing};
use serde_json::{Number, Value, json};

use crate::edge::Fault;

/// Weight where none is named: the published "medium".
const WEIGHT_DEFAULT: u64 = 2;

/// The share of what says nothing.
pub(crate) const SHARE_DEFAULT: Share = Share::none(WEIGHT_DEFAULT);

pub(super) fn refuse_later(value: &api_types::Later, name: &str) -> Result<(), Fault> {
    if api_types::asks_for_something(value) { Err(Fault::not_yet(name)) } else { Ok(()) }
}

/// The share that resources describe; what they leave out is taken from `base`.
pub(crate) fn shares(resources: &[ShareRequest], base: Share) -> Result<Share, Fault> {
    Ok(share_change(resources)?.made_to(base))
}

/// What resources say; what they leave out is left out.
pub(crate) fn share_change(resources: &[ShareRequest]) -> Result<ShareChange, Fault> {
    let [resource] = resources else {
        let why = format!("has {} entries; there is one node pool, so use one", resources.len());
        return Err(Fault::field("resources", why));
    };
    if let Some(pool) = resource.node_pool.as_ref().filter(|pool| pool.id != NODE_POOL_ID) {
        let why = format!("there is no node pool with id `{}`; use {NODE_POOL_ID}", pool.id);
        return Err(Fault::field("resources[0].nodePool", why));
    }
    let mut change = ShareChange { rank: asked_rank(resource)?, ..ShareChange::default() };
    if let Some(gpu) = &resource.gpu {
        change.gpu_quota_millis = match quota("gpu.deserved", gpu.deserved.as_ref())? {
            Bound::Kept => None,
            Bound::At(millis) => Some(millis),
            Bound::Unlimited => {
                let why = "`-1` is negative; the smallest amount is 0";
                return Err(Fault::field("resources[0].gpu.deserved", why));
            }
        };
        change.gpu_limit_millis = scaled("gpu.limit", gpu.limit.as_ref(), 1000)?;
        change.over_quota_weight = whole("gpu.overQuotaWeight", gpu.over_quota_weight.as_ref())?;
    }
    if let Some(cpu) = &resource.cpu {
        change.cpu_quota_millis = scaled("cpu.deserved", cpu.deserved.as_ref(), 1)?;
        change.cpu_limit_millis = scaled("cpu.limit", cpu.limit.as_ref(), 1)?;
        let weight = whole("cpu.overQuotaWeight", cpu.over_quota_weight.as_ref())?;
        change.cpu_weight = weight.map(Some);
    }
    if let Some(memory) = &resource.memory {
        let unit = memory.units.bytes();
        change.memory_quota_bytes = scaled("memory.deserved", memory.deserved.as_ref(), unit)?;
        change.memory_limit_bytes = scaled("memory.limit", memory.limit.as_ref(), unit)?;
        let weight = whole("memory.overQuotaWeight", memory.over_quota_weight.as_ref())?;
        change.memory_weight = weight.map(Some);
    }
    Ok(change)
}

/// What older clients call the usual rank.
const PRIORITY_NORMAL: &str = "Normal";

const RANKS: [(&str, wire::Rank, Rank); 7] = [
    ("VeryLow", wire::Rank::VeryLow, Rank::VeryLow),
    ("Low", wire::Rank::Low, Rank::Low),
    ("MediumLow", wire::Rank::MediumLow, Rank::MediumLow),
    ("Medium", wire::Rank::Medium, Rank::Medium),
    ("MediumHigh", wire::Rank::MediumHigh, Rank::MediumHigh),
    ("High", wire::Rank::High, Rank::High),
    ("VeryHigh", wire::Rank::VeryHigh, Rank::VeryHigh),
];

/// Name and value of every rank, in rising order, and whether it is the usual one.
pub(crate) fn ranks() -> impl Iterator<Item = (&'static str, u32, bool)> {
    RANKS.iter().map(|(name, _, rank)| (*name, rank.value(), *rank == Rank::default()))
}

/// The rank by either of its names.
fn asked_rank(resource: &ShareRequest) -> Result<Option<Rank>, Fault> {
    let rank = resource.rank.and_then(|asked| RANKS.iter().find(|row| row.1 == asked));
    let rank = rank.map(|row| row.2);
    let Some(name) = resource.priority.as_deref() else { return Ok(rank) };
    let usual = (name == PRIORITY_NORMAL).then_some(Rank::MediumLow);
    let named = usual.or_else(|| RANKS.iter().find(|row| row.0 == name).map(|row| row.2));
    let refused = |why: &str| {
        let why = format!("`{}` {why}", units::shown(name));
        Err(Fault::field("resources[0].priority", why))
    };
    match named {
        None => {
            let names = RANKS.map(|row| row.0).join(", ");
            refused(&format!("is not allowed; {names} or {PRIORITY_NORMAL}"))
        }
        Some(named) if rank.is_some_and(|rank| rank != named) => {
            refused("is another than that of `rank`; send one of them")
        }
        named => Ok(named),
    }
}

/// What a number says about a bound.
enum Bound {
    Kept,
    At(u64),
    Unlimited,
}

/// A bound in thousandths.
fn quota(field: &str, number: Option<&Number>) -> Result<Bound, Fault> {
    let Some(number) = number else { return Ok(Bound::Kept) };
    let text = super::decimal(number);
    if text == "-1" || text == "-1.0" {
        return Ok(Bound::Unlimited);
    }
    let millis = units::parse_cpu_millis(&text);
    millis.map(Bound::At).map_err(|why| Fault::field(&format!("resources[0].{field}"), why))
}

fn whole(field: &str, number: Option<&Number>) -> Result<Option<u64>, Fault> {
    let Some(number) = number else { return Ok(None) };
    let field = format!("resources[0].{field}");
    let text = super::decimal(number);
    let millis = units::parse_cpu_millis(&text).map_err(|why| Fault::field(&field, why))?;
    if !millis.is_multiple_of(1000) {
        return Err(Fault::field(&field, format!("`{text}` is not whole; use 0, 1, 2, …")));
    }
    Ok(Some(millis / 1000))
}

/// A bound in units of which each is so many of ours.
fn scaled(field: &str, number: Option<&Number>, unit: u64) -> Result<Option<Option<u64>>, Fault> {
    match quota(field, number)? {
        Bound::Kept => Ok(None),
        Bound::Unlimited => Ok(Some(None)),
        Bound::At(millis) => {
            let amount = u128::from(millis) * u128::from(unit) / 1000;
            let too_large = |_| Fault::field(&format!("resources[0].{field}"), "is too large");
            u64::try_from(amount).map(|amount| Some(Some(amount))).map_err(too_large)
        }
    }
}

/// What is held and asked for.
pub(super) fn quota_status(standing: &Standing) -> QuotaStatus {
    QuotaStatus {
        allocated: amounts(standing.allocated),
        allocated_non_preemptible: amounts(standing.allocated_non_preemptible),
        requested: amounts(standing.requested),
    }
}

/// The same per node pool.
pub(super) fn pool_quotas(standing: &Standing) -> Vec<NodePoolQuota> {
    vec![NodePoolQuota {
        node_pool_name: NODE_POOL_NAME.to_owned(),
        node_pool_id: NODE_POOL_ID.to_owned(),
        quota: quota_status(standing),
    }]
}

/// Our own numbers: what it is entitled to, and what it used of late.
pub(super) fn own_numbers(standing: &Standing) -> BTreeMap<String, Value> {
    let fair_share = ("fairShare".to_owned(), json!(amounts(standing.fair_share)));
    let mut own = BTreeMap::from([fair_share]);
    own.extend(standing.usage.map(|usage| {
        let ppm = json!({"gpu": usage.gpu_ppm, "cpu": usage.cpu_ppm, "memory": usage.memory_ppm});
        ("usagePpm".to_owned(), ppm)
    }));
    own
}

fn amounts(of: units::Resources) -> QuotaResource {
    QuotaResource { gpu: Millis(of.gpu_millis), cpu: of.cpu_millis, memory: of.memory_bytes }
}

/// Quotas over all pools.
pub(super) fn totals(share: &Share) -> TotalResources {
    TotalResources {
        gpu_quota: Millis(share.gpu_quota_millis),
        cpu_quota: share.cpu_quota_millis,
        memory_quota: share.memory_quota_bytes.map(|bytes| bytes / Units::Mib.bytes()),
    }
}

/// Shares in the one pool there is. What is unlimited is -1, so that a reader sees it said.
pub(super) fn resources(share: &Share) -> Resources {
    let gpu = share.over_quota_weight;
    let unlimited = || Number::from(-1);
    let bytes = [share.memory_quota_bytes, share.memory_limit_bytes];
    let unit = memory_unit(bytes);
    let memory = bytes.map(|bytes| {
        Some(bytes.map_or_else(unlimited, |n| number_from_millis(millis_of(n, unit.bytes()))))
    });
    let [memory_quota, memory_limit] = memory;
    let rank =
        RANKS.iter().find(|row| row.2 == share.rank).map_or(wire::Rank::MediumLow, |row| row.1);
    Resources {
        node_pool: ResourcesNodePool {
            id: NODE_POOL_ID.to_owned(),
            name: Some(NODE_POOL_NAME.to_owned()),
        },
        gpu: ResourceShare {
            deserved: Some(number_from_millis(share.gpu_quota_millis)),
            limit: Some(share.gpu_limit_millis.map_or_else(unlimited, number_from_millis)),
            over_quota_weight: Some(gpu.into()),
        },
        cpu: ResourceShare {
            deserved: Some(share.cpu_quota_millis.map_or_else(unlimited, Number::from)),
            limit: Some(share.cpu_limit_millis.map_or_else(unlimited, Number::from)),
            over_quota_weight: Some(share.cpu_weight.unwrap_or(gpu).into()),
        },
        memory: ResourcesMemory {
            deserved: memory_quota,
            limit: memory_limit,
            over_quota_weight: Some(share.memory_weight.unwrap_or(gpu).into()),
            units: unit,
        },
        priority: rank,
        rank,
    }
}

/// The unit in which amounts of memory are whole.
fn memory_unit(amounts: [Option<u64>; 2]) -> Units {
    let whole = |bytes: u64| bytes.is_multiple_of(Units::Mib.bytes());
    if amounts.into_iter().flatten().all(whole) { Units::Mib } else { Units::MB }
}

/// `bytes / unit` in thousandths, rounded down.
fn millis_of(bytes: u64, unit: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1000 / u128::from(unit)).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
