//! The ledger of GPUs as it is shown: grouped, in hours, with prices. Owns: the sums, and that a
//! cost is shown only where everything that was held has a price.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{GpuPrices, GpuUsageRow, Micros};
use records::LedgerRow;

/// Property that rows are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UsageGrouping {
    Project,
    User,
    Model,
}

impl UsageGrouping {
    /// All groupings with their words.
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("project", Self::Project), ("user", Self::User), ("model", Self::Model)];

    /// Word of the grouping.
    pub(crate) fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, by)| *by == self).map_or("", |(word, _)| word)
    }
}

/// Thousandths of a GPU times milliseconds in a millionth of a GPU-hour.
const IN_A_MICRO_HOUR: u128 = 3600;

/// Amounts of a row; sums of what the ledger has, so that rounding comes last.
#[derive(Default)]
struct Amounts {
    allocated: u128,
    measured: u128,
    used: u128,
    memory_measured: u128,
    memory_used: u128,
    by_model: BTreeMap<String, u128>,
}

impl Amounts {
    fn add(&mut self, row: &LedgerRow) {
        self.allocated += u128::from(row.allocated);
        self.measured += u128::from(row.measured);
        self.used += u128::from(row.used);
        self.memory_measured += u128::from(row.memory_measured);
        self.memory_used += u128::from(row.memory_used);
        *self.by_model.entry(row.gpu_model.clone()).or_default() += u128::from(row.allocated);
    }

    fn shown(&self, prices: &GpuPrices, names: GpuUsageRow) -> GpuUsageRow {
        let (known, memory_known) = (self.measured > 0, self.memory_measured > 0);
        GpuUsageRow {
            allocated_gpu_hours: hours(self.allocated),
            measured_gpu_hours: hours(self.measured),
            used_gpu_hours: known.then(|| hours(self.used)),
            idle_gpu_hours: known.then(|| hours(self.measured.saturating_sub(self.used))),
            measured_gpu_memory_gib_hours: memory_known.then(|| gib_hours(self.memory_measured)),
            used_gpu_memory_gib_hours: memory_known.then(|| gib_hours(self.memory_used)),
            cost: self.cost(prices),
            ..names
        }
    }

    fn cost(&self, prices: &GpuPrices) -> Option<Micros> {
        let held = self.by_model.iter().filter(|(_, amount)| **amount > 0);
        let cost = held.map(|(model, amount)| {
            let price = prices.prices.iter().find(|price| price.gpu_model == *model)?;
            Some(amount * u128::from(price.per_gpu_hour.0))
        });
        let sum: u128 = cost.sum::<Option<u128>>()?;
        let known = !prices.prices.is_empty();
        known.then(|| micros(sum / IN_A_MICRO_HOUR / u128::from(Micros::ONE)))
    }
}

fn hours(amount: u128) -> Micros {
    micros(amount / IN_A_MICRO_HOUR)
}

/// Gibibyte hours of an amount in MiB times milliseconds.
fn gib_hours(amount: u128) -> Micros {
    micros(amount * 1000 / 1024 / IN_A_MICRO_HOUR)
}

fn micros(amount: u128) -> Micros {
    Micros(u64::try_from(amount).unwrap_or(u64::MAX))
}

/// Project, user and model, as far as they are distinguished.
type Group<'a> = (Option<u64>, Option<&'a str>, Option<&'a str>);

/// The rows by group, and their sum. `name` gives the name of a living project.
pub(crate) fn rows(
    ledger: &[LedgerRow],
    by: &BTreeSet<UsageGrouping>,
    prices: &GpuPrices,
    name: impl Fn(u64) -> Option<String>,
) -> (Vec<GpuUsageRow>, GpuUsageRow) {
    let mut groups: BTreeMap<Group<'_>, (Amounts, &str)> = BTreeMap::new();
    let mut total = Amounts::default();
    for row in ledger {
        let has = |what| by.contains(&what);
        let key = (
            has(UsageGrouping::Project).then_some(row.project_id),
            has(UsageGrouping::User).then_some(row.owner.as_str()),
            has(UsageGrouping::Model).then_some(row.gpu_model.as_str()),
        );
        let (sum, named) = groups.entry(key).or_default();
        sum.add(row);
        *named = (*named).max(row.project_name.as_str());
        total.add(row);
    }
    let shown = |((project, user, model), (sum, named)): (Group<'_>, (Amounts, &str))| {
        let names = GpuUsageRow {
            project_id: project.map(|id| id.to_string()),
            project_name: project.map(|id| name(id).unwrap_or_else(|| named.to_owned())),
            user: user.map(ToOwned::to_owned),
            gpu_model: model.map(ToOwned::to_owned),
            ..GpuUsageRow::default()
        };
        sum.shown(prices, names)
    };
    let rows = groups.into_iter().map(shown).collect();
    (rows, total.shown(prices, GpuUsageRow::default()))
}

#[cfg(test)]
mod tests {
    use api_types::GpuPrice;

    use super::*;

    const HOUR: u64 = 1000 * 3_600_000;

    fn row(project_id: u64, owner: &str, model: &str, allocated: u64, measured: u64) -> LedgerRow {
        LedgerRow {
            project_id,
            project_name: "old".to_owned(),
            owner: owner.to_owned(),
            gpu_model: model.to_owned(),
            allocated,
            measured,
            used: measured / 4,
            memory_measured: measured * 80 * 1024 / 1000,
            memory_used: measured * 20 * 1024 / 1000,
        }
    }

    #[test]
    fn rows_add_up_and_a_cost_needs_a_price_for_everything() {
        let ledger = [
            row(1, "ann", "H100", HOUR, HOUR),
            row(1, "bob", "L4", HOUR / 2, 0),
            row(2, "ann", "L4", 1, 0),
        ];
        let price = GpuPrice { gpu_model: "H100".to_owned(), per_gpu_hour: Micros(2_500_000) };
        let prices = GpuPrices { currency: "EUR".to_owned(), prices: vec![price] };
        let name = |id| (id == 1).then(|| "team-a".to_owned());
        let told = |by: &[UsageGrouping]| {
            let (rows, total) = rows(&ledger, &by.iter().copied().collect(), &prices, name);
            let line = |row: &GpuUsageRow| {
                let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                let number = |n: Option<Micros>| n.map_or("-".to_owned(), |n| n.to_string());
                format!(
                    "{} {} {} {} {} {} {} {}/{}",
                    text(&row.project_name),
                    text(&row.user),
                    text(&row.gpu_model),
                    row.allocated_gpu_hours,
                    number(row.used_gpu_hours),
                    number(row.idle_gpu_hours),
                    number(row.cost),
                    number(row.used_gpu_memory_gib_hours),
                    number(row.measured_gpu_memory_gib_hours),
                )
            };
            rows.iter().chain([&total]).map(line).collect::<Vec<_>>()
        };
        let total = "- - - 1.5 0.25 0.75 - 20/80";
        assert_eq!(told(&[]), [total, total]);
        assert_eq!(
            told(&[UsageGrouping::Project]),
            ["team-a - - 1.5 0.25 0.75 - 20/80", "old - - 0 - - - -/-", total]
        );
        assert_eq!(
            told(&[UsageGrouping::User, UsageGrouping::Model]),
            [
                "- ann H100 1 0.25 0.75 2.5 20/80",
                "- ann L4 0 - - - -/-",
                "- bob L4 0.5 - - - -/-",
                total
            ]
        );
    }
}
