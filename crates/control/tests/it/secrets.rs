//! Values of credentials on their way to a run.

use orchestrator::{Edit, NewId, NewObject};
use serde_json::{Value, json};
use spec::{CONFIG_MAP, SecretPlace, SecretTo, SecretUse, WorkloadSpec};
use view::{Phase, Scope};

use crate::world::{World, nodes, training, with};

pub(crate) async fn credential(w: &World, secrets: &str) -> String {
    let new = NewObject {
        kind: "credential",
        id: NewId::Any,
        scope: Scope::Tenant,
        owner: String::new(),
        name: "keys".to_owned(),
        body: json!({ "secrets": secrets }),
        newest: None,
    };
    w.handle.create_object("ann", new).await.unwrap().key()
}

/// A training with one value in a variable and all of them in files.
fn using(object: &str) -> WorkloadSpec {
    let of = |key: Option<&str>, to| SecretUse {
        object: object.to_owned(),
        named: "keys".to_owned(),
        key: key.map(str::to_owned),
        to: SecretTo::Run(to),
    };
    let secrets = vec![
        of(Some("k"), SecretPlace::Variable("KEY".to_owned())),
        of(None, SecretPlace::File { path: "/creds".into(), mode: 0o400 }),
    ];
    with(training("t", 1), |pod| pod.secrets = secrets)
}

fn given(w: &World) -> Vec<(SecretPlace, String)> {
    w.engine.run_of("t").secrets.into_iter().map(|one| (one.to, one.value)).collect()
}

#[tokio::test]
async fn a_run_gets_what_its_credential_keeps_when_it_starts_also_after_a_crash() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    let object = credential(&w, r#"{"k":"one","other":"two"}"#).await;
    w.submit(1, using(&object)).await;
    w.phase("t", Phase::Running).await;
    let file =
        |name: &str| SecretPlace::File { path: format!("/creds/{name}").into(), mode: 0o400 };
    let want = |k: &str| {
        vec![
            (SecretPlace::Variable("KEY".to_owned()), k.to_owned()),
            (file("k"), k.to_owned()),
            (file("other"), "two".to_owned()),
        ]
    };
    assert_eq!(given(&w), want("one"));
    w.crash().await;
    w.start().await;
    let changed = |_: &view::Object| -> Result<(String, Value), orchestrator::Error> {
        Ok(("keys".to_owned(), json!({ "secrets": r#"{"k":"new","other":"two"}"# })))
    };
    let id = object.split_once('/').unwrap().1;
    w.handle.update_object("ann", "credential", id, Edit::new(changed)).await.unwrap();
    let workload = w.id("t");
    w.handle.suspend("ann", workload).await.unwrap();
    w.phase("t", Phase::Stopped).await;
    w.handle.resume("ann", workload).await.unwrap();
    w.phase("t", Phase::Running).await;
    assert_eq!(given(&w), want("new"), "as it is when the run starts");
}

#[tokio::test]
async fn a_credential_that_cannot_be_used_is_named_and_nothing_starts() {
    for (secrets, why) in [
        ("sealed with a lost key", "credential `keys` cannot be opened: credential/"),
        ("{}", "credential `keys` has no value `k` any more"),
    ] {
        let w = World::new(nodes(1, 1), &[1]).await;
        let object = credential(&w, secrets).await;
        let spec = WorkloadSpec { backoff_limit: 0, ..using(&object) };
        let made = w.submit(1, spec).await;
        w.phase("t", Phase::Failed).await;
        let said: Vec<_> = w.events(made.id).await.into_iter().map(|event| event.message).collect();
        assert!(said.iter().any(|text| text.contains(why)), "{why}: {said:?}");
        assert_eq!(w.engine.known(), 0);
    }
}

#[tokio::test]
async fn a_credential_outlives_who_needs_it_and_is_needed_by_nobody_after() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let object = credential(&w, r#"{"k":"one"}"#).await;
    let delete = || w.handle.delete_object("ann", "credential", object.split_once('/').unwrap().1);
    w.submit(1, using(&object)).await;
    let refused = delete().await.unwrap_err().to_string();
    assert_eq!(refused, "workload `t` uses it; delete the workload first");
    w.delete("t").await;
    w.becomes("").await;
    // Only one of two concurrent commands succeeds.
    let (deleted, made) = tokio::join!(delete(), w.handle.submit(1, using(&object), false));
    assert!(deleted.is_ok() != made.is_ok(), "{deleted:?} {made:?}");
    if let Err(gone) = made {
        assert!(gone.to_string().starts_with("no credential `keys`"), "{gone}");
    }
}

/// A config map of project 1 with one text.
async fn config_map(w: &World, text: &str) -> String {
    let new = NewObject {
        kind: CONFIG_MAP,
        id: NewId::Any,
        scope: Scope::Project(1),
        owner: String::new(),
        name: "settings".to_owned(),
        body: json!({ "secrets": { "k": text } }),
        newest: None,
    };
    w.handle.create_object("ann", new).await.unwrap().id.clone()
}

#[tokio::test]
async fn a_config_map_is_the_one_with_its_name_when_a_run_starts() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    let first = config_map(&w, "one").await;
    let spec = using(&SecretUse::of_config_map("settings"));
    w.submit(1, WorkloadSpec { backoff_limit: 0, ..spec }).await;
    w.phase("t", Phase::Running).await;
    let file = SecretPlace::File { path: "/creds/k".into(), mode: 0o400 };
    let want = |text: &str| {
        let variable = SecretPlace::Variable("KEY".to_owned());
        vec![(variable, text.to_owned()), (file.clone(), text.to_owned())]
    };
    w.handle.delete_object("ann", CONFIG_MAP, &first).await.unwrap();
    assert_eq!(given(&w), want("one"), "what runs keeps its files");
    let second = config_map(&w, "two").await;
    w.crash().await;
    w.start().await;
    let again = async |w: &World, phase| {
        w.handle.suspend("ann", w.id("t")).await.unwrap();
        w.phase("t", Phase::Stopped).await;
        w.handle.resume("ann", w.id("t")).await.unwrap();
        w.phase("t", phase).await;
    };
    again(&w, Phase::Running).await;
    assert_eq!(given(&w), want("two"));
    w.handle.delete_object("ann", CONFIG_MAP, &second).await.unwrap();
    again(&w, Phase::Failed).await;
    let said: Vec<_> = w.events(w.id("t")).await.into_iter().map(|event| event.message).collect();
    let why = "config map `settings` of project team-a was deleted; make it again with `elastane config-map \
               set settings --from-file FILE -p team-a`";
    assert!(said.concat().contains(why), "{said:?}");
}
