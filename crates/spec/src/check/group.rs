//! The tree of groups of a workload, its gates, its preemption delay and its time limit.

use crate::WorkloadSpec;
use crate::invalid::Invalid;

/// Maximum preemption delay, in milliseconds.
const PREEMPTION_DELAY_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Maximum number of groups, and of gates, of a workload.
pub const GROUPS_MAX: usize = 100;

/// Checks the tree of groups, gates and the preemption delay.
pub(super) fn check(spec: &WorkloadSpec) -> Result<(), Invalid> {
    let bad = |field, text: String| Err(Invalid::new(field, text));
    for (field, parts) in [("groups", spec.groups.len()), ("gates", spec.gates.len())] {
        if parts > GROUPS_MAX {
            return bad(field, format!("{parts} {field} are more than the {GROUPS_MAX} allowed"));
        }
    }
    let delay_ms = spec.preemption_delay_ms;
    if delay_ms > PREEMPTION_DELAY_MS_MAX {
        let most = PREEMPTION_DELAY_MS_MAX / 1000;
        let text = format!("the preemption delay is too long; 0 to {most} seconds are allowed");
        return bad("preemption delay", text);
    }
    if spec.time_limit_ms == Some(0) {
        return bad(
            "time limit",
            "the time limit is 0; leave it out, or allow 1 second".to_owned(),
        );
    }
    for (at, gate) in spec.gates.iter().enumerate() {
        if let Err(why) = units::check_label(gate, "") {
            return bad("gates", format!("gate `{gate}`: {why}"));
        }
        if spec.gates[..at].contains(gate) {
            return bad("gates", format!("gate `{gate}` is there twice"));
        }
    }
    tree(spec)
}

fn tree(spec: &WorkloadSpec) -> Result<(), Invalid> {
    let bad = |text: String| Err(Invalid::new("groups", text));
    for (at, group) in spec.groups.iter().enumerate() {
        let name = &group.name;
        if let Err(why) = units::check_name(name) {
            return bad(why.to_string());
        }
        let before = &spec.groups[..at];
        if before.iter().any(|other| other.name == *name) {
            return bad(format!("group `{name}` is there twice"));
        }
        if let Some(parent) = &group.parent
            && !before.iter().any(|other| other.name == *parent)
        {
            return bad(format!("group `{name}` is in `{parent}`, which is not listed before it"));
        }
    }
    for set in spec.sets() {
        if let Some(group) = &set.group
            && spec.group(Some(group)).is_none()
        {
            return bad(format!("pods `{}` are in group `{group}`, which is none", set.role));
        }
    }
    let all = spec.groups.iter().map(|group| (Some(&group.name), group.children_min));
    for (name, least) in all.chain([(None, spec.children_min)]) {
        let groups = spec.groups.iter().filter(|group| group.parent.as_ref() == name).count();
        let sets = spec.sets().filter(|set| set.group.as_ref() == name).count();
        let (children, least) = (groups + sets, least.map(|least| least as usize));
        let whose = name.map_or("the workload".to_owned(), |name| format!("group `{name}`"));
        if children == 0 {
            return bad(format!("{whose} has no pods and no groups"));
        }
        if least.is_some_and(|least| !(1..=children).contains(&least)) {
            let least = least.unwrap_or_default();
            return bad(format!(
                "{whose} has {children} parts, of which {least} cannot be the least"
            ));
        }
    }
    Ok(())
}
