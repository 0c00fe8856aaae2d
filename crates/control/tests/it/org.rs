//! Departments and their projects: shares that count at once, and survive.

use orchestrator::{Error, OrgChange};
use records::EventFilter;
use spec::{Rank, ShareChange};
use view::View;

use crate::world::{World, given, gpus, nodes, project, training, workspace};

async fn department(w: &World, name: &str, share: Option<ShareChange>) -> u64 {
    let spec =
        OrgChange { name: Some(name.to_owned()), ..share.map_or(OrgChange::default(), given) };
    w.handle.create_department("admin", spec).await.unwrap().id
}

async fn project_in(w: &World, department_id: u64, name: &str, quota: u64) -> u64 {
    let spec = project(name, quota);
    w.handle.create_project("admin", department_id, spec).await.unwrap().unit.id
}

fn quota(view: &View, department: u64) -> u64 {
    view.departments[&department].share().gpu_quota_millis / 1000
}

#[tokio::test]
async fn the_default_department_is_there_and_has_what_its_projects_have() {
    let mut w = World::new(nodes(1, 4), &[1, 2]).await;
    assert_eq!(quota(&w.handle.view(), 1), 3);
    w.handle.delete_project("admin", 2).await.unwrap();
    assert_eq!(quota(&w.handle.view(), 1), 1);
    let change = given(gpus(7));
    w.handle.update_project("admin", 1, change.clone()).await.unwrap();
    assert_eq!(quota(&w.handle.view(), 1), 7);
    w.handle.update_department("admin", 1, change).await.unwrap();
    w.restart().await;
    project_in(&w, 1, "late", 5).await;
    assert_eq!(quota(&w.handle.view(), 1), 7, "what it was given stays");
}

#[tokio::test]
async fn the_quota_of_a_department_is_divided_before_that_of_its_projects() {
    let w = World::new(nodes(1, 4), &[]).await;
    let small = department(&w, "small", Some(gpus(1))).await;
    let large = department(&w, "large", Some(gpus(3))).await;
    let greedy = project_in(&w, small, "greedy", 4).await;
    let modest = project_in(&w, large, "modest", 3).await;
    for number in 0..4 {
        w.submit(greedy, training(&format!("g{number}"), 1)).await;
    }
    w.until("all is greedy's", |view| view.departments[&small].status.allocated.gpu_millis == 4000)
        .await;
    for number in 0..3 {
        w.submit(modest, training(&format!("m{number}"), 1)).await;
    }
    w.until("the large department has its quota", |view| {
        view.departments[&large].status.allocated.gpu_millis == 3000
            && view.departments[&small].status.allocated.gpu_millis == 1000
    })
    .await;
}

#[tokio::test]
async fn a_limit_of_a_department_binds_its_projects_and_counts_at_once() {
    let w = World::new(nodes(1, 4), &[]).await;
    let capped = department(
        &w,
        "capped",
        Some(ShareChange { gpu_limit_millis: Some(Some(1000)), ..gpus(1) }),
    )
    .await;
    let (a, b) = (project_in(&w, capped, "a", 1).await, project_in(&w, capped, "b", 1).await);
    w.submit(a, training("a1", 1)).await;
    w.submit(b, training("b1", 1)).await;
    w.becomes("a1 Running 1/1\nb1 Pending 0/1").await;
    let why = w.why("b1")[0].clone();
    assert_eq!(why.code, "P201");
    assert!(why.message.starts_with("department:capped may hold 1 GPU"), "{}", why.message);
    let wider = ShareChange { gpu_limit_millis: Some(None), ..ShareChange::default() };
    w.handle.update_department("admin", capped, given(wider)).await.unwrap();
    w.becomes("a1 Running 1/1\nb1 Running 1/1").await;
}

#[tokio::test]
async fn what_cannot_be_preempted_stays_below_the_quota_of_the_department() {
    let w = World::new(nodes(1, 4), &[]).await;
    let tight = department(&w, "tight", Some(gpus(1))).await;
    let (a, b) = (project_in(&w, tight, "a", 1).await, project_in(&w, tight, "b", 1).await);
    w.submit(a, workspace("a1", 1)).await;
    w.submit(b, workspace("b1", 1)).await;
    w.becomes("a1 Running 1/1\nb1 Pending 0/1").await;
    assert!(w.why("b1")[0].message.contains("department:tight"));
}

#[tokio::test]
async fn departments_and_their_projects_survive_a_crash() {
    let mut w = World::new(nodes(1, 4), &[1]).await;
    let id = department(&w, "research", Some(gpus(2))).await;
    let vision = project_in(&w, id, "vision", 2).await;
    w.submit(vision, training("v1", 1)).await;
    w.becomes("v1 Running 1/1").await;
    let before = w.handle.view();
    w.restart().await;
    let after =
        w.until("v1 is adopted", |view| view.departments[&id].status.allocated.gpu_millis == 1000);
    let after = after.await;
    assert_eq!(after.departments[&id].share(), before.departments[&id].share());
    assert_eq!(after.projects[&vision].department_name, "research");
    assert_eq!(after.departments[&1].name, "default");
    let gone = department(&w, "gone", None).await;
    w.handle.delete_department("admin", gone).await.unwrap();
    w.restart().await;
    assert!(!w.handle.view().departments.contains_key(&gone));
    assert_eq!(department(&w, "next", None).await, gone + 1, "ids are not given out twice");
}

#[tokio::test]
async fn what_a_department_was_not_given_it_has_from_its_projects() {
    let mut w = World::new(nodes(1, 4), &[1, 2]).await;
    let quota_and_limit = |w: &World| {
        let share = w.handle.view().departments[&1].share();
        (share.gpu_quota_millis, share.gpu_limit_millis)
    };
    let limit = ShareChange { gpu_limit_millis: Some(Some(4000)), ..ShareChange::default() };
    w.handle.update_department("admin", 1, given(limit)).await.unwrap();
    assert_eq!(quota_and_limit(&w), (3000, Some(4000)), "a limit freezes no quota");
    project_in(&w, 1, "late", 2).await;
    assert_eq!(quota_and_limit(&w), (4000, Some(4000)), "what is above the limit cannot be used");
    w.handle.update_department("admin", 1, given(gpus(1))).await.unwrap();
    w.restart().await;
    assert_eq!(quota_and_limit(&w), (1000, Some(4000)));
    let nothing = OrgChange { replaces_shares: true, ..OrgChange::default() };
    w.handle.update_department("admin", 1, nothing).await.unwrap();
    assert_eq!(quota_and_limit(&w), (5000, None), "the way back");
}

#[tokio::test]
async fn a_quota_above_that_of_the_department_is_taken_with_a_warning() {
    let w = World::new(nodes(1, 4), &[]).await;
    let small = department(&w, "small", Some(gpus(2))).await;
    let id = project_in(&w, small, "greedy", 3).await;
    let said = w.handle.events(EventFilter::default()).await.unwrap().pop().unwrap();
    let above = "the quota is more than department small has: 3 of 2 GPUs in node pool default; \
                 what is above counts as over quota";
    assert_eq!(said.message, format!("created with a quota of 3 GPUs; {above}"));
    assert!(said.warning);
    w.handle.update_project("admin", id, given(gpus(2))).await.unwrap();
    let said = w.handle.events(EventFilter::default()).await.unwrap().pop().unwrap();
    assert_eq!((said.message.as_str(), said.warning), ("updated; the quota is 2 GPUs", false));
}

#[tokio::test]
async fn two_at_once_with_one_name_are_one_and_a_conflict() {
    let w = World::new(nodes(1, 1), &[]).await;
    let spec = OrgChange { name: Some("a".to_owned()), ..OrgChange::default() };
    let (first, second) = tokio::join!(
        w.handle.create_department("admin", spec.clone()),
        w.handle.create_department("admin", spec),
    );
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1);
    let error = first.err().or(second.err()).unwrap();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn what_no_quota_claims_goes_to_the_higher_rank() {
    let w = World::new(nodes(1, 2), &[0, 0]).await;
    let rank = |rank| given(ShareChange { rank: Some(rank), ..ShareChange::default() });
    w.submit(1, training("a1", 1)).await;
    w.submit(1, training("a2", 1)).await;
    w.becomes("a1 Running 1/1\na2 Running 1/1").await;
    w.handle.update_project("admin", 2, rank(Rank::High)).await.unwrap();
    w.submit(2, training("b1", 2)).await;
    w.becomes("a1 Pending 0/1\na2 Pending 0/1\nb1 Running 2/2").await;
}

#[tokio::test]
async fn limits_of_cpu_and_memory_bind_and_survive_a_crash() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    let share = ShareChange {
        cpu_limit_millis: Some(Some(150)),
        memory_limit_bytes: Some(Some(1 << 30)),
        memory_weight: Some(Some(7)),
        ..ShareChange::default()
    };
    let before = w.handle.update_project("admin", 1, given(share)).await.unwrap();
    w.submit(1, training("a1", 0)).await;
    w.submit(1, training("a2", 0)).await;
    w.becomes("a1 Running 0/0\na2 Pending 0/0").await;
    assert_eq!(w.why("a2")[0].code, "P201");
    w.restart().await;
    assert_eq!(w.handle.view().projects[&1].unit.share(), before.unit.share());
}
