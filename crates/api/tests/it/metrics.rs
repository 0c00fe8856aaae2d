//! Series and values as of now: shapes, sums, groups, who sees what, and what is refused.

use serde_json::{Value, json};

use crate::iam::{get, give, program};
use crate::server::Server;

/// A time that everything here lies in.
const SPAN: &str = "start=2020-01-01T00:00:00Z&end=2099-01-01T00:00:00Z";

/// A server that was looked at once, with a training of one GPU in team-a; the engine measures the
/// memory it uses and the GPU it has, and no CPU.
async fn looked_at() -> (Server, String) {
    let server = Server::with_teams().await;
    let id = server.train("a", 1).await;
    server.phase(&id, "Running").await;
    while server.control.sample().at.0 == 0 {
        tokio::task::yield_now().await;
    }
    (server, id)
}

/// Type, groups and number of values of each series.
fn shape(answer: &Value) -> Vec<(String, Value, usize)> {
    let one = |series: &Value| {
        let kind = series["type"].as_str().unwrap().to_owned();
        let about = [&series["groups"], &series["labels"]].into_iter().find(|v| !v.is_null());
        (kind, about.cloned().unwrap_or_default(), series["values"].as_array().unwrap().len())
    };
    answer["measurements"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn everything_has_series_and_those_nothing_measures_are_empty() {
    let (server, id) = looked_at().await;
    let node = server.get("/api/v1/nodes").await["nodes"][0]["id"].as_str().unwrap().to_owned();
    let pods = server.get(&format!("/api/v1/workloads/{id}/pods")).await;
    let pod = pods["pods"][0]["id"].as_str().unwrap().to_owned();
    let first = async |path: &str, types: &str| -> Vec<Option<String>> {
        let path = format!("/api/v1/{path}/metrics?metricType={types}&{SPAN}");
        let answer = server.get(&path).await;
        let all = answer["measurements"].as_array().unwrap().iter();
        let value = |one: &Value| Some(one["values"].get(0)?["value"].as_str()?.to_owned());
        all.map(value).collect()
    };
    let cluster = format!("clusters/{}", server.cluster_id());
    let (node, workload) = (format!("nodes/{node}"), format!("workloads/{id}"));
    let (pool, pod) = (format!("{cluster}/nodepools/default"), format!("{workload}/pods/{pod}"));
    let (project, department) = ("org-unit/projects/1", "org-unit/departments/1");
    for (path, types, want) in [
        (&*cluster, "TOTAL_GPU,ALLOCATED_GPU,UNALLOCATED_GPU,GPU_QUOTA", vec!["4", "1", "3", "4"]),
        (&cluster, "WORKLOADS_COUNT,TOTAL_GPU_NODES,CPU_UTILIZATION", vec!["1", "1", "-"]),
        (&pool, "GPU_UTILIZATION,GPU_MEMORY_UTILIZATION", vec!["25", "25"]),
        (&pool, "GPU_UTILIZATION_DISTRIBUTION", vec!["-"]),
        (&node, "GPU_ALLOCATION_PER_GPU", vec!["1", "0", "0", "0"]),
        (&node, "GPU_MEMORY_UTILIZATION_PER_GPU", vec!["25"]),
        (&node, "GPU_MEMORY_ALLOCATION_BYTES_PER_GPU", vec!["17179869184", "0", "0", "0"]),
        (&node, "GPU_IDLE_TIME_SECONDS_PER_GPU,GPU_SM_ACTIVITY_PER_GPU", vec!["0", "-"]),
        (&node, "CPU_USAGE_CORES,CPU_MEMORY_USAGE_BYTES", vec!["-", "7340032"]),
        (&workload, "GPU_ALLOCATION,POD_COUNT,GPU_UTILIZATION", vec!["1", "1", "25"]),
        (&workload, "CPU_REQUEST_CORES,NVLINK_BANDWIDTH_TOTAL", vec!["0.1", "-"]),
        (&pod, "GPU_UTILIZATION_PER_GPU,CPU_USAGE_CORES", vec!["25", "-"]),
        (&pod, "GPU_MEMORY_USAGE_BYTES,CPU_MEMORY_USAGE_BYTES", vec!["4294967296", "7340032"]),
        (project, "GPU_QUOTA,GPU_ALLOCATION,CPU_MEMORY_QUOTA_MB", vec!["2", "1", "-"]),
        (project, "GPU_MEMORY_UTILIZATION,CPU_ALLOCATION_MILLICORES", vec!["25", "100"]),
        (department, "GPU_QUOTA,GPU_ALLOCATION", vec!["4", "1"]),
    ] {
        let got = first(path, types).await;
        let got: Vec<&str> = got.iter().map(|one| one.as_deref().unwrap_or("-")).collect();
        assert_eq!(got, want, "{path} {types}");
    }
    let path = format!("/api/v1/{node}/metrics?metricType=GPU_ALLOCATION_PER_GPU&{SPAN}");
    let answer = server.get(&path).await;
    assert_eq!(answer["measurements"][3]["labels"], json!({"gpu": "3"}));
}

#[tokio::test]
async fn series_of_the_cluster_are_grouped_by_what_the_caller_may_see() {
    let (server, _) = looked_at().await;
    let path = format!("/api/v1/clusters/{}/metrics?{SPAN}", server.cluster_id());
    let names = |answer: &Value| -> Vec<String> {
        let value = |(_, groups, _): (_, Value, _)| groups[0]["value"].as_str().unwrap().to_owned();
        shape(answer).into_iter().map(value).collect()
    };
    for (group, want) in [
        ("Project", vec!["team-a", "team-b"]),
        ("department", vec!["default"]),
        ("Category", vec!["Build", "Deploy", "Train"]),
        ("Nodepool", vec!["default"]),
    ] {
        let answer = server.get(&format!("{path}&metricType=ALLOCATED_GPU&groupBy={group}")).await;
        assert_eq!(names(&answer), want, "{answer:#}");
    }
    let (account, _, token) = program(&server, "asker").await;
    give(&server, &account, 6, ("project", "2")).await;
    let path = format!("{path}&metricType=ALLOCATED_GPU&groupBy=Project");
    assert_eq!(names(&get(&server, &token, &path).await.1), ["team-b"]);
}

#[tokio::test]
async fn values_as_of_now_add_up_by_group() {
    let (server, _) = looked_at().await;
    let values = async |path: &str| -> Vec<(String, Vec<String>)> {
        let answer = server.get(&format!("/api/v1/{path}")).await;
        let all = answer["values"].as_array().unwrap().iter();
        let group = |group: &Value| group["value"].as_str().unwrap().to_owned();
        all.map(|one| {
            let groups = one["groups"].as_array().map(|all| all.iter().map(group).collect());
            (one["value"].as_str().unwrap().to_owned(), groups.unwrap_or_default())
        })
        .collect()
    };
    let total = |value: &str| vec![(value.to_owned(), vec![])];
    for (path, want) in [
        ("nodes/telemetry?telemetryType=TOTAL_GPUS", "4"),
        ("nodes/telemetry?telemetryType=ALLOCATED_GPUS", "1"),
        ("nodes/telemetry?telemetryType=FREE_GPUS", "3"),
        ("nodes/telemetry?telemetryType=READY_GPU_NODES", "1"),
        ("nodes/telemetry?telemetryType=FULLY_FREE_GPU_NODES", "0"),
        ("nodes/telemetry?telemetryType=TOTAL_CPU_MEMORY_BYTES", "137438953472"),
        ("nodes/telemetry?telemetryType=IDLE_ALLOCATED_GPUS", "0"),
        ("nodes/telemetry?telemetryType=USED_GPU_MEMORY_BYTES", "4294967296"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT", "1"),
        ("workloads/telemetry?telemetryType=GPU_ALLOCATION&filterByPhases=Running,Pending", "1"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&filterByPhases=Degraded", "0"),
        ("org-unit/projects/telemetry?telemetryType=GPU_QUOTA", "4"),
        ("org-unit/projects/telemetry?telemetryType=GPU_ALLOCATION_NON_PREEMPTIBLE", "0"),
        ("org-unit/departments/telemetry?telemetryType=GPU_ALLOCATION", "1"),
    ] {
        assert_eq!(values(path).await, total(want), "{path}");
    }
    // Nothing measures it here, and where a part is not known there is no sum.
    for path in [
        "nodes/telemetry?telemetryType=USED_CPU_CORES",
        "org-unit/projects/telemetry?telemetryType=CPU_QUOTA",
    ] {
        assert_eq!(values(path).await, [], "{path}");
    }
    let by = "org-unit/projects/telemetry?telemetryType=GPU_ALLOCATION&groupBy=ProjectId,ParentId";
    let row = |value: &str, groups: [&str; 2]| (value.to_owned(), groups.map(str::to_owned).into());
    assert_eq!(values(by).await, [row("1", ["1", "1"]), row("0", ["2", "1"])]);
    let by = "workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Phase&groupBy=type";
    assert_eq!(values(by).await, [row("1", ["Running", "Training"])]);
    for count in [4, 4] {
        server.train(&format!("big-{count}-{}", server.control.view().event_seq), count).await;
    }
    let by = "workloads/telemetry?telemetryType=PENDING_TIME_DISTRIBUTION&groupBy=ProjectId";
    assert_eq!(values(by).await, [row("2", ["1", "0-60"])]);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_with_what_is_allowed() {
    let (server, id) = looked_at().await;
    let cluster = format!("/api/v1/clusters/{}/metrics", server.cluster_id());
    let workload = format!("/api/v1/workloads/{id}/metrics");
    for (path, code, says) in [
        (format!("{workload}?{SPAN}"), 400, "metricType: is required"),
        (format!("{workload}?metricType=GPU&{SPAN}"), 400, "allowed are GPU_UTILIZATION"),
        (format!("{workload}?metricType=POD_COUNT&end=2026-01-01T00:00:00Z"), 400, "start: is req"),
        (format!("{workload}?metricType=POD_COUNT&start=now&end=now"), 400, "start: `now` is not"),
        (
            format!(
                "{workload}?metricType=POD_COUNT&end=2020-01-01T00:00:00Z&start=2020-01-02T00:00:00Z"
            ),
            400,
            "end: is not after start",
        ),
        (format!("{workload}?metricType=POD_COUNT&{SPAN}&numberOfSamples=0"), 400, "1 to 1000"),
        (format!("{workload}?metricType=POD_COUNT&{SPAN}&groupBy=Project"), 400, "unknown param"),
        (format!("{cluster}?metricType=TOTAL_GPU&{SPAN}&groupBy=Project"), 400, "by Nodepool"),
        (format!("{cluster}?metricType=TOTAL_GPU&{SPAN}&groupBy=colour"), 400, "Category"),
        (format!("{cluster}?metricType=TOTAL_GPU&{SPAN}&nodepoolName=x"), 404, "node pool x"),
        (format!("/api/v1/clusters/x/metrics?metricType=TOTAL_GPU&{SPAN}"), 404, "cluster"),
        (format!("/api/v1/nodes/x/metrics?metricType=CPU_UTILIZATION&{SPAN}"), 404, "node"),
        (
            format!("/api/v1/workloads/{id}/pods/x/metrics?metricType=CPU_USAGE_CORES&{SPAN}"),
            404,
            "pod",
        ),
        (
            "/api/v1/org-unit/projects/9/metrics?metricType=GPU_QUOTA&".to_owned() + SPAN,
            404,
            "project",
        ),
        (
            format!("/api/v1/workloads/inferences/{id}/metrics?metricType=LATENCY&{SPAN}"),
            404,
            "inference",
        ),
        ("/api/v1/nodes/telemetry".to_owned(), 400, "telemetryType: is required"),
        ("/api/v1/nodes/telemetry?telemetryType=GPUS".to_owned(), 400, "READY_GPUS"),
        (
            "/api/v1/workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Phase,Type,Category"
                .to_owned(),
            400,
            "more than two",
        ),
        (
            "/api/v1/workloads/telemetry?telemetryType=WORKLOADS_COUNT&filterByPhases=Lost"
                .to_owned(),
            400,
            "unknown phase",
        ),
        (
            "/api/v1/nodes/telemetry?telemetryType=TOTAL_GPUS&clusterId=x".to_owned(),
            404,
            "no cluster",
        ),
        ("/api/v1/clusters/x/nodes/count".to_owned(), 404, "cluster"),
    ] {
        let (status, body) = server.raw("GET", &path, "").await;
        assert_eq!(status.as_u16(), code, "{path}: {body}");
        assert!(body["message"].as_str().unwrap().contains(says), "{path}: {body}");
    }
    let count = server.get(&format!("/api/v1/clusters/{}/nodes/count", server.cluster_id())).await;
    assert_eq!(count["count"], 2);
}

#[tokio::test]
async fn an_inference_has_series_of_its_requests_and_so_has_each_replica_ever() {
    let server = Server::with_teams().await;
    let all = "/api/v1/workloads/inferences";
    let spec = json!({"image": "i", "servingPort": {"container": 8000}});
    let id = server.post(all, server.job("svc", &spec)).await.1["workloadId"].clone();
    let id = id.as_str().unwrap();
    let view = server.control.view();
    let revision = view.revisions.values().next().unwrap();
    let pod = revision.pods[0].id;
    for (path, types) in [
        (format!("{all}/{id}"), "THROUGHPUT,LATENCY,CONCURRENCY,REPLICAS"),
        (format!("{all}/{id}/pods/{pod}"), "THROUGHPUT,LATENCY,CONCURRENCY"),
    ] {
        let answer = server.get(&format!("{path}/metrics?metricType={types}&{SPAN}")).await;
        let none_yet = types.split(',').map(|kind| (kind.to_owned(), Value::Null, 0));
        assert_eq!(shape(&answer), none_yet.collect::<Vec<_>>());
    }
    let other = format!("{all}/{id}/pods/{id}/metrics?metricType=LATENCY&{SPAN}");
    assert_eq!(server.raw("GET", &other, "").await.0, 404);
}
