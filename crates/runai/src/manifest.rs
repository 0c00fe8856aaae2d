//! Manifests of Kubernetes that are submitted. Owns: that a file holds one, in YAML or JSON, and
//! that its namespace is that of the project. Does not know what is in it; that is the server's.

use std::io::Write;

use api_types::{Preemptibility, WorkloadV2CreateRequest, WorkloadV2MetadataCreateParams};
use serde_json::Value;

use super::context::Context;
use super::stabilize::wait_until_stable;
use super::submit::{create_named, warn, warn_unless_preemptible};
use cli_kit::exit::Error;
use cli_kit::input::read_text;
use cli_kit::message::is_quiet;
use dialects::intent::{Manifest, Name};

/// What a server takes, and more than a person writes.
const BYTES_MAX: u64 = 1 << 20;

/// What is said of a file with more than one.
const SEVERAL: &str = "there are several in it; submit each in a file of its own";

/// Submits what a manifest describes.
pub(super) async fn run(
    submit: Manifest,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let file = submit.file.display();
    let mut manifest = parse(&read_text(&submit.file, BYTES_MAX)?)
        .map_err(|fault| Error::Usage(format!("{file} is not a manifest: {fault}")))?;
    let project = context.known_project().await?;
    take_namespace(&mut manifest, &project.name)
        .map_err(|fault| Error::Usage(format!("{file}: {fault}")))?;
    let name = match submit.name {
        Some(name) => name,
        None => Name::Given(own_name(&manifest).ok_or_else(|| {
            let why = "metadata.name is missing; write it, or give --name-prefix PREFIX";
            Error::Usage(format!("{file}: {why}"))
        })?),
    };
    let request = |name: &str| WorkloadV2CreateRequest {
        metadata: WorkloadV2MetadataCreateParams {
            name: Some(name.to_owned()),
            project_id: Some(project.id.clone()),
            cluster_id: Some(project.cluster_id.clone()),
            priority: submit.priority.clone(),
            category: submit.category.clone(),
            preemptibility: submit.preemptible.map(|preemptible| match preemptible {
                true => Preemptibility::Preemptible,
                false => Preemptibility::NonPreemptible,
            }),
            strict: submit.strict.then_some(true),
            ..WorkloadV2MetadataCreateParams::default()
        },
        manifest: Some(manifest.clone()),
        manifest_base64_encoded: None,
    };
    let create = async |name: &str| context.client.create_manifest(&request(name)).await;
    let created = create_named(&name, &project, context, create).await?;
    let made = created.workload.metadata;
    writeln!(out, "Creating workload {}...", made.name)?;
    if !is_quiet() {
        writeln!(out, "To track the workload's status, run 'runai workload list'")?;
    }
    out.flush()?;
    warn(&created.warnings);
    if submit.preemptible.is_none() {
        warn_unless_preemptible(&made.id, context).await?;
    }
    wait_until_stable(&made.id, context).await
}

/// The one document of a text. Words mean what they mean in YAML 1.2, of which JSON is a part.
///
/// # Errors
/// It is no YAML, or has several documents.
pub fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error))
}

/// What is wrong with a text, and where.
fn fault(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error as E;
    let what = match error.without_snippet() {
        E::MultipleDocuments { .. } => return SEVERAL.to_owned(),
        E::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{}` is given twice; leave one of them out", units::shown(key))
        }
        E::DuplicateMappingKey { .. } => "a key is given twice; leave one of them out".to_owned(),
        other => {
            let text = other.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            let end = text.rfind(" at line ").unwrap_or(text.len());
            text[..end].to_owned()
        }
    };
    match error.location() {
        Some(at) => format!("line {}, column {}: {what}", at.line(), at.column()),
        None => what,
    }
}

/// The one manifest of a text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let manifest = yaml(text)?;
    match manifest {
        Value::Object(_) => Ok(manifest),
        _ => Err("it begins with apiVersion, kind and metadata".to_owned()),
    }
}

/// The namespace says the same as the project, or is wrong.
pub(super) fn take_namespace(manifest: &mut Value, project: &str) -> Result<(), String> {
    let metadata = manifest.get_mut("metadata").and_then(Value::as_object_mut);
    let own = format!("runai-{project}");
    match metadata.and_then(|metadata| metadata.remove("namespace")) {
        Some(other) if other != own => Err(format!(
            "metadata.namespace is {other}, and the project {project} is `{own}`; leave it out, or \
             choose the project with -p"
        )),
        _ => Ok(()),
    }
}

fn own_name(manifest: &Value) -> Option<String> {
    manifest.pointer("/metadata/name")?.as_str().map(str::to_owned)
}
