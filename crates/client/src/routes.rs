//! The endpoints, one method each. Owns paths and queries; bodies are `api_types`.

use api_types as wire;
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::Value;

use crate::logs::{Line, LogPosition, LogStream, Logs, Since};
use crate::request::ANSWER_TIMEOUT;
use crate::{Client, Error};

/// Which typed route a workload is created through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    /// `/workloads/trainings`.
    Training,
    /// `/workloads/workspaces`.
    Workspace,
    /// `/workloads/distributed`.
    Distributed,
    /// `/workloads/inferences`.
    Inference,
}

impl WorkloadKind {
    const fn path(self) -> &'static str {
        match self {
            Self::Training => "/api/v1/workloads/trainings",
            Self::Workspace => "/api/v1/workloads/workspaces",
            Self::Distributed => "/api/v1/workloads/distributed",
            Self::Inference => "/api/v1/workloads/inferences",
        }
    }
}

impl Client {
    /// How the server stands.
    ///
    /// # Errors
    /// As every request.
    pub async fn status(&self) -> Result<wire::Status, Error> {
        self.get("/elastane/v1/status").await
    }

    /// Whether it answers without a token, and the time by its clock, to the second; none if it
    /// does not tell.
    ///
    /// # Errors
    /// As every request.
    pub async fn health(&self) -> Result<Option<wire::Time>, Error> {
        let request = self.request(Method::GET, "/healthz").timeout(ANSWER_TIMEOUT);
        let answer = self.accept(request).await?;
        let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
        Ok(date.and_then(wire::Time::of_http))
    }

    /// The program `runai` that the server hands out for this machine.
    ///
    /// # Errors
    /// As every request; 404 if it has none.
    pub async fn program(&self) -> Result<Download, Error> {
        use std::env::consts::{ARCH, OS};
        let system = if OS == "macos" { "darwin" } else { OS };
        let kind = match ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let path = format!("/api/v1/cli-exposer/dist/{system}/{kind}/runai");
        let answer = self.accept(self.request(Method::GET, &path)).await?;
        Ok(Download { answer, client: self.clone() })
    }

    /// What the scheduler sees, as a scenario; its own text.
    ///
    /// # Errors
    /// As every request.
    pub async fn snapshot(&self) -> Result<String, Error> {
        let answer = self.accept(self.request(Method::GET, "/elastane/v1/snapshot")).await?;
        answer.text().await.map_err(|error| self.failed(&error))
    }

    /// Adds a simulated node.
    ///
    /// # Errors
    /// As every request.
    pub async fn add_simulated_node(
        &self,
        node: &wire::SimulatedNode,
    ) -> Result<wire::Node, Error> {
        self.send(Method::POST, "/elastane/v1/simulated-nodes", node).await
    }

    /// Removes a simulated node at once.
    ///
    /// # Errors
    /// As every request.
    pub async fn remove_simulated_node(&self, node: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("/elastane/v1/simulated-nodes/{node}")).await
    }

    /// Makes a simulated GPU fail, or work again.
    ///
    /// # Errors
    /// As every request.
    pub async fn fail_gpu(&self, node: &str, gpu: u32, fails: bool) -> Result<(), Error> {
        let path = format!("/elastane/v1/nodes/{node}/gpus/{gpu}/simulated-failure");
        let method = if fails { Method::PUT } else { Method::DELETE };
        self.accept(self.request(method, &path)).await.map(drop)
    }

    /// Why a workload is where it is; for one that waits, at length.
    ///
    /// # Errors
    /// As every request.
    pub async fn explain(&self, id: &str) -> Result<wire::Explanation, Error> {
        self.get(&format!("/elastane/v1/workloads/{id}/explain")).await
    }

    /// What a workload held and used over time.
    ///
    /// # Errors
    /// As every request; a wrong time.
    pub async fn workload_metrics(
        &self,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<wire::MetricsResponse, Error> {
        self.get(&format!("/api/v1/workloads/{id}/metrics{}", question(query))).await
    }

    /// What would happen; nothing does.
    ///
    /// # Errors
    /// As every request; what a submission would be refused for.
    pub async fn what_if(&self, asked: &wire::WhatIf) -> Result<wire::WouldHappen, Error> {
        self.send(Method::POST, "/elastane/v1/what-if", asked).await
    }

    /// What was held and used of GPUs; `query` is that of the route, names and values.
    ///
    /// # Errors
    /// As every request.
    pub async fn usage(&self, query: &[(&str, &str)]) -> Result<wire::GpuUsage, Error> {
        self.get(&format!("/elastane/v1/usage{}", question(query))).await
    }

    /// The same as CSV.
    ///
    /// # Errors
    /// As every request.
    pub async fn usage_csv(&self, query: &[(&str, &str)]) -> Result<String, Error> {
        let path = format!("/elastane/v1/usage/csv{}", question(query));
        let answer = self.accept(self.request(Method::GET, &path)).await?;
        answer.text().await.map_err(|error| self.failed(&error))
    }

    /// Stops every workload, then the server. Takes as long as the workloads' grace periods.
    ///
    /// # Errors
    /// As every request.
    pub async fn down(&self) -> Result<(), Error> {
        self.accept(self.request(Method::POST, "/elastane/v1/down")).await.map(drop)
    }

    /// A token for what the request proves.
    ///
    /// # Errors
    /// As every request.
    pub async fn grant(&self, request: &wire::TokenRequest) -> Result<wire::TokenResponse, Error> {
        self.send(Method::POST, "/api/v1/token", request).await
    }

    /// Begins a login at the login provider.
    ///
    /// # Errors
    /// As every request; 404 if there is no provider, 503 if it does not answer.
    pub async fn begin_login(
        &self,
        request: &wire::LoginRequest,
    ) -> Result<wire::LoginStart, Error> {
        self.send(Method::POST, "/elastane/v1/login", request).await
    }

    /// Ends the session that the token belongs to.
    ///
    /// # Errors
    /// As every request.
    pub async fn logout(&self) -> Result<(), Error> {
        self.act(Method::POST, "/elastane/v1/logout").await
    }

    /// Changes the caller's own password; its token ends with that.
    ///
    /// # Errors
    /// As every request.
    pub async fn change_password(
        &self,
        request: &wire::UserChangePasswordRequest,
    ) -> Result<(), Error> {
        let path = "/api/v1/me/password";
        let request = self.request(Method::POST, path).timeout(ANSWER_TIMEOUT).json(request);
        self.accept(request).await.map(drop)
    }

    /// How many access rules the caller has: to check only whether its token is
    /// good.
    ///
    /// # Errors
    /// As every request; 403 while a password that was given out has to be changed.
    pub async fn count_own_rules(&self) -> Result<u64, Error> {
        let path = "/api/v1/authorization/me/access-rules/count";
        self.get::<wire::CountResponse>(path).await.map(|answer| answer.count)
    }

    /// The clusters.
    ///
    /// # Errors
    /// As every request.
    pub async fn clusters(&self) -> Result<Vec<wire::DisplayedCluster>, Error> {
        self.get("/api/v1/clusters").await
    }

    /// The nodes.
    ///
    /// # Errors
    /// As every request.
    pub async fn nodes(&self) -> Result<Vec<wire::Node>, Error> {
        self.get::<wire::Nodes>("/api/v1/nodes").await.map(|answer| answer.nodes)
    }

    /// The GPUs of a node, or of all, with the pods on them that the caller may see.
    ///
    /// # Errors
    /// As every request.
    pub async fn gpus(&self, node: Option<&str>) -> Result<Vec<wire::Gpu>, Error> {
        let mut all = Vec::new();
        let filter = node.map(|node| format!("&filterBy=nodeName=={}", escape(node)));
        let filter = filter.unwrap_or_default();
        loop {
            let (limit, offset) = (wire::PAGE_ITEMS_MAX, all.len());
            let path = format!("/elastane/v1/gpus?limit={limit}&offset={offset}{filter}");
            let page = self.get::<wire::Gpus>(&path).await?.gpus;
            let is_last = (page.len() as u64) < limit;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// What was measured of `path`, a route of series: of each type the mean of this time.
    ///
    /// # Errors
    /// As every request.
    pub async fn measured(
        &self,
        path: &str,
        types: &[&str],
        (start, end): (wire::Time, wire::Time),
    ) -> Result<wire::MetricsResponse, Error> {
        let types = types.join(",");
        self.get(&format!("{path}?metricType={types}&start={start}&end={end}&numberOfSamples=1"))
            .await
    }

    /// All projects.
    ///
    /// # Errors
    /// As every request.
    pub async fn projects(&self) -> Result<Vec<wire::Project>, Error> {
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let limit = wire::PAGE_ITEMS_MAX;
            let path = format!("/api/v1/org-unit/projects?limit={limit}&offset={offset}");
            let page: wire::ProjectsPage = self.get(&path).await?;
            all.extend(page.projects);
            match page.next {
                Some(next) if next > offset => offset = next,
                _ => return Ok(all),
            }
        }
    }

    /// The project of this name.
    ///
    /// # Errors
    /// As every request.
    pub async fn project(&self, name: &str) -> Result<Option<wire::Project>, Error> {
        Ok(self.projects().await?.into_iter().find(|project| project.name == name))
    }

    /// Creates a project.
    ///
    /// # Errors
    /// As every request.
    pub async fn create_project(
        &self,
        request: &wire::ProjectCreationRequest,
    ) -> Result<wire::Project, Error> {
        self.send(Method::POST, "/api/v1/org-unit/projects", request).await
    }

    /// Changes a project.
    ///
    /// # Errors
    /// As every request.
    pub async fn update_project(
        &self,
        id: &str,
        request: &wire::ProjectUpdateRequest,
    ) -> Result<wire::Project, Error> {
        self.send(Method::PUT, &format!("/api/v1/org-unit/projects/{id}"), request).await
    }

    /// Changes what is given of its shares in node pools, and reads it again.
    ///
    /// # Errors
    /// As every request.
    pub async fn change_project_share(
        &self,
        id: &str,
        (given, force): (&[wire::ShareRequest], bool),
    ) -> Result<wire::Project, Error> {
        let project = format!("/api/v1/org-unit/projects/{id}");
        let path = crate::departments::forced(&format!("{project}/resources"), force);
        let _: Vec<wire::Resources> = self.send(Method::PATCH, &path, &given).await?;
        self.get(&project).await
    }

    /// Deletes a project.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_project(&self, id: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("/api/v1/org-unit/projects/{id}")).await
    }

    /// One workload.
    ///
    /// # Errors
    /// As every request; 404 when it is gone.
    pub async fn workload(&self, id: &str) -> Result<wire::Workload, Error> {
        self.get(&format!("/api/v1/workloads/{id}")).await
    }

    /// One workload as it was asked for.
    ///
    /// # Errors
    /// As every request; 404 when it is gone, or of another kind.
    pub async fn asked_for(
        &self,
        kind: WorkloadKind,
        id: &str,
    ) -> Result<wire::TypedWorkload, Error> {
        self.get(&format!("{}/{id}", kind.path())).await
    }

    /// An address by which a browser comes to a port of a workload, by its name or number.
    ///
    /// # Errors
    /// As every request; 409 when it has none.
    pub async fn ticket(&self, id: &str, url: Option<&str>) -> Result<wire::Ticket, Error> {
        let request = wire::TicketRequest { url: url.map(str::to_owned) };
        self.send(Method::POST, &format!("/elastane/v1/workloads/{id}/tickets"), &request).await
    }

    /// Creates a workload.
    ///
    /// # Errors
    /// As every request; 409 when the name is taken.
    pub async fn create(
        &self,
        kind: WorkloadKind,
        request: &wire::CreationRequest,
    ) -> Result<wire::TypedWorkload, Error> {
        self.send(Method::POST, kind.path(), request).await
    }

    /// Creates what a manifest describes.
    ///
    /// # Errors
    /// As every request; 409 when the name is taken.
    pub async fn create_manifest(
        &self,
        request: &wire::WorkloadV2CreateRequest,
    ) -> Result<wire::WorkloadV2, Error> {
        self.send(Method::POST, "/api/v2/workloads", request).await
    }

    /// Changes a workload of this kind.
    ///
    /// # Errors
    /// As every request; 409 for what cannot change, or was changed by another request meanwhile.
    pub async fn update(
        &self,
        kind: WorkloadKind,
        id: &str,
        change: &wire::InferenceUpdateRequest,
    ) -> Result<wire::TypedWorkload, Error> {
        let path = format!("{}/{id}", kind.path());
        self.send(Method::PATCH, &path, change).await
    }

    /// The templates of this name for a kind of workload.
    ///
    /// # Errors
    /// As every request.
    pub async fn templates(
        &self,
        kind: WorkloadKind,
        name: &str,
    ) -> Result<Vec<wire::WorkloadTemplate>, Error> {
        // A comma would begin another condition.
        if name.contains(',') {
            return Ok(Vec::new());
        }
        let kind = kind.path().replace("/workloads/", "/workload-templates/");
        let path = format!("{kind}?limit={}&filterBy=name=={}", wire::PAGE_ITEMS_MAX, escape(name));
        self.get::<wire::TemplateList>(&path).await.map(|list| list.entries)
    }

    /// Deletes, suspends or resumes workloads of any kind in one request; a deleted one is gone a
    /// moment later.
    ///
    /// # Errors
    /// As every request; what became of each workload is in the answer.
    pub async fn batch(&self, batch: &wire::WorkloadBatch) -> Result<wire::BatchResponse, Error> {
        self.send(Method::POST, "/api/v1/workloads/batch", batch).await
    }

    /// How many workloads of a project are being deleted.
    ///
    /// # Errors
    /// As every request.
    pub async fn deleting(&self, project: &str) -> Result<u64, Error> {
        let filter = format!("projectName=={},phase==Deleting", escape(project));
        let path = format!("/api/v1/workloads/count?filterBy={filter}");
        self.get::<wire::CountResponse>(&path).await.map(|answer| answer.count)
    }

    /// The pods of a workload.
    ///
    /// # Errors
    /// As every request.
    pub async fn pods(&self, id: &str) -> Result<Vec<wire::Pod>, Error> {
        let path = format!("/api/v1/workloads/{id}/pods?limit={}", wire::PAGE_ITEMS_MAX);
        self.get::<wire::PodsPage>(&path).await.map(|page| page.pods)
    }

    /// The pods of all workloads that live.
    ///
    /// # Errors
    /// As every request.
    pub async fn every_pod(&self) -> Result<Vec<wire::Pod>, Error> {
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let limit = wire::PAGE_ITEMS_MAX;
            let path = format!("/api/v1/workloads/pods?limit={limit}&offset={offset}");
            let page: wire::PodsPage = self.get(&path).await?;
            all.extend(page.pods);
            match page.next {
                Some(next) if next > offset => offset = next,
                _ => return Ok(all),
            }
        }
    }

    /// The newest events of a workload, oldest of them first.
    ///
    /// # Errors
    /// As every request.
    pub async fn events(
        &self,
        id: &str,
        limit: usize,
    ) -> Result<Vec<wire::KubernetesEvent>, Error> {
        let limit = limit.clamp(1, 500);
        let path = format!("/api/v1/workloads/{id}/events?limit={limit}&sortOrder=desc");
        let mut events = self.get::<wire::EventsPage>(&path).await?.events;
        events.sort_by_key(|event| (event.created_at, event.id.parse::<u64>().unwrap_or(0)));
        Ok(events)
    }

    /// What a pod of a workload wrote, the first unless one is named, as it comes.
    ///
    /// # Errors
    /// As every request.
    pub async fn logs(
        &self,
        id: &str,
        pod: Option<&str>,
        which: &Logs,
    ) -> Result<LogStream, Error> {
        let Logs { tail_lines, since, timestamps, follow, previous } = which;
        let mut query = vec![];
        query.extend(pod.map(|pod| ("pod", pod.to_owned())));
        query.extend(tail_lines.map(|lines| ("tail", lines.to_string())));
        query.extend(since.as_ref().map(|since| match since {
            Since::Seconds(seconds) => ("sinceSeconds", seconds.to_string()),
            Since::Time(time) => ("sinceTime", time.to_string()),
        }));
        query.extend(timestamps.then(|| ("timestamps", "true".to_owned())));
        query.extend(follow.then(|| ("follow", "true".to_owned())));
        query.extend(previous.then(|| ("previous", "true".to_owned())));
        self.output(id, query, Line::new(*timestamps)).await
    }

    /// Goes on where such a stream was cut off, to the end.
    ///
    /// # Errors
    /// As every request.
    pub async fn logs_from(&self, id: &str, from: &LogPosition) -> Result<LogStream, Error> {
        let LogPosition { run, offset, line } = from;
        let mut query = vec![("follow", "true".to_owned())];
        query.extend([("pod", run.clone()), ("offset", offset.to_string())]);
        query.extend(line.stamped.then(|| ("timestamps", "true".to_owned())));
        self.output(id, query, line.restarted()).await
    }

    async fn output(
        &self,
        id: &str,
        query: Vec<(&str, String)>,
        line: Line,
    ) -> Result<LogStream, Error> {
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let path = format!("/elastane/v1/workloads/{id}/logs{}", question(&query));
        let answer = self.accept(self.request(Method::GET, &path)).await?;
        let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let position = header("x-elastane-run").zip(header("x-elastane-offset"));
        let position = position.and_then(|(run, offset)| {
            Some(LogPosition { run: run.to_owned(), offset: offset.parse().ok()?, line })
        });
        let client = self.clone();
        let chunks = answer
            .bytes_stream()
            .map(move |chunk| match chunk {
                Ok(bytes) => Ok(bytes.to_vec()),
                Err(error) => Err(client.failed(&error)),
            })
            .boxed();
        Ok(LogStream { chunks, position })
    }

    /// Any object as the server gave it, for people who ask for JSON.
    ///
    /// # Errors
    /// As every request.
    pub async fn raw(&self, path: &str) -> Result<Value, Error> {
        self.get(path).await
    }
}

/// A file that is being downloaded.
#[derive(Debug)]
pub struct Download {
    answer: reqwest::Response,
    client: Client,
}

impl Download {
    /// The next piece; none at the end.
    ///
    /// # Errors
    /// The connection broke, or less came than was promised.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let piece = self.answer.chunk().await.map_err(|error| self.client.failed(&error))?;
        Ok(piece.map(|bytes| bytes.to_vec()))
    }
}

/// The query of an address.
pub(crate) fn question(query: &[(&str, &str)]) -> String {
    let pairs = query.iter().map(|(name, value)| format!("{name}={}", escape(value)));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Names are short words; whatever else is typed must not become part of the path or the query.
pub(crate) fn escape(text: &str) -> String {
    let keep = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let each =
        |byte: u8| if keep(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(each).collect()
}
