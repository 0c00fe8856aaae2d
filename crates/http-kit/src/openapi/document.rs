//! The document of the interface, from the table of routes.

use serde_json::{Map, Value, json};
use utoipa::openapi::Ref;
use utoipa::openapi::path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Deprecated, Required, security::SecurityRequirement};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::describe::Description;
use super::route::{Access, Route};

/// Name of the one security scheme.
const BEARER: &str = "bearerAuth";
/// Prefix of references to schemas.
const SCHEMAS: &str = "#/components/schemas/";
/// Statuses that an operation may refuse with; all have the published error body.
const REFUSALS: [(u16, &str); 13] = [
    (400, "Something in the request is wrong, or it names no host or several; the message says it"),
    (401, "The token is missing, wrong or expired"),
    (403, "The caller may not do this, or the host is none of this server's"),
    (404, "There is no such thing"),
    (405, "The path does not answer this method"),
    (408, "The body did not come in time"),
    (409, "It exists already, or is in the wrong state"),
    (413, "The body is too large"),
    (415, "The content type of the body is missing, or not one that is read here"),
    (422, "Well-formed, and not supported"),
    (429, "Too many attempts; wait"),
    (500, "The server failed"),
    (503, "The server cannot do it now; try again"),
];

/// Statuses among [`REFUSALS`] that only a body can cause.
const OF_A_BODY: [u16; 3] = [408, 413, 415];

/// The document of these routes.
///
/// # Errors
/// None that a request or a setting could cause: only a schema that is no JSON.
pub fn document<S: Clone + Send + Sync + 'static, N: PartialEq>(
    routes: &[Route<S, N>],
) -> Result<Value, serde_json::Error> {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let error = api_types::Error::name();
    schemas.insert(error.to_string(), serde_json::to_value(api_types::Error::schema())?);
    for route in routes {
        let said = route.description();
        let mut operation = serde_json::to_value(operation(route, &said))?;
        rename(&mut operation, &route.names);
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation;
        for (name, schema) in &said.schemas {
            let mut schema = serde_json::to_value(schema)?;
            rename(&mut schema, &route.names);
            let published = route.names.iter().find(|(shared, _)| shared == name);
            schemas.insert(published.map_or(name.as_str(), |(_, name)| name).to_owned(), schema);
        }
    }
    let refusals: Map<String, Value> = REFUSALS
        .map(|(status, about)| {
            let schema = json!({"$ref": format!("{SCHEMAS}{error}")});
            let content = json!({"application/json": {"schema": schema}});
            (status.to_string(), json!({"description": about, "content": content}))
        })
        .into_iter()
        .collect();
    paths.sort_keys();
    schemas.sort_keys();
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Elastane",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Paths under `/api` are those of the published interface; \
                            those under `/elastane` are our own.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refusals,
            "securitySchemes": { BEARER: { "type": "http", "scheme": "bearer" } },
        },
    }))
}

fn operation<S: Clone + Send + Sync + 'static, N: PartialEq>(
    route: &Route<S, N>,
    said: &Description,
) -> Operation {
    let (status, success) = &said.success;
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.id))
        .summary(Some(route.about))
        .tag(route.family)
        .deprecated(route.deprecated.then_some(Deprecated::True))
        .request_body(said.body.clone())
        .response(status.to_string(), success.clone());
    for name in names_in(route.path) {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
        operation = operation.parameter(parameter.required(Required::True).schema(Some(schema)));
    }
    for parameter in &said.query {
        operation = operation.parameter(parameter.clone());
    }
    let takes_body = said.body.is_some();
    let possible = |status: &u16| takes_body || !OF_A_BODY.contains(status);
    for status in REFUSALS.map(|(status, _)| status).into_iter().filter(possible) {
        let status = status.to_string();
        operation = operation.response(status.clone(), Ref::from_response_name(status));
    }
    if route.access != Access::Open {
        operation = operation.security(SecurityRequirement::new(BEARER, [""; 0]));
    }
    operation.build()
}

/// The names in braces.
fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// Makes references to a shared schema references to its published name.
fn rename(value: &mut Value, names: &[(&str, &str)]) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix(SCHEMAS);
            if let Some((_, published)) = names.iter().find(|(shared, _)| name == Some(shared)) {
                *text = format!("{SCHEMAS}{published}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, names)),
        _ => {}
    }
}
