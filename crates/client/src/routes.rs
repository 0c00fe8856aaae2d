//! The endpoints, one method each. Owns paths and queries; bodies are `api_types`.

use api_types as wire;
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::Value;

use crate::logs::{LogPosition, LogStream, Logs, Since, TimestampSplitter};
use crate::request::ANSWER_TIMEOUT;
use crate::{Client, Error};

/// Kind of a workload, which selects the route of its creation.
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
    /// Status of the server.
    ///
    /// # Errors
    /// As every request.
    pub async fn status(&self) -> Result<wire::Status, Error> {
        self.get("/elastane/v1/status").await
    }

    /// Checks that the server answers without a token. Returns the time of its clock, to the
    /// second; `None` if the response has none.
    ///
    /// # Errors
    /// As every request.
    pub async fn health(&self) -> Result<Option<wire::Time>, Error> {
        let request = self.request(Method::GET, "/healthz").timeout(ANSWER_TIMEOUT);
        let answer = self.accept(request).await?;
        let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
        Ok(date.and_then(wire::Time::of_http))
    }

    /// Downloads the program `runai` of the server for this platform.
    ///
    /// # Errors
    /// As every request; 404 if it has none for this platform.
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

    /// The scheduler's input, as the text of a scenario.
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

    /// Makes a simulated GPU fail, or repairs it.
    ///
    /// # Errors
    /// As every request.
    pub async fn fail_gpu(&self, node: &str, gpu: u32, fails: bool) -> Result<(), Error> {
        let path = format!("/elastane/v1/nodes/{node}/gpus/{gpu}/simulated-failure");
        let method = if fails { Method::PUT } else { Method::DELETE };
        self.accept(self.request(method, &path)).await.map(drop)
    }

    /// Reasons for the state of a workload, with a diagnosis if it waits.
    ///
    /// # Errors
    /// As every request.
    pub async fn explain(&self, id: &str) -> Result<wire::Explanation, Error> {
        self.get(&format!("/elastane/v1/workloads/{id}/explain")).await
    }

    /// Allocation and usage of a workload over time.
    ///
    /// # Errors
    /// As every request; an invalid time.
    pub async fn workload_metrics(
        &self,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<wire::MetricsResponse, Error> {
        self.get(&format!("/api/v1/workloads/{id}/metrics{}", question(query))).await
    }

    /// Predicted outcome of submissions; nothing is submitted.
    ///
    /// # Errors
    /// As every request; an invalid submission.
    pub async fn what_if(&self, asked: &wire::WhatIf) -> Result<wire::WouldHappen, Error> {
        self.send(Method::POST, "/elastane/v1/what-if", asked).await
    }

    /// Allocation and usage of GPUs; `query` has names and values of the route's parameters.
    ///
    /// # Errors
    /// As every request.
    pub async fn usage(&self, query: &[(&str, &str)]) -> Result<wire::GpuUsage, Error> {
        self.get(&format!("/elastane/v1/usage{}", question(query))).await
    }

    /// Allocation and usage of GPUs as CSV.
    ///
    /// # Errors
    /// As every request.
    pub async fn usage_csv(&self, query: &[(&str, &str)]) -> Result<String, Error> {
        let path = format!("/elastane/v1/usage/csv{}", question(query));
        let answer = self.accept(self.request(Method::GET, &path)).await?;
        answer.text().await.map_err(|error| self.failed(&error))
    }

    /// Stops every workload, then the server. The response takes as long as the workloads' grace
    /// periods.
    ///
    /// # Errors
    /// As every request.
    pub async fn down(&self) -> Result<(), Error> {
        self.accept(self.request(Method::POST, "/elastane/v1/down")).await.map(drop)
    }

    /// Issues a token for the credentials in the request.
    ///
    /// # Errors
    /// As every request.
    pub async fn grant(&self, request: &wire::TokenRequest) -> Result<wire::TokenResponse, Error> {
        self.send(Method::POST, "/api/v1/token", request).await
    }

    /// Starts a login at the login provider.
    ///
    /// # Errors
    /// As every request; 404 if there is no provider, 503 if it does not answer.
    pub async fn begin_login(
        &self,
        request: &wire::LoginRequest,
    ) -> Result<wire::LoginStart, Error> {
        self.send(Method::POST, "/elastane/v1/login", request).await
    }

    /// Ends the session of the token.
    ///
    /// # Errors
    /// As every request.
    pub async fn logout(&self) -> Result<(), Error> {
        self.act(Method::POST, "/elastane/v1/logout").await
    }

    /// Changes the caller's own password, and revokes the token.
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

    /// Number of the caller's access rules: a request that only checks the token.
    ///
    /// # Errors
    /// As every request; 403 while an initial password has to be changed.
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

    /// The GPUs of a node, or of all nodes, with those pods that the caller may see.
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

    /// Mean values in a period of time, by type; `path` is a route of metrics.
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

    /// Updates the given values of its shares in node pools, and returns it.
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
    /// As every request; 404 if it does not exist.
    pub async fn workload(&self, id: &str) -> Result<wire::Workload, Error> {
        self.get(&format!("/api/v1/workloads/{id}")).await
    }

    /// Specification of a workload, as requested.
    ///
    /// # Errors
    /// As every request; 404 if it does not exist, or is of another kind.
    pub async fn asked_for(
        &self,
        kind: WorkloadKind,
        id: &str,
    ) -> Result<wire::TypedWorkload, Error> {
        self.get(&format!("{}/{id}", kind.path())).await
    }

    /// Address with a ticket for a browser, for a port of a workload given by name or number.
    ///
    /// # Errors
    /// As every request; 409 if it has no such port.
    pub async fn ticket(&self, id: &str, url: Option<&str>) -> Result<wire::Ticket, Error> {
        let request = wire::TicketRequest { url: url.map(str::to_owned) };
        self.send(Method::POST, &format!("/elastane/v1/workloads/{id}/tickets"), &request).await
    }

    /// Creates a workload.
    ///
    /// # Errors
    /// As every request; 409 if the name is in use.
    pub async fn create(
        &self,
        kind: WorkloadKind,
        request: &wire::CreationRequest,
    ) -> Result<wire::TypedWorkload, Error> {
        self.send(Method::POST, kind.path(), request).await
    }

    /// Creates the workload of a manifest.
    ///
    /// # Errors
    /// As every request; 409 if the name is in use.
    pub async fn create_manifest(
        &self,
        request: &wire::WorkloadV2CreateRequest,
    ) -> Result<wire::WorkloadV2, Error> {
        self.send(Method::POST, "/api/v2/workloads", request).await
    }

    /// Updates a workload of this kind.
    ///
    /// # Errors
    /// As every request; 409 for a value that cannot change, or after a concurrent change.
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
        // A comma would start another condition.
        if name.contains(',') {
            return Ok(Vec::new());
        }
        let kind = kind.path().replace("/workloads/", "/workload-templates/");
        let path = format!("{kind}?limit={}&filterBy=name=={}", wire::PAGE_ITEMS_MAX, escape(name));
        self.get::<wire::TemplateList>(&path).await.map(|list| list.entries)
    }

    /// Names of the visible templates of a kind.
    ///
    /// # Errors
    /// As every request.
    pub async fn template_names(&self, kind: WorkloadKind) -> Result<Vec<String>, Error> {
        let kind = kind.path().replace("/workloads/", "/workload-templates/");
        let path = format!("{kind}?limit={}", wire::PAGE_ITEMS_MAX);
        let all = self.get::<wire::TemplateList>(&path).await?.entries;
        Ok(all.into_iter().map(|one| one.meta.name).collect())
    }

    /// Deletes, suspends or resumes workloads of any kind in one request. A deletion completes
    /// after the response.
    ///
    /// # Errors
    /// As every request; the result for each workload is in the answer.
    pub async fn batch(&self, batch: &wire::WorkloadBatch) -> Result<wire::BatchResponse, Error> {
        self.send(Method::POST, "/api/v1/workloads/batch", batch).await
    }

    /// Number of workloads of a project that are being deleted.
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

    /// The pods of all current workloads.
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

    /// The newest events of a workload, in order of time.
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

    /// Output of a pod of a workload, of the first one unless one is named.
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
        self.output(id, query, TimestampSplitter::new(*timestamps)).await
    }

    /// Continues an interrupted stream at its position, to the end.
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
        line: TimestampSplitter,
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

    /// Any object as the server sends it, for JSON output.
    ///
    /// # Errors
    /// As every request.
    pub async fn raw(&self, path: &str) -> Result<Value, Error> {
        self.get(path).await
    }
}

/// A file download.
#[derive(Debug)]
pub struct Download {
    answer: reqwest::Response,
    client: Client,
}

impl Download {
    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// The connection broke, or the file is shorter than announced.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let piece = self.answer.chunk().await.map_err(|error| self.client.failed(&error))?;
        Ok(piece.map(|bytes| bytes.to_vec()))
    }
}

/// The query part of a URL.
pub(crate) fn question(query: &[(&str, &str)]) -> String {
    let pairs = query.iter().map(|(name, value)| format!("{name}={}", escape(value)));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Escapes a name: other text must not become part of the path or the query.
pub(crate) fn escape(text: &str) -> String {
    let keep = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let each =
        |byte: u8| if keep(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(each).collect()
}
