//! Objects other than workloads: one table gives the route and the displayed fields of each kind.
//! Owns the table, and the choice of the objects that a project can use. Does not know what objects
//! mean.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;

use api_types::{PAGE_ITEMS_MAX, Project, ScopeType};
use serde_json::Value;

use super::context::Context;
use super::inherit;
use super::list::tell_rest;
use cli_kit::exit::Error;
use cli_kit::output::{Style, names as names_in};
use cli_kit::suggest;
use cli_kit::table::Table;
use cli_kit::yaml;
use dialects::intent::{Dialect, ListObjects, Objects, OutputOptions};

/// A kind of objects.
pub(super) struct Kind {
    /// Noun on the command line.
    word: &'static str,
    /// Route of the list.
    path: &'static str,
    /// Field of the response that holds the list.
    items: &'static str,
    /// True if the response is a page, which gives the start of the next one.
    paged: bool,
    /// True if each object belongs to a scope, and can be used within it.
    scoped: bool,
    /// Displayed columns; the name first.
    columns: &'static [Column],
}

/// Title of a column, and JSON pointer to its value.
type Column = (&'static str, &'static str);

/// Columns of objects that belong to a scope.
const NAME: Column = ("Name", "/meta/name");
const KIND: Column = ("Kind", "/meta/kind");
const SCOPE: Column = ("Scope", "/meta/scope");
const PROJECT: Column = ("Project", "/meta/projectName");
const DESCRIPTION: Column = ("Description", "/meta/description");

const fn asset(word: &'static str, path: &'static str, columns: &'static [Column]) -> Kind {
    Kind { word, path, items: "entries", paged: false, scoped: true, columns }
}

const TEMPLATE: Kind = Kind {
    word: "template",
    path: "/api/v1/workload-templates",
    items: "entries",
    paged: true,
    scoped: true,
    columns: &[
        NAME,
        ("Type", "/meta/workloadType"),
        ("Scope", "/meta/scopeType"),
        ("Image", "/spec/image"),
        DESCRIPTION,
    ],
};
const ENVIRONMENT: Kind = asset(
    "environment",
    "/api/v1/asset/environment",
    &[NAME, SCOPE, PROJECT, ("Image", "/spec/image"), DESCRIPTION],
);
const COMPUTE: Kind = asset(
    "compute",
    "/api/v1/asset/compute",
    &[
        NAME,
        SCOPE,
        PROJECT,
        ("GPUs", "/spec/gpuDevicesRequest"),
        ("GPU Portion", "/spec/gpuPortionRequest"),
        ("GPU Memory", "/spec/gpuMemoryRequest"),
        ("CPU Cores", "/spec/cpuCoreRequest"),
        ("CPU Memory", "/spec/cpuMemoryRequest"),
    ],
);
const DATASOURCE: Kind =
    asset("datasource", "/api/v1/asset/datasource", &[NAME, KIND, SCOPE, PROJECT, DESCRIPTION]);
const PVC: Kind = asset(
    "pvc",
    "/api/v1/asset/datasource/pvc",
    &[
        NAME,
        SCOPE,
        PROJECT,
        ("Claim", "/spec/claimName"),
        ("Size", "/spec/claimInfo/size"),
        ("Path", "/spec/path"),
    ],
);
const CREDENTIAL: Kind =
    asset("credential", "/api/v1/asset/credentials", &[NAME, KIND, SCOPE, PROJECT, DESCRIPTION]);
/// A server without data volumes reports that itself.
const DATAVOLUME: Kind = Kind {
    word: "datavolume",
    path: "/api/v1/datavolumes",
    items: "datavolumes",
    paged: false,
    scoped: false,
    columns: &[("Name", "/name")],
};
const DEPARTMENT: Kind = Kind {
    word: "department",
    path: "/api/v1/org-unit/departments",
    items: "departments",
    paged: true,
    scoped: false,
    columns: &[
        ("Name", "/name"),
        ("GPU Quota", "/totalResources/gpuQuota"),
        ("Allocated GPUs", "/status/quotaStatus/allocated/gpu"),
        ("Projects", "/children"),
    ],
};
/// Label of the nodes of a node pool. The wire requires one of the default pool, too, which no node
/// has.
const LABEL: [&str; 2] = ["/labelKey", "/labelValue"];
const NODEPOOL: Kind = Kind {
    word: "nodepool",
    path: "/api/v1/node-pools",
    items: "nodepools",
    paged: false,
    scoped: false,
    columns: &[
        ("Name", "/name"),
        ("Label Key", LABEL[0]),
        ("Label Value", LABEL[1]),
        ("Phase", "/phase"),
        ("GPU Time Slicing", "/gpuTimeSlicing"),
        ("Nodes", "/status/nodes"),
    ],
};
const WORKLOAD_TYPE: Kind = Kind {
    word: "workload-type",
    path: "/api/v1/workload-types",
    items: "types",
    paged: false,
    scoped: false,
    columns: &[
        ("Name", "/name"),
        ("Group", "/group"),
        ("Category", "/categoryName"),
        ("Priority", "/priorityName"),
    ],
};
/// The first dialect lists templates only.
const COLUMNS_V1: &[Column] = &[("NAME", "/meta/name"), ("DESCRIPTION", "/meta/description")];

/// The table entry of a type of objects.
pub(super) const fn kind(of: Objects) -> &'static Kind {
    match of {
        Objects::Template => &TEMPLATE,
        Objects::Environment => &ENVIRONMENT,
        Objects::Compute => &COMPUTE,
        Objects::Datasource => &DATASOURCE,
        Objects::Pvc => &PVC,
        Objects::Datavolume => &DATAVOLUME,
        Objects::Credential => &CREDENTIAL,
        Objects::Department => &DEPARTMENT,
        Objects::Nodepool => &NODEPOOL,
        Objects::WorkloadType => &WORKLOAD_TYPE,
    }
}

/// Lists objects.
pub(super) async fn list(
    list: &ListObjects,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let kind = kind(list.of);
    let mut found = all(kind, context).await?;
    if kind.scoped && !list.all_projects {
        keep_usable(&mut found, &context.known_project().await?);
    }
    let how = &list.how;
    let found = how.order(found, |found| table(kind, list.dialect, found))?;
    let (found, rest) = list.page.of(found);
    if !how.shown.is_text() {
        return how.data(&found, &names_of(kind, &found), out);
    }
    let style = match list.dialect {
        Dialect::V1 => Style::Plain,
        Dialect::V2 => Style::Ruled,
    };
    // The last columns are the least important.
    let titles: Vec<&str> = kind.columns.iter().skip(1).rev().map(|(title, _)| *title).collect();
    write!(out, "{}", how.text(table(kind, list.dialect, &found), style, &titles))?;
    tell_rest(list.page, found.len(), rest);
    Ok(())
}

/// Shows all details of the objects of a name: there may be one template of a name for each type of
/// workload.
pub(super) async fn describe(
    of: Objects,
    name: &str,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let kind = kind(of);
    let mut found = all(kind, context).await?;
    if kind.scoped && context.project().is_ok() {
        keep_usable(&mut found, &context.known_project().await?);
    }
    let name_of = |one: &Value| at(one, kind.columns[0].1).as_str().map(str::to_owned);
    if found.iter().all(|one| name_of(one).as_deref() != Some(name)) {
        let names: Vec<String> = found.iter().filter_map(name_of).collect();
        let word = kind.word;
        let advice = format!("`runai {word} list -A` shows those there are");
        let hint = suggest::hint_or(name, names.iter().map(String::as_str), &advice);
        let name = units::shown(name);
        return Err(Error::NotFound(format!("there is no {word} {name} here{hint}")));
    }
    found.retain(|one| name_of(one).as_deref() == Some(name));
    match found.as_slice() {
        many if how.shown.is_text() => {
            let pages: Vec<String> = many.iter().map(|one| page(kind, one)).collect();
            write!(out, "{}", pages.join("\n"))?;
            Ok(())
        }
        [one] => how.data(one, &names_of(kind, &found), out),
        many => how.data(&many, &names_of(kind, &found), out),
    }
}

fn names_of(kind: &Kind, found: &[Value]) -> Vec<String> {
    names_in(kind.word, found, |one| at(one, kind.columns[0].1).as_str())
}

/// Names of the objects that workloads of the project can use, each once.
pub(super) async fn names(of: Objects, context: &Context) -> Result<Vec<String>, Error> {
    let kind = kind(of);
    let mut found = all(kind, context).await?;
    if kind.scoped && context.project().is_ok() {
        keep_usable(&mut found, &context.known_project().await?);
    }
    let name = |one: &Value| at(one, kind.columns[0].1).as_str().map(str::to_owned);
    let names: BTreeSet<String> = found.iter().filter_map(name).collect();
    Ok(names.into_iter().collect())
}

/// Every object of a kind that the caller may see.
async fn all(kind: &Kind, context: &Context) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    loop {
        let query = match kind.paged {
            true => format!("?limit={PAGE_ITEMS_MAX}&offset={}", all.len()),
            false => String::new(),
        };
        let mut answer = context.client.raw(&format!("{}{query}", kind.path)).await?;
        let next = [at(&answer, "/next"), at(&answer, "/pagination/next")];
        let more = next.into_iter().any(Value::is_number);
        let Some(Value::Array(items)) = answer.get_mut(kind.items).map(Value::take) else {
            let fault = format!("the answer has no list `{}`", kind.items);
            return Err(Error::Failed(fault));
        };
        let none = items.is_empty();
        all.extend(items);
        if !more || none {
            return Ok(all);
        }
    }
}

/// Keeps the objects that workloads of a project can use, the nearest first.
fn keep_usable(found: &mut Vec<Value>, project: &Project) {
    let rank = |one: &Value| {
        let scope = [at(one, "/meta/scope"), at(one, "/meta/scopeType")];
        let scope = scope.into_iter().find(|scope| !scope.is_null())?;
        let scope: ScopeType = serde_json::from_value(scope.clone()).ok()?;
        let (of_project, of_department) =
            (at(one, "/meta/projectId").as_u64(), at(one, "/meta/departmentId").as_str());
        inherit::rank(scope, of_project, of_department, project)
    };
    found.retain(|one| rank(one).is_some());
    found.sort_by_key(rank);
}

/// Objects as a table.
pub(super) fn table(kind: &Kind, dialect: Dialect, found: &[Value]) -> Table {
    let columns = match dialect {
        Dialect::V1 => COLUMNS_V1,
        Dialect::V2 => kind.columns,
    };
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut table = Table::new(&titles);
    found
        .iter()
        .for_each(|one| table.cells(columns.iter().map(|(_, place)| cell(shown(one, place)))));
    table
}

/// An object in full: its columns, then its specification.
pub(super) fn page(kind: &Kind, one: &Value) -> String {
    let mut page = String::new();
    for (title, place) in kind.columns {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{title}: {}", cell(shown(one, place)));
    }
    if let Some(spec) = one.get("spec") {
        page.push_str("Specification:\n");
        yaml::document(spec).lines().for_each(|line| page.push_str(&format!("  {line}\n")));
    }
    page
}

fn at<'v>(one: &'v Value, place: &str) -> &'v Value {
    one.pointer(place).unwrap_or(&Value::Null)
}

/// Value of a column.
fn shown<'v>(one: &'v Value, place: &str) -> &'v Value {
    let is_default = at(one, "/isDefault") == &Value::Bool(true);
    if is_default && LABEL.contains(&place) { &Value::Null } else { at(one, place) }
}

/// A value in a cell; an object with a name by its name.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(many) if many.is_empty() => "-".to_owned(),
        Value::Array(many) => many.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Object(fields) => fields.get("name").map_or_else(|| "-".to_owned(), cell),
        plain => plain.to_string(),
    }
}
