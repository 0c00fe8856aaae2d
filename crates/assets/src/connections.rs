//! The tools of environments. Owns: which there can be, and what each is as a value of a workload.
//! Does not know how a port is reached.

use std::collections::BTreeSet;

use api_types::{
    Connection, ExposedUrl, ExternalToolInfo, InternalToolInfo, Port, PortServiceType, RelatedUrl,
    ServingPort, WorkloadSpec,
};
use http_kit::ApiError;
use spec::WorkloadKind;

use super::checks::one_of;

const INSIDE: [&str; 9] = [
    "jupyter-notebook",
    "pycharm",
    "visual-studio-code",
    "tensorboard",
    "rstudio",
    "mlflow",
    "custom",
    "matlab",
    "chatbot-ui",
];
const CONNECTIONS: [&str; 4] = ["LoadBalancer", "NodePort", "ExternalUrl", "ServingPort"];

/// Refuses tools that no workload could have.
pub(super) fn check(tools: &[Connection]) -> Result<(), ApiError> {
    let (mut names, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for (at, tool) in tools.iter().enumerate() {
        let field = format!("connections[{at}]");
        let error = |below: &str, why: &str| ApiError::field(&format!("spec.{field}{below}"), why);
        if !names.insert(&tool.name) {
            let why = format!("`{}` is there twice; give each another", units::shown(&tool.name));
            return Err(error(".name", &why));
        }
        match (&tool.internal_tool_info, &tool.external_tool_info) {
            (Some(_), Some(_)) | (None, None) => {
                let why = "needs internalToolInfo or externalToolInfo, and not both";
                return Err(error("", why));
            }
            (None, Some(tool)) => elsewhere(&format!("{field}.externalToolInfo"), tool)?,
            (Some(tool), None) => {
                inside(&format!("{field}.internalToolInfo"), tool)?;
                let (port, kind) = (tool.container_port, tool.connection_type.as_str());
                let place = match kind {
                    "ServingPort" => (kind, 0),
                    "ExternalUrl" => (kind, port),
                    _ => ("NodePort", port),
                };
                if !ports.insert(place) {
                    let why = match kind {
                        "ServingPort" => "a second serving port; there can be one".to_owned(),
                        _ => format!("port {port} is there twice; give each once"),
                    };
                    return Err(error(".internalToolInfo.containerPort", &why));
                }
            }
        }
    }
    Ok(())
}

fn elsewhere(field: &str, tool: &ExternalToolInfo) -> Result<(), ApiError> {
    one_of(&format!("{field}.toolType"), Some(&tool.tool_type), &["wandb", "comet"])?;
    convert::page(&format!("spec.{field}.externalUrl"), &tool.external_url)
}

fn inside(field: &str, tool: &InternalToolInfo) -> Result<(), ApiError> {
    one_of(&format!("{field}.toolType"), Some(&tool.tool_type), &INSIDE)?;
    one_of(&format!("{field}.connectionType"), Some(&tool.connection_type), &CONNECTIONS)?;
    if tool.container_port == 0 {
        let field = format!("spec.{field}.containerPort");
        return Err(ApiError::field(&field, "`0` is not a port; write 1 to 65535"));
    }
    match tool.external_url_info.as_ref().and_then(|info| info.external_url.as_ref()) {
        Some(_) => {
            let field = format!("spec.{field}.externalUrlInfo.externalUrl");
            let why = "the names of workload and project and the port settle it; leave it out";
            Err(ApiError::field(&field, why))
        }
        None => Ok(()),
    }
}

/// The tools as values of a workload. A serving port is one of inferences, the other ports are of
/// the workloads that people work in.
pub(super) fn values(kind: WorkloadKind, tools: Vec<Connection>) -> WorkloadSpec {
    let serves = kind == WorkloadKind::Inference;
    let (mut urls, mut ports, mut related, mut serving) = (vec![], vec![], vec![], None);
    for Connection { name, internal_tool_info, external_tool_info, .. } in tools {
        if let Some(tool) = external_tool_info {
            related.push(RelatedUrl {
                url: Some(tool.external_url),
                r#type: Some(tool.tool_type),
                name: Some(name.clone()),
                exclude: None,
            });
        }
        let Some(tool) = internal_tool_info else { continue };
        let (container, tool_type) = (Some(tool.container_port.into()), Some(tool.tool_type));
        match tool.connection_type.as_str() {
            "ServingPort" if serves => {
                serving = Some(ServingPort {
                    container: Some(tool.container_port),
                    protocol: tool.serving_port_info.and_then(|info| info.protocol),
                    ..ServingPort::default()
                });
            }
            "ExternalUrl" if !serves => urls.push(ExposedUrl {
                container,
                tool_type,
                name: Some(name),
                ..ExposedUrl::default()
            }),
            kind @ ("NodePort" | "LoadBalancer") if !serves => ports.push(Port {
                container,
                service_type: Some(match kind {
                    "NodePort" => PortServiceType::NodePort,
                    _ => PortServiceType::LoadBalancer,
                }),
                tool_type,
                name: Some(name),
                ..Port::default()
            }),
            _ => {}
        }
    }
    WorkloadSpec {
        exposed_urls: some(urls),
        ports: some(ports),
        related_urls: some(related),
        serving_port: serving,
        ..WorkloadSpec::default()
    }
}

fn some<T>(all: Vec<T>) -> Option<Vec<T>> {
    Some(all).filter(|all| !all.is_empty())
}
