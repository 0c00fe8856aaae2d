//! Quotas, limits and weights in both directions. Owns: their defaults, and what of the published
//! resources one node pool and one weight can express.

use std::collections::BTreeMap;

use api_types::{
    Millis, NODE_POOL_ID, NODE_POOL_NAME, NodePoolQuota, QuotaResource, QuotaStatus, ResourceShare,
    Resources, ResourcesMemory, ResourcesNodePool, ShareRequest, TotalResources, Units,
    number_from_millis,
};
use control::ShareChange;
use control::view::{Share, Standing};
use serde_json::{Number, Value, json};

use crate::edge::Fault;

/// Weight where none is named: the published "medium".
const WEIGHT_DEFAULT: u64 = 2;

/// The share of what says nothing.
pub(crate) const SHARE_DEFAULT: Share = Share {
    gpu_quota_millis: 0,
    gpu_limit_millis: None,
    over_quota_weight: WEIGHT_DEFAULT,
    cpu_quota_millis: None,
    memory_quota_bytes: None,
};

pub(super) fn refuse_later(value: &api_types::Later, name: &str) -> Result<(), Fault> {
    if api_types::asks_for_something(value) { Err(Fault::not_yet(name)) } else { Ok(()) }
}

/// The share that resources describe; what they leave out is taken from `base`.
pub(crate) fn shares(resources: &[ShareRequest], base: Share) -> Result<Share, Fault> {
    Ok(share_change(resources, base.over_quota_weight)?.made_to(base))
}

/// What resources say; what they leave out is left out. `weight` is the one that counts where they
/// name none.
pub(crate) fn share_change(resources: &[ShareRequest], weight: u64) -> Result<ShareChange, Fault> {
    let [resource] = resources else {
        let why = format!("has {} entries; there is one node pool, so use one", resources.len());
        return Err(Fault::field("resources", why));
    };
    if let Some(pool) = resource.node_pool.as_ref().filter(|pool| pool.id != NODE_POOL_ID) {
        let why = format!("there is no node pool with id `{}`; use {NODE_POOL_ID}", pool.id);
        return Err(Fault::field("resources[0].nodePool", why));
    }
    refuse_later(&resource.priority, "resources[0].priority")?;
    refuse_later(&resource.rank, "resources[0].rank")?;
    let mut change = ShareChange::default();
    if let Some(gpu) = &resource.gpu {
        change.gpu_quota_millis = match quota("gpu.deserved", gpu.deserved.as_ref())? {
            Bound::Kept => None,
            Bound::At(millis) => Some(millis),
            Bound::Unlimited => {
                let why = "`-1` is negative; the smallest amount is 0";
                return Err(Fault::field("resources[0].gpu.deserved", why));
            }
        };
        change.gpu_limit_millis = match quota("gpu.limit", gpu.limit.as_ref())? {
            Bound::Kept => None,
            Bound::At(millis) => Some(Some(millis)),
            Bound::Unlimited => Some(None),
        };
        let weight = gpu.over_quota_weight.as_ref();
        change.over_quota_weight = weight.map(|n| whole("gpu.overQuotaWeight", n)).transpose()?;
    }
    let weight = change.over_quota_weight.unwrap_or(weight);
    if let Some(cpu) = &resource.cpu {
        refuse_rest("cpu", cpu.limit.as_ref(), cpu.over_quota_weight.as_ref(), weight)?;
        change.cpu_quota_millis = scaled("cpu.deserved", cpu.deserved.as_ref(), 1)?;
    }
    if let Some(memory) = &resource.memory {
        refuse_rest("memory", memory.limit.as_ref(), memory.over_quota_weight.as_ref(), weight)?;
        let unit = memory.units.bytes();
        change.memory_quota_bytes = scaled("memory.deserved", memory.deserved.as_ref(), unit)?;
    }
    Ok(change)
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

fn whole(field: &str, number: &Number) -> Result<u64, Fault> {
    let field = format!("resources[0].{field}");
    let text = super::decimal(number);
    let millis = units::parse_cpu_millis(&text).map_err(|why| Fault::field(&field, why))?;
    if !millis.is_multiple_of(1000) {
        return Err(Fault::field(&field, format!("`{text}` is not whole; use 0, 1, 2, …")));
    }
    Ok(millis / 1000)
}

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

/// CPU and memory have a quota, no limit, and the weight of the GPUs.
fn refuse_rest(
    name: &str,
    limit: Option<&Number>,
    weight: Option<&Number>,
    of_gpus: u64,
) -> Result<(), Fault> {
    if limit.is_some_and(|limit| limit.as_i64() != Some(-1)) {
        return Err(Fault::not_yet(format!("resources[0].{name}.limit")));
    }
    match weight {
        Some(weight) => {
            let field = format!("{name}.overQuotaWeight");
            if whole(&field, weight)? == of_gpus {
                return Ok(());
            }
            Err(Fault::not_yet(format!("resources[0].{field} other than that of gpu")))
        }
        None => Ok(()),
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
    let weight = Some(Number::from(share.over_quota_weight));
    let unlimited = || Number::from(-1);
    let (memory, units) = memory_quota(share.memory_quota_bytes);
    Resources {
        node_pool: ResourcesNodePool {
            id: NODE_POOL_ID.to_owned(),
            name: Some(NODE_POOL_NAME.to_owned()),
        },
        gpu: ResourceShare {
            deserved: Some(number_from_millis(share.gpu_quota_millis)),
            limit: Some(share.gpu_limit_millis.map_or_else(unlimited, number_from_millis)),
            over_quota_weight: weight.clone(),
        },
        cpu: ResourceShare {
            deserved: Some(share.cpu_quota_millis.map_or_else(unlimited, Number::from)),
            limit: Some(unlimited()),
            over_quota_weight: weight.clone(),
        },
        memory: ResourcesMemory {
            deserved: Some(memory),
            limit: Some(unlimited()),
            over_quota_weight: weight,
            units,
        },
    }
}

/// A memory quota in the unit in which it is whole.
fn memory_quota(bytes: Option<u64>) -> (Number, Units) {
    let Some(bytes) = bytes else { return (Number::from(-1), Units::Mib) };
    let unit = if bytes.is_multiple_of(Units::Mib.bytes()) { Units::Mib } else { Units::MB };
    (number_from_millis(millis_of(bytes, unit.bytes())), unit)
}

/// `bytes / unit` in thousandths, rounded down.
fn millis_of(bytes: u64, unit: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1000 / u128::from(unit)).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
