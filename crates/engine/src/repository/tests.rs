//! Copies from a server of the test, faults and hostile servers. Owns: the scenarios.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::oneshot;

use super::*;
use crate::Login;
use crate::copy::{Bounds, NotCopied, Origin, patiently};
use engine_conformance::GitServer;

fn of(address: String) -> Repository {
    Repository { address, branch: None, revision: None, login: None }
}

/// Silence of a server that only a hang reaches.
const LONG: Duration = Duration::from_secs(120);

struct Desk {
    folder: tempfile::TempDir,
    told: Mutex<Vec<String>>,
    silence_max: Duration,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, told: Mutex::default(), silence_max: LONG }
    }

    /// With one further attempt.
    async fn copy(&self, repository: &Repository) -> Result<(), NotCopied> {
        self.copy_up_to(1 << 30, repository).await
    }

    async fn copy_up_to(&self, bytes_max: u64, repository: &Repository) -> Result<(), NotCopied> {
        let (_wanted, mut stop) = oneshot::channel();
        let tell = |what| self.told.lock().unwrap().push(what);
        let (to, pauses) = (self.folder.path().join("copy"), [Duration::ZERO]);
        let bounds = Bounds { bytes_max, silence_max: self.silence_max, pauses: &pauses };
        patiently(Origin::Repository(repository), &to, &mut stop, &tell, bounds).await
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_and_tried_again() {
    let server = GitServer::open();
    let desk = Desk { silence_max: Duration::from_millis(500), ..Desk::new() };
    server.silence().be(true);
    let Err(NotCopied::Failed(why)) = desk.copy(&of(server.http())).await else { panic!() };
    assert!(why.contains("nothing came for 0 s"), "{why}");
    let told = desk.told.lock().unwrap().join("\n");
    assert_eq!(told.matches("trying again in 0 s").count(), 1, "{told}");
    server.silence().await_leaving();
    server.silence().await_leaving();
}

#[tokio::test]
async fn a_copy_is_made_anew_whatever_lies_there() {
    let (server, desk) = (GitServer::open(), Desk::new());
    let (copy, other) = (desk.folder.path().join("copy"), desk.folder.path().join("other"));
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("kept"), "").unwrap();
    std::fs::create_dir_all(copy.join(".git")).unwrap();
    symlink(&other, copy.join("hello")).unwrap();
    assert_eq!(desk.copy(&of(server.git())).await, Ok(()));
    assert_eq!(std::fs::read_to_string(copy.join("hello")).unwrap(), "new\n");
    assert!(other.join("kept").exists());
}

#[tokio::test]
async fn a_repository_that_is_too_large_is_refused_at_once() {
    let (server, desk) = (GitServer::open(), Desk::new());
    let copied = desk.copy_up_to(8 << 10, &of(server.git())).await;
    let Err(NotCopied::Failed(why)) = copied else { panic!("{copied:?}") };
    assert!(why.contains("more than 8KiB") && why.contains("--copies-max"), "{why}");
    let told = desk.told.lock().unwrap().join("\n");
    assert!(!told.contains("trying again"), "it would be as large another time: {told}");
}

#[tokio::test]
async fn nothing_of_this_machine_is_copied() {
    for address in ["file:///etc", "ext::sh -c true", "ssh://127.0.0.1/x"] {
        let Err(NotCopied::Failed(why)) = Desk::new().copy(&of(address.into())).await else {
            panic!()
        };
        assert!(why.contains("not allowed"), "{why}");
    }
}

#[tokio::test]
async fn a_login_goes_to_the_server_of_the_address_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://127.0.0.1:{}/x", listener.local_addr().unwrap().port());
    let server = GitServer::with_login("me", "hush");
    let target = server.http();
    std::thread::spawn(move || {
        for visitor in listener.incoming().flatten() {
            redirect(visitor, &target);
        }
    });
    let login = Some(Login { user: "me".into(), password: "hush".into() });
    let Err(NotCopied::Failed(why)) = Desk::new().copy(&Repository { login, ..of(address) }).await
    else {
        panic!("the login of one server was given to another")
    };
    assert!(why.contains("it wants a login"), "{why}");
}

fn redirect(mut visitor: std::net::TcpStream, target: &str) {
    use std::io::{BufRead as _, Write as _};
    let mut lines = std::io::BufReader::new(visitor.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let rest = first.split_whitespace().nth(1).unwrap().trim_start_matches("/x").to_owned();
    while lines.next().unwrap().unwrap() != "" {}
    let answer = format!(
        "HTTP/1.1 302 There\r\nLocation: {target}{rest}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    visitor.write_all(answer.as_bytes()).unwrap();
}

#[tokio::test]
async fn a_login_that_no_server_can_be_told_is_refused() {
    let login = Some(Login { user: "me".into(), password: "a\nhost=elsewhere".into() });
    let repository = Repository { login, ..of("http://127.0.0.1:1/x".into()) };
    let Err(NotCopied::Failed(why)) = Desk::new().copy(&repository).await else { panic!() };
    assert!(why.contains("line break") && !why.contains("elsewhere"), "{why}");
}

#[test]
fn the_origin_of_an_address_is_its_server() {
    assert_eq!(origin("https://git.example:8443/a/b?c"), Some("https://git.example:8443"));
    assert_eq!(origin("http://git.example"), Some("http://git.example"));
    for wrong in ["http://x.helper=!id;/y", "http:///y", "http://a b/y", "git.example/x"] {
        assert_eq!(origin(wrong), None, "{wrong}");
    }
}
