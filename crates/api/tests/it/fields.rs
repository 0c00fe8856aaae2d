//! Checks that the table of fields names every field, and marks every rejected one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::server::Server;

/// Field and last cell of each row below a heading.
fn rows(page: &str, heading: &str) -> BTreeMap<String, String> {
    let (_, below) = page.split_once(heading).unwrap();
    let section = below.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
        let name = cells.first()?.trim_end_matches('`').to_owned();
        Some((name, (*cells.iter().rfind(|cell| !cell.is_empty())?).to_owned()))
    });
    rows.collect()
}

#[tokio::test]
async fn every_field_is_in_the_table_and_what_is_refused_is() {
    let server = Server::with_teams().await;
    let page = include_str!("../../../../docs/reference/fields.md");
    let schemas = server.get("/elastane/v1/openapi.json").await["components"]["schemas"].clone();
    for (schema, heading, at) in
        [("WorkloadSpec", "## `spec`", "spec"), ("Compute", "## `compute`", "spec.compute")]
    {
        let table = rows(page, heading);
        let known = schemas[schema]["properties"].as_object().unwrap();
        let known: Vec<_> = known.keys().cloned().collect();
        let mut listed: Vec<_> = table.keys().cloned().collect();
        listed.sort();
        let mut wanted = known.clone();
        wanted.sort();
        assert_eq!(listed, wanted, "the rows of docs/reference/fields.md, {heading}");
        for field in known {
            let refused = table[&field].starts_with("refused");
            let mut spec = json!({"image": "i"});
            let to = if at == "spec" { &mut spec } else { spec["compute"].insert() };
            to[&field] = json!(["x"]);
            let (status, answer) =
                server.post("/api/v1/workloads/trainings", server.job("t", &spec)).await;
            let said = answer["message"].as_str().unwrap_or_default();
            let later = status == 422 && said.starts_with(&format!("{at}.{field}"));
            assert_eq!(later, refused, "{at}.{field}: {status} {answer}");
        }
    }
}

trait Insert {
    fn insert(&mut self) -> &mut Self;
}

impl Insert for Value {
    /// An empty object in its place.
    fn insert(&mut self) -> &mut Self {
        *self = json!({});
        self
    }
}
