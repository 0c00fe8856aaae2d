//! Sessions with a pod: a real terminal, ports, and output that is followed during an outage of the
//! server.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fixture::STUCK_AFTER;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::crash::number_from;
use crate::sandbox::{Sandbox, finish, free_port, wait_until};

/// Maximum time until a drawn page is complete; then it is requested again.
const DRAWN_WITHIN: Duration = Duration::from_secs(2);
/// Bytes that a pod sends through a forwarded port.
const FLOOD_BYTES: u64 = 1 << 30;
/// The test whose pod runs the same program with the same name, and gets its port.
const FLOOD: &str =
    "sessions::a_port_carries_a_gigabyte_also_after_idle_minutes_and_outlives_the_server";

/// A server with a project.
fn started() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    let made = "elastane project create team-a --gpu-quota 1 && runai config project team-a";
    assert_eq!(sandbox.shell(made).code, Some(0));
    sandbox
}

/// Submits, and waits until it runs.
fn running(sandbox: &Sandbox, submit: &str, name: &str) {
    let submitted = sandbox.shell(submit);
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    let runs = || sandbox.shell(&format!("runai exec {name} -- true")).code == Some(0);
    assert!(wait_until(runs), "{}", sandbox.shell(&format!("runai describe job {name}")).text);
}

/// Sends a signal to the command that begins so, and to none above it.
pub(crate) fn end(sandbox: &Sandbox, command: &str, signal: Signal) {
    let all = sandbox.processes();
    let it = all.into_iter().find(|one| one.command.starts_with(command));
    let pid = it.and_then(|one| i32::try_from(one.pid).ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("it is there"), signal).expect("ours");
}

/// A terminal with a program.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    shown: mpsc::Receiver<Vec<u8>>,
    seen: String,
    size: (u16, u16),
}

impl Terminal {
    pub(crate) fn with(sandbox: &Sandbox, line: &str, size: (u16, u16)) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        unlockpt(&master).expect("unlocked");
        resize(&master, size);
        let slave = ioctl_tiocgptpeer(&master, flags).expect("its other side");
        let child = sandbox.at_terminal(line, slave);
        let master = File::from(master);
        let mut from = master.try_clone().expect("a handle");
        let (to, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                if to.send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { master, child, shown, seen: String::new(), size }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("somebody reads");
    }

    /// Waits until this text is shown, and discards the output before it.
    pub(crate) fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let more = self.shown.recv_timeout(STUCK_AFTER);
            let more =
                more.unwrap_or_else(|_| panic!("waits for {text:?}; there is {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
        let (_, rest) = self.seen.split_once(text).expect("it is there");
        self.seen = rest.to_owned();
    }

    /// Waits for a line `end`; no line before it may be longer than this.
    fn sees_lines_within(&mut self, columns: usize) {
        while !self.seen.contains("end\r\n") {
            let more = self.shown.recv_timeout(STUCK_AFTER).expect("it ends");
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
        for line in self.seen.lines() {
            assert!(line.chars().count() <= columns, "{line}");
        }
        assert!(self.seen.lines().count() >= 3, "{}", self.seen);
    }

    /// Changes its size.
    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        resize(&OwnedFd::from(self.master.try_clone().expect("a handle")), size);
    }

    /// Waits until a word is shown by a program that draws only changes; it draws everything when
    /// the size changes.
    pub(crate) fn shows(&mut self, word: &str) {
        let shown = wait_until(|| {
            self.seen.clear();
            self.resize((self.size.0, self.size.1 ^ 1));
            let until = Instant::now() + DRAWN_WITHIN;
            while !self.seen.contains(word) {
                let left = until.saturating_duration_since(Instant::now());
                let Ok(more) = self.shown.recv_timeout(left) else { return false };
                self.seen.push_str(&String::from_utf8_lossy(&more));
            }
            true
        });
        assert!(shown, "waits for {word:?}; there is {:?}", self.seen);
    }

    /// True if input is read line by line and echoed, as a shell leaves a terminal.
    pub(crate) fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.master).expect("a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("a child").code()
    }
}

fn resize(master: &OwnedFd, (rows, columns): (u16, u16)) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("a terminal");
}

#[test]
fn everything_is_deleted_at_a_terminal_only_after_a_yes() {
    let sandbox = started();
    for name in ["a1", "a2"] {
        running(&sandbox, &format!("runai submit {name} -i ubuntu --command -- sleep 1000"), name);
    }
    for (line, typed) in [("runai delete --all", "n\n"), ("runai training delete -A", "\u{4}")] {
        let mut person = Terminal::with(&sandbox, line, (24, 80));
        person.sees("a1 (Running)\r\n  a2 (Running)\r\nDelete them? [y/N]");
        person.types(typed);
        person.sees("error: nothing was deleted");
        assert_eq!(person.exit_code(), Some(1), "{line}");
    }
    assert_eq!(sandbox.shell("runai list -o name").text, "training/a1\ntraining/a2\n");
    let mut person = Terminal::with(&sandbox, "runai delete --all", (24, 80));
    person.sees("Delete them?");
    person.types("y\n");
    person.sees("2 jobs deleted.");
    assert_eq!(person.exit_code(), Some(0));
    running(&sandbox, "runai submit a3 -i ubuntu --command -- sleep 1000", "a3");
    let mut person = Terminal::with(&sandbox, "runai delete --all -y", (24, 80));
    person.sees("1 job deleted.");
    running(&sandbox, "runai submit a4 -i ubuntu --command -- sleep 1000", "a4");
    assert_eq!(sandbox.shell("runai delete --all").code, Some(0), "nobody is there to ask");
}

#[test]
fn a_list_is_as_wide_as_the_terminal_and_has_colours_there() {
    let sandbox = started();
    running(&sandbox, "runai submit a1 -i ubuntu --command -- sleep 1000", "a1");
    let mut person = Terminal::with(&sandbox, "runai list; echo end", (24, 80));
    person.sees("NAME");
    person.sees("\u{1b}[32mRunning\u{1b}[0m");
    let lists =
        ["list", "list -A", "list nodes", "list projects", "top node", "top job", "workload list"];
    for list in lists {
        let line = format!("NO_COLOR=1 runai {list}; echo end");
        let mut person = Terminal::with(&sandbox, &line, (24, 60));
        person.sees_lines_within(60);
    }
}

#[test]
fn a_shell_in_a_pod_is_as_one_here() {
    let sandbox = started();
    running(
        &sandbox,
        "runai submit build1 -i ubuntu --interactive --command -- sleep infinity",
        "build1",
    );
    let mut person = Terminal::with(&sandbox, "exec runai bash build1", (31, 97));
    person.types("echo \"in $JOB_NAME $((40+2))\"\n");
    person.sees("in build1 42");
    assert!(!person.is_as_before(), "keys are handed on as they are");
    person.types("stty size\n");
    person.sees("31 97\r\n");
    person.resize((40, 120));
    person.types("until stty size | grep '^40 120'; do sleep 0.05; done\n");
    person.sees("40 120\r\n");
    person.types("sh -c 'echo $((1+1))-asleep; exec sleep 600'\n");
    person.sees("2-asleep");
    person.types("\x03");
    person.types("echo back $?\n");
    person.sees("back 130");
    person.types("exit 9\n");
    assert_eq!(person.exit_code(), Some(9));
    assert!(person.is_as_before());
}

#[test]
fn what_is_submitted_here_is_at_this_terminal() {
    let sandbox = started();
    for line in [
        "runai submit a1 -i ubuntu --backoff-limit 0 --stdin --tty --attach --command -- sh",
        "runai training submit a2 -i ubuntu --backoff-limit 0 --attach -c -- sh",
    ] {
        let mut person = Terminal::with(&sandbox, &format!("exec {line}"), (31, 97));
        person.sees("Connecting to pod");
        person.types("stty size; echo $((40+2))\n");
        person.sees("31 97\r\n");
        person.sees("42\r\n");
        assert!(!person.is_as_before(), "keys are handed on as they are");
        person.types("exit 9\n");
        assert_eq!(person.exit_code(), Some(9), "{line}");
        assert!(person.is_as_before());
    }
    let piped = "echo hello | runai submit a3 -i ubuntu --attach --command -- sh -c \
                 'read line; cat; echo it is $line' 2>&1";
    let output = sandbox.shell(piped);
    assert_eq!(output.code, Some(0), "{}", output.text);
    assert!(output.text.contains("it is hello"), "{}", output.text);
}

#[test]
fn who_waits_in_vain_to_attach_learns_why_and_how_to_come_back() {
    let sandbox = started();
    running(&sandbox, "runai submit full -i ubuntu -g 1 --command -- sleep infinity", "full");
    let late = "runai submit late -i ubuntu -g 1 --attach --pod-running-timeout 1s --command -- sh";
    let output = sandbox.shell(&format!("{late} 2>&1"));
    assert_eq!(output.code, Some(1), "{}", output.text);
    for said in ["late is Pending: P", "`runai attach late -p team-a` comes back to it"] {
        assert!(output.text.contains(said), "{}", output.text);
    }
    assert_eq!(sandbox.shell("runai delete full").code, Some(0));
    let mut person = Terminal::with(&sandbox, "exec runai attach late -p team-a", (24, 80));
    person.sees("Connecting to pod");
    person.types("exit 3\n");
    assert_eq!(person.exit_code(), Some(3));
}

#[test]
fn what_is_only_asked_about_is_checked_and_not_submitted() {
    let sandbox = started();
    running(&sandbox, "runai submit full -i ubuntu -g 1 --command -- sleep infinity", "full");
    for (line, code, text) in [
        ("submit -i ubuntu -g 1 --dry-run", 0, "name: job-0\n"),
        ("training submit t -i ubuntu -g 1 --dry-run", 0, "gpuDevicesRequest: 1\n"),
        ("training submit full -i ubuntu --dry-run", 1, "`runai delete full -p team-a`"),
        ("submit t -i ubuntu -v data:/d --dry-run", 1, "storage.hostPath"),
        ("submit t -i ubuntu --template none --dry-run", 4, "none"),
        ("submit t -i ubuntu --what-if", 0, "t would start on "),
        ("pytorch submit t -i ubuntu --workers 1 --what-if", 0, "2 of the 2 pods of t would start"),
        ("submit t -i ubuntu -g 1 --what-if", 0, "t would wait:\n  P"),
        ("inference submit t -i ubuntu --serving-port 80 --what-if", 0, "t would start on "),
    ] {
        let output = sandbox.shell(&format!("runai {line} 2>&1"));
        assert!(output.text.contains(text), "{line}: {}", output.text);
        assert_eq!(output.code, Some(code), "{line}: {}", output.text);
        assert!(!line.ends_with("if") || output.text.ends_with("Nothing was submitted.\n"));
    }
    let list = sandbox.shell("runai list --json").text;
    assert_eq!(list.matches("\"full\"").count(), list.matches("\"name\"").count(), "{list}");
}

#[test]
fn a_terminal_is_put_back_however_it_ends() {
    let mut sandbox = started();
    running(
        &sandbox,
        "runai submit build1 -i ubuntu --interactive --command -- sh -c 'echo up; sleep infinity'",
        "build1",
    );
    let mut person = Terminal::with(&sandbox, "runai bash build1; echo code $?", (24, 80));
    person.types("echo here-$((1+1))\n");
    person.sees("here-2");
    end(&sandbox, "runai bash build1", Signal::TERM);
    person.sees("code 143");
    assert!(person.is_as_before());
    let mut person = Terminal::with(&sandbox, "runai bash build1; echo code $?", (24, 80));
    person.types("echo here-$((1+1))\n");
    person.sees("here-2");
    let mut follower = Terminal::with(&sandbox, "runai logs -f build1; echo code $?", (24, 80));
    follower.sees("up");
    sandbox.kill_server();
    person.sees("connection lost");
    person.sees("code 1");
    assert!(person.is_as_before());
    follower.sees("connection lost");
}

#[test]
fn commands_are_pipes_where_nobody_is_at_a_terminal() {
    let sandbox = started();
    running(
        &sandbox,
        "runai submit build1 -i ubuntu --interactive --command -- sleep infinity",
        "build1",
    );
    for (line, code, text) in [
        ("echo hello | runai exec -i build1 -- tr a-z A-Z", 0, "HELLO\n"),
        ("runai exec build1 -- sh -c 'echo no >&2; exit 5' 2>&1 >/dev/null", 5, "no\n"),
        ("runai exec build1 cat", 0, ""),
        ("echo 'echo it is $0' | runai bash build1 2>/dev/null", 0, "it is /bin/bash\n"),
        ("runai exec build1 -- sh -c 'kill -9 $$'", 137, ""),
    ] {
        let output = sandbox.shell(line);
        assert_eq!((output.code, output.text.as_str()), (Some(code), text), "{line}");
    }
    for (line, code, text) in [
        ("runai exec build1 -- no-such-program", 127, "`no-such-program`: command not found"),
        ("runai bash nobody", 4, "Job nobody does not exist"),
        ("runai exec build1 --pod nobody -- true", 4, "pod nobody was not found"),
        ("runai attach nobody", 4, "Job nobody does not exist"),
        ("runai port-forward nobody --port 1:1", 4, "Job nobody does not exist"),
        ("runai port-forward build1 --port x:1", 2, "write LOCAL:REMOTE"),
        ("runai exec build1 -- 'a", 2, ""),
    ] {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(code), "{line}: {}", output.text);
        assert!(output.text.contains(text), "{line}: {}", output.text);
    }
}

/// Content of a file that a command writes.
fn told(sandbox: &Sandbox, file: &str) -> String {
    std::fs::read_to_string(sandbox.home().join(file)).unwrap_or_default()
}

#[test]
fn lines_are_told_with_their_times_also_through_a_restart() {
    let mut sandbox = started();
    // Created from outside: a command that ends its own pod may be ended with it.
    let go = sandbox.home().join("go");
    let script = format!("echo a; while [ ! -e {} ]; do sleep 0.05; done; echo b", go.display());
    let submit = format!("runai submit old -i ubuntu --command -- sh -c '{script}'");
    running(&sandbox, &submit, "old");
    let following = sandbox.begin("runai logs -f --timestamps old 2>/dev/null | tee told");
    assert!(wait_until(|| told(&sandbox, "told").ends_with(" a\n")));
    // There is no output for a while.
    std::thread::sleep(Duration::from_secs(3));
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    assert_eq!(sandbox.shell("runai exec old -- true").code, Some(0));
    std::fs::write(go, "").expect("a file");
    let all = finish(following).text;
    let lines: Vec<_> = all.lines().filter_map(|line| line.split_once(' ')).collect();
    let [(of_a, "a"), (of_b, "b")] = lines[..] else { panic!("{all}") };
    assert!(of_a < of_b, "{all}");
    for (flags, text) in [
        (format!("--since-time {of_b}"), "b\n"),
        ("--since 2h".to_owned(), "a\nb\n"),
        ("--since-time 2126-01-31T12:00:00Z 2>/dev/null".to_owned(), ""),
    ] {
        assert_eq!(sandbox.shell(&format!("runai logs old {flags}")).text, text, "{flags}");
    }
}

#[test]
fn output_is_followed_through_a_restart() {
    let mut sandbox = started();
    let go = sandbox.home().join("go");
    let script = format!(
        "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.01; done; \
         while [ ! -e {} ]; do sleep 0.05; done; echo last",
        go.display()
    );
    running(
        &sandbox,
        &format!("runai submit count -i ubuntu --command -- sh -c '{script}'"),
        "count",
    );
    let following = sandbox.begin("runai logs -f count 2>/dev/null | tee all");
    let tail = sandbox.begin("sleep 0.5; runai logs -f -t 1 count 2>/dev/null | tee tail");
    let begun = |file| wait_until(|| told(&sandbox, file).contains('\n'));
    assert!(begun("all") && begun("tail"));
    for _ in 0..2 {
        sandbox.kill_server();
        sandbox.start_server("elastane up --gpus 1x16GiB");
    }
    assert_eq!(sandbox.shell("runai exec count -- true").code, Some(0));
    std::fs::write(go, "").expect("a file");
    let all: String =
        (0..400).map(|n| format!("line {n}\n")).chain(["last\n".to_owned()]).collect();
    assert_eq!(finish(following).text, all, "nothing twice, nothing missed");
    let tail = finish(tail).text;
    assert!(tail.len() > 5 && all.ends_with(&tail), "{tail}");
}

#[test]
fn output_is_followed_from_one_run_to_the_next_until_the_job_is_over() {
    let sandbox = started();
    let go = sandbox.home().join("go");
    let script = format!("echo try; while [ ! -e {} ]; do sleep 0.1; done; exit 3", go.display());
    let submit =
        format!("runai submit again -i ubuntu --backoff-limit 1 --command -- sh -c '{script}'");
    running(&sandbox, &submit, "again");
    let following = sandbox.begin("runai logs -f again 2>/dev/null | tee told");
    assert!(wait_until(|| told(&sandbox, "told") == "try\n"));
    std::fs::write(go, "").expect("a file");
    let following = finish(following);
    assert_eq!((following.code, following.text.as_str()), (Some(0), "try\ntry\n"));
    let first = sandbox.shell("runai logs -f again --pod again-0-1");
    assert_eq!(first.text, "try\n", "just the run that is named");
}

/// Program of the pod: a client that connects and requests a number of bytes gets them.
fn flood(port: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port")));
    for stream in listener.expect("its port").incoming().flatten() {
        std::thread::spawn(move || {
            let mut asked = [0; 8];
            (&stream).read_exact(&mut asked)?;
            let mut sevens = std::io::repeat(7).take(u64::from_le_bytes(asked));
            std::io::copy(&mut sevens, &mut &stream)
        });
    }
}

/// Number of bytes that arrive at a local port, with an idle time after connecting, and another one
/// before the answer is read.
fn arrived(port: u16, bytes: u64, unasked: Duration, unread: Duration) -> u64 {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return 0 };
    std::thread::sleep(unasked);
    if stream.write_all(&bytes.to_le_bytes()).is_err() {
        return 0;
    }
    std::thread::sleep(unread);
    let (mut piece, mut count) = (vec![0; 1 << 20], 0);
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        assert!(piece[..length].iter().all(|byte| *byte == 7));
        count += length as u64;
    }
    count
}

#[test]
fn a_port_carries_a_gigabyte_also_after_idle_minutes_and_outlives_the_server() {
    if let Ok(port) = std::env::var("FLOOD_PORT") {
        return flood(&port);
    }
    let mut sandbox = started();
    let [there, here] = [(); 2].map(|()| free_port());
    let program = std::env::current_exe().expect("this program");
    let submit = format!(
        "runai submit flood -i ubuntu -e FLOOD_PORT={there} --command -- {} --exact {FLOOD}",
        program.display()
    );
    running(&sandbox, &submit, "flood");
    let forward = sandbox.begin(&format!("exec runai port-forward flood --port {here}:{there}"));
    let (none, idle) =
        (Duration::ZERO, Duration::from_secs(number_from("ELASTANE_SOAK_IDLE_S", 1)));
    assert!(wait_until(|| arrived(here, FLOOD_BYTES, none, none) == FLOOD_BYTES));
    // More than fits in the buffers on the way.
    let some = FLOOD_BYTES / 16;
    let later = [(idle, none), (none, idle)];
    let later = later
        .map(|(unasked, unread)| std::thread::spawn(move || arrived(here, some, unasked, unread)));
    for bytes in later {
        assert_eq!(bytes.join().expect("a count"), some);
    }
    sandbox.kill_server();
    assert_eq!(arrived(here, FLOOD_BYTES, none, none), 0, "nobody answers");
    sandbox.start_server("elastane up --gpus 1x16GiB");
    let mut first = [0; 1];
    assert!(wait_until(|| {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, here)) else { return false };
        stream.write_all(&[1; 8]).is_ok() && stream.read(&mut first).is_ok_and(|count| count == 1)
    }));
    end(&sandbox, "runai port-forward", Signal::INT);
    let text = finish(forward).text;
    assert!(text.starts_with(&format!("Forwarding from 127.0.0.1:{here} -> {there}\n")), "{text}");
}
