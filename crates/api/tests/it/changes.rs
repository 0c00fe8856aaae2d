//! The stream of changes: a reader that applies it has the objects of the lists.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use fixture::STUCK_AFTER;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::iam::{call, get, give, user};
use crate::server::{Server, read};

const CHANGES: &str = "/elastane/v1/changes";

/// Objects by their kind and id.
type Objects = BTreeMap<(String, String), Value>;

/// A reader that keeps the objects it receives.
struct Reader {
    path: String,
    token: String,
    body: BodyDataStream,
    text: String,
    objects: Objects,
    /// Id of the last event that had one.
    id: String,
    version: u64,
    listing: bool,
}

impl Reader {
    async fn of(server: &Server, token: &str, query: &str) -> Self {
        let path = format!("{CHANGES}{query}");
        let body = Self::connect(server, token, &path, "").await;
        let (token, text, id) = (token.to_owned(), String::new(), String::new());
        let objects = BTreeMap::new();
        Self { path, token, body, text, objects, id, version: 0, listing: false }
    }

    async fn new(server: &Server, query: &str) -> Self {
        Self::of(server, &server.token, query).await
    }

    async fn connect(server: &Server, token: &str, path: &str, id: &str) -> BodyDataStream {
        let request = axum::http::Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .header("last-event-id", id);
        let response = server.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response.into_body().into_data_stream()
    }

    /// Breaks the connection and goes on from the last event.
    async fn connect_again(&mut self, server: &Server) {
        self.body = Self::connect(server, &self.token, &self.path, &self.id).await;
        self.text.clear();
    }

    /// The next event, applied; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        // Also with heartbeats in between.
        let until = tokio::time::Instant::now() + STUCK_AFTER;
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
                let id = line("id: ").map(str::to_owned);
                let event = line("data: ").map(|data| serde_json::from_str(data).unwrap());
                self.text = rest.to_owned();
                let Some(event) = event else { continue };
                self.apply(&event, id);
                return Some(event);
            }
            let chunk = tokio::time::timeout_at(until, self.body.next()).await.expect("an event");
            self.text.push_str(std::str::from_utf8(&chunk?.unwrap()).unwrap());
        }
    }

    fn apply(&mut self, event: &Value, id: Option<String>) {
        let key = || {
            let text = |field: &str| event[field].as_str().unwrap().to_owned();
            (text("kind"), text("id"))
        };
        // The server and events have no version of their own.
        let has_version = event["kind"] != "server" && event["kind"] != "event";
        let version = event["version"].as_u64().filter(|_| has_version);
        if let Some(version) = version {
            assert!(version > self.version, "versions grow: {event}");
            self.version = version;
            let position = |id: &String| id.split_once('-').unwrap().1.parse().unwrap();
            assert_eq!(id.as_ref().map(position), (!self.listing).then_some(version), "{event}");
        }
        match event["type"].as_str().unwrap() {
            "reset" => {
                self.objects.clear();
                (self.version, self.listing) = (0, true);
            }
            "changed" => drop(self.objects.insert(key(), event["object"].clone())),
            "deleted" => {
                assert!(event["object"].is_null() && !self.listing);
                self.objects.remove(&key());
            }
            "synced" => {
                assert_eq!(id.as_deref(), event["position"].as_str());
                self.listing = false;
            }
            other => panic!("{other}"),
        }
        self.id = id.unwrap_or_else(|| self.id.clone());
    }

    /// Reads up to the end of the list; answers the first event.
    async fn synced(&mut self) -> Value {
        let first = self.next().await.unwrap();
        let mut last = first.clone();
        while last["type"] != "synced" {
            last = self.next().await.unwrap();
        }
        first
    }

    /// The next event about an object of this kind.
    async fn about(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap();
            if event["kind"] == kind {
                return event;
            }
        }
    }

    /// Reads until a workload and its pod are shown as they ended.
    async fn sees_end(&mut self, id: &str) {
        let ended = |(kind, _): &(String, String), one: &Value| match kind.as_str() {
            "workload" => one["id"] == id && one["phase"] == "Completed",
            _ => one["workloadId"] == id && one["k8sPhase"] == "Succeeded",
        };
        while self.objects.iter().filter(|(key, one)| ended(key, one)).count() < 2 {
            let event = self.next().await.unwrap();
            assert!(event["type"] != "deleted" && event["type"] != "reset", "{event}");
        }
    }

    fn names(&self, kind: &str) -> Vec<&str> {
        let of_kind = self.objects.iter().filter(|((own, _), _)| own == kind);
        let mut names: Vec<_> = of_kind.filter_map(|(_, one)| name_of(one)).collect();
        names.sort_unstable();
        names
    }

    fn ids(&self, kind: &str) -> Vec<String> {
        let of_kind = self.objects.keys().filter(|(own, _)| own == kind);
        of_kind.map(|(_, id)| id.clone()).collect()
    }

    /// Reads until a GPU is as wanted.
    async fn has_gpu(&mut self, id: &str, wanted: impl Fn(&Value) -> bool) {
        let key = ("gpu".to_owned(), id.to_owned());
        while !self.objects.get(&key).is_some_and(&wanted) {
            self.next().await.unwrap();
        }
    }

    /// Reads until it has the objects of the lists.
    async fn has_everything(&mut self, server: &Server) {
        loop {
            let (own, lists) = (timeless(self.objects.clone()), timeless(everything(server).await));
            if own == lists && !self.listing {
                return;
            }
            let next = tokio::time::timeout(STUCK_AFTER / 2, self.next()).await;
            assert!(next.is_ok(), "{:#?}", differing(&own, &lists));
        }
    }
}

fn name_of(one: &Value) -> Option<&str> {
    one.get("name").or(one.pointer("/meta/name")).and_then(Value::as_str)
}

fn differing(own: &Objects, lists: &Objects) -> Vec<(String, String)> {
    let differs = |key: &&(String, String)| own.get(*key) != lists.get(*key);
    own.keys().chain(lists.keys()).filter(differs).cloned().collect()
}

/// The objects without values that differ in each answer.
fn timeless(mut objects: Objects) -> Objects {
    for ((kind, _), object) in &mut objects {
        match kind.as_str() {
            "workload" => {
                object["totalPendingTimeSeconds"] = Value::Null;
                object["totalRunningTimeSeconds"] = Value::Null;
            }
            "node" => object["updatedAt"] = Value::Null,
            "project" => object["status"]["lastUpdatedTime"] = Value::Null,
            _ => {}
        }
    }
    objects
}

/// Objects in the lists of the administrator.
async fn everything(server: &Server) -> Objects {
    let mut all = Objects::new();
    for (kind, path, list, id) in [
        ("workload", "/api/v1/workloads?limit=500", "/workloads", "/id"),
        ("pod", "/api/v1/workloads/pods?limit=500", "/pods", "/id"),
        ("project", "/api/v1/org-unit/projects?limit=500", "/projects", "/id"),
        ("department", "/api/v1/org-unit/departments?limit=500", "/departments", "/id"),
        ("node-pool", "/api/v1/node-pools", "/nodepools", "/id"),
        ("node", "/api/v1/nodes", "/nodes", "/id"),
        ("gpu", "/elastane/v1/gpus?limit=500", "/gpus", "/id"),
        ("asset", "/api/v1/asset/datasource", "/entries", "/meta/id"),
        ("asset", "/api/v1/asset/environment", "/entries", "/meta/id"),
        ("asset", "/api/v1/asset/compute", "/entries", "/meta/id"),
        ("asset", "/api/v1/asset/credentials", "/entries", "/meta/id"),
        ("template", "/api/v1/workload-templates?limit=500", "/entries", "/meta/id"),
        ("user", "/api/v1/users?limit=500", "", "/id"),
    ] {
        let page = server.get(path).await;
        for object in page.pointer(list).unwrap().as_array().unwrap() {
            let id = object.pointer(id).unwrap().as_str().unwrap();
            all.insert((kind.to_owned(), id.to_owned()), object.clone());
        }
    }
    all
}

async fn keep_environment(server: &Server, name: &str, project: u64) -> String {
    let meta = json!({"name": name, "scope": "project", "projectId": project});
    crate::assets::keep(server, "environment", &meta, &json!({"image": "i"})).await
}

async fn delete(server: &Server, path: &str) {
    let (status, answer) = server.raw("DELETE", path, "").await;
    assert!(status.is_success(), "{path}: {answer}");
}

#[tokio::test]
async fn a_reader_begins_with_everything_and_follows() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "").await;
    assert_eq!(reader.synced().await, json!({"type": "reset", "reason": "start"}));
    assert_eq!(reader.names("project"), ["team-a", "team-b"]);
    assert_eq!((reader.names("node").len(), reader.names("node-pool").len()), (2, 1));
    let id = server.train("a1", 1).await;
    let made = reader.about("workload").await;
    assert_eq!(
        (&made["id"], &made["projectId"], &made["departmentId"]),
        (&json!(id), &json!("1"), &json!("1"))
    );
    let asset = keep_environment(&server, "image", 2).await;
    assert_eq!(reader.about("asset").await["object"]["meta"]["id"], json!(asset));
    user(&server, "ann@example.org").await;
    assert_eq!(reader.about("user").await["object"]["username"], "ann@example.org");
    reader.has_everything(&server).await;
}

#[tokio::test]
async fn a_deletion_is_sent_once_and_is_in_no_list() {
    let server = Server::with_teams().await;
    let asset = keep_environment(&server, "image", 1).await;
    let mut reader = Reader::new(&server, "?kinds=asset,project").await;
    reader.synced().await;
    assert_eq!(reader.names("asset"), ["image"]);
    delete(&server, &format!("/api/v1/asset/environment/{asset}")).await;
    let gone = reader.about("asset").await;
    assert_eq!(
        (&gone["type"], &gone["id"], &gone["projectId"]),
        (&json!("deleted"), &json!(asset), &json!("1"))
    );
    let mut later = Reader::new(&server, "?kinds=asset,project").await;
    later.synced().await;
    assert_eq!(later.objects, reader.objects);
}

#[tokio::test]
async fn a_department_changes_with_the_projects_that_it_lists() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "?kinds=department&after=now").await;
    reader.synced().await;
    // Without a quota nothing else of the department changes.
    let none = json!([{"gpu": {"deserved": 0}}]);
    let body = json!({"name": "team-c", "clusterId": server.cluster_id(), "resources": none});
    let (status, made) = server.post("/api/v1/org-unit/projects", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let department = reader.about("department").await;
    assert_eq!(department["object"]["children"][2]["name"], "team-c");
}

#[tokio::test]
async fn what_shows_another_object_changes_with_it() {
    let server = Server::with_teams().await;
    // It names no node pool, so it shows all of them.
    server.train("a1", 9).await;
    let mut reader = Reader::new(&server, "").await;
    let cluster = server.cluster_id();
    let (pools, one) = ("/api/v1/node-pools", format!("/api/v1/clusters/{cluster}"));
    let team = |gpus| json!({"resources": [{"gpu": {"deserved": gpus}}]});
    let department = "/api/v1/org-unit/departments/1";
    for (method, path, body) in [
        (
            "POST",
            pools,
            json!({"name": "fast", "labelKey": "a", "labelValue": "b", "clusterId": cluster}),
        ),
        (
            "POST",
            pools,
            json!({"name": "slow", "labelKey": "a", "labelValue": "c", "clusterId": cluster}),
        ),
        // The name of the cluster, for a node pool.
        ("PUT", &*one, json!({"name": "renamed"})),
        // A project says where it was given more than its department has.
        ("PUT", department, team(1)),
        ("PUT", department, team(8)),
    ] {
        reader.has_everything(&server).await;
        let (status, answer) = server.raw(method, path, &body.to_string()).await;
        assert!(status.is_success(), "{method} {path}: {answer}");
    }
    reader.has_everything(&server).await;
    for pool in reader.ids("node-pool").into_iter().filter(|id| id != "1") {
        delete(&server, &format!("{pools}/{pool}")).await;
        reader.has_everything(&server).await;
    }
}

#[tokio::test]
async fn a_node_changes_with_its_gpus() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "?kinds=node&after=now").await;
    reader.synced().await;
    let failure = "/elastane/v1/nodes/node-1/gpus/2/simulated-failure";
    let (status, answer) = server.raw("PUT", failure, "").await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let node = reader.about("node").await;
    assert_eq!(
        (&node["id"], &node["object"]["conditions"][1]["reason"]),
        (&json!("node-1"), &answer["conditions"][1]["reason"])
    );
}

#[tokio::test]
async fn a_change_of_a_gpu_is_one_of_that_gpu_alone() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "?kinds=gpu&after=now").await;
    reader.synced().await;
    let failure = "/elastane/v1/nodes/node-1/gpus/2/simulated-failure";
    let (status, _) = server.raw("PUT", failure, "").await;
    assert_eq!(status, StatusCode::OK);
    let lost = reader.next().await.unwrap();
    let fault = &lost["object"]["fault"];
    assert_eq!((&lost["id"], &fault["name"]), (&json!("node-1/2"), &json!("GpuLost")));
    delete(&server, failure).await;
    let healed = reader.next().await.unwrap();
    assert_eq!((&healed["id"], healed["object"].get("fault")), (&json!("node-1/2"), None));
    let id = server.train("a1", 1).await;
    let held = reader.next().await.unwrap();
    let (pod, gpu) = (&held["object"]["pods"][0], &held["id"]);
    assert_eq!((&pod["workloadId"], &pod["name"]), (&json!(id), &json!("a1-0-1")));
    assert_eq!((&held["object"]["allocated"], &pod["share"]), (&json!(1), &json!(1)));
    delete(&server, &format!("/api/v1/workloads/trainings/{id}")).await;
    let free = reader.next().await.unwrap();
    assert_eq!((&free["id"], &free["object"]["pods"]), (gpu, &json!([])));
    assert_eq!(reader.objects.len(), 2, "of four");
}

#[tokio::test]
async fn a_gpu_goes_on_and_goes_with_its_node() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "?kinds=gpu").await;
    reader.synced().await;
    assert_eq!(reader.ids("gpu"), ["node-1/0", "node-1/1", "node-1/2", "node-1/3"]);
    let node = json!({"name": "extra", "gpus": 1, "gpuMemoryBytes": 16_u64 << 30});
    let (status, made) = server.post("/elastane/v1/simulated-nodes", node).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(reader.next().await.unwrap()["id"], "extra/0");
    let failure = "/elastane/v1/nodes/extra/gpus/0/simulated-failure";
    for method in ["PUT", "DELETE", "PUT"] {
        let (status, answer) = server.raw(method, failure, "").await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    // Changes during its absence arrive as one.
    reader.connect_again(&server).await;
    assert_eq!(reader.next().await.unwrap()["type"], "synced");
    reader.has_gpu("extra/0", |gpu| gpu["fault"]["gpu"] == 0).await;
    delete(&server, "/elastane/v1/simulated-nodes/extra").await;
    let gone = reader.next().await.unwrap();
    assert_eq!((&gone["type"], &gone["id"]), (&json!("deleted"), &json!("extra/0")));
}

#[tokio::test]
async fn the_pods_on_a_gpu_are_seen_by_those_who_see_their_workloads() {
    let server = Server::with_teams().await;
    let (_, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    let own = server.train("own", 1).await;
    let mut other =
        server.job("secret", &json!({"image": "i", "compute": {"gpuDevicesRequest": 1}}));
    other["projectId"] = json!("2");
    let (status, made) = server.post("/api/v1/workloads/trainings", other).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    server.phase(&own, "Running").await;
    server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    let mut all = Reader::new(&server, "?kinds=gpu").await;
    all.synced().await;
    let mut reader = Reader::of(&server, &token, "?kinds=gpu").await;
    reader.synced().await;
    let pods = |gpus: &Objects| {
        let pods = gpus.values().flat_map(|gpu| gpu["pods"].as_array().unwrap());
        pods.map(|pod| pod["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (pods(&all.objects), pods(&reader.objects)),
        (vec!["own-0-1".into(), "secret-0-1".into()], vec!["own-0-1".into()])
    );
    let held = reader.objects.values().filter(|gpu| gpu["allocated"] == 1).count();
    assert_eq!(held, 2, "what is free is seen by everyone");
    let (_, list) = get(&server, &token, "/elastane/v1/gpus?filterBy=nodeName==node-1").await;
    let list = list["gpus"].as_array().unwrap().iter().cloned();
    let list = list.map(|gpu| (("gpu".to_owned(), gpu["id"].as_str().unwrap().to_owned()), gpu));
    assert_eq!(list.collect::<Objects>(), reader.objects);
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "?kinds=asset").await;
    reader.synced().await;
    keep_environment(&server, "one", 1).await;
    reader.about("asset").await;
    // Changes during its absence are not lost, and known objects do not come again.
    let two = keep_environment(&server, "two", 1).await;
    delete(&server, &format!("/api/v1/asset/environment/{two}")).await;
    keep_environment(&server, "three", 1).await;
    reader.connect_again(&server).await;
    assert_eq!(reader.next().await.unwrap()["type"], "synced", "it is known");
    while reader.names("asset") != ["one", "three"] {
        assert_ne!(reader.next().await.unwrap()["object"]["meta"]["name"], "one");
    }
    let after = format!("?kinds=asset&after={}", reader.id);
    let mut other = Reader::new(&server, &after).await;
    assert_eq!(other.synced().await["position"], reader.id);
}

#[tokio::test]
async fn many_changes_are_one_for_a_later_reader() {
    let server = Server::with_teams().await;
    let id = keep_environment(&server, "image", 1).await;
    let mut reader = Reader::new(&server, "?kinds=asset").await;
    reader.synced().await;
    for number in 0..100 {
        let change = json!({"meta": {"name": format!("image-{number}")}}).to_string();
        let path = format!("/api/v1/asset/environment/{id}");
        let (status, answer) = server.raw("PUT", &path, &change).await;
        assert!(status.is_success(), "{answer}");
    }
    // All changes are made before it reads again, and it gets the last.
    let mut other = Reader::new(&server, "?kinds=asset&after=now").await;
    other.synced().await;
    let event = reader.about("asset").await;
    assert_eq!(event["object"]["meta"]["name"], "image-99");
    keep_environment(&server, "end", 1).await;
    assert_eq!(reader.about("asset").await["object"]["meta"]["name"], "end");
}

#[tokio::test]
async fn a_position_that_cannot_be_gone_on_from_begins_a_list() {
    let server = Server::with_teams().await;
    let mut reader = Reader::new(&server, "").await;
    reader.synced().await;
    let epoch = reader.id.split_once('-').unwrap().0.to_owned();
    for after in ["00000000-1".to_owned(), format!("{epoch}-999999")] {
        let mut reader = Reader::new(&server, &format!("?after={after}")).await;
        assert_eq!(reader.synced().await, json!({"type": "reset", "reason": "other-epoch"}));
        reader.has_everything(&server).await;
    }
}

#[tokio::test]
async fn filters_leave_out_the_rest() {
    let server = Server::with_teams().await;
    let id = server.train("a1", 1).await;
    server.phase(&id, "Running").await;
    server.train("a2", 0).await;
    keep_environment(&server, "other", 2).await;
    for (query, kinds) in [
        ("?kinds=workload,node-pool", vec!["node-pool", "workload"]),
        ("?project=team-a", vec!["pod", "project", "workload"]),
        ("?project=2", vec!["asset", "project"]),
        ("?kinds=node,gpu&project=2", vec![]),
    ] {
        let mut reader = Reader::new(&server, query).await;
        reader.synced().await;
        let mut found: Vec<_> = reader.objects.keys().map(|(kind, _)| kind.as_str()).collect();
        found.dedup();
        assert_eq!(found, kinds, "{query}");
    }
    let mut one = Reader::new(&server, &format!("?workload={id}")).await;
    one.synced().await;
    assert_eq!((one.names("workload"), one.objects.len()), (vec!["a1"], 2), "and its pod");
    let mut now = Reader::new(&server, "?after=now").await;
    now.synced().await;
    assert!(now.objects.is_empty(), "no list");
}

#[tokio::test]
async fn a_wrong_parameter_is_refused_with_what_to_write() {
    let server = Server::with_teams().await;
    for (query, status, said) in [
        (
            "kinds=workload,cow",
            400,
            "kinds: `cow` is not a kind of object; write some of department, ",
        ),
        ("kinds=", 400, "kinds: `` is not a kind of object"),
        ("after=yesterday", 400, "after: `yesterday` is not a position; use the id of the last"),
        ("after=12", 400, "after: `12` is not a position"),
        ("project=team-x", 404, "project team-x was not found"),
        ("workload=x", 404, "workload x was not found"),
        ("project=team-a,team-x", 404, "project team-x was not found"),
        ("shape=cell", 400, "unknown shape `cell`"),
        ("kinds=reason", 400, "kinds: `reason` is part of rows only; add shape=row"),
        ("kinds=event", 400, "kinds: `event` is part of rows only; add shape=row"),
        ("kinds=workload,server&shape=whole", 400, "kinds: `server` is part of rows only"),
        ("kind=workload", 400, "unknown parameter `kind`"),
    ] {
        let request = server.request("GET", &format!("{CHANGES}?{query}")).body(Body::empty());
        let (got, answer) = read(server.send(request.unwrap()).await).await;
        let message = answer["message"].as_str().unwrap();
        assert!(got.as_u16() == status && message.starts_with(said), "{query}: {got} {message}");
    }
}

#[tokio::test]
async fn a_researcher_sees_its_project_and_nothing_of_others() {
    let server = Server::with_teams().await;
    let (_, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    keep_environment(&server, "own", 1).await;
    keep_environment(&server, "secret", 2).await;
    let mut reader = Reader::of(&server, &token, "").await;
    reader.synced().await;
    assert_eq!((reader.names("project"), reader.names("asset")), (vec!["team-a"], vec!["own"]));
    assert!(!reader.objects.keys().any(|(kind, _)| kind == "user"));
    keep_environment(&server, "secret-2", 2).await;
    user(&server, "bob@example.org").await;
    keep_environment(&server, "own-2", 1).await;
    assert_eq!(reader.next().await.unwrap()["object"]["meta"]["name"], "own-2");
    let (status, answer) = get(&server, &token, &format!("{CHANGES}?kinds=user")).await;
    assert_eq!(status, 403, "{answer}");
    let (status, _) = get(&server, &token, &format!("{CHANGES}?project=team-b")).await;
    assert_eq!(status, 404, "as if it were not there");
}

#[tokio::test]
async fn a_rule_that_is_given_or_taken_begins_a_new_list() {
    let server = Server::with_teams().await;
    let (_, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    let mut reader = Reader::of(&server, &token, "?kinds=project").await;
    reader.synced().await;
    assert_eq!(reader.names("project"), ["team-a"]);
    let rule = give(&server, "ann@example.org", 6, ("project", "2")).await;
    assert_eq!(reader.synced().await, json!({"type": "reset", "reason": "access"}));
    assert_eq!(reader.names("project"), ["team-a", "team-b"]);
    delete(&server, &format!("/api/v1/authorization/access-rules/{rule}")).await;
    assert_eq!(reader.synced().await["reason"], "access");
    assert_eq!(reader.names("project"), ["team-a"]);
}

#[tokio::test]
async fn a_stream_ends_with_the_session_and_with_the_server() {
    let server = Server::with_teams().await;
    let (id, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    let mut reader = Reader::of(&server, &token, "").await;
    let mut own = Reader::new(&server, "").await;
    reader.synced().await;
    let out = ("POST", &*format!("/api/v1/users/{id}/logout"));
    let (status, _) = call(&server, &server.token, out, &Value::Null).await;
    assert!(status.is_success());
    assert_eq!(reader.next().await, None);
    own.synced().await;
    server.shutdown.trigger();
    while own.next().await.is_some() {}
}

/// A project whose workloads wait, each with a variable that no grid shows.
async fn waiting(server: &Server, names: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for name in names {
        let variables = json!([{"name": "SECRET", "value": "x".repeat(2000)}]);
        let compute = json!({"gpuDevicesRequest": 9});
        let spec = json!({"image": "i", "compute": compute, "environmentVariables": variables});
        let body = server.job(name, &spec);
        let (status, made) = server.post("/api/v1/workloads/trainings", body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        ids.push(made["workloadId"].as_str().unwrap().to_owned());
    }
    ids
}

#[tokio::test]
async fn a_row_is_short_and_names_what_its_workload_waits_for() {
    let server = Server::with_teams().await;
    let ids = waiting(&server, &["train-resnet50-a", "train-resnet50-b"]).await;
    for id in &ids {
        let path = format!("/api/v1/workloads/{id}");
        server.until(&path, |one| !one["additionalFields"]["pendingReasons"][0].is_null()).await;
    }
    let mut reader = Reader::new(&server, "?shape=row").await;
    assert_eq!(reader.next().await.unwrap(), json!({"type": "reset", "reason": "start"}));
    let first = reader.next().await.unwrap();
    assert_eq!((&first["kind"], &first["id"]), (&json!("server"), &json!("server")));
    assert_eq!(first["object"]["version"], "1.2.3");
    assert_eq!(first["object"]["clusterId"], server.cluster_id());
    assert!(first["object"]["now"].is_string() && first["object"]["interface"].is_string());
    let mut order = Vec::new();
    let mut last = first;
    while last["type"] != "synced" {
        order.push(last["kind"].clone());
        last = reader.next().await.unwrap();
    }
    let at = |kind: &str| order.iter().position(|own| own == kind).unwrap();
    assert!(at("reason") < at("workload"), "{order:?}");
    let row = reader.objects[&("workload".to_owned(), ids[0].clone())].clone();
    let text = row.to_string();
    assert!(text.len() <= 700 && !text.contains("SECRET"), "{} bytes: {text}", text.len());
    let whole = server.get(&format!("/api/v1/workloads/{}", ids[0])).await;
    let same = ["id", "name", "type", "phase", "projectId", "projectName"];
    let same = same.into_iter().chain(["departmentId", "submittedBy", "createdAt"]);
    for field in same.chain(["priorityClassName", "preemptible"]) {
        assert_eq!(row[field], whole[field], "{field}");
    }
    assert_eq!((&row["gpusRequested"], &row["podsRequested"]), (&json!(9), &json!(1)));
    assert_eq!(whole["phaseUpdatedAt"], whole["createdAt"]);
    let empty = ["gpusAllocated", "podsRunning", "overQuota", "nodes", "nodesCount"];
    for empty in empty.into_iter().chain(["phaseUpdatedAt", "nodePools", "connections"]) {
        assert_eq!(row.get(empty), None, "0, false and empty ones are left out");
    }
    let reason = row["why"]["reason"].as_str().unwrap().to_owned();
    let of_other = &reader.objects[&("workload".to_owned(), ids[1].clone())]["why"]["reason"];
    assert_eq!(*of_other, json!(reason), "they wait for the same");
    let shared = &reader.objects[&("reason".to_owned(), reason)]["reasons"];
    assert_eq!(shared[0]["code"], whole["additionalFields"]["pendingReasons"][0]["code"]);
    assert_eq!(shared[0]["message"], whole["additionalFields"]["pendingReasons"][0]["message"]);
}

#[tokio::test]
async fn a_page_of_rows_is_as_the_stream_sends_them() {
    let server = Server::with_teams().await;
    let ids = waiting(&server, &["a1", "a2", "a3"]).await;
    for id in &ids {
        let path = format!("/api/v1/workloads/{id}");
        server.until(&path, |one| !one["additionalFields"]["pendingReasons"][0].is_null()).await;
    }
    let mut reader = Reader::new(&server, "?shape=row&kinds=workload,reason").await;
    reader.synced().await;
    let page = server.get("/elastane/v1/workloads?sortBy=name&sortOrder=desc&limit=2").await;
    let [a3, a2] = &page["workloads"].as_array().unwrap()[..] else { panic!("{page}") };
    assert_eq!((&a3["name"], &a2["name"], &page["next"]), (&json!("a3"), &json!("a2"), &json!(2)));
    for row in [a3, a2] {
        let key = ("workload".to_owned(), row["id"].as_str().unwrap().to_owned());
        assert_eq!(reader.objects[&key], *row);
    }
    let key = ("reason".to_owned(), a3["why"]["reason"].as_str().unwrap().to_owned());
    assert_eq!(page["reasons"], json!([reader.objects[&key]]), "each once");
    let none = server.get("/elastane/v1/workloads?filterBy=name==b1").await;
    assert_eq!(none, json!({"workloads": [], "reasons": []}));
    let (_, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "2")).await;
    let (status, seen) = get(&server, &token, "/elastane/v1/workloads").await;
    assert_eq!((status, seen), (200, none));
}

#[tokio::test]
async fn a_reason_that_changes_is_sent_without_those_that_wait_for_it() {
    let server = Server::with_teams().await;
    let ids = waiting(&server, &["a1", "a2", "a3"]).await;
    let mut reader = Reader::new(&server, "?shape=row&kinds=reason,workload").await;
    let shared = |reader: &Reader| {
        let rows = ids.iter().map(|id| {
            let row = &reader.objects[&("workload".to_owned(), id.clone())];
            row["why"]["reason"].as_str().map(str::to_owned)
        });
        let reasons: std::collections::BTreeSet<_> = rows.collect();
        reasons.into_iter().next().flatten().filter(|_| reader.ids("reason").len() == 1)
    };
    reader.synced().await;
    while shared(&reader).is_none() {
        reader.next().await.unwrap();
    }
    let reason = shared(&reader).unwrap();
    let before = reader.objects[&("reason".to_owned(), reason.clone())].clone();
    // Nine GPUs fit no node, and the sentence says how many the largest has.
    let node = json!({"name": "node-9", "gpus": 6});
    let (status, said) = server.post("/elastane/v1/simulated-nodes", node).await;
    assert!(status.is_success(), "{said}");
    let mut sent = Vec::new();
    while reader.objects[&("reason".to_owned(), reason.clone())] == before {
        let event = reader.next().await.unwrap();
        sent.push(event["kind"].clone());
    }
    assert_eq!(sent, [json!("reason")], "rows stay as they are");
    for id in &ids {
        delete(&server, &format!("/api/v1/workloads/trainings/{id}")).await;
    }
    while !reader.ids("reason").is_empty() || !reader.ids("workload").is_empty() {
        reader.next().await.unwrap();
    }
}

#[tokio::test]
async fn rows_and_reasons_are_seen_by_those_who_see_the_workloads() {
    let server = Server::with_teams().await;
    let (_, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "2")).await;
    let ids = waiting(&server, &["a1"]).await;
    let path = format!("/api/v1/workloads/{}", ids[0]);
    server.until(&path, |one| !one["additionalFields"]["pendingReasons"][0].is_null()).await;
    let mut own = Reader::new(&server, "?shape=row&project=team-a,team-b").await;
    own.synced().await;
    assert_eq!((own.ids("reason").len(), own.ids("workload")), (1, ids.clone()));
    let mut other = Reader::of(&server, &token, "?shape=row").await;
    other.synced().await;
    assert_eq!(other.names("project"), ["team-b"]);
    assert!(other.ids("reason").is_empty() && other.ids("workload").is_empty());
    assert_eq!(other.ids("server"), ["server"]);
    let mut elsewhere = Reader::new(&server, "?shape=row&project=team-b").await;
    elsewhere.synced().await;
    assert!(elsewhere.ids("reason").is_empty() && elsewhere.ids("workload").is_empty());
}

#[tokio::test]
async fn events_come_from_now_on_to_those_who_may_read_the_log() {
    let server = Server::with_teams().await;
    let (_, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "2")).await;
    server.train("before", 0).await;
    let (mut all, mut of_b) = (
        Reader::new(&server, "?shape=row&kinds=event,workload").await,
        Reader::of(&server, &token, "?shape=row&kinds=event").await,
    );
    all.synced().await;
    of_b.synced().await;
    assert!(all.ids("event").is_empty(), "the log has the earlier ones");
    let id = server.train("a1", 0).await;
    let mut one = Reader::new(&server, &format!("?shape=row&kinds=event&workload={id}")).await;
    let mut in_b = Reader::new(&server, "?shape=row&kinds=event&project=team-b").await;
    one.synced().await;
    in_b.synced().await;
    let kind = |event: &Value| event["object"]["kind"].as_str().unwrap().to_owned();
    let mut seen = vec![all.about("event").await];
    while kind(seen.last().unwrap()) != "Started" {
        seen.push(all.about("event").await);
    }
    let kinds: Vec<_> = seen.iter().map(kind).collect();
    assert_eq!(kinds, ["Submitted", "Scheduled", "Started"]);
    assert!(seen.iter().all(|event| event["object"]["workloadName"] == "a1"), "{seen:?}");
    assert_eq!((&seen[0]["projectId"], &seen[0]["departmentId"]), (&json!("1"), &json!("1")));

    // Those of other workloads and projects are left out: the first that comes is of its own.
    server.train("a2", 0).await;
    let body = json!({"name": "b1", "projectId": "2", "clusterId": server.cluster_id(),
        "spec": {"image": "i"}});
    let (status, made) = server.post("/api/v1/workloads/trainings", body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    delete(&server, &format!("/api/v1/workloads/trainings/{id}")).await;
    for reader in [&mut of_b, &mut in_b] {
        assert_eq!(reader.about("event").await["object"]["workloadName"], "b1");
    }
    while kind(&one.about("event").await) != "Deleted" {}
    assert!(one.objects.values().all(|event| event["workloadName"] == "a1"), "{:?}", one.objects);
}

/// Numbers that only look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % bound
    }
}

/// Changes something; refusals change nothing.
async fn change_something(server: &Server, number: usize, chance: &mut Chance) {
    let all = everything(server).await;
    let any = |kind: &str, chance: &mut Chance| {
        let ids: Vec<_> = all.keys().filter(|(own, _)| own == kind).map(|(_, id)| id).collect();
        let at = chance.below(ids.len().max(1));
        ids.get(at).map(|id| (*id).clone()).unwrap_or_default()
    };
    let project: u64 = any("project", chance).parse().unwrap_or(1);
    let meta = json!({"name": format!("t{number}"), "scope": "project", "projectId": project});
    let (method, path, body) = match chance.below(11) {
        0 | 1 => {
            let compute = json!({"gpuDevicesRequest": chance.below(3)});
            let body = json!({"name": format!("w{number}"), "projectId": project.to_string(),
                "clusterId": server.cluster_id(), "spec": {"image": "i", "compute": compute}});
            ("POST", "/api/v1/workloads/trainings".to_owned(), body)
        }
        2 => {
            let word = ["delete", "suspend", "resume"][chance.below(3)];
            let body = json!({"ids": [any("workload", chance)], "action": word});
            ("POST", "/api/v1/workloads/batch".to_owned(), body)
        }
        3 => ("POST", "/api/v1/org-unit/projects".to_owned(), server.team(&format!("p{number}"))),
        4 => ("DELETE", format!("/api/v1/org-unit/projects/{project}"), Value::Null),
        5 => {
            let body = json!({"meta": meta, "spec": {"image": "i"}});
            ("POST", "/api/v1/asset/environment".to_owned(), body)
        }
        6 => ("DELETE", format!("/api/v1/asset/environment/{}", any("asset", chance)), Value::Null),
        7 => ("POST", "/api/v1/users".to_owned(), json!({"email": format!("u{number}@x.org")})),
        8 => ("DELETE", format!("/api/v1/users/{}", any("user", chance)), Value::Null),
        9 => {
            let gpu = any("gpu", chance).replace('/', "/gpus/");
            let method = ["PUT", "DELETE"][chance.below(2)];
            (method, format!("/elastane/v1/nodes/{gpu}/simulated-failure"), Value::Null)
        }
        _ => {
            let labels = json!({"labels": {"number": number.to_string()}});
            ("PUT", "/elastane/v1/nodes/node-1/labels".to_owned(), labels)
        }
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = server.raw(method, &path, &body).await;
    assert!(!status.is_server_error(), "{method} {path}: {answer}");
}

#[tokio::test]
async fn a_reader_that_pauses_has_what_the_lists_show_in_the_end() {
    for seed in 0..6 {
        let (server, mut chance) = (Server::with_teams().await, Chance(seed));
        let mut reader = Reader::new(&server, "").await;
        for number in 0..60 {
            change_something(&server, number, &mut chance).await;
            match chance.below(8) {
                0 => reader.connect_again(&server).await,
                // Reads a part of the events.
                at @ 1..4 => {
                    for _ in 0..10 * at {
                        let wait = Duration::from_millis(5);
                        if tokio::time::timeout(wait, reader.next()).await.is_err() {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        reader.has_everything(&server).await;
    }
}

#[tokio::test]
async fn a_workload_that_leaves_memory_is_not_sent_as_deleted_and_its_deletion_is() {
    let server = Server::that_keeps(0).await;
    let mut reader = Reader::new(&server, "").await;
    reader.synced().await;
    let id = server.train("old", 0).await;
    server.phase(&id, "Running").await;
    reader.about("workload").await;
    server.engine.end("old", engine::Exit::Code(0));
    server.phase(&id, "Completed").await;
    assert_eq!(server.control.view().archived_count(), 1);
    reader.sees_end(&id).await;
    let (status, _) = server.raw("DELETE", &format!("/api/v1/workloads/trainings/{id}"), "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let gone = reader.about("workload").await;
    assert_eq!((&gone["type"], &gone["id"]), (&json!("deleted"), &json!(id)));
}

#[tokio::test]
async fn a_reader_that_pauses_learns_the_end_of_a_workload_that_has_left_memory() {
    let server = Server::that_keeps(1).await;
    let mut quick = Reader::new(&server, "").await;
    let (mut slow, mut away) = (Reader::new(&server, "").await, Reader::new(&server, "").await);
    let (old, new) = (server.train("old", 0).await, server.train("new", 0).await);
    for id in [&old, &new] {
        server.phase(id, "Running").await;
    }
    for reader in [&mut slow, &mut away, &mut quick] {
        reader.has_everything(&server).await;
    }
    server.engine.end("old", engine::Exit::Code(0));
    quick.sees_end(&old).await;
    server.engine.end("new", engine::Exit::Code(0));
    quick.sees_end(&new).await;
    assert_eq!(server.control.view().archived_count(), 1);
    away.connect_again(&server).await;
    for reader in [&mut slow, &mut away] {
        reader.sees_end(&old).await;
        reader.sees_end(&new).await;
    }
}
