//! Every answer against the published document of the interface (control plane 2.24).
//!
//! `published.txt` has a line for each operation: method, path, the statuses of success and the
//! shape of the answer: `{field* field}` with a star for a field that is always there, `[…]` for a
//! list, `boolean`, `text` for a body that is not JSON, `-` without a body.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::server::Server;

/// Operations under published paths that the published document does not have.
const OWN: [&str; 4] = [
    "POST /api/v1/workloads",
    "PATCH /api/v1/workloads/trainings/{workloadId}",
    "PATCH /api/v1/workloads/workspaces/{workloadId}",
    "PATCH /api/v1/workloads/distributed/{workloadId}",
];

/// Answers that differ, with the difference and its reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Answer of an operation: its statuses of success, and the shape.
struct Answer<'a> {
    statuses: Vec<&'a str>,
    shape: &'a str,
}

fn published() -> BTreeMap<String, Answer<'static>> {
    let lines = include_str!("published.txt").lines().map(|line| {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("a short line: {line}"));
        let (method, path, statuses, shape) = (word(), word(), word(), word());
        (format!("{method} {path}"), Answer { statuses: statuses.split(',').collect(), shape })
    });
    lines.collect()
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => {
            let schema = document.pointer(place.trim_start_matches('#'));
            resolved(document, schema.unwrap_or_else(|| panic!("{place} leads nowhere")))
        }
        None => schema,
    }
}

/// Fields of an object, and whether each is always there; the parts of a composed one together.
fn fields(document: &Value, schema: &Value) -> BTreeMap<String, bool> {
    let schema = resolved(document, schema);
    let mut all = BTreeMap::new();
    for part in ["allOf", "oneOf"].iter().filter_map(|all| schema[*all].as_array()).flatten() {
        all.extend(fields(document, part));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    for name in schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
        all.insert(name.clone(), required.contains(&name.as_str()));
    }
    all
}

/// Where a schema is not of a shape.
fn difference(document: &Value, schema: &Value, shape: &str) -> Option<String> {
    let schema = resolved(document, schema);
    if let Some(items) = shape.strip_prefix('[').and_then(|shape| shape.strip_suffix(']')) {
        return match schema["type"] == "array" {
            true => difference(document, &schema["items"], items),
            false => Some("no list".to_owned()),
        };
    }
    let Some(published) = shape.strip_prefix('{').and_then(|shape| shape.strip_suffix('}')) else {
        return (schema["type"] != shape).then(|| format!("no {shape}"));
    };
    let own = fields(document, schema);
    if own.is_empty() && schema["type"] != "object" {
        return Some("no object".to_owned());
    }
    let needed = published.split_whitespace().filter_map(|field| field.strip_suffix('*'));
    let missing: Vec<&str> = needed.filter(|field| !own.contains_key(*field)).collect();
    (!missing.is_empty()).then(|| format!("without {}", missing.join(" ")))
}

/// Where an operation is not as published.
fn deviation(document: &Value, operation: &Value, published: &Answer<'_>) -> Option<String> {
    let responses = operation["responses"].as_object().unwrap();
    let Some((status, response)) = responses.iter().find(|(status, _)| status.starts_with('2'))
    else {
        return Some("no success".to_owned());
    };
    if !published.statuses.contains(&status.as_str()) {
        return Some(status.clone());
    }
    let json = &response["content"]["application/json"]["schema"];
    match published.shape {
        "-" => (!response["content"].is_null()).then(|| "a body".to_owned()),
        "text" => (!json.is_null()).then(|| "JSON".to_owned()),
        // Also where the published answer of another status has one.
        _ if status == "204" => None,
        shape => difference(document, json, shape),
    }
}

#[tokio::test]
async fn answers_have_the_published_status_and_shape() {
    let document = Server::new().await.get("/elastane/v1/openapi.json").await;
    let mut published = published();
    let mut deviations = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{} {path}", method.to_uppercase());
            let is_own = !path.starts_with("/api/") && !path.starts_with("/v1/");
            if is_own || !operation["responses"]["501"].is_null() || OWN.contains(&name.as_str()) {
                continue;
            }
            match published.remove(&name) {
                None => {
                    deviations.insert(name, "not published".to_owned());
                }
                Some(answer) => {
                    let found = deviation(&document, operation, &answer);
                    deviations.extend(found.map(|found| (name, found)));
                }
            }
        }
    }
    deviations.extend(published.into_keys().map(|name| (name, "not served".to_owned())));
    let known = EXCEPTIONS.iter().map(|(name, why)| (*name, why.split(':').next().unwrap()));
    let known: BTreeMap<&str, &str> = known.collect();
    let found: BTreeMap<&str, &str> =
        deviations.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    assert_eq!(found, known);
}

#[tokio::test]
async fn a_comparison_finds_what_differs() {
    let document = json!({"components": {"schemas": {
        "One": {"type": "object", "properties": {"id": {}}, "required": ["id"]},
    }}});
    let one = json!({"$ref": "#/components/schemas/One"});
    let differs = |schema: &Value, shape: &str| difference(&document, schema, shape);
    assert_eq!(differs(&one, "{id* name}"), None);
    assert_eq!(differs(&one, "{id* name*}").unwrap(), "without name");
    assert_eq!(differs(&one, "[{id*}]").unwrap(), "no list");
    let list = json!({"type": "array", "items": one});
    assert_eq!(differs(&list, "[{id*}]"), None);
    assert_eq!(differs(&list, "{id*}").unwrap(), "no object");
    assert_eq!(differs(&one, "boolean").unwrap(), "no boolean");
}
