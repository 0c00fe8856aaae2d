//! Resolves the names of templates and assets to ids of the server. Owns: the choice among several
//! with the same name: the one nearest to the project.

use api_types as wire;
use client::{Client, WorkloadKind};

use cli_kit::exit::Error;
use cli_kit::suggest;
use dialects::intent::Submit;

/// Ids of the template and the assets that a submission inherits.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    pub(super) template: Option<String>,
    pub(super) assets: Option<wire::AssetIds>,
}

/// Looks up the named template and assets. Without a name no request is sent.
pub(super) async fn by_id(
    submit: &Submit,
    kind: WorkloadKind,
    project: &wire::Project,
    client: &Client,
) -> Result<Inherited, Error> {
    let named = &submit.inherits;
    let mut found = Inherited::default();
    if let Some(name) = &named.template {
        let all = client.templates(kind, name).await?;
        let near = |one: &wire::TemplateMetaFields| {
            rank(one.scope_type, one.project_id, one.department_id.as_deref(), project)
        };
        let all = all.into_iter().map(|one| one.meta).filter(|one| near(one).is_some());
        let nearest = match all.min_by_key(near) {
            Some(nearest) => nearest,
            None => return Err(no_template(name, kind, project, client).await?),
        };
        found.template = Some(nearest.id);
    }
    let mut assets = wire::AssetIds::default();
    if let Some(name) = &named.environment {
        assets.environment = Some(asset("environment", name, None, project, client).await?.id);
    }
    if let Some(name) = &named.compute {
        assets.compute = Some(asset("compute", name, None, project, client).await?.id);
    }
    for source in &named.data {
        let (name, kind) = (&source.name, source.kind.as_deref());
        let asset = asset("datasource", name, kind, project, client).await?;
        let one = wire::AssetIdRef { id: asset.id, kind: Some(asset.kind) };
        assets.datasources.get_or_insert_default().push(one);
    }
    found.assets = Some(assets).filter(|assets| *assets != wire::AssetIds::default());
    Ok(found)
}

/// The asset of this name nearest to the project; `kind` is that of a data source.
async fn asset(
    family: &str,
    name: &str,
    kind: Option<&str>,
    project: &wire::Project,
    client: &Client,
) -> Result<wire::AssetMeta, Error> {
    let all = client.assets(family, name, &project.id).await?.into_iter().map(|one| one.meta);
    let is_kind = |one: &wire::AssetMeta| {
        let own = serde_json::to_value(one.kind).unwrap_or_default();
        kind.is_none_or(|kind| own.as_str().is_some_and(|own| alike(own, kind)))
    };
    let near = |one: &wire::AssetMeta| {
        rank(one.scope, one.project_id, one.department_id.as_deref(), project)
    };
    let all = all.filter(|one| is_kind(one) && near(one).is_some());
    match all.min_by_key(near) {
        Some(nearest) => Ok(nearest),
        None => {
            let known = client.asset_names(family, &project.id).await?;
            let list = format!("`runai {family} list` lists them");
            match kind.filter(|_| known.iter().any(|one| one == name)) {
                Some(kind) => {
                    let (name, kind) = (units::shown(name), units::shown(kind));
                    Err(Error::NotFound(format!("{family} `{name}` is not of type {kind}; {list}")))
                }
                None => Err(missing(&format!("{family} asset"), name, project, (&known, &list))),
            }
        }
    }
}

/// True if two words differ only in case and dashes.
fn alike(one: &str, other: &str) -> bool {
    let plain = |word: &str| word.replace('-', "").to_lowercase();
    plain(one) == plain(other)
}

/// Distance of a scope from a project; `None` if the project is outside.
pub(super) fn rank(
    scope: wire::ScopeType,
    of_project: Option<u64>,
    of_department: Option<&str>,
    project: &wire::Project,
) -> Option<u8> {
    match scope {
        wire::ScopeType::Project => {
            of_project.is_some_and(|id| id.to_string() == project.id).then_some(0)
        }
        wire::ScopeType::Department => {
            (of_department == Some(project.parent.id.as_str())).then_some(1)
        }
        wire::ScopeType::Cluster => Some(2),
        wire::ScopeType::Tenant => Some(3),
        wire::ScopeType::System => Some(4),
    }
}

/// The error about a template that the project cannot use for a workload of this kind.
async fn no_template(
    name: &str,
    kind: WorkloadKind,
    project: &wire::Project,
    client: &Client,
) -> Result<Error, Error> {
    let list = "`runai template list` lists them";
    let known = client.template_names(kind).await?;
    let has = |names: &[String]| names.iter().any(|one| one == name);
    if has(&known) {
        let (name, project) = (units::shown(name), units::shown(&project.name));
        let why = format!("template `{name}` is not for {project}, but for another project");
        return Ok(Error::NotFound(format!("{why} or department; {list}")));
    }
    for (other, command) in [
        (WorkloadKind::Training, "training"),
        (WorkloadKind::Workspace, "workspace"),
        (WorkloadKind::Distributed, "training pytorch"),
        (WorkloadKind::Inference, "inference"),
    ] {
        if other != kind && has(&client.template_names(other).await?) {
            let name = units::shown(name);
            return Ok(Error::NotFound(format!(
                "template `{name}` is for `runai {command} submit`; {list}"
            )));
        }
    }
    Ok(missing("template", name, project, (&known, list)))
}

fn missing(
    what: &str,
    name: &str,
    project: &wire::Project,
    (known, list): (&[String], &str),
) -> Error {
    let hint = suggest::hint_or(name, known.iter().map(String::as_str), list);
    let (name, project) = (units::shown(name), units::shown(&project.name));
    Error::NotFound(format!("no {what} `{name}` is visible to {project}{hint}"))
}
