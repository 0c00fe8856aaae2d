//! Objects that the scheduler does not need: names, owners, scopes, changes at once, restarts.

use std::sync::Arc;

use orchestrator::{Edit, Error, NewId, NewObject};
use serde_json::{Value, json};
use view::{Object, Scope};

use crate::world::{World, nodes};

fn new(name: &str, scope: Scope) -> NewObject {
    let body = json!({"n": 0, "secrets": {"hash": "hush"}});
    let owner = String::new();
    let (id, name) = (NewId::Any, name.to_owned());
    NewObject { kind: "asset", id, scope, owner, name, body, newest: None }
}

async fn make(w: &World, name: &str, scope: Scope) -> Result<Arc<Object>, Error> {
    w.handle.create_object("ann", new(name, scope)).await
}

fn renamed(name: &str) -> Edit {
    let name = name.to_owned();
    Edit::new(move |object| Ok((name.clone(), object.body.clone())))
}

fn names(w: &World) -> Vec<String> {
    w.handle.view().objects.all("asset").iter().map(|object| object.name.clone()).collect()
}

#[tokio::test]
async fn objects_survive_a_crash_and_numbers_are_not_given_twice() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    let numbered = |name: &str| NewObject { id: NewId::Number, ..new(name, Scope::Tenant) };
    let first = w.handle.create_object("ann", numbered("a")).await.unwrap();
    let second = make(&w, "b", Scope::Project(1)).await.unwrap();
    w.handle.update_object("bob", "asset", &second.id, renamed("c")).await.unwrap();
    w.handle.delete_object("ann", "asset", &first.id).await.unwrap();
    w.crash().await;
    w.start().await;
    let found = w.handle.view().objects.get("asset", &second.id).cloned().unwrap();
    let by = (found.created_by.as_str(), found.updated_by.as_str());
    assert_eq!((found.name.as_str(), found.scope, by), ("c", Scope::Project(1), ("ann", "bob")));
    let third = w.handle.create_object("ann", numbered("a")).await.unwrap();
    assert_eq!((first.id.as_str(), third.id.as_str()), ("1", "3"));
}

#[tokio::test]
async fn a_name_is_taken_once_in_its_scope() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    let first = make(&w, "a", Scope::Project(1)).await.unwrap();
    make(&w, "a", Scope::Project(2)).await.unwrap();
    let other = make(&w, "b", Scope::Project(1)).await.unwrap();
    let again = make(&w, "a", Scope::Project(1)).await.unwrap_err();
    assert_eq!(again.to_string(), "asset `a` already exists; choose another name");
    let clash = w.handle.update_object("ann", "asset", &other.id, renamed("a")).await;
    assert!(matches!(clash, Err(Error::Conflict { .. })));
    w.handle.update_object("ann", "asset", &first.id, renamed("a")).await.unwrap();
    assert_eq!(names(&w), ["a", "a", "b"]);
}

#[tokio::test]
async fn of_many_creations_of_one_name_at_once_one_succeeds() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let all = (0..50).map(|_| make(&w, "a", Scope::Tenant));
    let outcomes = futures_util::future::join_all(all).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(names(&w), ["a"]);
}

#[tokio::test]
async fn of_changes_at_once_none_is_lost() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let id = make(&w, "a", Scope::Tenant).await.unwrap().id.clone();
    let plus_one = || {
        Edit::new(|object| {
            let n = object.body["n"].as_u64().unwrap_or_default() + 1;
            Ok((object.name.clone(), json!({"n": n})))
        })
    };
    let all = (0..50).map(|_| w.handle.update_object("ann", "asset", &id, plus_one()));
    futures_util::future::try_join_all(all).await.unwrap();
    assert_eq!(w.handle.view().objects.get("asset", &id).unwrap().body["n"], json!(50));
}

#[tokio::test]
async fn what_an_object_belongs_to_must_be_there_and_ends_with_it() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let missing = make(&w, "a", Scope::Project(9)).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { what: "project", .. }));
    let owner = make(&w, "owner", Scope::Tenant).await.unwrap();
    let owned = |name: &str| NewObject { owner: owner.key(), ..new(name, Scope::Project(1)) };
    let one = w.handle.create_object("ann", owned("one")).await.unwrap();
    let below = NewObject { owner: one.key(), ..new("below", Scope::Tenant) };
    w.handle.create_object("ann", below).await.unwrap();
    w.handle.delete_object("ann", "asset", &owner.id).await.unwrap();
    assert!(names(&w).is_empty());
    let orphan = w.handle.create_object("ann", owned("two")).await.unwrap_err();
    assert!(matches!(orphan, Error::NotFound { what: "owner", .. }));
    make(&w, "a", Scope::Project(1)).await.unwrap();
    make(&w, "b", Scope::Tenant).await.unwrap();
    w.handle.delete_project("ann", 1).await.unwrap();
    assert_eq!(names(&w), ["b"]);
}

#[tokio::test]
async fn wrong_names_and_unknown_objects_are_refused() {
    let w = World::new(nodes(1, 1), &[1]).await;
    for name in ["", "  ", "a\nb", " a", "a ", &"x".repeat(1025)] {
        let error = make(&w, name, Scope::Tenant).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { field: "name", .. }), "{name}");
    }
    let changed = w.handle.update_object("ann", "asset", "x", renamed("a")).await.unwrap_err();
    let deleted = w.handle.delete_object("ann", "asset", "x").await.unwrap_err();
    assert_eq!(changed, deleted);
    assert!(matches!(changed, Error::NotFound { what: "asset", .. }));
}

#[tokio::test]
async fn what_is_named_must_be_within_reach_and_stays_as_long_as_it_is_named() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    let shared = make(&w, "shared", Scope::Tenant).await.unwrap();
    let own = make(&w, "own", Scope::Project(1)).await.unwrap();
    let naming = |name: &str, scope, of: &Object| {
        let body = json!({"names": [of.key()]});
        NewObject { kind: "template", body, ..new(name, scope) }
    };
    let foreign = naming("t", Scope::Project(2), &own);
    let error = w.handle.create_object("ann", foreign).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { what: "object", .. }), "{error}");
    for (name, of) in [("a", &own), ("b", &shared)] {
        let made =
            w.handle.create_object("ann", naming(name, Scope::Project(1), of)).await.unwrap();
        let error = w.handle.delete_object("ann", "asset", &of.id).await.unwrap_err();
        let want = format!("template `{name}` names it; change or delete the template first");
        assert_eq!(error.to_string(), want);
        let none = Edit::new(|object| Ok((object.name.clone(), json!({}))));
        w.handle.update_object("ann", "template", &made.id, none).await.unwrap();
        w.handle.delete_object("ann", "asset", &of.id).await.unwrap();
        let names = json!({"names": [of.key()]});
        let again = Edit::new(move |object| Ok((object.name.clone(), names.clone())));
        let gone = w.handle.update_object("ann", "template", &made.id, again).await.unwrap_err();
        assert!(matches!(gone, Error::NotFound { what: "object", .. }), "{gone}");
    }
}

#[tokio::test]
async fn nobody_fills_the_disk_from_one_project() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    let large = |bytes: usize| NewObject {
        body: json!({"text": "x".repeat(bytes), "secrets": "y".repeat(100_000)}),
        ..new("large", Scope::Tenant)
    };
    let error = w.handle.create_object("ann", large(64 << 10)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { field: "body", .. }), "{error}");
    let made = w.handle.create_object("ann", large(60_000)).await.unwrap();
    let grow = Edit::new(|object| Ok((object.name.clone(), json!({"text": "x".repeat(70_000)}))));
    let error = w.handle.update_object("ann", "asset", &made.id, grow).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { field: "body", .. }), "{error}");
    let w = &w;
    let all = (0..1001).map(|n| async move {
        let user = ["ann", "bob", "eve"][n / 500];
        w.handle.create_object(user, new(&n.to_string(), Scope::Project(1))).await
    });
    let all = futures_util::future::join_all(all).await;
    let refused: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    let why = "1001 are too many: objects of one kind of one project, department, user or service \
               account are limited to 1000";
    assert!(refused[0].to_string().starts_with(why), "{refused:?}");
    make(w, "a", Scope::Project(2)).await.unwrap();
}

#[tokio::test]
async fn every_change_is_on_record_and_secrets_end_with_their_object() {
    let mut w = World::new(nodes(1, 1), &[]).await;
    let id = make(&w, "a", Scope::Tenant).await.unwrap().id.clone();
    make(&w, "a", Scope::Tenant).await.unwrap_err();
    w.handle.update_object("bob", "asset", &id, renamed("b")).await.unwrap();
    w.handle.delete_object("eve", "asset", &id).await.unwrap();
    w.crash().await;
    let store = store::Store::open(w.dir.path()).await.unwrap();
    let rows = store.audit(10).await.unwrap();
    let told = |row: &records::AuditRow| {
        let outcome = if row.result == "ok" { "ok" } else { "refused" };
        format!("{} {} {} {outcome}", row.who, row.what, row.target)
    };
    let rows: Vec<_> = rows.iter().rev().map(told).collect();
    let want = [
        "ann asset.create a ok",
        "ann asset.create a refused",
        "bob asset.update a ok",
        "eve asset.delete b ok",
    ];
    assert_eq!(rows, want);
    let path = w.dir.path().join("elastane.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut db = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let body: String =
        sqlx::query_scalar("SELECT body FROM objects").fetch_one(&mut db).await.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap(),
        json!({"document_version": 1, "n": 0})
    );
}

#[tokio::test]
async fn the_oldest_of_an_owner_ends_for_a_new_one_also_of_many_at_once() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let owner = w.handle.create_object("ann", new("owner", Scope::Tenant)).await.unwrap();
    let session = |name: &str| NewObject {
        kind: "session",
        owner: owner.key(),
        newest: Some(2),
        ..new(name, Scope::Tenant)
    };
    let names = ["a", "b", "c", "d"];
    let all = names.map(|name| w.handle.create_object("ann", session(name)));
    futures_util::future::try_join_all(all).await.unwrap();
    let left = w.handle.view().objects.all("session");
    assert_eq!(left.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["c", "d"]);
}

#[tokio::test]
async fn the_config_maps_of_a_project_have_a_limit_together_also_when_many_come_at_once() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    let map = |name: &str, project, mib: usize| NewObject {
        kind: spec::CONFIG_MAP,
        body: json!({"secrets": {"k": "x".repeat((mib << 20) - 1)}}),
        ..new(name, Scope::Project(project))
    };
    let create = |user, project| w.handle.create_object(user, map(user, project, 24));
    let (one, two, three, other) =
        tokio::join!(create("ann", 1), create("bob", 1), create("eve", 1), create("ann", 2));
    other.unwrap();
    let (mut made, mut refused) = (Vec::new(), Vec::new());
    for answer in [one, two, three] {
        answer.map_or_else(|error| refused.push(error), |one| made.push(one));
    }
    let ([made, _], [refused]) = (&made[..], &refused[..]) else {
        panic!("one of them is too much: {refused:?}")
    };
    let told = "service account, with config maps and credentials are limited to 67108864 bytes";
    assert!(refused.to_string().contains(told), "{refused}");
    let larger = Edit::new(|object| {
        Ok((object.name.clone(), json!({"secrets": {"k": "x".repeat(65 << 20)}})))
    });
    let kind = spec::CONFIG_MAP;
    let refused = w.handle.update_object("ann", kind, &made.id, larger).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })));
}
