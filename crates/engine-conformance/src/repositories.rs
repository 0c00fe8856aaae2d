//! Copies of Git repositories, as every engine must make them.

use crate::{ALL, Fixture, GitServer, LONG_MS, Stage, TERM};
use engine::{Exit, Login, Mount, MountSource, Repository, RunEvent, RunNews, RunSpec};

const HUSH: &str = "hush-81c2";

fn repository(address: String) -> Repository {
    Repository { address, branch: None, revision: None, login: None }
}

fn login(password: &str) -> Option<Login> {
    Some(Login { user: "me".to_owned(), password: password.to_owned() })
}

/// A run with a copy at `/code`.
fn with(mut spec: RunSpec, repository: Repository) -> RunSpec {
    let from = MountSource::Git(repository);
    spec.container.mounts = vec![Mount { to: "/code".into(), from, read_only: false }];
    spec
}

/// Why a run of this copy cannot begin.
async fn refusal(stage: &mut Stage, fixture: &dyn Fixture, repository: Repository) -> String {
    let key = stage.start(with(fixture.script("echo begun"), repository)).await;
    match stage.exit(key).await {
        Exit::CannotRun(why) => why,
        other => panic!("not told that it cannot run: {other:?}"),
    }
}

/// The repository's own choice, a branch, a tag, a commit by its whole number or a part of it: the
/// run finds it as it was, with its history as far as it is needed, and may write there.
pub async fn copies_what_is_asked_for(fixture: &mut dyn Fixture) {
    let server = GitServer::open();
    let mut stage = Stage::new(fixture);
    let (old, older) = (server.commit("v1~0"), server.commit("v1~1"));
    let some = |text: &str| Some(text.to_owned());
    for (address, branch, revision, said) in [
        (server.git(), None, None, "new"),
        (server.http(), some("side"), None, "side"),
        (server.git(), some("main"), some("v1"), "old"),
        (server.http(), None, some(&old), "old"),
        (server.git(), None, some(&older[..8]), "older"),
    ] {
        let copied = Repository { branch, revision, ..repository(address) };
        let script = "cd $ELASTANE_MOUNTS_DIR/code; test -x link && cat link; touch x; ls -a";
        let key = stage.start(with(fixture.script(script), copied)).await;
        assert_eq!(stage.exit(key).await, Exit::Code(0));
        let output = stage.output(key, ALL).await;
        assert_eq!(output, format!("{said}\n.\n..\n.git\nhello\nlink\nx\n"));
        stage.engine.remove(key).await.expect("it has ended");
    }
}

/// A login lets in, and is not in the copy; without it, or with a wrong one, the run cannot begin.
pub async fn copies_with_a_login_that_stays_nowhere(fixture: &mut dyn Fixture) {
    let server = GitServer::with_login("me", HUSH);
    let mut stage = Stage::new(fixture);
    let script = format!(
        "cat $ELASTANE_MOUNTS_DIR/code/hello; env | grep {HUSH}
        grep -r {HUSH} $ELASTANE_MOUNTS_DIR/code; true"
    );
    let copied = Repository { login: login(HUSH), ..repository(server.http()) };
    let key = stage.start(with(fixture.script(&script), copied)).await;
    assert_eq!(stage.exit(key).await, Exit::Code(0));
    assert_eq!(stage.output(key, ALL).await, "new\n");
    let wrong = Repository { login: login("wrong-pw"), ..repository(server.http()) };
    let why = refusal(&mut stage, fixture, wrong).await;
    assert!(why.contains("check user and password") && !why.contains("wrong-pw"), "{why}");
    let why = refusal(&mut stage, fixture, repository(server.http())).await;
    assert!(why.contains("it wants a login"), "{why}");
}

/// A failure that another attempt would not change ends the run at once, with the message of Git
/// and advice.
pub async fn says_why_there_is_no_copy(fixture: &mut dyn Fixture) {
    let server = GitServer::open();
    let mut stage = Stage::new(fixture);
    let some = |text: &str| Some(text.to_owned());
    let no_such = "no such branch, tag or commit";
    for (address, branch, revision, what) in [
        (server.git(), some("none"), None, no_such),
        (server.http(), None, some("none"), no_such),
        (server.git(), None, some("0123456789012345678901234567890123456789"), no_such),
        (server.git().replace("repo", "none"), None, None, "check its address"),
        (server.http().replace("repo", "none"), None, None, "check its address"),
    ] {
        let copied = Repository { branch, revision, ..repository(address.clone()) };
        let why = refusal(&mut stage, fixture, copied).await;
        assert!(why.contains(what) && why.contains(&address), "{why}");
    }
}

/// A run that is stopped while its repository is copied ends, and nothing goes on copying.
pub async fn ends_a_copy_that_is_not_wanted(fixture: &mut dyn Fixture) {
    let server = GitServer::open();
    let mut stage = Stage::new(fixture);
    server.silence().be(true);
    let key = stage.start(with(fixture.script("echo begun"), repository(server.git()))).await;
    let preparing = |state| match state {
        RunNews::Event(RunEvent::Preparing(what)) => Some(what),
        _ => None,
    };
    let what = stage.wait(key, preparing).await;
    assert!(what.contains(&server.git()), "{what}");
    server.silence().visited().await;
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(TERM));
    server.silence().left().await;
    stage.engine.remove(key).await.expect("it has ended");
    assert!(stage.listed(key).await.is_empty());
}

/// A server that is killed while it copies leaves no run and no half copy, and nothing that goes on
/// copying; the next one copies all of it.
pub async fn copies_anew_after_a_crash(fixture: &mut dyn Fixture) {
    let server = GitServer::open();
    let stage = Stage::new(fixture);
    server.silence().be(true);
    let script = "cd $ELASTANE_MOUNTS_DIR/code; cat hello";
    let spec = with(fixture.script(script), repository(server.git()));
    let key = stage.start(spec.clone()).await;
    server.silence().visited().await;
    drop(stage);
    fixture.reopen().await;
    server.silence().left().await;
    let mut stage = Stage::new(fixture);
    assert!(stage.listed(key).await.is_empty());
    server.silence().be(false);
    stage.start(spec).await;
    assert_eq!(stage.exit(key).await, Exit::Code(0));
    assert_eq!(stage.output(key, ALL).await, "new\n");
}
