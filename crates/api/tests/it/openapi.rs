//! The description of the interface: complete, consistent, and unchanged unless on purpose.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use expect_test::expect_file;
use serde_json::Value;

use crate::server::Server;

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    fields(&document["paths"]).flat_map(|(path, item)| {
        fields(item).map(move |(method, operation)| {
            (format!("{} {path}", method.to_uppercase()), operation)
        })
    })
}

/// A schema in few words.
fn kind(schema: &Value) -> String {
    if let Some(place) = schema["$ref"].as_str() {
        return place.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(all) = schema[choice].as_array() {
            return all.iter().map(kind).collect::<Vec<_>>().join("|");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("[{}]", kind(&schema["items"])),
        Value::String(name) if name == "object" && schema["additionalProperties"].is_object() => {
            format!("{{{}}}", kind(&schema["additionalProperties"]))
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        _ => "any".to_owned(),
    }
}

fn content(value: &Value) -> String {
    let one = |(media, body): (&String, &Value)| match media.as_str() {
        "application/json" => kind(&body["schema"]),
        other => other.to_owned(),
    };
    fields(&value["content"]).map(one).collect::<Vec<_>>().join(", ")
}

/// Interface that a client depends on, a line for each operation and each field.
fn digest(document: &Value) -> String {
    let mut lines = Vec::new();
    for (name, operation) in operations(document) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let query: Vec<&str> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        lines.push(format!("{name} {}", operation["operationId"].as_str().unwrap_or("?")));
        if !query.is_empty() {
            lines.push(format!("    ? {}", query.join(" ")));
        }
        if operation["requestBody"].is_object() {
            lines.push(format!("    < {}", content(&operation["requestBody"])));
        }
        for (status, response) in fields(&operation["responses"]) {
            if response["$ref"].is_null() {
                lines.push(format!("    > {status} {}", content(response)).trim_end().to_owned());
            }
        }
    }
    for (name, schema) in fields(&document["components"]["schemas"]) {
        let closed = schema["additionalProperties"] == false;
        let rest = if schema["properties"].is_null() { kind(schema) } else { String::new() };
        let line = format!("{name}{} {rest}", if closed { " (closed)" } else { "" });
        lines.push(line.trim_end().to_owned());
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (field, of) in fields(&schema["properties"]) {
            let star = if required.contains(field.as_str()) { "*" } else { "" };
            lines.push(format!("    {field}{star} {}", kind(of)));
        }
    }
    lines.join("\n") + "\n"
}

#[tokio::test]
async fn what_clients_depend_on_changes_only_on_purpose() {
    let document = Server::new().await.get("/elastane/v1/openapi.json").await;
    expect_file!["openapi.txt"].assert_eq(&digest(&document));
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_name_is_used_once() {
    let document = Server::new().await.get("/elastane/v1/openapi.json").await;
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for place in found {
        let pointer = place.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{place} leads nowhere");
    }
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{name}: {id} is used twice");
        assert!(!operation["tags"][0].as_str().unwrap().is_empty(), "{name} has no family");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{name} says nothing");
    }
}

#[tokio::test]
async fn what_needs_no_token_says_so_and_everything_else_refuses() {
    let server = Server::new().await;
    let document = server.get("/elastane/v1/openapi.json").await;
    for (name, operation) in operations(&document) {
        let (method, path) = name.split_once(' ').unwrap();
        let path = path.replace(['{', '}'], "");
        let request = Request::builder().method(method).uri(&path).header("host", "localhost");
        let status = server.send(request.body(Body::empty()).unwrap()).await.status();
        let open = operation["security"].is_null();
        assert_eq!(status != StatusCode::UNAUTHORIZED, open, "{name}: {status}");
    }
}

#[tokio::test]
async fn refusals_are_described_where_they_can_occur() {
    let server = Server::new().await;
    let document = server.get("/elastane/v1/openapi.json").await;
    for (name, operation) in operations(&document) {
        let says = |status: &str| operation["responses"][status].is_object();
        let takes_body = operation["requestBody"].is_object();
        assert!(["408", "413", "415"].iter().all(|one| says(one) == takes_body), "{name}");
        assert!(["400", "403", "429", "500", "503"].iter().all(|one| says(one)), "{name}");
        if !takes_body {
            continue;
        }
        let (method, path) = name.split_once(' ').unwrap();
        let request = server.request(method, &path.replace(['{', '}'], ""));
        let request = request.header("content-type", "text/plain").body(Body::from("x")).unwrap();
        let status = server.send(request).await.status().as_u16();
        assert!(says(&status.to_string()), "{name}: {status} is not described");
    }
}

#[tokio::test]
async fn the_page_names_every_operation_and_runs_nothing() {
    let server = Server::new().await;
    let document = server.get("/elastane/v1/openapi.json").await;
    let request = server.request("GET", "/elastane/v1/docs").body(Body::empty()).unwrap();
    let response = server.send(request).await;
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let page = axum::body::to_bytes(response.into_body(), 10 << 20).await.unwrap();
    let page = String::from_utf8(page.to_vec()).unwrap();
    for (_, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(page.contains(&format!("<code>{id}</code>")), "{id} is not on the page");
    }
    assert!(!page.contains("<script") && !page.contains("https://"), "it loads something");
}

/// The schema of a parameter of an operation.
fn parameter<'a>(operation: &'a Value, name: &str) -> Option<&'a Value> {
    let mut all = operation["parameters"].as_array().into_iter().flatten();
    all.find(|one| one["in"] == "query" && one["name"] == name).map(|one| &one["schema"])
}

#[tokio::test]
async fn lists_take_the_sort_keys_they_say_and_no_others() {
    let server = Server::with_teams().await;
    let document = server.get("/elastane/v1/openapi.json").await;
    let mut lists = 0;
    for (name, operation) in operations(&document) {
        let Some(sort_by) = parameter(operation, "sortBy") else { continue };
        let (Some(path), false) = (name.strip_prefix("GET "), name.contains('{')) else { continue };
        if operation["responses"]["200"]["content"]["application/json"].is_null() {
            continue;
        }
        // There is one cluster: nothing to sort.
        let Some(keys) = sort_by["enum"].as_array() else {
            assert!(path.ends_with("/clusters"), "{name} says no sort keys");
            continue;
        };
        lists += 1;
        let answer = async |query: String| server.raw("GET", &format!("{path}?{query}"), "").await;
        for key in keys {
            let (status, body) = answer(format!("sortBy={}", key.as_str().unwrap())).await;
            assert_eq!(status, StatusCode::OK, "{name} sortBy={key}: {body}");
        }
        let (status, _) = answer("sortBy=nonsense".to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{name}");
        let pattern = parameter(operation, "filterBy").unwrap()["pattern"].as_str().unwrap();
        assert!(pattern.contains(&format!("({}|", keys[0].as_str().unwrap())), "{pattern}");
    }
    assert!(lists > 15, "{lists}");
}

#[tokio::test]
async fn parameters_that_change_nothing_are_still_what_they_are_said_to_be() {
    let server = Server::with_teams().await;
    let compute = "/api/v1/asset/compute";
    for (query, status) in [
        ("statusInfo=true", 200),
        ("statusInfo=1", 400),
        ("complyToProject=1", 200),
        ("complyToProject=team-a", 400),
        ("scope=tenant", 200),
        ("scope=nonsense", 400),
        ("projectId=x", 400),
    ] {
        let (got, body) = server.raw("GET", &format!("{compute}?{query}"), "").await;
        assert_eq!(got.as_u16(), status, "{query}: {body}");
    }
    let templates = "/api/v1/workload-templates?complyToProject=x";
    assert_eq!(server.raw("GET", templates, "").await.0, StatusCode::BAD_REQUEST);
}
