//! Copies of S3 buckets, as every engine must make them.

use std::collections::BTreeMap;

use crate::{ALL, Fixture, LONG_MS, S3Server, Stage, TERM};
use engine::{Bucket, Exit, Mount, MountSource, RunEvent, RunNews, RunSpec};

const HUSH: &str = "hush-93d7";

/// More objects than are in a page of the server's list, with names that an address has to spell.
fn objects() -> BTreeMap<String, String> {
    let all = ["one", "deep/er/two", "a b+ä%20&c", "empty/", "three"];
    all.map(|key| (key.to_owned(), format!("in {key}\n"))).into()
}

/// A run with a copy at `/data`.
fn with(mut spec: RunSpec, bucket: Bucket) -> RunSpec {
    let from = MountSource::S3(bucket);
    spec.container.mounts = vec![Mount { to: "/data".into(), from, read_only: false }];
    spec
}

/// Why a run of this copy cannot begin.
async fn refusal(stage: &mut Stage, fixture: &dyn Fixture, bucket: Bucket) -> String {
    let key = stage.start(with(fixture.script("echo begun"), bucket)).await;
    match stage.exit(key).await {
        Exit::CannotRun(why) => why,
        other => panic!("not told that it cannot run: {other:?}"),
    }
}

/// All objects of a bucket, each a file by its name; the run may write there, and the bucket
/// stays as it is.
pub async fn copies_all_of_a_bucket(fixture: &mut dyn Fixture) {
    let server = S3Server::open(objects());
    let mut stage = Stage::new(fixture);
    let script =
        "cd $ELASTANE_MOUNTS_DIR/data; touch x; find . | sort; cat deep/er/two 'a b+ä%20&c'";
    for _ in 0..2 {
        let key = stage.start(with(fixture.script(script), server.bucket("b"))).await;
        assert_eq!(stage.exit(key).await, Exit::Code(0));
        let output = stage.output(key, ALL).await;
        let want = "./a b+ä%20&c ./deep ./deep/er ./deep/er/two ./empty ./one ./three ./x";
        let found: Vec<_> = output.lines().filter(|line| line.starts_with("./")).collect();
        assert_eq!(found.join(" "), want, "{output}");
        assert!(output.contains("in deep/er/two\nin a b+ä%20&c\n"), "{output}");
        stage.engine.remove(key).await.expect("it has ended");
    }
}

/// An access key lets in and is nowhere in the run; without it, or with a wrong one, the run cannot
/// begin.
pub async fn copies_a_bucket_with_a_key_that_stays_nowhere(fixture: &mut dyn Fixture) {
    let server = S3Server::with_login(objects(), "AKIA1");
    let mut stage = Stage::new(fixture);
    let script = format!(
        "cat $ELASTANE_MOUNTS_DIR/data/one; env | grep {HUSH}
        grep -r {HUSH} $ELASTANE_MOUNTS_DIR/data; true"
    );
    let key = stage.start(with(fixture.script(&script), server.bucket_for("AKIA1", HUSH))).await;
    assert_eq!(stage.exit(key).await, Exit::Code(0));
    assert_eq!(stage.output(key, ALL).await, "in one\n");
    let why = refusal(&mut stage, fixture, server.bucket_for("AKIA2", HUSH)).await;
    assert!(why.contains("check id and secret") && !why.contains(HUSH), "{why}");
    let why = refusal(&mut stage, fixture, server.bucket("b")).await;
    assert!(why.contains("it wants a login"), "{why}");
}

/// A failure that another attempt would not change ends the run at once, with the message of the
/// server and advice.
pub async fn says_why_there_is_no_copy_of_a_bucket(fixture: &mut dyn Fixture) {
    let server = S3Server::open(BTreeMap::from([("../x".to_owned(), String::new())]));
    let mut stage = Stage::new(fixture);
    for (name, what) in [
        ("none", "NoSuchBucket; check the name of the bucket"),
        ("page", "check that its address is that of an S3 server"),
        ("elsewhere", "write its own address"),
        ("b", "the name of its object `../x` is not a path inside a folder"),
    ] {
        let why = refusal(&mut stage, fixture, server.bucket(name)).await;
        assert!(why.contains(what) && why.contains(&format!("bucket `{name}` of")), "{why}");
    }
}

/// A run that is stopped while its bucket is copied ends, and nothing goes on copying. A server
/// that is killed meanwhile leaves no run; the next one copies all of it.
pub async fn ends_a_copy_of_a_bucket_with_whoever_wanted_it(fixture: &mut dyn Fixture) {
    let server = S3Server::open(objects());
    let mut stage = Stage::new(fixture);
    server.silence.be(true);
    let spec = with(fixture.script("cat $ELASTANE_MOUNTS_DIR/data/one"), server.bucket("b"));
    let key = stage.start(spec).await;
    let preparing = |state| match state {
        RunNews::Event(RunEvent::Preparing(what)) => Some(what),
        _ => None,
    };
    let what = stage.wait(key, preparing).await;
    assert!(what.starts_with("copying bucket `b` of `http://127.0.0.1"), "{what}");
    server.silence.visited().await;
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(TERM));
    server.silence.left().await;
    let spec = with(fixture.script("cat $ELASTANE_MOUNTS_DIR/data/one"), server.bucket("b"));
    let key = stage.start(spec.clone()).await;
    server.silence.visited().await;
    drop(stage);
    fixture.reopen().await;
    server.silence.left().await;
    let mut stage = Stage::new(fixture);
    assert!(stage.listed(key).await.is_empty());
    server.silence.be(false);
    stage.start(spec).await;
    assert_eq!(stage.exit(key).await, Exit::Code(0));
    assert_eq!(stage.output(key, ALL).await, "in one\n");
}
