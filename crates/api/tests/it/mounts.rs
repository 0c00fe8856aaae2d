//! Container settings of workloads: mounts, volumes, logins and rights, and which workloads may
//! have which parts of the machine.

use std::fs;
use std::os::unix::fs::symlink;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep, of_tenant};
use crate::iam::{call, give, program};
use crate::refusals::refused;
use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";
const VOLUMES: &str = "/elastane/v1/volumes";

/// One of each kind of mount, without restrictions.
fn around() -> Value {
    json!({
        "image": "i",
        "compute": {"cpuCoreLimit": 2, "cpuMemoryLimit": "1G", "largeShmRequest": true},
        "imagePullPolicy": "Always",
        "ports": [{"container": 80, "external": 8080, "serviceType": "NodePort"}],
        "security": {"runAsUid": 7, "runAsGid": 8, "supplementalGroups": "9,10",
            "capabilities": ["SYS_PTRACE"], "allowPrivilegeEscalation": false,
            "runAsNonRoot": true, "readOnlyRootFilesystem": true,
            "seccompProfileType": "RuntimeDefault"},
        "autoDeletionTimeAfterCompletionSeconds": 3600,
        "terminateAfterPreemption": true,
        "storage": {
            "hostPath": [{"path": "/usr/share", "mountPath": "/share", "readOnly": true}],
            "pvc": [{"claimName": "data", "path": "/data", "readOnly": false}],
            "nfs": [{"server": "nas", "path": "/x", "mountPath": "/nfs", "readOnly": false}],
            "git": [{"repository": "https://git.example/x", "branch": "main", "path": "/code"}],
            "s3": [{"bucket": "b", "url": "https://s3.example", "path": "/s3"}],
            "emptyDirVolume": [{"path": "/scratch", "medium": "Memory", "sizeLimit": "1G"}],
        },
    })
}

async fn submit(server: &Server, name: &str, spec: &Value) -> String {
    let (status, made) = server.post(TRAININGS, server.job(name, spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["workloadId"].as_str().unwrap().to_owned()
}

/// The words of the run of a workload that say what is around it.
async fn run_of(server: &Server, name: &str, id: &str) -> String {
    server.phase(id, "Running").await;
    server.engine.around(name)
}

#[tokio::test]
async fn what_is_asked_for_reaches_the_run_and_is_told_as_it_was_asked() {
    let server = Server::with_teams().await;
    let id = submit(&server, "a", &around()).await;
    let run = run_of(&server, "a", &id).await;
    for part in [
        "/share",
        "p1-data",
        "nas",
        "git.example",
        "in_memory: true",
        "host: Some(8080)",
        "uid: Some(7)",
        "groups: [9, 10]",
        "cpu_millis_max: Some(2000)",
        "SYS_PTRACE",
        "Always",
    ] {
        assert!(run.contains(part), "{part}: {run}");
    }
    let told = server.get(&format!("{TRAININGS}/{id}")).await["spec"].clone();
    for (field, asked) in around().as_object().unwrap() {
        for (inner, asked) in asked.as_object().into_iter().flatten() {
            assert_eq!(told[field][inner], *asked, "{field}.{inner}");
        }
        assert!(asked.is_object() || told[field] == *asked, "{field}: {}", told[field]);
    }
}

/// A researcher of project 1, by its token.
async fn researcher(server: &Server) -> String {
    let (account, _, token) = program(server, "ann").await;
    give(server, &account, 6, ("project", "1")).await;
    token
}

async fn asks(server: &Server, token: &str, name: &str, spec: Value) -> (u16, String) {
    let body = server.job(name, &spec);
    let (status, answer) = call(server, token, ("POST", TRAININGS), &body).await;
    (status.as_u16(), answer["message"].as_str().unwrap_or_default().to_owned())
}

fn host(path: &str, read_only: bool) -> Value {
    let one = json!({"path": path, "mountPath": "/x", "readOnly": read_only});
    json!({"image": "i", "storage": {"hostPath": [one]}})
}

#[tokio::test]
async fn folders_of_the_machine_are_the_administrators_to_give() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    let (status, why) = asks(&server, &ann, "a", host("/etc", true)).await;
    assert!(status == 403 && why.contains("ask an administrator to make a data source"), "{why}");
    assert_eq!(asks(&server, &ann, "b", host("/usr/share", true)).await.0, 202, "open to all");
    let read = json!({"path": "/etc", "mountPath": "/etc2"});
    let asset = keep(&server, "datasource/host-path", &of_tenant("etc"), &read).await;
    let with = |mut spec: Value| {
        spec["assets"] = json!({"datasources": [{"id": asset}]});
        spec
    };
    assert_eq!(asks(&server, &ann, "c", with(json!({"image": "i"}))).await.0, 202);
    let (status, _) = asks(&server, &ann, "d", with(host("/etc", false))).await;
    assert_eq!(status, 403, "it was given to be read");
    let own = json!({"meta": {"name": "own", "scope": "project", "projectId": 1}, "spec": read});
    let (status, made) =
        call(&server, &ann, ("POST", "/api/v1/asset/datasource/host-path"), &own).await;
    assert_eq!(status, 202, "{made}");
    let spec = json!({"image": "i", "assets": {"datasources": [{"id": made["meta"]["id"]}]}});
    assert_eq!(asks(&server, &ann, "e", spec).await.0, 403, "a caller grants only what it may use");
}

#[tokio::test]
async fn a_data_source_gives_the_folder_that_it_named_when_it_was_made() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("sets");
    symlink("/usr/lib", &link).unwrap();
    let of_link = json!({"path": &link, "mountPath": "/sets"});
    let asset = keep(&server, "datasource/host-path", &of_tenant("sets"), &of_link).await;
    let spec = json!({"image": "i", "assets": {"datasources": [{"id": asset}]}});
    assert_eq!(asks(&server, &ann, "a", spec.clone()).await.0, 202);
    fs::remove_file(&link).unwrap();
    symlink("/etc", &link).unwrap();
    assert_eq!(asks(&server, &ann, "b", spec).await.0, 403, "/etc is not allowed");
}

#[tokio::test]
async fn who_may_not_have_a_folder_does_not_hear_whether_it_is_there() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    let (_, told) = asks(&server, &ann, "a", host("/etc", true)).await;
    for path in ["/no/such", "/usr/share/no/such", server.dir.path().to_str().unwrap()] {
        let (status, why) = asks(&server, &ann, "a", host(path, true)).await;
        assert_eq!((status, why.replace(path, "/etc")), (403, told.clone()));
        let asked = json!({"trainings": [server.job("a", &host(path, true))]});
        let (status, answer) = call(&server, &ann, ("POST", "/elastane/v1/what-if"), &asked).await;
        let why = answer["message"].as_str().unwrap().replace(path, "/etc");
        assert_eq!((status, why), (StatusCode::FORBIDDEN, told.clone()));
    }
    let why = "spec.storage.hostPath: /no/such cannot be mounted";
    let body = server.job("a", &host("/no/such", true));
    refused(&server, ("POST", TRAININGS, &body), 400, why).await;
}

#[tokio::test]
async fn an_export_is_had_by_a_data_source_that_an_administrator_made() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    let read = json!({"server": "nas", "path": "/home", "mountPath": "/h"});
    let asset = keep(&server, "datasource/nfs", &of_tenant("home"), &read).await;
    let spec = json!({"image": "i", "assets": {"datasources": [{"id": asset}]}});
    assert_eq!(asks(&server, &ann, "a", spec.clone()).await.0, 202);
    for (server_of, path, read_only) in
        [("nas", "/home", false), ("nas", "/", true), ("other", "/home", true)]
    {
        let one =
            json!({"server": server_of, "path": path, "mountPath": "/x", "readOnly": read_only});
        let mut spec = spec.clone();
        spec["storage"] = json!({"nfs": [one]});
        assert_eq!(asks(&server, &ann, "b", spec).await.0, 403, "{server_of} {path} {read_only}");
    }
}

#[tokio::test]
async fn a_change_keeps_the_folders_of_an_inference_for_who_may_come_to_it() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    let path = "/api/v1/workloads/inferences";
    let change = |id: &Value| format!("{path}/{}", id.as_str().unwrap());
    let image = json!({"spec": {"image": "j"}});
    let serves = |mut spec: Value| {
        spec["servingPort"] = json!({"container": 8000});
        spec
    };
    let (_, made) = server.post(path, server.job("a", &serves(host("/etc", true)))).await;
    let one = change(&made["workloadId"]);
    let (status, why) = call(&server, &ann, ("PATCH", &one), &image).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "its image would see the folder: {why}");
    assert_eq!(server.raw("PATCH", &one, &image.to_string()).await.0, StatusCode::ACCEPTED);

    let read = json!({"path": "/etc", "mountPath": "/x"});
    let asset = keep(&server, "datasource/host-path", &of_tenant("etc"), &read).await;
    let spec = serves(json!({"image": "i", "assets": {"datasources": [{"id": asset}]}}));
    let (status, made) = call(&server, &ann, ("POST", path), &server.job("b", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let one = change(&made["workloadId"]);
    let (status, changed) = call(&server, &ann, ("PATCH", &one), &image).await;
    assert_eq!(changed["spec"]["storage"], made["spec"]["storage"], "{status} {changed}");
    let write = json!({"spec": {"storage": host("/etc", false)["storage"]}});
    assert_eq!(call(&server, &ann, ("PATCH", &one), &write).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn nobody_gets_what_the_server_keeps_for_itself() {
    let server = Server::with_teams().await;
    let state = server.dir.path();
    let around = state.parent().unwrap().to_str().unwrap();
    for path in [state.to_str().unwrap(), around, "/"] {
        let (status, answer) = server.post(TRAININGS, server.job("a", &host(path, true))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {answer}");
    }
}

#[tokio::test]
async fn rights_over_the_machine_are_the_administrators_to_give() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    for (name, security) in [
        ("a", json!({"privileged": true})),
        ("b", json!({"hostNetwork": true})),
        ("c", json!({"hostIpc": true})),
        ("d", json!({"capabilities": ["SYS_ADMIN"]})),
        ("e", json!({"seccompProfileType": "Unconfined"})),
    ] {
        let spec = json!({"image": "i", "security": security});
        let (status, why) = asks(&server, &ann, name, spec.clone()).await;
        assert!(status == 403 && why.contains("--allow-privileged"), "{security}: {why}");
        submit(&server, name, &spec).await;
    }
    let export = json!({"nfs": [{"server": "nas", "path": "/home", "mountPath": "/h"}]});
    let (status, why) = asks(&server, &ann, "n", json!({"image": "i", "storage": export})).await;
    assert!(status == 403 && why.contains("spec.storage.nfs"), "{why}");
}

#[tokio::test]
async fn the_login_of_the_registry_of_an_image_goes_with_it() {
    let server = Server::with_teams().await;
    let spec = |url: &str| json!({"url": url, "user": "bob", "password": "hush-4e"});
    let path = "credentials/docker-registry";
    keep(&server, path, &of_tenant("ghcr"), &spec("https://ghcr.io")).await;
    let other = json!({"name": "other", "scope": "project", "projectId": 2});
    keep(&server, path, &other, &spec("quay.io")).await;
    for (name, image, wanted) in
        [("a", "ghcr.io/x/y", true), ("b", "quay.io/x", false), ("c", "ubuntu", false)]
    {
        let id = submit(&server, name, &json!({"image": image})).await;
        let run = run_of(&server, name, &id).await;
        assert_eq!(run.contains("\"bob\""), wanted, "{image}: {run}");
        assert!(!run.contains("hush"), "{run}");
    }
    let named = json!({"image": "i", "imagePullSecrets": [{"name": "nobody"}]});
    let why = "spec.imagePullSecrets[0].name: credential nobody was not found";
    refused(&server, ("POST", TRAININGS, &server.job("d", &named)), 404, why).await;
}

#[tokio::test]
async fn what_is_not_pulled_needs_no_login() {
    let server = Server::with_teams().await;
    let hub = json!({"url": "docker.io", "user": "bob", "password": "hush-4e"});
    keep(&server, "credentials/docker-registry", &of_tenant("hub"), &hub).await;
    for (name, spec, wanted) in [
        ("a", json!({"image": "ubuntu"}), true),
        ("b", json!({"image": "ubuntu", "imagePullPolicy": "Never"}), false),
        ("c", json!({"command": "true"}), false),
    ] {
        let id = submit(&server, name, &spec).await;
        assert_eq!(run_of(&server, name, &id).await.contains("\"bob\""), wanted, "{spec}");
    }
}

#[tokio::test]
async fn volumes_without_a_name_are_those_of_the_workload() {
    let server = Server::with_teams().await;
    let host = json!({"path": "/usr/share", "mountPath": "/share"});
    let pvc = |path: &str, more: Value| {
        let mut one = json!({"path": path});
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one
    };
    let all = [
        pvc("/a", json!({})),
        pvc("/b", json!({"name": "named", "claimName": ""})),
        pvc("/c", json!({"ephemeral": true})),
        pvc("/d", json!({})),
    ];
    let spec = json!({"image": "i", "storage": {"hostPath": [host], "pvc": all}});
    submit(&server, "train", &spec).await;
    let volumes = server.get(VOLUMES).await["volumes"].clone();
    let mut names: Vec<_> =
        volumes.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["named", "train", "train-1"]);
}

#[tokio::test]
async fn a_home_that_is_taken_away_leaves_no_variable() {
    let server = Server::with_teams().await;
    let path = "/api/v1/workloads/inferences";
    let spec = json!({"image": "i", "servingPort": {"container": 80}, "createHomeDir": true});
    let (_, made) = server.post(path, server.job("a", &spec)).await;
    assert!(!made["spec"]["environmentVariables"].to_string().contains("HOME"), "{made}");
    let one = format!("{path}/{}", made["workloadId"].as_str().unwrap());
    let change = json!({"spec": {"createHomeDir": false}}).to_string();
    let (_, changed) = server.raw("PATCH", &one, &change).await;
    assert!(!changed["spec"].to_string().contains("HOME"), "{changed}");
}

#[tokio::test]
async fn what_is_wrong_with_the_master_is_told_by_its_name() {
    let server = Server::with_teams().await;
    let ann = researcher(&server).await;
    let mut body = server.job(
        "a",
        &json!({"image": "i", "numWorkers": 1,
        "distributedFramework": "PyTorch"}),
    );
    body["masterSpec"] = host("/etc", true);
    let all = "/api/v1/workloads/distributed";
    let (_, answer) = call(&server, &ann, ("POST", all), &body).await;
    let why = answer["message"].as_str().unwrap();
    assert!(why.starts_with("masterSpec.storage.hostPath: /etc"), "{why}");
    let pvc = json!({"claimName": "none", "path": "/x", "existingPvc": true});
    body["masterSpec"] = json!({"storage": {"pvc": [pvc]}});
    let why = "masterSpec.storage.pvc: there is no volume `none`";
    refused(&server, ("POST", all, &body), 404, why).await;
}

#[tokio::test]
async fn a_repository_is_copied_with_the_login_that_is_named() {
    let server = Server::with_teams().await;
    let login = json!({"user": "bob", "password": "hush-4e"});
    keep(&server, "credentials/password", &of_tenant("git"), &login).await;
    let git = |secret: &str, key: &str| {
        let one = json!({"repository": "https://git.example/x", "path": "/code",
            "passwordSecret": secret, "secretKeyOfPassword": key});
        server.job("a", &json!({"image": "i", "storage": {"git": [one]}}))
    };
    let why = "spec.storage.git[0].passwordSecret: credential none was not found";
    refused(&server, ("POST", TRAININGS, &git("none", "password")), 404, why).await;
    let why = "spec.storage.git[0].secretKeyOfPassword: `pw` is none of the values of `git`";
    refused(&server, ("POST", TRAININGS, &git("git", "pw")), 400, why).await;
    let (_, made) = server.post(TRAININGS, git("git", "password")).await;
    let run = run_of(&server, "a", made["workloadId"].as_str().unwrap()).await;
    assert!(run.contains("Login(\"bob\")") && !run.contains("hush"), "{run}");
}

#[tokio::test]
async fn a_bucket_is_copied_with_the_access_key_that_is_named() {
    let server = Server::with_teams().await;
    let key = json!({"accessKeyId": "AKIA1", "secretAccessKey": "hush-4e"});
    let key = keep(&server, "credentials/access-key", &of_tenant("store"), &key).await;
    let s3 = |secret: &str, url: &str| {
        let one = json!({"bucket": "b", "path": "/s3", "accessKeySecret": secret, "url": url});
        server.job("a", &json!({"image": "i", "storage": {"s3": [one]}}))
    };
    for (body, status, why) in [
        (s3("none", "http://s"), 404, "spec.storage.s3[0].accessKeySecret: credential none was"),
        (s3("store", "ftp://s"), 400, "storage.s3: `ftp://s` is not allowed; an address that"),
        (s3("store", "http://me:pw@s"), 400, "storage.s3: the address holds a login"),
    ] {
        refused(&server, ("POST", TRAININGS, &body), status, why).await;
    }
    let asset = json!({"bucket": "b", "path": "/s3", "accessKeyAssetId": key});
    let asset = keep(&server, "datasource/s3", &of_tenant("data"), &asset).await;
    let spec = json!({"image": "i", "assets": {"datasources": [{"id": asset}]}});
    let (_, made) = server.post(TRAININGS, server.job("a", &spec)).await;
    let run = run_of(&server, "a", made["workloadId"].as_str().unwrap()).await;
    assert!(run.contains("Login(\"AKIA1\")") && !run.contains("hush"), "{run}");
    assert!(run.contains("https://s3.amazonaws.com"), "the server if none is said: {run}");
    let told = json!([{"bucket": "b", "path": "/s3", "url": "https://s3.amazonaws.com",
        "accessKeySecret": key, "secretKeyOfAccessKeyId": "AccessKeyId",
        "secretKeyOfSecretKey": "SecretKey"}]);
    assert_eq!(made["spec"]["storage"]["s3"], told);
}

#[tokio::test]
async fn a_volume_is_the_projects_from_the_first_workload_to_its_deletion() {
    let server = Server::with_teams().await;
    let pvc = |claim: &str, existing: bool| {
        let one = json!({"claimName": claim, "path": "/data", "existingPvc": existing});
        json!({"image": "i", "storage": {"pvc": [one]}})
    };
    let missing = server.job("a", &pvc("data", true));
    let why = "spec.storage.pvc: there is no volume `data`";
    refused(&server, ("POST", TRAININGS, &missing), 404, why).await;
    let first = submit(&server, "first", &pvc("data", false)).await;
    submit(&server, "second", &pvc("data", true)).await;
    let all = server.get(VOLUMES).await["volumes"].clone();
    assert_eq!((&all[0]["name"], all.as_array().unwrap().len()), (&json!("data"), 1), "{all}");
    assert_eq!(all[0]["usedBy"].as_array().unwrap().len(), 2);
    let one = format!("{VOLUMES}/{}", all[0]["id"].as_str().unwrap());
    let why = "uses volume `data`; delete the workload first";
    let (status, answer) = server.raw("DELETE", &one, "").await;
    assert!(status == 409 && answer["message"].as_str().unwrap().contains(why), "{answer}");
    server.raw("DELETE", &format!("{TRAININGS}/{first}"), "").await;
    let second = server.get("/api/v1/workloads?filterBy=name==second").await;
    let second = second["workloads"][0]["id"].as_str().unwrap().to_owned();
    server.raw("DELETE", &format!("{TRAININGS}/{second}"), "").await;
    server.until("/api/v1/workloads/count", |count| count["count"] == 0).await;
    assert_eq!(server.raw("DELETE", &one, "").await.0, 204);
    server.until(VOLUMES, |all| all["volumes"] == json!([])).await;
}

#[tokio::test]
async fn policies_hold_for_what_is_around_a_workload() {
    let server = Server::with_teams().await;
    let policy = json!({"meta": {"name": "p", "scope": "tenant"}, "policy": {
        "defaults": {"security": {"runAsNonRoot": true}},
        "rules": {
            "security": {"runAsNonRoot": {"canEdit": false}},
            "storage": {"hostPath": {"instances": {"canAdd": false}}},
            "ports": {"attributes": {"external": {"min": 30000}}},
        },
    }});
    let put = server.raw("PUT", "/api/v2/policy/trainings", &policy.to_string()).await;
    assert_eq!(put.0, StatusCode::OK, "{}", put.1);
    for (spec, why) in [
        (json!({"security": {"runAsNonRoot": false}}), "spec.security.runAsNonRoot: false is not"),
        (host("/usr/share", true), "spec.storage.hostPath: `/x` cannot be added"),
        (json!({"ports": [{"container": 80, "external": 80}]}), "spec.ports[0].external: 80 is"),
    ] {
        let mut spec = spec;
        spec["image"] = json!("i");
        refused(&server, ("POST", TRAININGS, &server.job("a", &spec)), 400, why).await;
    }
    let id = submit(&server, "a", &json!({"image": "i"})).await;
    assert!(run_of(&server, "a", &id).await.contains("not_root: true"));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_its_field() {
    let server = Server::with_teams().await;
    let storage = |kind: &str, one: Value| json!({"image": "i", "storage": {kind: [one]}});
    let security = |one: Value| json!({"image": "i", "security": one});
    for (spec, status, why) in [
        (storage("nfs", json!({"server": "s"})), 400, "spec.storage.nfs[0].path: must be set"),
        (storage("s3", json!({"path": "/x"})), 400, "spec.storage.s3[0].bucket: must be set"),
        (storage("dataVolume", json!({"id": "d"})), 422, "spec.storage.dataVolume: there are no"),
        (
            storage("emptyDirVolume", json!({"path": "/x", "medium": "Tape"})),
            400,
            "spec.storage.emptyDirVolume[0].medium: `Tape`",
        ),
        (
            storage("pvc", json!({"path": "/x", "existingPvc": true})),
            400,
            "spec.storage.pvc[0].claimName: must be set",
        ),
        (security(json!({"uidGidSource": "fromIdpToken"})), 400, "spec.security.uidGidSource"),
        (security(json!({"runAsUid": -1})), 400, "spec.security.runAsUid: must be a number"),
        (security(json!({"supplementalGroups": "a"})), 400, "spec.security.supplementalGroups"),
        (json!({"image": "i", "ports": [{"container": 70_000}]}), 400, "spec.ports[0].container"),
    ] {
        refused(&server, ("POST", TRAININGS, &server.job("a", &spec)), status, why).await;
    }
}
