//! The ledger of GPUs: who sees what of it, what it costs, and as a file.

use axum::body::Body;
use serde_json::{Value, json};

use crate::iam::{get, give, program};
use crate::server::{Server, bytes};

const USAGE: &str = "/elastane/v1/usage";

/// A server on which each team has a GPU, and another owner two more.
async fn used() -> Server {
    let server = Server::with_teams().await;
    for (project, name) in [("1", "a"), ("2", "b")] {
        let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 1}});
        let mut job = server.job(name, &spec);
        job["projectId"] = json!(project);
        let (_, made) = server.post("/api/v1/workloads/trainings", job).await;
        server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    }
    // The sum is of a time that has passed.
    server.until(USAGE, |usage| usage["total"]["allocatedGpuHours"].as_f64() > Some(0.0)).await;
    server
}

fn column(usage: &Value, field: &str) -> Vec<Value> {
    usage["rows"].as_array().unwrap().iter().map(|row| row[field].clone()).collect()
}

#[tokio::test]
async fn rows_are_told_apart_as_asked_for_and_nobody_sees_those_of_others() {
    let server = used().await;
    let usage = server.get(USAGE).await;
    assert_eq!(usage["by"], json!(["project", "user", "model"]));
    assert_eq!(column(&usage, "projectName"), ["team-a", "team-b"]);
    assert_eq!(column(&usage, "gpuModel"), ["simulated", "simulated"]);
    assert_eq!(column(&usage, "cost"), [Value::Null, Value::Null], "there are no prices");
    assert!(usage["total"]["allocatedGpuHours"].is_number(), "{usage:#}");
    let by_model = server.get(&format!("{USAGE}?by=model")).await;
    assert_eq!(column(&by_model, "gpuModel"), ["simulated"]);
    assert_eq!(column(&by_model, "projectId"), [Value::Null]);
    assert_eq!(server.get(&format!("{USAGE}?to=2020-01-01")).await["rows"], json!([]));

    let (account, _, token) = program(&server, "asker").await;
    let (status, refused) = get(&server, &token, USAGE).await;
    let why = refused["message"].as_str().unwrap();
    assert!(status == 403 && why.starts_with("asker may not read consumption anywhere"), "{why}");
    give(&server, &account, 5, ("project", "2")).await;
    let (_, theirs) = get(&server, &token, USAGE).await;
    assert_eq!(column(&theirs, "projectName"), ["team-b"]);
    assert_eq!(theirs["rows"][0]["allocatedGpuHours"], theirs["total"]["allocatedGpuHours"]);
    let prices = format!("{USAGE}/prices");
    let (status, _) =
        crate::iam::call(&server, &token, ("PUT", &prices), &json!({"currency": "", "prices": []}))
            .await;
    assert_eq!(status.as_u16(), 403, "only administrators set prices");
}

#[tokio::test]
async fn prices_are_kept_exactly_and_make_costs() {
    let server = used().await;
    let prices = format!("{USAGE}/prices");
    assert_eq!(server.get(&prices).await, json!({"currency": "", "prices": []}));
    let price = |model: &str, price: f64| json!({"gpuModel": model, "perGpuHour": price});
    for (currency, rate) in [("USD", 1.5), ("EUR", 3_600_000.25)] {
        let wanted = json!({"currency": currency, "prices": [price("simulated", rate)]});
        let (status, set) = server.raw("PUT", &prices, &wanted.to_string()).await;
        assert_eq!((status.as_u16(), &set), (200, &wanted));
        assert_eq!(server.get(&prices).await, wanted);
    }
    let usage = server.get(&format!("{USAGE}?by=project")).await;
    assert_eq!(usage["currency"], "EUR");
    for row in usage["rows"].as_array().unwrap() {
        // The price is so high that each millisecond costs at least one.
        assert!(row["cost"].as_f64() >= Some(1.0), "{row}");
    }
    for (body, says) in [
        (json!({"currency": "EUR", "prices": [price("x", -1.0)]}), "prices[0].perGpuHour"),
        (json!({"currency": "EUR", "prices": [price("x", 0.000_000_1)]}), "six decimals"),
        (json!({"currency": "EUR", "prices": [price("x", 1.0), price("x", 2.0)]}), "twice"),
        (json!({"currency": "EUR", "prices": [price(" ", 1.0)]}), "elastane status"),
        (json!({"currency": "a currency with a name", "prices": []}), "16 bytes"),
        (json!({"currency": "", "prices": [price("x", 1.0)]}), "currency: must be a word"),
    ] {
        let (status, error) = server.raw("PUT", &prices, &body.to_string()).await;
        assert_eq!(status.as_u16(), 400, "{body}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    for query in ["by=colour", "from=yesterday", "from=2099-01-01", "x=1"] {
        let (status, error) = server.raw("GET", &format!("{USAGE}?{query}"), "").await;
        assert_eq!(status.as_u16(), 400, "{query}: {error}");
    }
}

#[tokio::test]
async fn the_file_has_the_rows_and_no_formulas() {
    let server = used().await;
    let request = server.request("GET", &format!("{USAGE}/csv?by=user,model"));
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.headers()["content-type"], "text/csv");
    let text = String::from_utf8(bytes(answer).await.to_vec()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0].split(',').count(), lines[1].split("\",\"").count());
    assert!(lines[1].contains("\"\",\"\",\"ada\",\"simulated\",\"0."), "{text}");
}
