//! Replacement of secrets in a recording. Owns: the choice of texts to replace, with no effect on
//! the machine: the replacement has the same length, and equal texts have equal replacements.
//!
//! The replacement depends on a key that is on no disk, so it cannot be found by trying.

use std::sync::Arc;

use orchestrator::{Command, Input, VOLUME, VOLUME_ENDING, Wanted};
use records::{Change, Snapshot};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use spec::{PodSet, PodSpec, TOPOLOGY, WorkloadSpec};
use uuid::Uuid;
use view::{NAMES, SECRETS};

/// Kinds of objects whose bodies the machine reads: they have no secrets in them.
const PLAIN: [&str; 7] =
    ["node-pool", "node", "simulated-node", "gpu-failure", TOPOLOGY, VOLUME, VOLUME_ENDING];
/// Letters of replacements.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Replaces secrets.
pub(crate) struct Secrets {
    key: [[u8; 16]; 2],
}

impl Secrets {
    /// Replacements by a key that exists nowhere else: a guess cannot be checked against them.
    pub(crate) fn new() -> Self {
        let half = || Uuid::new_v4().into_bytes();
        Self { key: [half(), half()] }
    }

    /// The replacement of a text: as many ASCII letters as the text has bytes.
    fn cover(&self, text: &str) -> String {
        let sum = Sha256::new()
            .chain_update(self.key.as_flattened())
            .chain_update(text.as_bytes())
            .finalize();
        let letter = |byte: u8| char::from(LETTERS[usize::from(byte & 63)]);
        let mut covered: String =
            sum.iter().copied().cycle().take(text.len()).map(letter).collect();
        // A text refused for its NUL byte must stay refused.
        if text.contains('\0') {
            covered.replace_range(..1, "\0");
        }
        covered
    }

    fn cover_all<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        texts.into_iter().for_each(|text| *text = self.cover(text));
    }

    /// Replaces the logins in addresses, `://user:password@`, in a text or a document.
    pub(crate) fn without_logins(&self, mut text: String) -> String {
        const BEFORE: &str = "://";
        const NONE: [char; 8] = ['/', '"', '\\', '?', '#', ' ', '\n', '\t'];
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find(BEFORE)) {
            at += found + BEFORE.len();
            let rest = &text[at..];
            let authority = rest.find(NONE).unwrap_or(rest.len());
            if let Some(end) = rest[..authority].rfind('@') {
                let covered = self.cover(&rest[..end]);
                text.replace_range(at..at + end, &covered);
            }
        }
        text
    }

    /// Replaces the secrets of a submission. The pattern names every field, so that a new one is
    /// not forgotten.
    fn spec(&self, spec: &mut WorkloadSpec) {
        let WorkloadSpec {
            name: _,
            kind: _,
            submitted_by: _,
            submitter_id: _,
            source: _,
            pods,
            more,
            distributed: _,
            serving: _,
            urls: _,
            related_urls,
            revision: _,
            groups: _,
            children_min: _,
            gates: _,
            preemption_delay_ms: _,
            time_limit_ms: _,
            elastic: _,
            priority: _,
            spare_priority: _,
            preemptible: _,
            backoff_limit: _,
            delete_after_ms: _,
            delete_when_preempted: _,
            command_line,
            uses: _,
            labels: _,
            annotations: _,
            node_pools: _,
            node_types: _,
            topology: _,
            manifest,
        } = spec;
        for set in std::iter::once(pods).chain(more) {
            let PodSet {
                role: _,
                pods: _,
                pods_min: _,
                parallelism: _,
                group: _,
                pod_names: _,
                pod_priority: _,
                set_topology: _,
                pod,
            } = set;
            self.pod(pod);
        }
        self.cover_all(related_urls.iter_mut().map(|related| &mut related.url));
        self.cover_all(command_line);
        *manifest = manifest.as_deref().map(|text| self.cover(text).into());
    }

    fn pod(&self, pod: &mut PodSpec) {
        let PodSpec {
            image: _,
            command,
            args,
            env,
            secrets: _,
            working_dir: _,
            place: _,
            gpu: _,
            cpu_millis: _,
            memory_bytes: _,
            restart: _,
            grace_ms: _,
            stdin: _,
            tty: _,
            container: _,
        } = pod;
        // Decisions depend on this variable, which is no secret.
        let known = |name: &str, value: &str| (name, value) == spec::TORCHRUN_MEETING;
        let secret = env.iter_mut().filter(|(name, value)| !known(name, value));
        let secret = secret.map(|(_, value)| value);
        self.cover_all(command.iter_mut().flatten().chain(args).chain(secret));
    }

    fn shared_spec(&self, spec: &mut Arc<WorkloadSpec>) {
        self.spec(Arc::make_mut(spec));
    }

    /// Replaces the secrets in the body of an object. The machine reads only the names in it,
    /// except in objects of the `PLAIN` kinds.
    fn body(&self, kind: &str, body: &mut Value) {
        match body {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if name == SECRETS || name != NAMES && !PLAIN.contains(&kind) {
                        self.value(value);
                    }
                }
            }
            other => self.value(other),
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.cover(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn command(&self, command: &mut Command) {
        use Command::{
            AddNode, ChangeNode, CreateDepartment, CreateObject, CreatePool, CreateProject, Delete,
            DeleteDepartment, DeleteObject, DeletePool, DeleteProject, FailGpu, GiveUp, HealGpu,
            NoteCheckpoint, NoteHang, NoteParting, NoteReady, Record, RemoveNode, Resume, Retire,
            Scale, StopEverything, Submit, Suspend, UpdateDepartment, UpdateInference,
            UpdateObject, UpdatePool, UpdateProject, UpdateWorkload,
        };
        match command {
            Submit { wanted, .. } | UpdateInference { wanted, .. } => {
                let Wanted { spec, runs: _, strict: _ } = &mut **wanted;
                self.spec(spec);
            }
            CreateObject { new, .. } => self.body(new.kind, &mut new.body),
            UpdateObject { kind, edited, .. } => {
                if let Ok((_, body)) = &mut edited.to {
                    self.body(kind, body);
                }
            }
            CreateDepartment { .. }
            | UpdateDepartment { .. }
            | DeleteDepartment { .. }
            | CreateProject { .. }
            | UpdateProject { .. }
            | DeleteProject { .. }
            | Delete { .. }
            | Suspend { .. }
            | Resume { .. }
            | UpdateWorkload { .. }
            | Scale { .. }
            | Retire { .. }
            | GiveUp { .. }
            | NoteReady(_)
            | NoteCheckpoint { .. }
            | NoteHang { .. }
            | NoteParting { .. }
            | CreatePool { .. }
            | UpdatePool { .. }
            | DeletePool { .. }
            | ChangeNode { .. }
            | AddNode { .. }
            | RemoveNode { .. }
            | FailGpu { .. }
            | HealGpu { .. }
            | StopEverything { .. }
            | DeleteObject { .. }
            | Record(_) => {}
        }
    }

    /// Replaces the secrets of an input.
    pub(crate) fn input(&self, input: &mut Input) {
        match input {
            Input::Command(command, origin) => {
                self.command(command);
                let origin = Arc::make_mut(origin);
                origin.source_ip = self.cover(&origin.source_ip);
            }
            Input::Archived(found) => {
                found.workloads.iter_mut().for_each(|row| self.shared_spec(&mut row.spec));
            }
            Input::Run(_)
            | Input::Volume(..)
            | Input::Ports(..)
            | Input::Node(_)
            | Input::Listed(_)
            | Input::Changed(_)
            | Input::Idle(_)
            | Input::Gpus(_)
            | Input::Engine(..)
            | Input::Left(_)
            | Input::Decided(_)
            | Input::DecisionFailed
            | Input::Culprits(_) => {}
        }
    }

    /// Replaces the secrets of a written row.
    pub(crate) fn change(&self, change: &mut Change) {
        match change {
            Change::Workload(row) => self.shared_spec(&mut row.spec),
            Change::WorkloadSpec(_, spec) => self.shared_spec(spec),
            Change::Object(row) => self.body(&row.kind, &mut row.body),
            Change::Audit(row) => row.detail.source_ip = self.cover(&row.detail.source_ip),
            // Credentials are not written by the machine; API requests write them.
            Change::Credential(row) => row.secret_sha256 = self.cover(&row.secret_sha256),
            Change::Clock(_)
            | Change::Department(_)
            | Change::Project(_)
            | Change::WorkloadState(..)
            | Change::WorkloadPast(..)
            | Change::WorkloadArchived(..)
            | Change::WorkloadRestored(_)
            | Change::Pod(_)
            | Change::WorkloadSeqGiven
            | Change::PodsGone(_)
            | Change::WorkloadGone(_)
            | Change::Event(_)
            | Change::LogKeptFrom(..)
            | Change::LogGroupKeptFrom(..)
            | Change::LogGroupGone(..)
            | Change::LogGone(_)
            | Change::CredentialGone(_)
            | Change::Usage(_)
            | Change::UsageGone(_)
            | Change::Lag(_)
            | Change::Sample(_)
            | Change::Allocation(_)
            | Change::AllocationsGone(_)
            | Change::GpuUse(_)
            | Change::GpuUseGone(_)
            | Change::SamplesGone { .. } => {}
        }
    }

    /// Replaces the secrets of all stored rows.
    pub(crate) fn snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.workloads.iter_mut().for_each(|row| self.shared_spec(&mut row.spec));
        for row in &mut snapshot.objects {
            self.body(&row.kind, &mut row.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_by_one_as_long_and_the_same_text_by_the_same() {
        let (one, other) = (Secrets::new(), Secrets::new());
        for text in ["", "x", "a password", &"long ".repeat(100)] {
            assert_eq!(one.cover(text), one.cover(text));
            assert_eq!(one.cover(text).len(), text.len());
        }
        assert_ne!(one.cover("a password"), one.cover("a passworD"));
        assert_ne!(one.cover("a password"), other.cover("a password"), "a guess cannot be checked");
        assert!(one.cover("not\0allowed").contains('\0'));
    }

    #[test]
    fn logins_in_addresses_are_replaced_and_nothing_else() {
        let secrets = Secrets::new();
        let gone = |text: &str| secrets.without_logins(text.to_owned());
        for same in ["", "://", "a@b", "https://h/x@y", "https://h:80?a@b", r#""https://h" "a@b""#]
        {
            assert_eq!(gone(same), same);
        }
        let text = gone("git clone https://ann:pass@word@h/x and http://k@g: no");
        assert!(
            !text.contains("ann") && !text.contains("pass") && !text.contains("word"),
            "{text}"
        );
        assert!(text.ends_with("@g: no") && text.contains("@h/x and http://"), "{text}");
    }
}
