//! The channels of containers. Owns: the folder of each socket, which its container mounts, and the
//! channels of runs of an earlier server. Does not know about: the reports.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use engine::{ListedRun, RunKey, RunSpec};
use engine_channel::{CHANNEL_VARIABLE, Channels, Opens, Owner, SOCKET, Storage};
use trees::Trash;

use crate::gpu_fraction::{bind, discard};
use crate::run_registry::has_ended;

/// The folder of the socket in a container.
const CHANNEL_DIR: &str = "/run/elastane/channel";

/// The channels of this server's containers.
#[derive(Debug)]
pub(crate) struct RunChannels {
    channels: Channels,
    /// The folders of runs. No other account of the machine gets through it.
    folder: PathBuf,
    trash: Arc<Trash>,
}

impl RunChannels {
    pub(crate) fn new(channels: Channels, folder: PathBuf, trash: Arc<Trash>) -> Self {
        Self { channels, folder, trash }
    }

    fn of(&self, key: RunKey) -> PathBuf {
        self.folder.join(key.to_string())
    }

    /// Opens the channel of a run, and has its container find it. A run works without.
    pub(crate) fn add(&self, spec: &RunSpec, body: &mut ContainerCreateBody) {
        let (key, gang) = (spec.key, spec.gang.as_ref().map(|gang| gang.workload));
        if let Err(error) = self.open(key, Opens::First(gang)) {
            return tracing::warn!("run {key} cannot report checkpoints: {error}");
        }
        let host = body.host_config.get_or_insert_default();
        let mount = bind(&(self.of(key), CHANNEL_DIR.into()), true);
        host.mounts.get_or_insert_default().push(mount);
        let variable = format!("{CHANNEL_VARIABLE}={CHANNEL_DIR}/{SOCKET}");
        body.env.get_or_insert_default().push(variable);
    }

    /// Takes the channel from a container that could not be made, if that is why: a daemon that
    /// sees other folders than this server cannot mount it.
    pub(crate) fn take_back(&self, key: RunKey, why: &str, body: &mut ContainerCreateBody) -> bool {
        if !why.contains(&*self.of(key).to_string_lossy()) {
            return false;
        }
        tracing::warn!("run {key} cannot report checkpoints: {why}");
        self.forget(key);
        if let Some(mounts) = body.host_config.as_mut().and_then(|host| host.mounts.as_mut()) {
            mounts.retain(|mount| mount.target.as_deref() != Some(CHANNEL_DIR));
        }
        if let Some(variables) = &mut body.env {
            variables.retain(|variable| !variable.starts_with(&format!("{CHANNEL_VARIABLE}=")));
        }
        true
    }

    fn open(&self, key: RunKey, opens: Opens) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let who = (Owner::Container, Storage::Mounts);
        self.channels.open(key, &self.of(key), who, opens)
    }

    /// Opens the channels of an earlier server's containers again, and deletes the remaining
    /// folders of others.
    pub(crate) fn adopt(&self, containers: &[ListedRun]) {
        let found = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in found {
            let key = entry.file_name().to_str().and_then(|name| name.parse::<RunKey>().ok());
            let lives = |run: &&ListedRun| Some(run.key) == key && !has_ended(&run.state);
            let Some(run) = containers.iter().find(lives) else {
                discard(&self.trash, &entry.path());
                continue;
            };
            if let Err(error) = self.open(run.key, Opens::Again) {
                tracing::warn!("run {} cannot report checkpoints: {error}", run.key);
            }
        }
    }

    /// See [`Channels::await_checkpoint`].
    pub(crate) async fn await_checkpoint(&self, key: RunKey, most: Duration) {
        self.channels.await_checkpoint(key, most).await;
    }

    /// See [`Channels::stops`].
    pub(crate) fn stops(&self, key: RunKey) {
        self.channels.stops(key);
    }

    /// The run has ended.
    pub(crate) fn close(&self, key: RunKey) {
        self.channels.close(key);
    }

    /// The container of a run is gone.
    pub(crate) fn forget(&self, key: RunKey) {
        self.close(key);
        discard(&self.trash, &self.of(key));
    }
}
