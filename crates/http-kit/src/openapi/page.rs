//! The document as a page for people. One file without scripts, so that it works on a machine
//! that reaches nothing and shows in any browser.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use units::markup;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1b1f24;background:#fff}h2{margin-top:2.5rem}code,pre{font:13px/1.45 \
ui-monospace,monospace}pre{background:#f4f5f7;padding:.75rem;overflow:auto;border-radius:6px}\
details{border-top:1px solid #d8dbe0;padding:.4rem 0}summary{cursor:pointer}summary b{display:\
inline-block;width:4.5rem}table{border-collapse:collapse;margin:.5rem 0}td,th{text-align:left;\
padding:.15rem 1rem .15rem 0;vertical-align:top}small{color:#5b6470}\
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#15181c}pre{background:#20242a}\
details{border-color:#343a42}small{color:#9aa3ad}a{color:#7db7ff}}";

/// The page of a document.
pub fn page(document: &Value) -> String {
    let mut html = String::new();
    let title =
        format!("{} {}", text(&document["info"]["title"]), text(&document["info"]["version"]));
    let _ = write!(
        html,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport \
         content=\"width=device-width\"><title>{title}: REST API</title><style>{STYLE}</style>\
         <h1>{title}: REST API</h1><p>{}<p>The same for programs: <a href=openapi.json>\
         openapi.json</a>. Every request but those marked open needs \
         <code>Authorization: Bearer TOKEN</code>; every refusal has the body <a \
         href=\"#schema-Error\">Error</a>.",
        text(&document["info"]["description"])
    );
    for (family, operations) in families(document) {
        let _ = write!(html, "<h2>{}</h2>", markup(&family));
        for (path, method, operation) in operations {
            write_operation(&mut html, path, method, operation);
        }
    }
    html.push_str("<h2>Schemas</h2>");
    for (name, schema) in fields(&document["components"]["schemas"]) {
        let name = markup(name);
        let _ = write!(
            html,
            "<details id=\"schema-{name}\"><summary>{name} <small>{}</small></summary><pre>{}</pre></details>",
            text(&schema["description"]),
            pretty(schema)
        );
    }
    html
}

type Entry<'a> = (&'a str, &'a str, &'a Value);

/// The operations of each family, in order of the document.
fn families(document: &Value) -> Vec<(String, Vec<Entry<'_>>)> {
    let mut families: Vec<(String, Vec<Entry<'_>>)> = Vec::new();
    for (path, item) in fields(&document["paths"]) {
        for (method, operation) in fields(item) {
            let name = operation["tags"][0].as_str().unwrap_or_default();
            let entry = (path.as_str(), method.as_str(), operation);
            match families.iter_mut().find(|(family, _)| family == name) {
                Some((_, entries)) => entries.push(entry),
                None => families.push((name.to_owned(), vec![entry])),
            }
        }
    }
    families.sort_by(|a, b| a.0.cmp(&b.0));
    families
}

fn write_operation(html: &mut String, path: &str, method: &str, operation: &Value) {
    let open = if operation["security"].is_null() { " <small>open</small>" } else { "" };
    let _ = write!(
        html,
        "<details><summary><b>{}</b><code>{}</code>{open} <small>{}</small></summary><p>\
         <small>operation <code>{}</code></small>",
        method.to_uppercase(),
        markup(path),
        text(&operation["summary"]),
        text(&operation["operationId"])
    );
    if let Some(parameters) = operation["parameters"].as_array() {
        html.push_str("<table><tr><th>Parameter<th>In<th>Type<th>Meaning");
        for parameter in parameters {
            let [name, place, about] =
                ["name", "in", "description"].map(|key| text(&parameter[key]));
            let kind = text(&parameter["schema"]["type"]);
            let _ = write!(html, "<tr><td><code>{name}</code><td>{place}<td>{kind}<td>{about}");
        }
        html.push_str("</table>");
    }
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        let _ = write!(html, "<p>Body: {}", bodies(content));
    }
    for (status, response) in fields(&operation["responses"]) {
        if response["$ref"].is_null() {
            let _ = write!(html, "<p>{status} {}", text(&response["description"]));
            if let Some(content) = response["content"].as_object() {
                let _ = write!(html, ": {}", bodies(content));
            }
        }
    }
    html.push_str("</details>");
}

/// Media types with their schemas.
fn bodies(content: &Map<String, Value>) -> String {
    let one = |(media, body): (&String, &Value)| {
        let schema = &body["schema"];
        match schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()) {
            Some(name) => {
                let name = markup(name);
                format!("<a href=\"#schema-{name}\">{name}</a>")
            }
            None if media == "application/json" => format!("<pre>{}</pre>", pretty(schema)),
            None => format!("<code>{}</code>", markup(media)),
        }
    };
    content.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn pretty(value: &Value) -> String {
    markup(&format!("{value:#}"))
}

fn text(value: &Value) -> String {
    markup(value.as_str().unwrap_or_default())
}
