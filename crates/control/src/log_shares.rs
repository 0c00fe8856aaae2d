//! Shares of a log. Owns: how many rows each project has and, of a project, each user, and which of
//! them go when all are too many. Does not know about: the age of rows.

use std::collections::BTreeMap;

use records::{Log, LogGroup};
use store::Store;

/// Rows of each group of a log, as of a position.
#[derive(Debug)]
pub(crate) struct LogShares {
    log: Log,
    counted_until: u64,
    groups: BTreeMap<LogGroup, Group>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Group {
    count: u64,
    /// Position before which it has no rows.
    from: u64,
}

/// Rows of a group that go: from the first position until before the second.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) group: LogGroup,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) count: u64,
}

impl LogShares {
    pub(crate) const fn new(log: Log) -> Self {
        Self { log, counted_until: 0, groups: BTreeMap::new() }
    }

    /// Counts the rows that are new. Old ones are counted by the first call.
    pub(crate) async fn count(&mut self, store: &Store, newest: u64) -> Result<(), store::Error> {
        for (group, count) in store.log_counts(self.log, self.counted_until, newest).await? {
            self.groups.entry(group).or_default().count += count;
        }
        self.counted_until = newest;
        Ok(())
    }

    /// Number of rows.
    pub(crate) fn total(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum()
    }

    /// The oldest rows of a group with more than its share, at most `at_once`. The newest row of
    /// all stays.
    pub(crate) async fn excess(
        &mut self,
        store: &Store,
        rows_max: u64,
        at_once: u64,
    ) -> Result<Option<Excess>, store::Error> {
        let Some((group, count)) = self.beyond(rows_max) else { return Ok(None) };
        let known = self.groups.get(&group).copied().unwrap_or_default();
        let mut rows =
            store.oldest_of_group(self.log, &group, known.from, count.min(at_once)).await?;
        rows.retain(|seq| *seq < self.counted_until);
        let (Some(from), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
        let (from, until, count) = (*from, last + 1, rows.len() as u64);
        Ok(Some(Excess { group, from, until, count }))
    }

    /// Takes note that rows were deleted.
    pub(crate) fn deleted(&mut self, gone: &Excess) {
        if let Some(group) = self.groups.get_mut(&gone.group) {
            *group = Group { count: group.count.saturating_sub(gone.count), from: gone.until };
        }
    }

    /// The group with the most rows beyond its share, and how many these are. Projects share
    /// alike, and within a project its users.
    fn beyond(&self, rows_max: u64) -> Option<(LogGroup, u64)> {
        let mut projects: BTreeMap<u64, u64> = BTreeMap::new();
        for (LogGroup { project_id, .. }, group) in &self.groups {
            *projects.entry(*project_id).or_default() += group.count;
        }
        let of_project = share(projects.values().copied(), rows_max);
        let beyond =
            projects.iter().filter(|(_, count)| **count > of_project).flat_map(|(id, _)| {
                let (first, last) = (*id, id.saturating_add(1));
                let key = |project_id| LogGroup { project_id, user: String::new() };
                let groups = self.groups.range(key(first)..key(last));
                let each = share(groups.clone().map(|(_, group)| group.count), of_project);
                groups.filter_map(move |(key, group)| Some((key, group.count.checked_sub(each)?)))
            });
        let (group, count) = beyond.max_by_key(|(_, count)| *count)?;
        (count > 0).then(|| (group.clone(), count))
    }
}

/// Largest number that each may have so that all have no more than `rows_max` together;
/// [`u64::MAX`] if they have no more.
fn share(counts: impl Iterator<Item = u64>, rows_max: u64) -> u64 {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_unstable();
    let (mut left, mut others) = (rows_max, counts.len() as u64);
    for count in counts {
        let share = left / others;
        if count > share {
            return share;
        }
        left -= count;
        others -= 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_the_most_give_up_theirs_and_no_other_does() {
        let share = |counts: &[u64], rows_max| share(counts.iter().copied(), rows_max);
        assert_eq!(share(&[], 10), u64::MAX);
        assert_eq!(share(&[3, 7], 10), u64::MAX);
        assert_eq!(share(&[3, 8], 10), 7);
        assert_eq!(share(&[100_000, 3, 2], 10), 5);
        assert_eq!(share(&[9, 1, 9], 10), 4);
        assert_eq!(share(&[1; 20], 10), 0);
    }

    #[test]
    fn projects_share_alike_and_within_them_their_users() {
        let beyond = |all: &[(u64, &str, u64)], rows_max| {
            let group = |(project_id, owner, count): &(u64, &str, u64)| {
                let key = LogGroup { project_id: *project_id, user: (*owner).to_owned() };
                (key, Group { count: *count, from: 0 })
            };
            let groups = all.iter().map(group).collect();
            let found = LogShares { groups, ..LogShares::new(Log::Events) }.beyond(rows_max);
            found.map(|(group, count)| (group.project_id, group.user, count))
        };
        let flood = |project: u64, owner: &str, count| Some((project, owner.to_owned(), count));
        let all = [(0, "", 5), (1, "ann", 100), (1, "bob", 10), (2, "ann", 40)];
        assert_eq!(beyond(&all, 155), None);
        // The project has 90 of 135, of which bob leaves 80.
        assert_eq!(beyond(&all, 135), flood(1, "ann", 20));
        assert_eq!(beyond(&all, 55), flood(1, "ann", 85));
        assert_eq!(beyond(&all[3..], 10), flood(2, "ann", 30));
    }
}
