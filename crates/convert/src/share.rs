//! Conversion of quotas, limits and weights from and to the wire.

use std::collections::BTreeMap;

use api_types::{
    self as wire, Millis, NodePoolQuota, QuotaResource, QuotaStatus, ResourceShare, Resources,
    ResourcesMemory, ResourcesNodePool, ShareRequest, TotalResources, Units, number_from_millis,
};
use http_kit::ApiError;
use orchestrator::POOL_DEFAULT_ID;
use serde_json::{Number, Value, json};
use spec::{Rank, Share, ShareChange, SummedQuotas};
use view::{PoolShare, QueueStatus};

/// Changes of shares, by the id of their node pool. Values that are not given are unchanged.
pub fn shares(resources: &[ShareRequest]) -> Result<BTreeMap<String, ShareChange>, ApiError> {
    let mut asked = BTreeMap::new();
    for (at, resource) in resources.iter().enumerate() {
        let pool = resource.node_pool.as_ref().map_or(POOL_DEFAULT_ID, |pool| &pool.id);
        if asked.insert(pool.to_owned(), Entry(at).change(resource)?).is_some() {
            let why = format!("node pool `{}` is there twice", units::shown(pool));
            return Err(ApiError::field(&format!("resources[{at}].nodePool"), why));
        }
    }
    Ok(asked)
}

/// Changes of shares as in [`shares`]; an error if there are none.
pub fn some_shares(resources: &[ShareRequest]) -> Result<BTreeMap<String, ShareChange>, ApiError> {
    if resources.is_empty() {
        return Err(ApiError::field(
            "resources",
            "has no entry; send one at least, as [{\"gpu\": {\"deserved\": 2}}]",
        ));
    }
    shares(resources)
}

/// Index of an entry of `resources`.
struct Entry(usize);

impl Entry {
    fn field(&self, name: &str) -> String {
        format!("resources[{}].{name}", self.0)
    }

    /// True if the quota of a resource is to be the sum of those of the projects, and not set.
    fn sums(&self, name: &str, of: Option<(Option<bool>, bool)>) -> Result<bool, ApiError> {
        match of {
            Some((Some(true), true)) => Err(ApiError::field(
                &self.field(&format!("{name}.deservedFromProjects")),
                "is for a quota that is not set; leave out `deserved`",
            )),
            Some((Some(true), false)) => Ok(true),
            _ => Ok(false),
        }
    }

    fn change(&self, resource: &ShareRequest) -> Result<ShareChange, ApiError> {
        let mut change = ShareChange { rank: self.rank(resource)?, ..ShareChange::default() };
        if let Some(gpu) = &resource.gpu {
            change.gpu_quota_millis = match self.quota("gpu.deserved", gpu.deserved.as_ref())? {
                Bound::Unchanged => None,
                Bound::At(millis) => Some(millis),
                Bound::Unlimited => {
                    let why = "`-1` is negative; the smallest amount is 0";
                    return Err(ApiError::field(&self.field("gpu.deserved"), why));
                }
            };
            change.gpu_limit_millis = self.scaled("gpu.limit", gpu.limit.as_ref(), 1000)?;
            let weight = gpu.over_quota_weight.as_ref();
            change.over_quota_weight = self.whole("gpu.overQuotaWeight", weight)?;
        }
        let ShareRequest { gpu, cpu, memory, .. } = resource;
        let gpu = gpu.as_ref().map(|of| (of.deserved_from_projects, of.deserved.is_some()));
        let cpu = cpu.as_ref().map(|of| (of.deserved_from_projects, of.deserved.is_some()));
        let memory = memory.as_ref().map(|of| (of.deserved_from_projects, of.deserved.is_some()));
        change.summed = SummedQuotas {
            gpu: self.sums("gpu", gpu)?,
            cpu: self.sums("cpu", cpu)?,
            memory: self.sums("memory", memory)?,
        };
        if let Some(cpu) = &resource.cpu {
            change.cpu_quota_millis = self.scaled("cpu.deserved", cpu.deserved.as_ref(), 1)?;
            change.cpu_limit_millis = self.scaled("cpu.limit", cpu.limit.as_ref(), 1)?;
            let weight = self.whole("cpu.overQuotaWeight", cpu.over_quota_weight.as_ref())?;
            change.cpu_weight = weight.map(Some);
        }
        if let Some(memory) = &resource.memory {
            let unit = memory.units.bytes();
            let (deserved, limit) = (memory.deserved.as_ref(), memory.limit.as_ref());
            change.memory_quota_bytes = self.scaled("memory.deserved", deserved, unit)?;
            change.memory_limit_bytes = self.scaled("memory.limit", limit, unit)?;
            let weight = self.whole("memory.overQuotaWeight", memory.over_quota_weight.as_ref())?;
            change.memory_weight = weight.map(Some);
        }
        Ok(change)
    }

    /// The rank, by either of its names.
    fn rank(&self, resource: &ShareRequest) -> Result<Option<Rank>, ApiError> {
        let rank = resource.rank.and_then(|asked| RANKS.iter().find(|row| row.1 == asked));
        let rank = rank.map(|row| row.2);
        let Some(name) = resource.priority.as_deref() else { return Ok(rank) };
        let usual = (name == PRIORITY_NORMAL).then_some(Rank::MediumLow);
        let named = usual.or_else(|| RANKS.iter().find(|row| row.0 == name).map(|row| row.2));
        let refused = |why: &str| {
            let why = format!("`{}` {why}", units::shown(name));
            Err(ApiError::field(&self.field("priority"), why))
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

    /// A bound in thousandths.
    fn quota(&self, field: &str, number: Option<&Number>) -> Result<Bound, ApiError> {
        let Some(number) = number else { return Ok(Bound::Unchanged) };
        let text = super::decimal(number);
        if text == "-1" || text == "-1.0" {
            return Ok(Bound::Unlimited);
        }
        let millis = units::parse_cpu_millis(&text);
        millis.map(Bound::At).map_err(|why| ApiError::field(&self.field(field), why))
    }

    fn whole(&self, field: &str, number: Option<&Number>) -> Result<Option<u64>, ApiError> {
        let Some(number) = number else { return Ok(None) };
        let field = self.field(field);
        let text = super::decimal(number);
        let millis = units::parse_cpu_millis(&text).map_err(|why| ApiError::field(&field, why))?;
        if !millis.is_multiple_of(1000) {
            return Err(ApiError::field(&field, format!("`{text}` is not whole; use 0, 1, 2, …")));
        }
        Ok(Some(millis / 1000))
    }

    /// A bound in units of this many of ours.
    fn scaled(
        &self,
        field: &str,
        number: Option<&Number>,
        unit: u64,
    ) -> Result<Option<Option<u64>>, ApiError> {
        match self.quota(field, number)? {
            Bound::Unchanged => Ok(None),
            Bound::Unlimited => Ok(Some(None)),
            Bound::At(millis) => {
                let amount = u128::from(millis) * u128::from(unit) / 1000;
                let too_large = |_| ApiError::field(&self.field(field), "is too large");
                u64::try_from(amount).map(|amount| Some(Some(amount))).map_err(too_large)
            }
        }
    }
}

/// Name of the default rank in older clients.
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

/// Name and value of every rank, in ascending order, and true for the default one.
pub fn ranks() -> impl Iterator<Item = (&'static str, u32, bool)> {
    RANKS.iter().map(|(name, _, rank)| (*name, rank.value(), *rank == Rank::default()))
}

/// Change of a bound by a number.
enum Bound {
    Unchanged,
    At(u64),
    Unlimited,
}

/// Allocated and requested resources.
pub(super) fn quota_status(status: &QueueStatus) -> QuotaStatus {
    QuotaStatus {
        allocated: amounts(status.allocated),
        allocated_non_preemptible: amounts(status.allocated_non_preemptible),
        requested: amounts(status.requested),
    }
}

/// Allocated and requested resources in each node pool.
pub(super) fn pool_quotas(pools: &[PoolShare]) -> Vec<NodePoolQuota> {
    let quota = |pool: &PoolShare| NodePoolQuota {
        node_pool_name: pool.name.to_string(),
        node_pool_id: pool.id.to_string(),
        quota: quota_status(&pool.status),
    };
    pools.iter().map(quota).collect()
}

/// Additional numbers of ours: fair share and recent usage.
pub(super) fn own_numbers(status: &QueueStatus) -> BTreeMap<String, Value> {
    let fair_share = ("fairShare".to_owned(), json!(amounts(status.fair_share)));
    let mut own = BTreeMap::from([fair_share]);
    own.extend(status.usage.map(|usage| {
        let ppm = json!({"gpu": usage.gpu_ppm, "cpu": usage.cpu_ppm, "memory": usage.memory_ppm});
        ("usagePpm".to_owned(), ppm)
    }));
    own
}

fn amounts(of: units::Resources) -> QuotaResource {
    QuotaResource { gpu: Millis(of.gpu_millis), cpu: of.cpu_millis, memory: of.memory_bytes }
}

/// Quotas over all pools; unlimited if one is.
pub(super) fn totals(pools: &[PoolShare]) -> TotalResources {
    let sum = |of: fn(&Share) -> Option<u64>| {
        pools
            .iter()
            .map(|pool| of(&pool.share))
            .try_fold(0_u64, |sum, next| next.map(|next| sum.saturating_add(next)))
    };
    TotalResources {
        gpu_quota: Millis(gpu_quota_millis(pools)),
        cpu_quota: sum(|share| share.cpu_quota_millis),
        memory_quota: sum(|share| share.memory_quota_bytes).map(|n| n / Units::Mib.bytes()),
    }
}

/// Deserved GPUs over all pools, in thousandths.
pub(super) fn gpu_quota_millis(pools: &[PoolShare]) -> u64 {
    pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.share.gpu_quota_millis))
}

/// Shares in a node pool. Unlimited values are written as -1.
pub(super) fn resources(pool: &PoolShare) -> Resources {
    let share = &pool.share;
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
        node_pool: ResourcesNodePool { id: pool.id.to_string(), name: Some(pool.name.to_string()) },
        gpu: ResourceShare {
            deserved: Some(number_from_millis(share.gpu_quota_millis)),
            limit: Some(share.gpu_limit_millis.map_or_else(unlimited, number_from_millis)),
            over_quota_weight: Some(gpu.into()),
            deserved_from_projects: None,
        },
        cpu: ResourceShare {
            deserved: Some(share.cpu_quota_millis.map_or_else(unlimited, Number::from)),
            limit: Some(share.cpu_limit_millis.map_or_else(unlimited, Number::from)),
            over_quota_weight: Some(share.cpu_weight.unwrap_or(gpu).into()),
            deserved_from_projects: None,
        },
        memory: ResourcesMemory {
            deserved: memory_quota,
            limit: memory_limit,
            over_quota_weight: Some(share.memory_weight.unwrap_or(gpu).into()),
            deserved_from_projects: None,
            units: unit,
        },
        priority: rank,
        rank,
    }
}

/// The unit in which the amounts of memory have no remainder: MiB, else MB.
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
