//! `elastane policy …`: defaults and rules for submissions, from YAML files. Owns: which policies
//! apply to a project, the nearest first. Does not know the valid content of a policy, which the
//! server checks.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use api_types::{
    PolicyBody, PolicyCreationFields, PolicyListEntry, PolicyMeta, PolicyRequest, ScopeType,
};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use client::{Client, WorkloadKind};
use serde_json::Value;

use super::complete;
use cli_kit::exit::Error;
use cli_kit::input::read_text;
use cli_kit::local_time::moment;
use cli_kit::message::Plain;
use cli_kit::output::{Format, One, OutputOptions, list, show};
use cli_kit::suggest;
use cli_kit::table::Table;
use cli_kit::yaml;

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// `policy …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// List the policies
    #[command(visible_alias = "ls")]
    List(Format),
    /// Show the policy of a scope as YAML
    Get {
        /// Which
        #[command(flatten)]
        of: Of,
        /// Show all policies that apply there, the nearest scope first
        #[arg(long)]
        effective: bool,
        /// Form of the output.
        #[command(flatten)]
        one: One,
    },
    /// Set the policy of a scope from a file; `policy get` prints such a file
    Apply {
        /// Which
        #[command(flatten)]
        of: Of,
        /// YAML or JSON with defaults, rules and imposedAssets; - for standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Name of the policy
        #[arg(long, value_name = "NAME", default_value = "policy")]
        name: String,
        /// Only check it
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete the policy of a scope
    Delete {
        /// Which
        #[command(flatten)]
        of: Of,
    },
}

/// Which policy: a scope has one for each type of workload.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// Type of workload
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Kind,
    /// Scope in which it applies
    #[command(flatten)]
    place: Place,
}

/// Scope in which a policy applies.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Place {
    /// In a project
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::projects))]
    project: Option<String>,
    /// In a department and its projects
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::departments))]
    department: Option<String>,
    /// In the whole installation
    #[arg(long)]
    everywhere: bool,
}

/// Types of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Trainings of one pod
    Training,
    /// Workspaces
    Workspace,
    /// Distributed trainings
    Distributed,
    /// Inferences
    Inference,
}

impl Kind {
    /// Its name in lists of policies.
    const fn word(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Workspace => "workspace",
            Self::Distributed => "distributed",
            Self::Inference => "inference",
        }
    }

    const fn of_client(self) -> WorkloadKind {
        match self {
            Self::Training => WorkloadKind::Training,
            Self::Workspace => WorkloadKind::Workspace,
            Self::Distributed => WorkloadKind::Distributed,
            Self::Inference => WorkloadKind::Inference,
        }
    }
}

/// A scope with its ids on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Scope {
    kind: ScopeType,
    project: Option<u64>,
    department: Option<String>,
    /// Text of the scope.
    words: String,
}

impl Scope {
    async fn of(place: &Place, client: &Client) -> Result<Self, Error> {
        if let Some(name) = &place.project {
            let project = super::project::existing(client, name).await?;
            let id = project.id.parse().map_err(|_| {
                Error::Failed(format!("project {name} has no number: {}", project.id))
            })?;
            let department = Some(project.parent.id);
            let words = format!("project {name}");
            return Ok(Self { kind: ScopeType::Project, project: Some(id), department, words });
        }
        if let Some(name) = &place.department {
            let department = Some(super::department::existing(client, name).await?.id);
            let words = format!("department {name}");
            return Ok(Self { kind: ScopeType::Department, project: None, department, words });
        }
        let words = "the installation".to_owned();
        Ok(Self { kind: ScopeType::Tenant, project: None, department: None, words })
    }

    /// Distance of a policy from this scope; 0 = its own, `None` = it does not apply.
    fn distance(&self, entry: &PolicyListEntry) -> Option<u8> {
        let (own, meta) = (self.kind, &entry.meta);
        let rank = |kind: ScopeType| match kind {
            ScopeType::Project => 0,
            ScopeType::Department => 1,
            ScopeType::Cluster => 2,
            ScopeType::Tenant | ScopeType::System => 3,
        };
        let applies = match meta.scope {
            ScopeType::Project => meta.project_id == self.project,
            ScopeType::Department => meta.department_id == self.department,
            ScopeType::Cluster | ScopeType::Tenant | ScopeType::System => true,
        };
        let distance = u8::checked_sub(rank(meta.scope), rank(own))?;
        (applies && self.has(meta.scope)).then_some(distance)
    }

    /// True if this kind of scope contains it, or is its own.
    const fn has(&self, kind: ScopeType) -> bool {
        match kind {
            ScopeType::Project => self.project.is_some(),
            ScopeType::Department => self.department.is_some(),
            ScopeType::Cluster | ScopeType::Tenant | ScopeType::System => true,
        }
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = vec![(
            "scope",
            match self.kind {
                ScopeType::Project => "project",
                ScopeType::Department => "department",
                _ => "tenant",
            }
            .to_owned(),
        )];
        match (self.kind, self.project, &self.department) {
            (ScopeType::Project, Some(id), _) => query.push(("projectId", id.to_string())),
            (ScopeType::Department, _, Some(id)) => query.push(("departmentId", id.clone())),
            _ => {}
        }
        query
    }
}

pub(super) async fn run(state_dir: PathBuf, verb: Policy) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    match verb {
        Policy::List(format) => {
            let how = OutputOptions::from(format);
            let look = async |out: &mut dyn Write| {
                let places = Places::known(&client).await?;
                let table = |all: &[PolicyListEntry]| table(all, &places, how.is_wide());
                list(&how, client.policies().await?, named, table, out)
            };
            show(&how, &mut std::io::stdout(), None, look).await
        }
        Policy::Get { of, effective, one } => get(&client, &of, effective, one.into()).await,
        Policy::Apply { of, file, name, dry_run } => {
            let scope = Scope::of(&of.place, &client).await?;
            let text = read_text(&file, FILE_BYTES_MAX)?;
            let wrong =
                |why: String| Error::Usage(format!("{} is not a policy: {why}", file.display()));
            let policy = parse(&text).map_err(wrong)?;
            let (project_id, department_id) = match scope.kind {
                ScopeType::Project => (scope.project, None),
                ScopeType::Department => (None, scope.department.clone()),
                _ => (None, None),
            };
            let cluster_id = None;
            let meta = PolicyCreationFields {
                scope: scope.kind,
                project_id,
                department_id,
                cluster_id,
                name,
            };
            let request = PolicyRequest { meta, policy };
            client.put_policy(of.kind.of_client(), &request, dry_run).await?;
            let (kind, words) = (of.kind.word(), &scope.words);
            let done = if dry_run { "is valid; nothing was changed" } else { "is set" };
            Ok(writeln!(out, "the {kind} policy of {words} {done}")?)
        }
        Policy::Delete { of } => {
            let scope = Scope::of(&of.place, &client).await?;
            let query = scope.query();
            let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            client.delete_policy(of.kind.of_client(), &query).await.map_err(
                |error| match error {
                    client::Error::Api { code: 404, .. } => {
                        Error::NotFound(missing(&of, &scope, "`elastane policy list` shows all"))
                    }
                    other => other.into(),
                },
            )?;
            Ok(writeln!(out, "the {} policy of {} deleted", of.kind.word(), scope.words)?)
        }
    }
}

/// Prints one policy, or all that apply.
async fn get(client: &Client, of: &Of, effective: bool, how: OutputOptions) -> Result<(), Error> {
    let scope = Scope::of(&of.place, client).await?;
    let look = async |out: &mut dyn Write| {
        let mut all = client.policies().await?;
        all.retain(|one| one.workload_type == of.kind.word());
        all.retain(|one| scope.distance(one).is_some_and(|far| effective || far == 0));
        all.sort_by_key(|one| scope.distance(one));
        if all.is_empty() && !effective {
            let advice = "set one with `elastane policy apply`";
            return Err(Error::NotFound(missing(of, &scope, advice)));
        }
        if !how.shown.is_text() {
            let names: Vec<_> = all.iter().map(named).collect();
            return match all.as_slice() {
                [one] if !effective => how.data(one, &names, out),
                all => how.data(&all, &names, out),
            };
        }
        for (at, one) in all.iter().enumerate() {
            if effective {
                let rule = if at > 0 { "---\n" } else { "" };
                writeln!(out, "{rule}# policy {} of the {}", one.meta.name, word(one.meta.scope))?;
            }
            out.write_all(body(one)?.as_bytes())?;
        }
        Ok(())
    };
    show(&how, &mut std::io::stdout(), None, look).await
}

fn missing(of: &Of, scope: &Scope, advice: &str) -> String {
    format!("there is no {} policy of {}; {advice}", of.kind.word(), scope.words)
}

/// The keys of a policy file.
const KEYS: [&str; 3] = ["defaults", "rules", "imposedAssets"];

/// Reads a policy file.
fn parse(text: &str) -> Result<PolicyBody, String> {
    let nothing = "it has no rules, defaults or imposedAssets; write one of them, or remove the \
                   policy with `elastane policy delete`";
    let value = runai::yaml(text)?;
    let fields = match &value {
        Value::Null => return Err(nothing.to_owned()),
        Value::Object(fields) => fields,
        _ => return Err(format!("it is not an object with the keys {}", KEYS.join(", "))),
    };
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let known = format!("known are {}", KEYS.join(", "));
        let hint = suggest::hint_or(key, KEYS, &known);
        return Err(format!("unknown key `{}`{hint}", units::shown(key)));
    }
    let policy: PolicyBody = serde_json::from_value(value).map_err(|why| why.to_string())?;
    let PolicyBody { defaults, rules, imposed_assets, .. } = &policy;
    let is_empty = [defaults, rules, imposed_assets].into_iter().all(says_nothing);
    if is_empty { Err(nothing.to_owned()) } else { Ok(policy) }
}

/// A policy as a file for `apply`.
fn body(one: &PolicyListEntry) -> Result<String, Error> {
    let value: Value = serde_json::to_value(&one.policy)
        .map_err(|error| Error::Failed(format!("failed to print the policy: {error}")))?;
    Ok(yaml::document(&value))
}

const fn word(scope: ScopeType) -> &'static str {
    match scope {
        ScopeType::System | ScopeType::Tenant => "installation",
        ScopeType::Cluster => "cluster",
        ScopeType::Department => "department",
        ScopeType::Project => "project",
    }
}

fn named(one: &PolicyListEntry) -> String {
    format!("policy/{}", one.meta.name)
}

/// Names of projects and of departments, by id.
#[derive(Debug, Default)]
struct Places {
    projects: BTreeMap<String, String>,
    departments: BTreeMap<String, String>,
}

impl Places {
    async fn known(client: &Client) -> Result<Self, Error> {
        let (projects, departments) = (client.projects().await?, client.departments().await?);
        Ok(Self {
            projects: projects.into_iter().map(|one| (one.id, one.name)).collect(),
            departments: departments.into_iter().map(|one| (one.id, one.name)).collect(),
        })
    }

    /// A scope in words, with its name.
    fn named(&self, meta: &PolicyMeta) -> String {
        let (id, names) = match meta.scope {
            ScopeType::Project => (meta.project_id.map(|id| id.to_string()), &self.projects),
            ScopeType::Department => (meta.department_id.clone(), &self.departments),
            _ => return word(meta.scope).to_owned(),
        };
        let id = id.unwrap_or_default();
        format!("{} {}", word(meta.scope), names.get(&id).unwrap_or(&id))
    }
}

fn table(all: &[PolicyListEntry], places: &Places, is_exact: bool) -> Table {
    let mut table = Table::new(&["Policy", "Type", "Scope", "Changed", "Changed By"]);
    for one in all {
        let meta = &one.meta;
        table.row([
            meta.name.clone(),
            one.workload_type.clone(),
            places.named(meta),
            moment(meta.updated_at.0.0, is_exact),
            meta.updated_by.clone(),
        ]);
    }
    table
}

/// True if a part of a policy is missing or empty.
fn says_nothing(part: &Option<Value>) -> bool {
    match part {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(scope: &str, project: Option<u64>, department: Option<&str>) -> PolicyListEntry {
        let meta = json!({
            "id": "1", "name": "p", "workloadType": "training", "scope": scope,
            "projectId": project, "departmentId": department, "createdBy": "ann",
            "createdAt": "2026-01-31T12:00:00Z", "updatedBy": "ann",
            "updatedAt": "2026-01-31T12:00:00Z",
        });
        let entry = json!({"type": "training", "meta": meta, "policy": {"rules": {"a": 1}}});
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn a_file_that_is_no_policy_is_told_what_one_is() {
        let keys = "defaults, rules, imposedAssets";
        let nothing = "it has no rules, defaults or imposedAssets; write one of them";
        for (text, said) in [
            ("", nothing),
            ("# nothing\n", nothing),
            ("rules: {}\ndefaults:\n", nothing),
            ("[1, 2]", &format!("it is not an object with the keys {keys}")),
            ("rule: {image: {required: true}}", "unknown key `rule`; did you mean `rules`?"),
            ("spec: {}", &format!("unknown key `spec`; known are {keys}")),
            (
                "rules:\n  image: {}\n  image: {}",
                "line 3, column 3: the key `image` is given twice; leave one of them out",
            ),
            ("rules: [", "line 1, column "),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.starts_with(said), "{text}: {refused}");
        }
        assert!(parse("rules: {image: {required: true}}").is_ok());
    }

    #[test]
    fn the_policies_around_a_project_apply_the_nearest_first() {
        let words = String::new();
        let project = Scope {
            kind: ScopeType::Project,
            project: Some(1),
            department: Some("2".to_owned()),
            words: words.clone(),
        };
        for (one, distance) in [
            (entry("project", Some(1), None), Some(0)),
            (entry("project", Some(9), None), None),
            (entry("department", None, Some("2")), Some(1)),
            (entry("department", None, Some("3")), None),
            (entry("cluster", None, None), Some(2)),
            (entry("tenant", None, None), Some(3)),
        ] {
            assert_eq!(project.distance(&one), distance, "{one:?}");
        }
        let tenant = Scope { kind: ScopeType::Tenant, project: None, department: None, words };
        assert_eq!(tenant.distance(&entry("tenant", None, None)), Some(0));
        assert_eq!(tenant.distance(&entry("project", Some(1), None)), None);
        let known =
            Places { projects: [("1".into(), "team-a".into())].into(), ..Places::default() };
        assert_eq!(known.named(&entry("project", Some(1), None).meta), "project team-a");
        assert_eq!(known.named(&entry("department", None, Some("2")).meta), "department 2");
    }

    #[test]
    fn what_is_printed_can_be_applied() {
        let one = entry("tenant", None, None);
        assert_eq!(runai::yaml(&body(&one).unwrap()).unwrap(), json!({"rules": {"a": 1}}));
    }
}
