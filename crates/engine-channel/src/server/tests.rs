//! A run and its server on one channel. Owns: what each report is answered with, and what follows
//! from it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use engine::RunNews;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::*;
use crate::{ClientError, Report, SOCKET, report};

const KEY: RunKey = RunKey { pod: Uuid::from_u128(7), generation: 1 };

struct Bench {
    top: tempfile::TempDir,
    channels: Arc<Channels>,
    news: News,
}

impl Bench {
    fn new() -> Self {
        Self::of(own(None))
    }

    fn of(owner: Owner) -> Self {
        let top = tempfile::tempdir().unwrap();
        let (channels, news) = channels();
        let folder = top.path().join("run");
        channels.open(KEY, &folder, (owner, Storage::Machine), Opens::First(None)).unwrap();
        Self { top, channels, news }
    }

    fn socket(&self) -> PathBuf {
        self.top.path().join("run").join(SOCKET)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.top.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Reports, as a process of a run does.
    async fn report(
        &self,
        path: Option<PathBuf>,
        step: Option<u64>,
        next_in_s: Option<f64>,
    ) -> String {
        let socket = self.socket();
        let reported = tokio::task::spawn_blocking(move || {
            report(&socket, Report { path: path.as_deref(), step, next_in_s })
        });
        reported.await.unwrap().map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    /// Sends these bytes, and returns the answer.
    async fn send(&self, bytes: Vec<u8>) -> String {
        let socket = self.socket();
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
            // Both break off where too much was sent.
            let _closed = stream.write_all(&bytes);
            let mut answer = String::new();
            let _reset = stream.read_to_string(&mut answer);
            answer
        });
        asked.await.unwrap()
    }
}

/// The processes of this test.
fn own(account: Option<(u32, u32)>) -> Owner {
    let this = i32::try_from(std::process::id()).unwrap();
    Owner::Processes { account, is_own: Box::new(move |pid| pid == this) }
}

/// Observations of an engine.
struct News(UnboundedReceiver<Observation>);

impl News {
    async fn next(&mut self) -> CheckpointNews {
        let Observation { key, news } = self.0.recv().await.unwrap();
        assert_eq!(key, KEY);
        let RunNews::Event(RunEvent::Checkpoint(news)) = news else { panic!("{news:?}") };
        news
    }
}

fn channels() -> (Arc<Channels>, News) {
    let observations = Arc::new(Observations::default());
    let news = News(observations.stream());
    (Arc::new(Channels::new(observations)), news)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_verified_and_noted() {
    let mut bench = Bench::new();
    let path = bench.write("model", "weights");
    assert_eq!(bench.report(Some(path.clone()), Some(10), None).await, "ok");
    let CheckpointNews::Saved { ago_ms } = bench.news.next().await else { panic!("a note") };
    assert!(ago_ms < 60_000);
    assert!(bench.report(Some(path), Some(11), None).await.contains("not changed"));
    let missing = bench.top.path().join("none");
    assert!(bench.report(Some(missing), None, None).await.contains("No such file"));
    let before = bench.write("other", "weights");
    assert!(bench.report(Some(before), Some(9), None).await.contains("before step 10"));
    assert!(bench.news.0.is_empty(), "what is refused is not noted");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_folder_the_newest_file_counts() {
    let bench = Bench::new();
    bench.write("checkpoint-10/model", "weights");
    bench.write("checkpoint-10/empty", "");
    let folder = bench.top.path().join("checkpoint-10");
    assert_eq!(bench.report(Some(folder.clone()), None, None).await, "ok");
    assert!(bench.report(Some(folder), None, None).await.contains("not changed"));
    let empty = bench.write("nothing/empty", "");
    let empty = empty.parent().unwrap().to_owned();
    assert!(bench.report(Some(empty), None, None).await.contains("no file with content"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_answered_and_the_next_one_is_heard() {
    let bench = Bench::new();
    assert!(bench.send(b"hello\n".to_vec()).await.contains("cannot be read"));
    assert!(bench.send(b"{\"checkpoint\": {}}\n".to_vec()).await.contains("0 open files"));
    assert!(bench.send(b"{\"next_in_s\": -5}\n".to_vec()).await.contains("from 0 to"));
    bench.send(vec![b'x'; 1 << 20]).await;
    // One that says nothing is not waited for without end.
    let silent = std::os::unix::net::UnixStream::connect(bench.socket()).unwrap();
    assert_eq!(bench.report(None, None, Some(5.0)).await, "ok");
    drop(silent);
    assert!(bench.news.0.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_pieces_brings_no_more_files_than_one() {
    let bench = Bench::new();
    let (socket, path) = (bench.socket(), bench.write("model", "weights"));
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let file = fs::File::open(path).unwrap();
        for piece in [b"{", b" ", b" "] {
            let sent = socket::send(&stream, piece, Some(std::os::fd::AsFd::as_fd(&file)));
            if sent.is_err() {
                break;
            }
        }
        let mut answer = String::new();
        let _reset = stream.read_to_string(&mut answer);
        answer
    });
    // Without waiting for the rest.
    assert!(answer.await.unwrap().contains("cannot be read"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_run_is_refused_although_it_has_the_same_account() {
    let bench = Bench::of(Owner::Processes { account: None, is_own: Box::new(|_| false) });
    let mode = fs::metadata(bench.socket()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(bench.report(None, None, Some(5.0)).await.contains("another run's"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_is_refused() {
    let uid = getuid().as_raw();
    if uid != 0 {
        // The mode of the socket keeps all but root from connecting, and the credentials root as
        // well.
        return;
    }
    let bench = Bench::of(own(Some((uid + 1, uid + 1))));
    assert!(bench.report(None, None, Some(5.0)).await.contains("another run's"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_run_that_says_nothing_is_not_waited_for_long() {
    let bench = Bench::of(Owner::Processes { account: None, is_own: Box::new(|_| false) });
    let silent = std::os::unix::net::UnixStream::connect(bench.socket()).unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        (&silent).read_to_string(&mut answer).map(|_| answer)
    });
    assert!(answer.await.unwrap().unwrap().contains("another run's"));
}

#[tokio::test]
async fn a_file_that_does_not_answer_holds_up_one_look() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("model");
    fs::write(&path, "weights").unwrap();
    let file = Arc::new(fs::File::open(&path).unwrap());
    fs::remove_file(&path).unwrap();
    let looks = Arc::new(Semaphore::new(1));
    let under_way = Arc::clone(&looks).try_acquire_owned().unwrap();
    let kept = Newest { file, misses: 1 }.look(&looks).await.expect("it was not looked at");
    drop(under_way);
    assert!(kept.look(&looks).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_waits_for_what_is_announced_and_no_longer() {
    let mut bench = Bench::new();
    let most = Duration::from_secs(300);
    // Nothing is announced, or too far away: at once.
    bench.channels.await_checkpoint(KEY, most).await;
    assert_eq!(bench.report(None, None, Some(3000.0)).await, "ok");
    bench.channels.await_checkpoint(KEY, most).await;
    assert_eq!(bench.report(None, None, Some(200.0)).await, "ok");
    let waiting = {
        let channels = Arc::clone(&bench.channels);
        tokio::spawn(async move { channels.await_checkpoint(KEY, most).await })
    };
    let CheckpointNews::Awaited { within_ms } = bench.news.next().await else { panic!("it waits") };
    assert!((100_000..=202_000).contains(&within_ms));
    assert!(!waiting.is_finished());
    let path = bench.write("model", "weights");
    assert_eq!(bench.report(Some(path), None, Some(200.0)).await, "ok");
    waiting.await.unwrap();
    // One whose run ends is not waited for either.
    let waiting = {
        let channels = Arc::clone(&bench.channels);
        tokio::spawn(async move { channels.await_checkpoint(KEY, most).await })
    };
    while !matches!(bench.news.next().await, CheckpointNews::Awaited { .. }) {}
    bench.channels.close(KEY);
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_asks_is_waited_for_until_it_has_saved() {
    let mut bench = Bench::new();
    let asked = || bench.send(b"{\"asks\":true}\n".to_vec());
    assert_eq!(asked().await, "{\"ok\":true}\n", "nothing is to stop it");
    let waiting = {
        let channels = Arc::clone(&bench.channels);
        let most = Duration::from_secs(300);
        tokio::spawn(async move { channels.await_checkpoint(KEY, most).await })
    };
    let within = loop {
        let reply: Reply = serde_json::from_str(&asked().await).unwrap();
        assert!(reply.ok, "{reply:?}");
        if let Some(within) = reply.save_within_s {
            break within;
        }
    };
    assert!((100.0..=300.0).contains(&within), "{within}");
    let path = bench.write("model", "weights");
    assert_eq!(bench.report(Some(path), None, None).await, "ok");
    waiting.await.unwrap();
    assert_eq!(bench.send(b"{\"asks\":true}\n".to_vec()).await, "{\"ok\":true}\n");
    assert!(matches!(bench.news.next().await, CheckpointNews::Awaited { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_server_hears_on_the_same_path() {
    let bench = Bench::new();
    let path = bench.write("model", "weights");
    assert_eq!(bench.report(Some(path.clone()), Some(10), None).await, "ok");
    bench.channels.close(KEY);
    let socket = bench.socket();
    let closed = tokio::task::spawn_blocking(move || report(&socket, Report::default()));
    assert!(matches!(closed.await.unwrap(), Err(ClientError::Channel(_))));
    let (next, mut news) = channels();
    let folder = bench.top.path().join("run");
    next.open(KEY, &folder, (own(None), Storage::Machine), Opens::Again).unwrap();
    bench.write("model", "other weights");
    assert_eq!(bench.report(Some(path), Some(20), None).await, "ok");
    assert!(matches!(news.next().await, CheckpointNews::Saved { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_one_workload_meet_and_the_next_server_knows_which_they_are() {
    let mut bench = Bench::new();
    let wants = br#"{"meet": {"min": 1, "max": 1, "arrives": true}}"#;
    let wants = [wants.as_slice(), b"\n"].concat();
    let alone = bench.send(wants.clone()).await;
    assert!(alone.contains("works together with no other"), "{alone}");
    bench.channels.close(KEY);
    let folder = bench.top.path().join("run");
    let open = |channels: &Channels, opens| {
        channels.open(KEY, &folder, (own(None), Storage::Machine), opens).unwrap();
    };
    open(&bench.channels, Opens::First(Some(Uuid::from_u128(5))));
    let first =
        r#"{"ok":true,"world":{"generation":1,"rank":0,"size":1,"changed":true,"over":false}}"#;
    assert_eq!(bench.send(wants.clone()).await.trim_end(), first);
    bench.channels.close(KEY);
    assert!(lock(&bench.channels.meetings.all).is_empty(), "none is left");
    (bench.channels, bench.news) = channels();
    open(&bench.channels, Opens::Again);
    assert_eq!(bench.send(wants).await.trim_end(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_replaced_for_a_moment_has_not_gone() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("model");
    fs::write(&path, "weights").unwrap();
    let file = Arc::new(fs::OpenOptions::new().write(true).open(&path).unwrap());
    fs::write(&path, "").unwrap();
    let looks = Arc::new(Semaphore::new(1));
    let kept = Newest { file, misses: 0 }.look(&looks).await.expect("missed once");
    fs::write(&path, "weights").unwrap();
    let kept = kept.look(&looks).await.expect("it is there again");
    assert_eq!(kept.misses, 0);
    fs::remove_file(&path).unwrap();
    let kept = kept.look(&looks).await.expect("missed once");
    assert!(kept.look(&looks).await.is_none());
}
