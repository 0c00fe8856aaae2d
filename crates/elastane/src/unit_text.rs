//! Details of a project or a department, as text. Owns: its lines, by node pool if there are
//! several. Does not know about: requests.

use api_types::{Millis, NodePoolQuota, Nodepool, QuotaStatus, Resources, SchedulingRules, Time};
use cli_kit::local_time::moment;
use runai::quotas_by_pool;
use serde_json::Number;

use super::share::description_of_rules;

/// A project or a department.
pub(super) struct UnitText<'a> {
    pub(super) name: &'a str,
    pub(super) id: &'a str,
    pub(super) description: &'a str,
    /// Its namespace or its projects, with the key of the line.
    pub(super) belongs: (&'static str, String),
    /// Time of its creation, and the user who created it.
    pub(super) created: (Time, &'a str),
    /// GPU quota in all node pools.
    pub(super) quota: Millis,
    pub(super) resources: &'a [Resources],
    pub(super) used: &'a QuotaStatus,
    pub(super) used_by_pool: &'a [NodePoolQuota],
    pub(super) default_node_pools: &'a [String],
    pub(super) rules: &'a SchedulingRules,
}

impl UnitText<'_> {
    /// The lines; `pools` has all node pools if quotas are divided among several.
    pub(super) fn text(&self, pools: &[Nodepool], is_exact: bool) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: String| {
            text.push_str(format!("{:<20}{value}", format!("{key}:")).trim_end());
            text.push('\n');
        };
        let (created, by) = &self.created;
        line("Name", self.name.to_owned());
        line("Id", self.id.to_owned());
        line("Description", self.description.to_owned());
        line(self.belongs.0, self.belongs.1.clone());
        line("Created", format!("{} by {by}", moment(created.0.0, is_exact)));
        line("GPU quota", self.quota.to_string());
        match pools {
            [_, _, ..] => self.by_pool(pools, &mut line),
            _ => {
                let share = self.resources.first();
                line("GPU limit", amount(share.and_then(|share| share.gpu.limit.as_ref())));
                let weight = share.and_then(|share| share.gpu.over_quota_weight.as_ref());
                line("Over-quota weight", amount(weight));
            }
        }
        line("GPUs allocated", self.used.allocated.gpu.to_string());
        line("GPUs requested", self.used.requested.gpu.to_string());
        let pools = self.default_node_pools.join(", ");
        line("Default node pools", if pools.is_empty() { "all".to_owned() } else { pools });
        line("Time limits", description_of_rules(self.rules));
        let share = self.resources.first();
        line("CPU quota (milli)", amount(share.and_then(|share| share.cpu.deserved.as_ref())));
        if let Some(share) = share {
            let (amount, units) = (amount(share.memory.deserved.as_ref()), share.memory.units);
            let unit = if amount == "none" { String::new() } else { format!(" {units:?}") };
            line("Memory quota", format!("{amount}{unit}"));
        }
        text
    }

    fn by_pool(&self, pools: &[Nodepool], line: &mut impl FnMut(&str, String)) {
        let each = |value: &dyn Fn(&Resources) -> String| {
            let in_pool = |share: &Resources| {
                let name = share.node_pool.name.as_deref().unwrap_or(&share.node_pool.id);
                format!("{name} {}", value(share))
            };
            self.resources.iter().map(in_pool).collect::<Vec<_>>().join(", ")
        };
        line("GPU quota by pool", quotas_by_pool(self.resources, pools));
        line("GPU limit by pool", each(&|share| amount(share.gpu.limit.as_ref())));
        line("Weight by pool", each(&|share| amount(share.gpu.over_quota_weight.as_ref())));
        let used = |of: &NodePoolQuota| format!("{} {}", of.node_pool_name, of.quota.allocated.gpu);
        line("GPUs by pool", self.used_by_pool.iter().map(used).collect::<Vec<_>>().join(", "));
    }
}

fn amount(number: Option<&Number>) -> String {
    match number {
        Some(number) if !number.to_string().starts_with('-') => number.to_string(),
        _ => "none".to_owned(),
    }
}
