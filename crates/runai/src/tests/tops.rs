//! Tables of the resource usage of nodes and jobs.

use api_types::{Gpu, MetricsResponse, NodeStatus};
use expect_test::expect;
use serde_json::{Value, json};

use super::samples::workload;
use crate::describe::gpus_table;
use crate::top::{self, Used};

/// `TYPE=VALUE`, or `TYPE:GPU=VALUE`.
pub(crate) fn used(measured: &[&str]) -> Used {
    let series = |text: &&str| -> Value {
        let (kind, value) = text.split_once('=').unwrap();
        let values = json!([{"value": value, "timestamp": "2026-01-01T00:00:00Z"}]);
        match kind.split_once(':') {
            Some((kind, gpu)) => json!({"type": kind, "labels": {"gpu": gpu}, "values": values}),
            None => json!({"type": kind, "values": values}),
        }
    };
    let all: Vec<_> = measured.iter().map(series).collect();
    let answer: MetricsResponse = serde_json::from_value(json!({"measurements": all})).unwrap();
    Used::new(answer)
}

fn node(name: &str, gpus: usize) -> NodeStatus {
    serde_json::from_value(json!({
        "name": name, "pool": "default", "gpuType": "A100", "simulated": false,
        "gpuMemoryBytes": vec![80_u64 << 30; gpus], "gpuUsed": vec![0; gpus],
        "cpuMillis": 16_000, "cpuUsedMillis": 0, "memoryBytes": 64_u64 << 30, "memoryUsedBytes": 0,
    }))
    .unwrap()
}

#[test]
fn nodes_tell_what_is_measured_and_the_total_only_what_is_of_all() {
    let busy = [
        "GPU_UTILIZATION=37.5",
        "CPU_USAGE_CORES=2.4",
        "CPU_MEMORY_USAGE_BYTES=8589934592",
        "GPU_UTILIZATION_PER_GPU:1=75",
        "GPU_MEMORY_USAGE_BYTES_PER_GPU:1=42949672960",
        "GPU_IDLE_TIME_SECONDS_PER_GPU:0=130",
    ];
    let calm = ["CPU_USAGE_CORES=0", "CPU_MEMORY_USAGE_BYTES=0"];
    let all = [(node("node1", 2), used(&busy)), (node("node2", 0), used(&calm))];
    expect![[r#"
                       │  GPU                    │  CPU                    │  MEMORY
        NAME   STATUS  │  CAPACITY  UTILIZATION  │  CAPACITY  UTILIZATION  │  CAPACITY  USAGE
        ────   ──────  │  ────────  ───────────  │  ────────  ───────────  │  ────────  ─────
        node1  Ready   │  2         38%          │  16        15%          │  64GiB     8GiB (12%)
        node2  Ready   │  0         -            │  16        0%           │  64GiB     0B (0%)
        TOTAL          │  2         38%          │  32        8%           │  128GiB    8GiB (6%)
    "#]]
    .assert_eq(&top::nodes_table(&all, false, true).plain());
    expect![[r#"
                       │  GPU                    │  GPU MEMORY                      │  CPU                           │  MEMORY
        NAME   STATUS  │  CAPACITY  UTILIZATION  │  CAPACITY    USAGE  UTILIZATION  │  CAPACITY  USAGE  UTILIZATION  │  CAPACITY  USAGE  UTILIZATION
        ────   ──────  │  ────────  ───────────  │  ────────    ─────  ───────────  │  ────────  ─────  ───────────  │  ────────  ─────  ───────────
        node1  Ready   │  2         38%          │  160GiB      -      -            │  16        2.4    15%          │  64GiB     8GiB   12%
        node2  Ready   │  0         -            │  0B          -      -            │  16        0      0%           │  64GiB     0B     0%
    "#]].assert_eq(&top::nodes_table(&all, true, false).plain());
    expect![[r#"
        GPU  UTILIZATION  MEMORY  MEMORY USAGE  IDLE TIME
        0    -            80GiB   -             2m
        1    75%          80GiB   40GiB (50%)   -
    "#]]
    .assert_eq(&top::gpus_table(&all[0].0, &all[0].1).plain());
    let unknown = [(node("node1", 2), used(&busy)), (node("node2", 2), used(&calm))];
    let text = top::nodes_table(&unknown, false, true).plain();
    assert!(text.lines().last().unwrap().contains("4         -"), "{text}");
}

#[test]
fn jobs_tell_what_they_hold_and_use() {
    let measured = [
        "GPU_UTILIZATION=91",
        "CPU_REQUEST_CORES=10",
        "CPU_USAGE_CORES=1.2",
        "CPU_MEMORY_REQUEST_BYTES=17179869184",
        "CPU_MEMORY_USAGE_BYTES=3435973836",
    ];
    let all = [(workload("a1 Training Running team-a held=2 on=node1"), used(&measured))];
    expect![[r#"
                                                     │  GPU              │  GPU MEMORY         │  CPU                     │  CPU MEMORY
        NAME  PROJECT  USER  TYPE   DURATION  NODE   │  Allocated  Util  │  Allocated   Usage  │  Allocated  Usage        │  Allocated   Usage
        ────  ───────  ────  ────   ────────  ────   │  ─────────  ────  │  ─────────   ─────  │  ─────────  ─────        │  ─────────   ─────
        a1    team-a   ann   Train  1m        node1  │  2          91%   │  -           -      │  10000m     1200m (12%)  │  16GiB       3.1GiB (20%)
    "#]].assert_eq(&top::jobs_table(&all).plain());
}

#[test]
fn each_gpu_of_a_node_shows_the_pods_on_it() {
    let gpu = |index: u32, allocated: f64, pods: &[(&str, f64)], fault: Value| -> Gpu {
        let pod = |(name, share): &(&str, f64)| {
            json!({"id": "p", "name": name, "workloadId": "w", "workloadName": "n",
                "projectId": "1", "share": share})
        };
        let pods: Vec<_> = pods.iter().map(pod).collect();
        serde_json::from_value(json!({
            "id": format!("n/{index}"), "nodeName": "n", "nodePool": "default", "index": index,
            "uuid": "u", "gpuType": "A100", "simulated": false, "memoryBytes": 16_u64 << 30,
            "allocated": allocated, "pods": pods, "fault": fault,
        }))
        .unwrap()
    };
    let lost = json!({"gpu": 3, "code": "E207", "name": "GpuLost", "message": "lost: off the bus"});
    let gpus = [
        gpu(0, 1.0, &[("train-0-1", 1.0)], Value::Null),
        gpu(1, 0.75, &[("a-0-1", 0.5)], Value::Null),
        gpu(2, 1.0, &[], Value::Null),
        gpu(3, 0.0, &[], lost),
    ];
    let expected = "\
GPU  ALLOCATED  MEMORY  HEALTH                  PODS
0    1          16GiB   ok                      train-0-1
1    0.75       16GiB   ok                      a-0-1 (0.5), of others (0.25)
2    1          16GiB   ok                      of others
3    0          16GiB   E207 lost: off the bus  -
";
    assert_eq!(gpus_table(&gpus.iter().collect::<Vec<_>>()).plain(), expected);
}
