//! Sessions at a run, as every engine must serve them: commands, attaching, connections.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{ALL, Fixture, LONG_MS, Stage};
use engine::{Error, ExecSpec, Exit, Input, Output, RunKey, RunSpec, Session, TerminalSize};

const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// A client of a session, in the words of the scenarios.
struct Visitor {
    session: Session,
    seen: String,
}

impl Visitor {
    fn at(session: Session) -> Self {
        Self { session, seen: String::new() }
    }

    async fn send(&self, input: Input) {
        self.session.input.send(input).await.expect("the session lives");
    }

    async fn types(&self, text: &str) {
        self.send(Input::Bytes(text.as_bytes().to_vec())).await;
    }

    /// Waits until it has seen this, and forgets what came before.
    async fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.session.output.recv().await {
                Some(Output::Stdout(bytes) | Output::Stderr(bytes)) => {
                    self.seen.push_str(&String::from_utf8_lossy(&bytes));
                }
                other => panic!("waits for {text:?} after {:?}, but {other:?}", self.seen),
            }
        }
        let (_, rest) = self.seen.split_once(text).expect("it is there");
        self.seen = rest.to_owned();
    }

    /// The number after `pid `, on a line of its own.
    async fn sees_pid(&mut self) -> u32 {
        self.sees("pid ").await;
        while !self.seen.contains('\n') {
            match self.session.output.recv().await {
                Some(Output::Stdout(more)) => self.seen.push_str(&String::from_utf8_lossy(&more)),
                other => panic!("waits for a number after {:?}, but {other:?}", self.seen),
            }
        }
        let (number, rest) = self.seen.split_once('\n').expect("a line");
        let number = number.trim().parse().expect("a number");
        self.seen = rest.to_owned();
        number
    }

    /// Standard output and standard error until the end, and the exit status; `None` if the session
    /// broke off.
    async fn rest(mut self) -> (String, String, Option<Exit>) {
        let (mut shown, mut errors) = (self.seen.into_bytes(), Vec::new());
        let end = loop {
            match self.session.output.recv().await {
                Some(Output::Stdout(bytes)) => shown.extend(bytes),
                Some(Output::Stderr(bytes)) => errors.extend(bytes),
                Some(Output::End(exit)) => break Some(exit),
                None => break None,
            }
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(shown), text(errors), end)
    }
}

fn shell(script: &str) -> ExecSpec {
    ExecSpec {
        command: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
        ..ExecSpec::default()
    }
}

impl Stage {
    /// A run that waits to be stopped.
    async fn waiting(&mut self, spec: RunSpec) -> RunKey {
        let key = self.start(spec).await;
        self.running(key).await;
        self.wait_for_output(key, "ready").await;
        key
    }

    /// Makes a file in the folder of the run, as a signal for it. The run may end on that, and the
    /// command with it.
    pub(crate) async fn touches(&self, key: RunKey, file: &str) {
        self.exec(key, shell(&format!(": >{file}"))).await.rest().await;
    }

    async fn exec(&self, key: RunKey, what: ExecSpec) -> Visitor {
        Visitor::at(self.engine.exec(key, what).await.expect("it runs"))
    }

    async fn attach(&self, key: RunKey, stdin: bool, terminal: Option<TerminalSize>) -> Visitor {
        Visitor::at(self.engine.attach(key, stdin, terminal).await.expect("it runs"))
    }
}

const WAIT: &str = "echo ready; while :; do sleep 0.05; done";

/// A command in a run has its environment and folder; its output and errors are separate, and its
/// exit code is its own.
pub async fn runs_commands_where_the_run_is(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let mut spec = fixture.script(&format!("echo \"$GREETING from $JOB_NAME in $PWD\"; {WAIT}"));
    spec.env.insert("GREETING".to_owned(), "hello".to_owned());
    let key = stage.waiting(spec).await;
    let what = shell("echo \"$GREETING from $JOB_NAME in $PWD\"; echo $TERM-$0 >&2; exit 3");
    let env = [("TERM".to_owned(), "dumb".to_owned())].into();
    let (shown, errors, end) = stage.exec(key, ExecSpec { env, ..what }).await.rest().await;
    assert!(stage.output(key, ALL).await.starts_with(&shown) && shown.starts_with("hello from "));
    assert_eq!((errors.as_str(), end), ("dumb-sh\n", Some(Exit::Code(3))));
}

/// A command reads its input to the end; without an input there is none.
pub async fn hands_commands_what_is_typed(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(WAIT)).await;
    let counts = stage.exec(key, ExecSpec { stdin: true, ..shell("wc -c") }).await;
    let piece = "0123456789".repeat(30_000);
    counts.types(&piece).await;
    counts.types(&piece).await;
    counts.send(Input::Eof).await;
    let (shown, _, end) = counts.rest().await;
    assert_eq!((shown.trim(), end), ("600000", Some(Exit::Code(0))));
    let (shown, _, end) = stage.exec(key, shell("cat; echo none")).await.rest().await;
    assert_eq!((shown.as_str(), end), ("none\n", Some(Exit::Code(0))));
}

/// A terminal has the size it is given, passes on keys that interrupt, and the exit code.
pub async fn gives_commands_a_terminal(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(WAIT)).await;
    let what = ExecSpec {
        command: vec!["sh".to_owned()],
        stdin: true,
        terminal: Some(SIZE),
        env: [("PS1".to_owned(), "> ".to_owned())].into(),
    };
    let mut person = stage.exec(key, what).await;
    person.sees("> ").await;
    person.types("stty size\n").await;
    person.sees("24 80\r\n").await;
    person.send(Input::Resize(TerminalSize { rows: 33, columns: 101 })).await;
    // One program for the shell, which starts nothing after it was seen: a key that comes while
    // `dash` starts something is lost on both.
    person.types("sh -c 'stty size; read forever'\n").await;
    person.sees("33 101\r\n").await;
    person.types("\x03").await;
    person.sees("> ").await;
    person.types("tty && exit 7\n").await;
    let (_, _, end) = person.rest().await;
    assert_eq!(end, Some(Exit::Code(7)));
}

/// A program that is not there is named.
pub async fn says_which_program_is_not_there(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(WAIT)).await;
    let command = vec!["no-such-program-here".to_owned()];
    let (shown, errors, end) =
        stage.exec(key, ExecSpec { command, ..ExecSpec::default() }).await.rest().await;
    let why = match end {
        Some(Exit::CannotRun(why)) => why,
        Some(Exit::Code(126 | 127)) => shown + &errors,
        other => panic!("{other:?}"),
    };
    assert!(why.contains("no-such-program-here"), "{why}");
}

/// A command ends with its client, and the run goes on.
pub async fn ends_a_command_whose_caller_goes_away(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(WAIT)).await;
    let script = "trap '' HUP TERM; echo pid $$; while :; do sleep 0.05; done";
    let mut person = stage.exec(key, shell(script)).await;
    let pid = person.sees_pid().await;
    drop(person);
    while fixture.is_alive(pid) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (shown, _, _) = stage.exec(key, shell("echo it runs")).await.rest().await;
    assert_eq!(shown, "it runs\n");
}

/// A process that a command leaves in the background lives as long as the run: after the end of the
/// command, whether or not it holds the command's output, and after its client has gone.
pub async fn keeps_what_runs_in_the_background(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(WAIT)).await;
    // As `nohup` does it, which not every image has.
    const IGNORES: &str = "trap \"\" HUP;";
    let waits = |name: &str, trap: &str| {
        format!(
            "sh -c '{trap} :>{name}-up; while [ ! -e go ]; do sleep 0.05; done; :>{name}; \
             while :; do sleep 0.05; done'"
        )
    };
    let told =
        |name: &str| format!("& while [ ! -e {name}-up ]; do sleep 0.05; done; echo \"pid\" $!");
    let mut living = Vec::new();
    for (name, to) in [("quiet", ">/dev/null 2>&1"), ("loud", "")] {
        let body = waits(name, IGNORES);
        let what = shell(&format!("{body} {to} {}; echo last; exit 3", told(name)));
        let mut person = stage.exec(key, what).await;
        living.push(person.sees_pid().await);
        let (shown, _, end) = person.rest().await;
        assert_eq!((shown.as_str(), end), ("last\n", Some(Exit::Code(3))), "{name}");
    }
    for (name, how, trap) in [("left", "", IGNORES), ("apart", "setsid", "")] {
        let body = format!("{how} {} >/dev/null 2>&1", waits(name, trap));
        let rest = "trap '' HUP; while :; do sleep 0.05; done";
        let script = format!("echo $$ >pid-{name}; {body} {}; {rest}", told(name));
        let mut person = stage.exec(key, shell(&script)).await;
        living.push(person.sees_pid().await);
        drop(person);
        let gone = format!("while kill -0 $(cat pid-{name}); do sleep 0.05; done");
        stage.exec(key, shell(&gone)).await.rest().await;
    }
    let what = ExecSpec {
        command: vec!["sh".to_owned()],
        stdin: true,
        terminal: Some(SIZE),
        env: [("PS1".to_owned(), "> ".to_owned())].into(),
    };
    let mut person = stage.exec(key, what).await;
    person.sees("> ").await;
    let body = waits("typed", IGNORES);
    person.types(&format!("{body} >/dev/null 2>&1 {}\n", told("typed"))).await;
    living.push(person.sees_pid().await);
    drop(person);
    stage.touches(key, "go").await;
    let all = "while [ ! -e $0 ]; do sleep 0.05; done";
    for name in ["quiet", "loud", "left", "apart", "typed"] {
        stage.exec(key, shell(&all.replace("$0", name))).await.rest().await;
    }
    stage.stop(key, LONG_MS).await;
    stage.exit(key).await;
    assert!(living.iter().all(|pid| !fixture.is_alive(*pid)), "they end with the run");
}

/// No command outlives its run, and none can be started in one that has ended.
pub async fn ends_commands_with_their_run(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(&format!("trap 'exit 0' TERM; {WAIT}"))).await;
    let command = shell("trap '' TERM HUP; echo pid $$; while :; do sleep 0.05; done");
    let mut person = stage.exec(key, command).await;
    person.sees("\n").await;
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Code(0), "the main process decides");
    let (_, _, end) = person.rest().await;
    assert_ne!(end, Some(Exit::Code(0)), "it did not end by itself");
    let refused = stage.engine.exec(key, shell("true")).await;
    assert!(matches!(refused, Err(Error::NotRunning(_))), "{refused:?}");
    let unknown = fixture.script("").key;
    let refused = stage.engine.exec(unknown, shell("true")).await;
    assert!(matches!(refused, Err(Error::NoSuchRun(_))), "{refused:?}");
}

/// All who attach to a terminal see the same, each may type, and a crash of the server is nothing
/// to it. The exit code is the run's.
pub async fn keeps_the_terminal_of_a_run(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let mut spec = fixture.script(
        "echo ready; while read line; do [ \"$line\" = bye ] && exit 5; \
         echo \"got $line at $(stty size)\"; done",
    );
    (spec.stdin, spec.tty) = (true, true);
    let key = stage.waiting(spec).await;
    let mut one = stage.attach(key, true, Some(SIZE)).await;
    let mut other = stage.attach(key, false, None).await;
    one.types("a\n").await;
    one.sees("got a at 24 80\r\n").await;
    other.sees("got a at 24 80\r\n").await;
    drop((one, other, stage));
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    let mut person = stage.attach(key, true, Some(TerminalSize { rows: 9, columns: 99 })).await;
    person.types("b\n").await;
    person.sees("got b at 9 99\r\n").await;
    assert!(!person.seen.contains("got a"), "what is past is in the logs");
    person.types("bye\n").await;
    let (_, _, end) = person.rest().await;
    assert_eq!((end, stage.exit(key).await), (Some(Exit::Code(5)), Exit::Code(5)));
    assert!(stage.output(key, ALL).await.contains("got a at 24 80"));
}

/// The input of a client ends where that client ends it, whatever other clients are attached; those
/// without an input add nothing and end nothing.
pub async fn hands_the_main_process_what_is_typed(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let mut spec = fixture.script("echo ready; wc -c; exit 4");
    spec.stdin = true;
    let key = stage.waiting(spec).await;
    let onlooker = stage.attach(key, false, None).await;
    onlooker.types("none of this").await;
    onlooker.send(Input::Eof).await;
    let _command = stage.exec(key, shell("sleep 600")).await;
    let person = stage.attach(key, true, None).await;
    person.types("12345").await;
    person.send(Input::Eof).await;
    let (shown, _, end) = person.rest().await;
    assert_eq!((shown.trim(), end), ("5", Some(Exit::Code(4))));
}

/// Without an input the output is shown, and an error says why there is no input.
pub async fn shows_a_run_without_an_input(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap 'echo bye; exit 6' TERM; echo ready; while :; do sleep 0.05; done";
    let key = stage.waiting(fixture.script(script)).await;
    for (stdin, terminal) in [(true, None), (false, Some(SIZE)), (true, Some(SIZE))] {
        let refused = stage.engine.attach(key, stdin, terminal).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let person = stage.attach(key, false, None).await;
    stage.stop(key, LONG_MS).await;
    let (shown, _, end) = person.rest().await;
    assert!(shown.ends_with("bye\n") && !shown.contains("ready"), "{shown}");
    assert_eq!(end, Some(Exit::Code(6)));
}

/// A port of the run is reached, and no other: neither that of another run nor one of the machine.
pub async fn connects_to_ports_of_the_run_only(fixture: &mut dyn Fixture) {
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let taken = free.local_addr().expect("bound").port();
    let (port, Some(listen)) = ({
        let other = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = other.local_addr().expect("bound").port();
        (port, fixture.echo(port))
    }) else {
        return;
    };
    let mut stage = Stage::new(fixture);
    let key = stage.waiting(fixture.script(&format!("echo ready; {listen}"))).await;
    let bystander = stage.waiting(fixture.script(WAIT)).await;
    let mut line = loop {
        match stage.engine.connect(key, port).await {
            Ok(line) => break line,
            // It has not begun to listen.
            Err(Error::Invalid(_)) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    };
    line.write_all(b"hello").await.expect("it reads");
    line.shutdown().await.expect("it hears that there is no more");
    let mut back = String::new();
    line.read_to_string(&mut back).await.expect("it answers");
    assert_eq!(back, "hello");
    for (key, port) in [(bystander, port), (key, taken), (key, 1)] {
        let refused = stage.engine.connect(key, port).await.map(|_| ());
        assert!(matches!(refused, Err(Error::Invalid(_))), "{port}: {refused:?}");
    }
}
