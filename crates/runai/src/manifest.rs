//! Submission of Kubernetes manifests. Owns: that a file holds one, in YAML or JSON, and which
//! namespaces are those of the project. Does not know the content, which is for the server.

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

/// Maximum size in bytes: the limit of the server, and more than a person writes.
const BYTES_MAX: u64 = 1 << 20;

/// Label of a manifest that sets its preemptibility.
const PREEMPTIBILITY: &str = "/metadata/labels/kai.scheduler~1preemptibility";

/// Error text for a file with several manifests.
const SEVERAL: &str = "there are several in it; submit each in a file of its own";

/// Submits a manifest.
pub(super) async fn run(
    submit: Manifest,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let file = submit.file.display();
    let mut manifest = parse(&read_text(&submit.file, BYTES_MAX)?)
        .map_err(|fault| Error::Usage(format!("{file} is not a manifest: {fault}")))?;
    let project = context.known_project().await?;
    take_own_namespace(&mut manifest, &project.name);
    let name = submit.name.or_else(|| metadata(&manifest, "name").map(Name::Given));
    if name.is_none() && metadata(&manifest, "generateName").is_none() {
        let why =
            "metadata.name is missing; write it or generateName, or give --name-prefix PREFIX";
        return Err(Error::Usage(format!("{file}: {why}")));
    }
    let request = |name: Option<&str>| WorkloadV2CreateRequest {
        metadata: WorkloadV2MetadataCreateParams {
            name: name.map(str::to_owned),
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
    let create = async |name: &str| context.client.create_manifest(&request(Some(name))).await;
    let created = match name {
        Some(name) => create_named(&name, &project, context, create).await?,
        None => context.client.create_manifest(&request(None)).await?,
    };
    let made = created.metadata;
    writeln!(out, "Creating workload {}...", made.name)?;
    if !is_quiet() {
        writeln!(out, "To track the workload's status, run 'runai workload list'")?;
    }
    out.flush()?;
    warn(&created.warnings);
    let says = manifest.pointer(PREEMPTIBILITY).is_some();
    if submit.preemptible.is_none() && !says {
        warn_unless_preemptible(&made.id, context).await?;
    }
    wait_until_stable(&made.id, context).await
}

/// The single document of a text. Scalars have their YAML 1.2 meaning, of which JSON is a subset.
///
/// # Errors
/// The text is no YAML, or has several documents.
pub fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error))
}

/// Text and position of a parse error.
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

/// The single manifest of a text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let manifest = yaml(text)?;
    match manifest {
        Value::Object(_) => Ok(manifest),
        _ => Err("it begins with apiVersion, kind and metadata".to_owned()),
    }
}

/// Removes a namespace that is the project's own. Another one is left for the server to note: the
/// chosen project counts.
pub(super) fn take_own_namespace(manifest: &mut Value, project: &str) {
    let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let own = [project.to_owned(), format!("runai-{project}")];
    if metadata.get("namespace").is_some_and(|namespace| own.iter().any(|own| namespace == own)) {
        metadata.remove("namespace");
    }
}

fn metadata(manifest: &Value, field: &str) -> Option<String> {
    manifest.get("metadata")?.get(field)?.as_str().map(str::to_owned)
}
