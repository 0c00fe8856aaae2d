//! The base image of programs, which has a few tools. Owns: when it is created, and its name.

use bollard::query_parameters::{CreateImageOptionsBuilder, TagImageOptionsBuilder};
use engine::Error;
use futures_util::TryStreamExt as _;
use uuid::Uuid;

use crate::program::Program;
use crate::shared::DockerEngineState;
use crate::{failed, image, toolbox};

/// Its tag depends on its content.
const IMAGE_NAME: &str = "elastane/tools";

/// Creates the base image unless it exists; returns its name.
pub(crate) async fn prepare(shared: &DockerEngineState) -> Result<String, Error> {
    let docker = &shared.daemon.docker;
    // Held during the work: of several runs the first creates it.
    let mut known = shared.tools.lock().await;
    if let Some(name) = &*known
        && image::find(docker, name).await?.is_some()
    {
        return Ok(name.clone());
    }
    let script = shared.nvidia_smi.as_ref().map(Program::script);
    let read = tokio::task::spawn_blocking(move || toolbox::archive(script.as_deref()));
    let doing = || "read the tools of this machine".to_owned();
    let archive = read.await.map_err(|e| Error::Io { what: doing(), source: e.into() })??;
    let tag = Uuid::new_v5(&Uuid::NAMESPACE_OID, &archive).simple().to_string();
    let name = format!("{IMAGE_NAME}:{tag}");
    if image::find(docker, &name).await?.is_none() {
        let options =
            CreateImageOptionsBuilder::default().from_src("-").repo(IMAGE_NAME).tag(&tag).build();
        let made =
            docker.create_image(Some(options), Some(bollard::body_full(archive.into())), None);
        let made = made.try_collect::<Vec<_>>().await;
        let said = made.map_err(|fault| failed("make the image of the built-in tools", fault))?;
        // Podman calls it `latest`, whatever the request says (seen with 4.3.1).
        if let Some(id) = said.into_iter().rev().find_map(|said| said.status)
            && image::find(docker, &name).await?.is_none()
        {
            let options = TagImageOptionsBuilder::default().repo(IMAGE_NAME).tag(&tag).build();
            let tagged = docker.tag_image(&id, Some(options)).await;
            tagged.map_err(|fault| failed("name the image of the built-in tools", fault))?;
        }
    }
    *known = Some(name.clone());
    Ok(name)
}
