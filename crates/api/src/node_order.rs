//! Nodes in the order of lists. Owns: the order of names with numbers.

use std::sync::Arc;

use view::NodeView;

/// Nodes by name: runs of digits compare as numbers, so `node-2` comes before `node-10`.
pub(crate) fn in_natural_order(nodes: &[Arc<NodeView>]) -> Vec<&NodeView> {
    let mut nodes: Vec<&NodeView> = nodes.iter().map(AsRef::as_ref).collect();
    nodes.sort_by_cached_key(|node| natural(&node.name));
    nodes
}

/// Parts of a name in turn: text, and the number that follows it. Numbers compare by the count of
/// their digits first.
fn natural(name: &str) -> Vec<(&str, usize, &str)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, after) =
            rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (digits, after) = after.split_at(end);
        let number = digits.trim_start_matches('0');
        parts.push((text, number.len(), number));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_compare_as_numbers() {
        let sorted = ["a", "a-2", "a-02-b", "a-10", "b", "gpu1x9", "gpu1x10", "gpu02x1"];
        let mut names = sorted;
        names.reverse();
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, sorted);
    }
}
