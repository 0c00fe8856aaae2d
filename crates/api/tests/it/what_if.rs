//! Predicted outcome of requests, and the start estimates of workloads.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::iam::{call, give, program};
use crate::server::Server;

/// Asks, and sees that nothing came of it.
async fn asked(server: &Server, what: Value) -> Value {
    let before = server.get("/elastane/v1/status").await["eventSeq"].clone();
    let (status, answer) = server.post("/elastane/v1/what-if", what).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(server.get("/elastane/v1/status").await["eventSeq"], before);
    answer
}

fn of_b(server: &Server, name: &str, gpus: u32) -> Value {
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": gpus}});
    let mut job = server.job(name, &spec);
    job["projectId"] = json!("2");
    job
}

#[tokio::test]
async fn a_submission_that_would_start_names_its_place_and_whom_it_would_stop() {
    let server = Server::with_teams().await;
    for name in ["a1", "a2", "a3", "a4"] {
        let id = server.train(name, 1).await;
        server.phase(&id, "Running").await;
    }
    let answer = asked(&server, json!({"trainings": [of_b(&server, "b1", 1)]})).await;
    let fate = &answer["pods"][0];
    assert_eq!(
        (&fate["fate"], &fate["projectName"]),
        (&json!("start"), &json!("team-b")),
        "{answer}"
    );
    let decisions = answer["decisions"].as_array().unwrap();
    let evicted: Vec<_> = decisions.iter().filter(|d| d["kind"] == "evict").collect();
    assert_eq!((evicted.len(), &evicted[0]["code"]), (1, &json!("E101")), "{answer}");
    assert_eq!(evicted[0]["beneficiary"], "team-b/b1");
    let listed = server.get("/api/v1/workloads").await;
    assert_eq!(listed["workloads"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_submission_that_would_wait_says_why_and_what_would_help() {
    let server = Server::with_teams().await;
    let answer = asked(&server, json!({"workspaces": [of_b(&server, "b1", 5)]})).await;
    assert_eq!(answer["pods"][0]["fate"], "wait", "{answer}");
    let why = &answer["waiting"][0];
    assert!(why["reasons"][0]["code"].as_str().unwrap().starts_with('P'), "{answer}");
    assert!(!why["lines"].as_array().unwrap().is_empty(), "{answer}");
    assert_eq!(answer["decisions"], json!([]));
}

#[tokio::test]
async fn advice_before_a_submission_has_the_commands_that_the_caller_may_type() {
    let server = Server::with_teams().await;
    let (account, _, researcher) = program(&server, "ann").await;
    give(&server, &account, 6, ("project", "1")).await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 3}});
    let question = json!({"workspaces": [server.job("w", &spec)]});
    let lines = |answer: &Value| answer["waiting"][0]["lines"].to_string();
    let all = lines(&asked(&server, question.clone()).await);
    assert!(all.contains("elastane project update team-a --gpu-quota 3"), "{all}");
    let (_, answer) = call(&server, &researcher, ("POST", "/elastane/v1/what-if"), &question).await;
    let own = lines(&answer);
    assert!(own.contains("ask an administrator of project team-a"), "{own}");
    assert!(!own.contains("elastane project update"), "{own}");
}

#[tokio::test]
async fn advice_for_a_waiting_workload_has_the_commands_that_the_caller_may_type() {
    let server = Server::with_teams().await;
    let (account, _, researcher) = program(&server, "ann").await;
    give(&server, &account, 6, ("project", "1")).await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 3}});
    let (_, made) = server.post("/api/v1/workloads/workspaces", server.job("w", &spec)).await;
    let path = format!("/elastane/v1/workloads/{}/explain", made["workloadId"].as_str().unwrap());
    let all = server.until(&path, |answer| answer["diagnosis"]["advice"][0].is_object()).await;
    let all = all["diagnosis"]["advice"].to_string();
    assert!(all.contains("elastane project update team-a --gpu-quota 3"), "{all}");
    let (_, own) = call(&server, &researcher, ("GET", &path), &Value::Null).await;
    let own = own["diagnosis"]["advice"].to_string();
    assert!(own.contains("an administrator of project team-a"), "{own}");
    assert!(!own.contains("elastane project update"), "{own}");
}

#[tokio::test]
async fn a_distributed_workload_would_start_whole_or_wait_whole() {
    let server = Server::with_teams().await;
    let fates = async |workers: u32| {
        let mut job = of_b(&server, "d", 1);
        job["spec"]["distributedFramework"] = json!("PyTorch");
        job["spec"]["numWorkers"] = json!(workers);
        let answer = asked(&server, json!({"distributed": [job]})).await;
        let pods = answer["pods"].as_array().unwrap().clone();
        pods.iter().map(|pod| pod["fate"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fates(3).await, ["start"; 4]);
    assert_eq!(fates(4).await, ["wait"; 5]);
}

#[tokio::test]
async fn an_inference_would_get_the_replicas_that_it_begins_with() {
    let server = Server::with_teams().await;
    let spec = json!({
        "image": "i", "compute": {"gpuDevicesRequest": 1}, "servingPort": {"container": 8000},
        "autoscaling": {"minReplicas": 2, "maxReplicas": 3, "metric": "concurrency",
                        "metricThreshold": 1},
    });
    let answer = asked(&server, json!({"inferences": [server.job("svc", &spec)]})).await;
    let fates: Vec<_> = answer["pods"].as_array().unwrap().iter().map(|pod| &pod["fate"]).collect();
    assert_eq!(fates, ["start", "start"], "{answer}");
}

#[tokio::test]
async fn a_change_of_the_cluster_can_be_asked_for_too() {
    let server = Server::with_teams().await;
    let node = json!({"add_node": {"name": "new", "gpus": 8}});
    let big = of_b(&server, "b1", 8);
    let answer = asked(&server, json!({"steps": [node], "trainings": [big]})).await;
    assert_eq!(answer["pods"][0]["place"], "new[0 1 2 3 4 5 6 7]", "{answer}");
}

#[tokio::test]
async fn places_are_those_that_a_submission_would_get() {
    let server = Server::with_teams().await;
    let labels = json!({"labels": {"run.ai/type": "big", "gpu": "a100"}}).to_string();
    server.raw("PUT", "/elastane/v1/nodes/node-1/labels", &labels).await;
    let fate = async |name: &str, value: Value| {
        let mut job = of_b(&server, "b1", 1);
        job["spec"][name] = value;
        asked(&server, json!({"trainings": [job]})).await["pods"][0]["fate"].clone()
    };
    let on = |value: &str| {
        let expression = json!({"key": "gpu", "operator": "In", "values": [value]});
        json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]})
    };
    assert_eq!(fate("nodeType", json!("big")).await, "start");
    assert_eq!(fate("nodeType", json!("small")).await, "wait");
    assert_eq!(fate("nodeAffinityRequired", on("a100")).await, "start");
    assert_eq!(fate("nodeAffinityRequired", on("h100")).await, "wait");
    assert_eq!(fate("nodePools", json!(["default"])).await, "start");
    // The project's node types apply if the request has none.
    let types = json!({"nodeTypes": {"training": ["small"]}, "resources": [{}]}).to_string();
    let (status, changed) = server.raw("PUT", "/api/v1/org-unit/projects/2", &types).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    assert_eq!(fate("image", json!("i")).await, "wait");
    let mut gone = of_b(&server, "b1", 1);
    gone["spec"]["nodePools"] = json!(["gone"]);
    let (status, said) = server.post("/elastane/v1/what-if", json!({"trainings": [gone]})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{said}");
}

#[tokio::test]
async fn many_submissions_are_bounded_by_their_pods_alone() {
    let server = Server::with_teams().await;
    let many: Vec<_> = (0..101).map(|at| of_b(&server, &format!("b{at}"), 1)).collect();
    let answer = asked(&server, json!({"trainings": many})).await;
    assert_eq!(answer["pods"].as_array().unwrap().len(), 101, "{}", answer["pods"]);
}

#[tokio::test]
async fn what_cannot_be_asked_says_so() {
    let server = Server::with_teams().await;
    let many = |count: u32| json!({"submit": {"name": "x", "project": "team-a", "count": count}});
    let pods = |name: &str, parallelism: u32, completions: u32| {
        server.job(
            name,
            &json!({"image": "i", "parallelism": parallelism, "completions": completions}),
        )
    };
    let eleven: Vec<_> = (0..11).map(|at| pods(&format!("a{at}"), 1000, 1000)).collect();
    let node = |count: u32| json!({"add_node": {"name": "n", "count": count}});
    for (what, said) in [
        (json!({"steps": [{"ad_node": 1}]}), "steps[0]: unknown key `ad_node`; did you mean"),
        (json!({"steps": [{}, {"advance": "9h"}]}), "steps[1]: `advance`, `cycles` and `expect`"),
        (json!({"steps": [many(6000), many(6000)]}), "12000 pods; more than 10000"),
        (json!({"trainings": eleven}), "11000 pods; more than 10000"),
        (json!({"trainings": [pods("a", 1, 1_000_000)]}), "1 to 1000 pods, not 1000000"),
        (json!({"steps": [node(600), node(600)]}), "1200 nodes; more than 1000"),
        (json!({"steps": vec![json!({}); 101]}), "steps: 101 are too many; more than 100"),
        (json!({"trainings": [pods("A", 1, 1)]}), "name `A` is not allowed"),
        (json!({"steps": [{"delete": "nobody"}]}), "nobody"),
        (json!({"training": []}), "training: unknown field `training`; did you mean `trainings`?"),
    ] {
        let (status, answer) = server.post("/elastane/v1/what-if", what).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(said), "{said}: {answer}");
    }
}

#[tokio::test]
async fn no_start_is_promised_that_waits_for_one_without_a_known_end() {
    let server = Server::with_teams().await;
    let runs = server.train("a1", 4).await;
    server.phase(&runs, "Running").await;
    let waits = server.train("a2", 4).await;
    server.train("a3", 4).await;
    let explained = server.get(&format!("/elastane/v1/workloads/{waits}/explain")).await;
    let estimate = &explained["startEstimate"];
    assert!(estimate["earliest"].is_null() && estimate["latest"].is_null(), "{explained}");
    assert_eq!(estimate["unknownEnds"], json!(["team-a/a1"]), "{explained}");
    assert!(
        estimate["assumption"].as_str().unwrap().contains("cannot be estimated"),
        "{explained}"
    );
    let explained = server.get(&format!("/elastane/v1/workloads/{runs}/explain")).await;
    assert!(explained["startEstimate"].is_null(), "{explained}");
}

#[tokio::test]
async fn an_explanation_comes_in_parts_and_has_values_beside_its_sentences() {
    let server = Server::with_teams().await;
    let runs = server.train("a1", 4).await;
    server.phase(&runs, "Running").await;
    let waits = server.train("a2", 4).await;
    let path = format!("/elastane/v1/workloads/{waits}/explain");
    let all = server.until(&path, |one| one["diagnosis"].is_object()).await;
    assert!(all["startEstimate"].is_object(), "{all}");
    for (parts, diagnosis, estimate) in [
        ("known", false, false),
        ("diagnosis", true, false),
        ("known,estimate", false, true),
        ("diagnosis,estimate", true, true),
    ] {
        let some = server.get(&format!("{path}?parts={parts}")).await;
        assert_eq!(some["diagnosis"].is_object(), diagnosis, "{parts}");
        assert_eq!(some["startEstimate"].is_object(), estimate, "{parts}");
        for known in ["summary", "pendingReasons", "events", "projectQuota"] {
            assert!(!some[known].is_null(), "{parts}: {known}");
        }
    }
    for (query, said) in [("parts=all", "unknown part `all`"), ("part=known", "did you mean")] {
        let (status, answer) = server.raw("GET", &format!("{path}?{query}"), "").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(said), "{answer}");
    }
    let found = &all["diagnosis"];
    let a1 = json!({"id": runs, "name": "a1", "projectName": "team-a"});
    let held = json!([{"workload": a1, "resource": "gpu", "held": 4000,
                       "standing": "as_important", "priority": 50}]);
    assert_eq!(found["workloadHoldings"], held, "{found}");
    // Each sentence about a workload or project has a value with that name.
    let list = |field: &str| found[field].as_array().unwrap();
    let names: Vec<&str> = list("workloadHoldings")
        .iter()
        .map(|one| one["workload"]["name"].as_str().unwrap())
        .chain(list("projectHoldings").iter().map(|one| one["name"].as_str().unwrap()))
        .collect();
    for line in list("holders") {
        let line = line.as_str().unwrap();
        assert!(names.iter().any(|name| line.contains(name)), "{line}: {names:?}");
    }
    assert!(!list("nodeClasses").is_empty() && list("nodeClasses").len() == list("nodes").len());
    assert!(!list("advice").is_empty(), "{found}");
    for advice in list("advice") {
        let told = match advice["kind"].as_str().unwrap() {
            "end" => advice["change"]["workload"] == a1,
            "quota" | "limit" => advice["change"]["raises"][0]["to"].is_u64(),
            "uncordon" | "more_nodes" => advice["change"]["node"].is_string(),
            "fewer_gpus" | "fewer_pods" => advice["to"].is_string(),
            _ => true,
        };
        assert!(told, "{advice}");
    }
}

#[tokio::test]
async fn an_inference_that_waits_is_explained_with_an_estimate() {
    let server = Server::with_teams().await;
    // More than its quota, which it may not exceed.
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 3},
                      "servingPort": {"container": 80}});
    let job = server.job("svc", &spec);
    let (_, made) = server.post("/api/v1/workloads/inferences", job).await;
    let id = made["workloadId"].as_str().unwrap();
    server.until(&format!("/api/v1/workloads/{id}"), |shown| shown["phase"] == "Pending").await;
    let explained = server.get(&format!("/elastane/v1/workloads/{id}/explain")).await;
    assert!(explained["diagnosis"].is_object(), "{explained}");
    assert!(explained["startEstimate"]["assumption"].is_string(), "{explained}");
}

#[tokio::test]
async fn a_workload_that_waits_for_a_crash_loop_is_told_when_that_gives_its_place_up() {
    let server = Server::with_teams().await;
    let runs = server.train("a1", 4).await;
    server.phase(&runs, "Running").await;
    server.engine.end("a1", engine::Exit::Code(1));
    server.until(&format!("/api/v1/workloads/{runs}"), |one| one["phase"] != "Running").await;
    let waits = server.train("a2", 4).await;
    let explained = server.get(&format!("/elastane/v1/workloads/{waits}/explain")).await;
    let estimate = &explained["startEstimate"];
    assert!(estimate["unknownEnds"].is_null(), "{explained}");
    let submitted = ms(&server.get(&format!("/api/v1/workloads/{waits}")).await["createdAt"]);
    let (from, to) = (ms(&estimate["earliest"]), ms(&estimate["latest"]));
    // After pauses of 1, 2, 4, 8 and 16 s, one of 32 s would exceed what it may keep.
    let bound = submitted + 29_000..submitted + 32_000;
    assert!(from == to && bound.contains(&from), "{explained}");
    let assumed = "1 workload that restarts after a failure fails again";
    assert!(estimate["assumption"].as_str().unwrap().contains(assumed), "{explained}");
}

#[tokio::test]
async fn a_time_limit_says_by_when_it_will_have_started() {
    let server = Server::with_teams().await;
    let resources = json!([{"gpu": {"deserved": 2}}]);
    let rules =
        json!({"schedulingRules": {"trainingJobTimeLimitSeconds": 3600}, "resources": resources});
    for project in ["1", "2"] {
        let path = format!("/api/v1/org-unit/projects/{project}");
        let (status, answer) = server.raw("PUT", &path, &rules.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    let runs = server.train("a1", 4).await;
    let started = server.phase(&runs, "Running").await["phaseUpdatedAt"].clone();
    let waits = server.train("a2", 4).await;
    let explained = server.get(&format!("/elastane/v1/workloads/{waits}/explain")).await;
    let estimate = &explained["startEstimate"];
    assert!(estimate["earliest"].is_string() && estimate["unknownEnds"].is_null(), "{explained}");
    let (started, latest) = (ms(&started), ms(&estimate["latest"]));
    assert!((started + 1..=started + 3_601_000).contains(&latest), "{explained}");
    assert!(estimate["assumption"].as_str().unwrap().contains("at its time limit"), "{explained}");
}

fn ms(time: &Value) -> u64 {
    time.as_str().unwrap().parse::<api_types::Time>().unwrap().0.0
}

#[tokio::test]
async fn explain_tells_who_is_looked_at_before_a_workload_in_its_project() {
    let server = Server::with_teams().await;
    for (name, gpus) in [("runs", 4), ("large", 3), ("never", 99)] {
        server.train(name, gpus).await;
    }
    let late = server.train("late", 1).await;
    server.train("later", 1).await;
    let explained = server.get(&format!("/elastane/v1/workloads/{late}/explain")).await;
    let diagnosis = &explained["diagnosis"];
    let ahead = diagnosis["ahead"].as_array().unwrap();
    let [one] = &ahead[..] else {
        panic!("neither those that never start nor later ones: {ahead:?}")
    };
    assert_eq!(
        (&one["workload"]["name"], &one["requestedGpus"], &one["precedence"]),
        (&json!("large"), &json!(3), &json!("older"))
    );
    assert!(one["workload"]["id"].is_string(), "{one}");
    let lines = diagnosis["lines"].to_string();
    assert!(lines.contains("team-a/large asks for 3 GPUs: older"), "{lines}");
}
