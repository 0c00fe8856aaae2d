//! Simulated machines. Owns: the notation `4x16GiB` and `2x2x16GiB@zone=a`, its
//! limits and its error texts. The same text always gives the same nodes and UUIDs.

use std::collections::BTreeMap;

use units::parse_bytes;

use crate::{Error, Gpu, HostPart, NodeGpus};

/// Most GPUs a node may have.
pub const GPUS_PER_NODE_MAX: u32 = 64;
/// Most simulated nodes.
pub const NODES_MAX: u32 = 1024;

const GPUS_EXAMPLE: &str = "a count and a size such as 4x16GiB, or 0 for none";
const NODES_EXAMPLE: &str = "nodes, GPUs of each and a size such as 2x4x16GiB, or 3x0 for \
                             three nodes without GPUs; 3x0,cpu=3920m,memory=15GB says how much \
                             of the machine each may have";

/// One simulated node from `--gpus`: `4x16GiB`, or `0` for a node without GPUs.
///
/// # Errors
/// The text is not in this notation, or a number is outside its range.
pub fn simulate_gpus(text: &str, node_name: &str) -> Result<NodeGpus, Error> {
    let notation =
        || Error::Notation { text: text.to_owned(), what: "a set of GPUs", example: GPUS_EXAMPLE };
    let (count, size) = match text.trim().split_once(['x', 'X']) {
        Some((count, size)) => (count, Some(size)),
        None => (text, None),
    };
    let count = parse_count(count).ok_or_else(notation)?;
    // A bare `0` is no GPUs, but `0x16GiB` is more likely a slip than a wish.
    match size {
        None if count == 0 => Ok(node(node_name.to_owned(), 0, 0)),
        None => Err(notation()),
        Some(size) => Ok(node(node_name.to_owned(), gpu_count(text, count)?, memory(text, size)?)),
    }
}

/// Simulated nodes from `--nodes`: `2x4x16GiB` is two nodes with four 16 GiB GPUs each, `3x0`
/// three without GPUs. Cores and memory follow after a comma: `3x0,cpu=3920m,memory=15GB`; what is
/// not said is that of this machine. Nodes of several kinds are joined by `+`, and labels of a kind
/// follow it after `@`: `2x4x16GiB@zone=a,run.ai/type=big+1x8x80GiB@zone=b`. They are called
/// `node-1`, `node-2`, ….
///
/// # Errors
/// The text is not in this notation, or a number is outside its range.
pub fn simulate_nodes(text: &str) -> Result<Vec<NodeGpus>, Error> {
    let mut all: Vec<NodeGpus> = Vec::new();
    for kind in text.trim().split('+') {
        let (kind, labels) = match kind.split_once('@') {
            None => (kind, BTreeMap::new()),
            Some((kind, labels)) => {
                let fault = |fault| Error::Labels { text: text.to_owned(), fault };
                (kind, units::parse_labels(labels).map_err(fault)?)
            }
        };
        let (shape, host) = kind.split_once(',').unwrap_or((kind, ""));
        let (nodes, gpus, memory_bytes) = kind_of_node(shape)?;
        let host = host_part(text, host)?;
        let first = all.len() as u64;
        within(text, first + u64::from(nodes), "nodes", NODES_MAX)?;
        let numbers = (first + 1)..=(first + u64::from(nodes));
        all.extend(numbers.map(|number| NodeGpus {
            labels: labels.clone(),
            host,
            ..node(format!("node-{number}"), gpus, memory_bytes)
        }));
    }
    Ok(all)
}

/// A simulated node with this many GPUs of this size.
///
/// # Errors
/// A number is outside its range.
pub fn simulate_node(name: &str, gpus: u64, memory_bytes: u64) -> Result<NodeGpus, Error> {
    let text = name;
    match gpus {
        0 => Ok(node(name.to_owned(), 0, 0)),
        gpus => {
            let gpus = gpu_count(text, gpus)?;
            Ok(node(name.to_owned(), gpus, at_least_1mib(text, memory_bytes)?))
        }
    }
}

/// How many nodes of a kind, how many GPUs each has, and the memory of each.
fn kind_of_node(text: &str) -> Result<(u32, u32, u64), Error> {
    let notation = || Error::Notation {
        text: text.to_owned(),
        what: "a set of nodes",
        example: NODES_EXAMPLE,
    };
    let parts: Vec<&str> = text.trim().split(['x', 'X']).collect();
    let (nodes, gpus, size) = match parts[..] {
        [nodes, gpus] => (nodes, gpus, None),
        [nodes, gpus, size] => (nodes, gpus, Some(size)),
        _ => return Err(notation()),
    };
    let nodes = within(text, parse_count(nodes).ok_or_else(notation)?, "nodes", NODES_MAX)?;
    let gpus = parse_count(gpus).ok_or_else(notation)?;
    match size {
        None if gpus == 0 => Ok((nodes, 0, 0)),
        None => Err(notation()),
        // No GPUs of no size are no slip.
        Some(size) if gpus == 0 && units::parse_bytes(size) == Ok(0) => Ok((nodes, 0, 0)),
        Some(size) => Ok((nodes, gpu_count(text, gpus)?, memory(text, size)?)),
    }
}

/// Parses the part of the machine that a node may use, such as `cpu=3920m,memory=15GB`.
fn host_part(text: &str, given: &str) -> Result<HostPart, Error> {
    let fault = |fault: String| Error::Host { text: text.to_owned(), fault };
    let mut host = HostPart::default();
    for item in given.split(',').filter(|item| !item.trim().is_empty()) {
        let (key, value) = item.split_once('=').unwrap_or((item, ""));
        let (key, value) = (key.trim(), value.trim());
        let number = match key {
            "cpu" => units::parse_cpu_millis(value),
            "memory" => units::parse_bytes(value),
            _ => {
                return Err(fault(format!(
                    "`{key}` is not known; cpu=CORES and memory=SIZE are, and labels follow after @"
                )));
            }
        };
        let number = number.map_err(|error| fault(format!("{key}: {error}")))?;
        if number == 0 {
            return Err(fault(format!("{key} is 0; leave it out for that of this machine")));
        }
        let of = if key == "cpu" { &mut host.cpu_millis } else { &mut host.memory_bytes };
        if of.replace(number).is_some() {
            return Err(fault(format!("{key} is given twice; leave one of them out")));
        }
    }
    Ok(host)
}

/// A run of digits; a number too large to count is as wrong as the largest.
fn parse_count(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn within(text: &str, count: u64, what: &'static str, max: u32) -> Result<u32, Error> {
    match u32::try_from(count) {
        Ok(small) if (1..=max).contains(&small) => Ok(small),
        _ => Err(Error::OutOfRange { text: text.to_owned(), count, what, max }),
    }
}

fn gpu_count(text: &str, count: u64) -> Result<u32, Error> {
    within(text, count, "GPUs per node", GPUS_PER_NODE_MAX)
}

fn memory(text: &str, size: &str) -> Result<u64, Error> {
    let fault = |fault| Error::Size { text: text.to_owned(), fault };
    at_least_1mib(text, parse_bytes(size).map_err(|error| fault(error.to_string()))?)
}

fn at_least_1mib(text: &str, bytes: u64) -> Result<u64, Error> {
    // Below this a fraction would be counted in bytes; it is nearly always a forgotten unit.
    if bytes < 1 << 20 {
        let fault = format!("{bytes} bytes is less than 1MiB; was a unit such as GiB meant?");
        return Err(Error::Size { text: text.to_owned(), fault });
    }
    Ok(bytes)
}

fn node(name: String, count: u32, memory_bytes: u64) -> NodeGpus {
    let gpu = |index| Gpu {
        index,
        uuid: format!("GPU-sim-{name}-{index}"),
        product: "simulated".to_owned(),
        memory_bytes,
        simulated: true,
        instances: None,
        fault: None,
    };
    NodeGpus {
        gpus: (0..count).map(gpu).collect(),
        name,
        labels: BTreeMap::new(),
        host: HostPart::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_is_written_as_count_and_size() {
        let node = simulate_gpus("4x16GiB", "lab").expect("valid");
        assert_eq!((node.name.as_str(), node.gpus.len()), ("lab", 4));
        assert_eq!(node.gpus[3].uuid, "GPU-sim-lab-3");
        assert!(node.gpus.iter().all(|gpu| gpu.simulated && gpu.memory_bytes == 16 << 30));
        assert!(simulate_gpus("0", "lab").expect("valid").gpus.is_empty());
        assert_eq!(
            simulate_gpus(" 1X8G ", "lab").expect("valid").gpus[0].memory_bytes,
            8_000_000_000
        );
    }

    #[test]
    fn several_nodes_are_numbered_from_one() {
        let nodes = simulate_nodes("2x2x16GiB").expect("valid");
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["node-1", "node-2"]);
        assert_eq!(nodes[1].gpus[1].uuid, "GPU-sim-node-2-1");
        assert_eq!(simulate_nodes("3x0").expect("valid").len(), 3);
    }

    #[test]
    fn nodes_of_several_kinds_have_their_own_labels() {
        let nodes =
            simulate_nodes("1x0+2x1x8GiB@zone=a,run.ai/type=big+1x1X8GiB@zone=xx").expect("valid");
        let shown = nodes.iter().map(|node| format!("{} {:?}", node.name, node.labels));
        let big = r#"{"run.ai/type": "big", "zone": "a"}"#;
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "node-1 {}".to_owned(),
                format!("node-2 {big}"),
                format!("node-3 {big}"),
                r#"node-4 {"zone": "xx"}"#.to_owned()
            ]
        );
    }

    #[test]
    fn nodes_have_a_part_of_the_machine() {
        let nodes = simulate_nodes("2x0x0GiB,cpu=3920m,memory=15GB@zone=a+1x0,cpu=0.5+1x1x8GiB");
        let hosts = nodes.expect("valid").into_iter();
        let hosts = hosts.map(|node| (node.host.cpu_millis, node.host.memory_bytes));
        let small = (Some(3920), Some(15_000_000_000));
        assert_eq!(hosts.collect::<Vec<_>>(), [small, small, (Some(500), None), (None, None)]);
        for (text, part) in [
            ("1x0,gpu=1", "`gpu` is not known; cpu=CORES and memory=SIZE are"),
            ("1x0,cpu=much", "cpu: "),
            ("1x0,memory=0", "memory is 0; leave it out"),
            ("1x0,cpu=1,cpu=2", "cpu is given twice"),
            ("1x0x16GiB", "has 0 GPUs per node"),
        ] {
            let error = simulate_nodes(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn every_slip_has_its_own_text() {
        for (text, part) in [
            ("", "is not a set of GPUs; write"),
            ("4", "write a count and a size such as 4x16GiB"),
            ("-1x16GiB", "is not a set of GPUs"),
            ("fourx16GiB", "is not a set of GPUs"),
            ("0x16GiB", "has 0 GPUs per node; 1 to 64"),
            ("65x16GiB", "has 65 GPUs per node; 1 to 64"),
            ("99999999999999999999x16GiB", "1 to 64"),
            ("4x16", "was a unit such as GiB meant?"),
            ("4x", "no usable memory size"),
            ("4x16GiBs", "no usable memory size"),
            ("2x2x16GiB", "no usable memory size"),
        ] {
            let error = simulate_gpus(text, "lab").expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for (text, part) in [
            ("2", "is not a set of nodes"),
            ("2x4", "is not a set of nodes"),
            ("0x2x16GiB", "has 0 nodes; 1 to 1024"),
            ("1025x2x16GiB", "has 1025 nodes"),
            ("2x65x16GiB", "has 65 GPUs per node"),
            ("2x2x2x16GiB", "is not a set of nodes"),
            ("1x0+", "is not a set of nodes"),
            ("1000x0+25x0", "has 1025 nodes; 1 to 1024"),
            ("1x0@", "`` is not a label; write key=value"),
            ("1x0@zone", "`zone` is not a label; write key=value"),
            ("1x0@zone=a b", "`a b` is not a valid label value"),
        ] {
            let error = simulate_nodes(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
