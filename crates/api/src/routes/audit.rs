//! The audit log: every change, every issued token, and refused requests.

use std::collections::BTreeMap;

use access::{Route, Where};
use api_types::{AuditLog, AuditLogsPage, TENANT_ID, Time};
use auth::Action::Read;
use auth::Resource;
use axum::Json;
use axum::extract::{FromRequestParts, State as FromState};
use axum::http::request::Parts;
use http_kit::openapi::{Description, Input, get};
use http_kit::{ApiError, Attachment, ListQuery, Row, Scalar, Type, csv_line, parameters};
use records::AuditFilter;
use units::Instant;
use utoipa::openapi::schema::Type as SchemaType;

use crate::ApiState;

/// Most rows that are looked at for one answer; the newest, if there are more.
const ROWS_MAX: u32 = 50_000;

/// The routes of the audit log.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (log, file) = ("/api/v1/audit/log", "/api/v1/audit/log/file");
    let of = Resource::EventHistory;
    let routes = [
        get(log, "get_audit_logs", "Who asked for what, the newest first", list),
        get(file, "download_audit_logs", "The same as a file, CSV or JSON", download),
    ];
    routes.into_iter().map(move |route| {
        route.of("AuditLogs").rows::<AuditLog, _>().needs(Read, of, Where::Tenant)
    })
}

/// Which rows, and as what.
pub(super) struct AuditQuery {
    list: ListQuery,
    rows: AuditFilter,
    csv: bool,
}

impl Input for AuditQuery {
    fn describe(to: &mut Description) {
        to.parameter("start", SchemaType::String, "Not before this time");
        to.parameter("end", SchemaType::String, "Before this time");
        to.parameter("numberOfSamples", SchemaType::Integer, "The same as limit");
        to.parameter("fileType", SchemaType::String, "`CSV` or `JSON`; of the file only");
        let own = ["offset", "limit", "sortBy", "sortOrder", "filterBy", "search"];
        ListQuery::describe_some(to, |name| own.contains(&name));
    }
}

impl<S: Sync> FromRequestParts<S> for AuditQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut rows = AuditFilter { limit: ROWS_MAX, ..AuditFilter::default() };
        let (mut rest, mut csv) = (Vec::new(), true);
        for (name, value) in parameters(&parts.uri)? {
            let time = || {
                let at = value.parse::<Time>().map_err(|why| ApiError::field(&name, why))?;
                Ok::<Option<Instant>, ApiError>(Some(at.0))
            };
            match name.as_str() {
                "start" => rows.from = time()?,
                "end" => rows.until = time()?,
                "fileType" => {
                    csv = match value.to_ascii_lowercase().as_str() {
                        "csv" => true,
                        "json" => false,
                        _ => return Err(ApiError::field(&name, "is not one of CSV, JSON")),
                    }
                }
                "numberOfSamples" => rest.push(("limit".to_owned(), value)),
                _ => rest.push((name, value)),
            }
        }
        Ok(Self { list: ListQuery::parse(&rest)?, rows, csv })
    }
}

impl Row<crate::Listed> for AuditLog {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("timestamp", Type::Time),
        ("subject", Type::Text),
        ("subject_type", Type::Text),
        ("source_ip", Type::Text),
        ("action", Type::Text),
        ("http_method", Type::Text),
        ("url", Type::Text),
        ("entity_type", Type::Text),
        ("entity_name", Type::Text),
        ("entity_id", Type::Text),
        ("result", Type::Text),
        ("http_status_code", Type::Number),
        ("request_id", Type::Text),
    ];
    const SEARCHED: &'static [&'static str] = &["subject", "entity_name", "entity_type", "url"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        let maybe = |text: &'_ Option<String>| match text {
            Some(text) => Scalar::Text(text.clone().into()),
            None => Scalar::Absent,
        };
        match name {
            "timestamp" => Scalar::time(self.timestamp.0),
            "subject" => Scalar::text(self.subject.as_str()),
            "subject_type" => Scalar::text(self.subject_type.as_str()),
            "source_ip" => maybe(&self.source_ip),
            "action" => Scalar::text(self.action.as_str()),
            "http_method" => maybe(&self.http_method),
            "url" => maybe(&self.url),
            "entity_type" => Scalar::text(self.entity_type.as_str()),
            "entity_name" => Scalar::text(self.entity_name.as_str()),
            "entity_id" => maybe(&self.entity_id),
            "result" => Scalar::text(self.result.as_str()),
            "http_status_code" => {
                self.http_status_code.map_or(Scalar::Absent, |code| Scalar::count(code.into()))
            }
            "request_id" => maybe(&self.request_id),
            _ => Scalar::Absent,
        }
    }
}

/// The published word for an operation; there are only six, and clients refuse others. A request
/// that was refused before it became an operation has a word by its method: a refused read counts
/// as a refused login.
fn action(entity: &str, operation: &str, method: &str) -> &'static str {
    match (entity, operation, method) {
        ("session", "delete", _) => "sign-out",
        ("session" | "login" | "token", ..) => "sign-in",
        (_, "create" | "submit", _) | (_, "", "POST") => "create",
        (_, "delete" | "down", _) | (_, "", "DELETE") => "delete",
        (_, "", method) if !matches!(method, "PUT" | "PATCH") => "sign-in",
        _ => "update",
    }
}

/// The methods that clients know; anybody can send others.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

async fn rows(server: &ApiState, filter: &AuditFilter) -> Result<Vec<AuditLog>, ApiError> {
    let cluster = server.control.cluster();
    let rows = server.control.audit(filter).await?;
    let wire = |(seq, row): (u64, records::AuditRow)| {
        let (entity_type, operation) = row.what.split_once('.').unwrap_or((&row.what, ""));
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let succeeded = row.result == "ok";
        let mut metadata = BTreeMap::from([("operation".to_owned(), row.what.clone())]);
        if !succeeded {
            metadata.insert("reason".to_owned(), row.result.clone());
        }
        AuditLog {
            id: seq.to_string(),
            timestamp: row.at.into(),
            tenant_id: TENANT_ID.to_string(),
            subject_type: if row.detail.by_program { "App" } else { "User" }.to_owned(),
            action: action(entity_type, operation, &row.detail.method).to_owned(),
            entity_type: entity_type.to_owned(),
            entity_name: row.target.clone(),
            entity_id: some(row.detail.target_id),
            result: if succeeded { "Succeeded" } else { "Failed" }.to_owned(),
            http_status_code: row.detail.status,
            cluster_name: cluster.name.clone(),
            cluster_id: cluster.uuid.to_string(),
            subject: row.who,
            source_ip: some(row.detail.source_ip),
            http_method: some(row.detail.method).filter(|own| METHODS.contains(&own.as_str())),
            url: some(row.detail.path),
            request_id: some(row.detail.request_id),
            metadata,
        }
    };
    Ok(rows.into_iter().map(wire).collect())
}

async fn list(
    FromState(server): FromState<ApiState>,
    query: AuditQuery,
) -> Result<Json<AuditLogsPage>, ApiError> {
    if query.list.is_plain() {
        return page(&server, &query).await;
    }
    let all = rows(&server, &query.rows).await?;
    let found = query.list.matching(all.iter(), server.now())?;
    let total = found.len() as u64;
    let (page, next) = query.list.page(found);
    let audit_logs = page.into_iter().cloned().collect();
    Ok(Json(AuditLogsPage { total, next, audit_logs }))
}

/// A page of the rows as they are kept, which is all that is read.
async fn page(server: &ApiState, query: &AuditQuery) -> Result<Json<AuditLogsPage>, ApiError> {
    let most = query.rows.limit;
    let (offset, limit, _) = query.list.window();
    let offset = u32::try_from(offset).unwrap_or(most).min(most);
    let limit = u32::try_from(limit).unwrap_or(most).min(most - offset);
    let total = server.control.audit_count(&query.rows).await?.min(u64::from(most));
    let audit_logs = rows(server, &AuditFilter { offset, limit, ..query.rows.clone() }).await?;
    let end = u64::from(offset) + u64::from(limit);
    let next = (end < total).then_some(end);
    Ok(Json(AuditLogsPage { total, next, audit_logs }))
}

/// The whole of what matches, not a page.
async fn download(
    FromState(server): FromState<ApiState>,
    query: AuditQuery,
) -> Result<Attachment, ApiError> {
    let all = rows(&server, &query.rows).await?;
    let found = query.list.matching(all.iter(), server.now())?;
    if query.csv {
        return Ok(Attachment { name: "audit.csv", media_type: "text/csv", text: csv(&found) });
    }
    let text = serde_json::to_string_pretty(&found).map_err(ApiError::internal)?;
    Ok(Attachment { name: "audit.json", media_type: "application/json", text })
}

fn csv(rows: &[&AuditLog]) -> String {
    let mut text = String::from(
        "id,timestamp,subject,subject_type,source_ip,action,http_method,url,entity_type,\
         entity_name,entity_id,result,http_status_code,request_id,operation,reason\n",
    );
    for row in rows {
        let maybe = |text: &Option<String>| text.clone().unwrap_or_default();
        let meta = |key: &str| row.metadata.get(key).cloned().unwrap_or_default();
        let cells = [
            row.id.clone(),
            row.timestamp.to_string(),
            row.subject.clone(),
            row.subject_type.clone(),
            maybe(&row.source_ip),
            row.action.clone(),
            maybe(&row.http_method),
            maybe(&row.url),
            row.entity_type.clone(),
            row.entity_name.clone(),
            maybe(&row.entity_id),
            row.result.clone(),
            row.http_status_code.map(|code| code.to_string()).unwrap_or_default(),
            maybe(&row.request_id),
            meta("operation"),
            meta("reason"),
        ];
        text.push_str(&csv_line(&cells));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_the_published_ones() {
        for (entity, operation, method, want) in [
            ("project", "create", "POST", "create"),
            ("workload", "submit", "POST", "create"),
            ("workload", "suspend", "POST", "update"),
            ("user", "update", "PATCH", "update"),
            ("user", "delete", "DELETE", "delete"),
            ("login", "update", "POST", "sign-in"),
            ("session", "delete", "POST", "sign-out"),
            ("token", "grant", "POST", "sign-in"),
            ("request", "", "POST", "create"),
            ("request", "", "DELETE", "delete"),
            ("request", "", "PUT", "update"),
            ("request", "", "GET", "sign-in"),
            ("request", "", "PURGE", "sign-in"),
        ] {
            assert_eq!(action(entity, operation, method), want, "{entity}.{operation}");
        }
    }
}
