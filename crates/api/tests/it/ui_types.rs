//! Types of the API for the web interface: `ui/src/api/types.d.ts` is made from the OpenAPI
//! document, and has the types that the sources of the interface import, with all types that they
//! refer to. `cargo xtask ui-types` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use api_types::WorkloadPhase;
use expect_test::expect_file;
use http_kit::Row;
use serde_json::{Map, Value};
use spec::WorkloadKind;
use view::WorkloadView;

use crate::server::Server;

const HEADER: &str = "// Types of the API, made from our OpenAPI document (`/elastane/v1/openapi.json`)\n\
                      // by `cargo xtask ui-types`.\n";
const SCHEMAS: &str = "#/components/schemas/";

#[tokio::test]
async fn types_of_the_interface_are_those_of_the_api() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src");
    let mut wanted = BTreeSet::new();
    imported(&sources, &mut wanted);
    assert!(wanted.contains("Workload"), "{wanted:?}");
    let document = Server::new().await.get("/elastane/v1/openapi.json").await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut types = BTreeMap::from([
        ("Categories".to_owned(), categories()),
        ("Phases".to_owned(), phases()),
        ("WorkloadKey".to_owned(), workload_keys()),
    ]);
    for name in wanted {
        declare(&name, schemas, &mut types);
    }
    let text: String = types.into_values().map(|text| format!("\n{text}\n")).collect();
    expect_file!["../../../../ui/src/api/types.d.ts"].assert_eq(&format!("{HEADER}{text}"));
}

/// Declares the category of each type of workload, which no document of ours has.
fn categories() -> String {
    let one = |kind: WorkloadKind| format!("  {kind:?}: \"{}\";\n", convert::category(kind));
    let all: String = WorkloadKind::ALL.into_iter().map(one).collect();
    format!("export interface Categories {{\n{all}}}")
}

/// Declares the phases of a workload: if it waits for places in them, and if it has ended for good.
fn phases() -> String {
    let one = |phase: WorkloadPhase| {
        let (waits, is_over) = (phase.waits(), phase.is_over());
        format!("  {}: {{ waits: {waits}; isOver: {is_over} }};\n", phase.name())
    };
    let all: String = WorkloadPhase::all().map(one).collect();
    format!("export interface Phases {{\n{all}}}")
}

/// Declares the keys by which lists of workloads are filtered and sorted.
fn workload_keys() -> String {
    let keys = <WorkloadView as Row<convert::Listed>>::FIELDS.iter();
    let keys: Vec<String> = keys.map(|(key, _)| format!("\"{key}\"")).collect();
    format!("export type WorkloadKey = {};", keys.join(" | "))
}

/// Adds the names that TypeScript files below a folder import from `api/types`.
fn imported(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            imported(&path, names);
        } else if matches!(path.extension().and_then(|end| end.to_str()), Some("ts" | "tsx")) {
            let text = std::fs::read_to_string(&path).unwrap();
            let imports = text.split("import type {").skip(1);
            let imports = imports.filter_map(|rest| rest.split_once("} from "));
            let imports = imports.filter(|(_, rest)| {
                rest.lines().next().is_some_and(|line| line.ends_with("/types\";"))
            });
            let all = imports.flat_map(|(list, _)| list.split(','));
            let all = all.filter_map(|name| name.split_whitespace().next());
            names.extend(all.map(str::to_owned));
        }
    }
}

/// Declares a schema, and the schemas that it refers to.
fn declare(name: &str, schemas: &Map<String, Value>, types: &mut BTreeMap<String, String>) {
    if types.contains_key(name) {
        return;
    }
    let schema = schemas.get(name).unwrap_or_else(|| panic!("the API has no type `{name}`"));
    let text = match schema.get("properties") {
        Some(_) if schema["type"] == "object" => {
            format!("export interface {name} {}", object(schema, "\n"))
        }
        _ => format!("export type {name} = {};", type_of(schema)),
    };
    types.insert(name.to_owned(), text);
    let mut references = BTreeSet::new();
    refers(schema, &mut references);
    references.iter().for_each(|name| declare(name, schemas, types));
}

fn refers(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Array(all) => all.iter().for_each(|one| refers(one, names)),
        Value::Object(all) => {
            let own = all.get("$ref").and_then(Value::as_str);
            names.extend(own.and_then(|path| path.strip_prefix(SCHEMAS)).map(str::to_owned));
            all.values().for_each(|one| refers(one, names));
        }
        _ => {}
    }
}

/// The members of an object in braces, each followed by `end`.
fn object(schema: &Value, end: &str) -> String {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let indent = if end == "\n" { "  " } else { " " };
    let members = schema["properties"].as_object().unwrap().iter().map(|(name, schema)| {
        let optional = if required.iter().any(|one| one == name) { "" } else { "?" };
        format!("{indent}{name}{optional}: {};{}", type_of(schema), end.trim_start_matches(' '))
    });
    format!("{{{}{}{}}}", end, members.collect::<String>(), if end == "\n" { "" } else { " " })
}

/// The TypeScript type of a schema.
fn type_of(schema: &Value) -> String {
    let list = |of: &str| schema[of].as_array().cloned();
    let joined = |all: Vec<Value>, by: &str| all.iter().map(type_of).collect::<Vec<_>>().join(by);
    if let Some(path) = schema["$ref"].as_str() {
        return path.trim_start_matches(SCHEMAS).to_owned();
    }
    if let Some(all) = list("oneOf").or_else(|| list("anyOf")) {
        return joined(all, " | ");
    }
    if let Some(all) = list("allOf") {
        return joined(all, " & ");
    }
    if let Some(words) = list("enum") {
        return words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(kinds) = list("type") {
        let of = |kind: Value| {
            let mut one = schema.clone();
            one["type"] = kind;
            one
        };
        return joined(kinds.into_iter().map(of).collect(), " | ");
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => "number".to_owned(),
        Some(kind @ ("string" | "boolean" | "null")) => kind.to_owned(),
        Some("array") => match list("prefixItems") {
            Some(items) => format!("[{}]", joined(items, ", ")),
            None => format!("Array<{}>", type_of(&schema["items"])),
        },
        Some("object") if schema["properties"].is_object() => object(schema, ""),
        Some("object") => format!("Record<string, {}>", type_of(&schema["additionalProperties"])),
        _ => "unknown".to_owned(),
    }
}
