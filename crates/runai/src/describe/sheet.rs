//! A workload in the sections of the second dialect (reference B.4). Owns: that a section is shown
//! only if it has content and was not left out.

use api_types::{NameValue, WorkloadSpec};

use super::{Page, pod_place, pod_restarts, pod_status, storage, training};
use crate::rows;
use cli_kit::table::{Table, two_decimals};
use dialects::intent::{Parts, Section};

/// A description of the second dialect.
pub(crate) struct Sheet<'a> {
    pub(crate) page: Page<'a>,
    /// Specification as requested.
    pub(crate) asked: &'a WorkloadSpec,
    pub(crate) parts: &'a Parts,
}

impl Sheet<'_> {
    /// The sections, a blank line between them.
    pub(crate) fn text(&self) -> String {
        let sections = [
            self.shown(Section::General, || self.general()),
            self.shown(Section::Compute, || self.compute()),
            self.shown(Section::General, || self.reasons()),
            self.shown(Section::Pods, || self.pods()),
            self.shown(Section::Pods, || self.training()),
            self.shown(Section::General, || self.output()),
            self.shown(Section::Containers, || self.containers()),
            self.shown(Section::Networks, || self.network()),
            self.shown(Section::Storage, || self.storage()),
            self.shown(Section::General, || named("Labels", self.asked.labels.as_deref())),
            self.shown(Section::General, || {
                named("Annotations", self.asked.annotations.as_deref())
            }),
            self.shown(Section::Events, || self.events()),
        ];
        sections.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn shown(&self, section: Section, text: impl Fn() -> Option<String>) -> Option<String> {
        let is_left_out = self.parts.left_out.contains(&section);
        if is_left_out { None } else { text() }
    }

    fn general(&self) -> Option<String> {
        let workload = self.page.workload;
        let workers = self.asked.num_workers.map(|workers| workers.to_string());
        let restarts = match workload.additional_fields.restarts {
            0 => String::new(),
            restarts => restarts.to_string(),
        };
        let least = self.asked.min_replicas.unwrap_or_default();
        let priority = match &self.asked.spare_priority_class {
            Some(spare) => {
                format!("{}, of workers beyond {least} {spare}", workload.priority_class_name)
            }
            None => workload.priority_class_name.clone(),
        };
        fields(
            "General",
            &[
                ("Name", &workload.name),
                ("Type", &workload.kind),
                ("Framework", workload.distributed_framework.as_deref().unwrap_or_default()),
                ("Workers", workers.as_deref().unwrap_or_default()),
                ("Status", rows::status_v2(workload)),
                ("Restarts", &restarts),
                ("Project", &workload.project_name),
                ("Created", &self.page.moment(workload.created_at)),
                ("Submitted by", &workload.submitted_by),
                ("Priority", &priority),
                ("Preemptible", yes(workload.preemptible)),
            ],
        )
    }

    fn compute(&self) -> Option<String> {
        let workload = self.page.workload;
        let extras = &workload.additional_fields;
        let elastic = match (self.asked.min_replicas, self.asked.max_replicas) {
            (Some(min), Some(max)) => format!("Yes ({min} to {max} workers)"),
            _ => yes(extras.elastic).to_owned(),
        };
        fields(
            "Compute",
            &[
                ("GPU Request", &rows::gpus_requested(workload)),
                ("GPU Alloc.", &two_decimals(workload.allocated_resources.gpu.0)),
                ("Over Quota", yes(extras.over_quota)),
                ("Elastic", &elastic),
                ("GPU Fraction", &self.page.fractions().unwrap_or_default()),
                ("GPU Compute", &self.page.compute().unwrap_or_default()),
            ],
        )
    }

    fn reasons(&self) -> Option<String> {
        let reasons = self.page.reasons(["Code", "Age", "Message"])?;
        Some(self.table("Reasons", reasons))
    }

    fn pods(&self) -> Option<String> {
        let all = self.page.pods;
        let max = self.parts.pods_max.unwrap_or(usize::MAX);
        let mut pods = Table::new(&["Pod", "Status", "Restarts", "Node"]);
        for pod in all.iter().take(max) {
            let (status, restarts) = (pod_status(pod).to_owned(), pod_restarts(pod));
            pods.row([pod.name.clone(), status, restarts.to_string(), pod_place(pod)]);
        }
        let mut text = self.table("Pods", pods);
        let more = all.len().saturating_sub(max);
        if more > 0 {
            text.push_str(&format!("and {more} more; --pod-limit {} shows all\n", all.len()));
        }
        Some(text)
    }

    fn training(&self) -> Option<String> {
        let columns = ["Worker", "Rank", "Tasks", "Version", "Samples/s"];
        Some(format!("Training\n{}", training::text(&self.page, columns)?))
    }

    fn output(&self) -> Option<String> {
        let output = self.page.output?;
        Some(format!("{}\n{}", output.title(), output.indented()))
    }

    fn containers(&self) -> Option<String> {
        let workload = self.page.workload;
        fields(
            "Containers",
            &[
                ("Image", &workload.images.join(",")),
                ("Command", workload.command.as_deref().unwrap_or_default()),
                ("Arguments", workload.arguments.as_deref().unwrap_or_default()),
            ],
        )
    }

    fn network(&self) -> Option<String> {
        let workload = self.page.workload;
        let elsewhere = workload.external_connections.iter();
        let elsewhere = elsewhere.filter(|one| one.connection_type == "RelatedUrl");
        let elsewhere: Vec<&str> = elsewhere.filter_map(|one| one.url.as_deref()).collect();
        let urls = [("URL", &*workload.urls.join(", ")), ("Related URL", &elsewhere.join(", "))];
        fields("Network", &urls)
    }

    fn storage(&self) -> Option<String> {
        let mounts = storage::table(self.asked.storage.as_ref()?)?;
        Some(self.table("Storage", mounts))
    }

    fn events(&self) -> Option<String> {
        let mut table = Table::new(&["Created", "Kind/Name", "Message"]);
        let mut events: Vec<_> = self.page.events.iter().collect();
        if self.parts.newest_first {
            events.reverse();
        }
        for event in &events {
            let object = &event.involved_object;
            table.row([
                self.page.moment(event.created_at),
                format!("{}/{}", object.kind, object.name),
                format!("[{}] {}", event.reason, event.message),
            ]);
        }
        (!events.is_empty()).then(|| self.table("Events", table))
    }

    fn table(&self, title: &str, table: Table) -> String {
        format!("{title}\n{}", table.within(self.page.columns).ruled())
    }
}

const fn yes(is_so: bool) -> &'static str {
    if is_so { "Yes" } else { "No" }
}

/// A section of fields, without those that have no value.
fn fields(title: &str, fields: &[(&str, &str)]) -> Option<String> {
    let told = fields.iter().filter(|(_, value)| !value.is_empty());
    let lines =
        told.map(|(key, value)| format!("  {:<14}{}\n", format!("{key}:"), one_line(value)));
    section(title, lines)
}

/// A section of name and value pairs given by users.
fn named(title: &str, pairs: Option<&[NameValue]>) -> Option<String> {
    let pairs = pairs.unwrap_or_default().iter();
    let line = |pair: &NameValue| format!("  {}={}\n", one_line(&pair.name), one_line(&pair.value));
    section(title, pairs.map(line))
}

fn section(title: &str, lines: impl Iterator<Item = String>) -> Option<String> {
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| format!("{title}\n{lines}"))
}

/// A value on one line, so that it never looks like a line of this program.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
