//! Attacks of one user's runs on those of another, on the server and on its files. Owns: the
//! attempts of a run. A test that needs root, or a feature that this machine lacks, is skipped with
//! the reason.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;

use rustix::process::getuid;
use serde_json::Value;
use skip::skipped;

use crate::sandbox::{Process, Sandbox, end, environment, every_process, wait_until};

/// First id of the default pool.
const POOL: u32 = 1_900_000_000;
/// Starts a server as a user without privileges.
pub(crate) const AS_NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";
const NOBODY: u32 = 65534;

fn says(sandbox: &Sandbox, line: &str, code: i32, parts: &[&str]) -> String {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    for part in parts {
        assert!(output.text.contains(part), "{line} lacks {part:?}\n{}", output.text);
    }
    output.text
}

/// A server with a project, a run `victim` of ann and a run `attacker` of bob.
struct Lab(Sandbox);

impl Lab {
    fn new(up: &str) -> Self {
        Self::on(Sandbox::new(), up)
    }

    fn on(mut sandbox: Sandbox, up: &str) -> Self {
        sandbox.start_server(up);
        says(&sandbox, "elastane project create team-a --gpu-quota 2", 0, &["created"]);
        let lab = Self(sandbox);
        for name in ["ann", "bob"] {
            lab.enrol(name);
        }
        let victim = "runai submit victim -i x -e HUSH=hush-in-env --command -- \
                      sh -c 'echo hush-in-log; echo hush-in-file > ~/notes; exec sleep 600'";
        lab.by("ann", victim, 0);
        lab.by("bob", "runai submit attacker -i x --command -- sleep 600", 0);
        lab.by("ann", "runai wait victim --for running", 0);
        lab.by("bob", "runai wait attacker --for running", 0);
        lab
    }

    /// Makes a user who may submit, and logs it in.
    fn enrol(&self, name: &str) {
        let of = format!("{name}@example.org");
        let line = format!("elastane user create {of} --keep-password | tail -1");
        let password = says(&self.0, &line, 0, &[]);
        let rule = "elastane access-rule create --role 'L1 researcher' --project team-a --user";
        says(&self.0, &format!("{rule} {of}"), 0, &[]);
        fs::create_dir(self.0.home().join(name)).expect("a home");
        self.by(name, &format!("runai login user -u {of} -p '{}'", password.trim()), 0);
        self.by(name, "runai config project team-a", 0);
    }

    /// Runs a command line of a user without the administrator's files.
    fn by(&self, name: &str, line: &str, code: i32) -> String {
        let url = format!("http://127.0.0.1:{}", self.0.port());
        let own = format!("export HOME=$HOME/{name} RUNAI_CP_URL={url} ELASTANE_STATE_DIR=/none");
        says(&self.0, &format!("{own}; {line}"), code, &[])
    }

    /// Output of a script that bob runs in his workload.
    fn attack(&self, script: &str) -> String {
        // A failure of the last attempt is not a failure of the script.
        let script = format!("{script}\nexit 0\n");
        fs::write(self.0.home().join("attack.sh"), script).expect("a file");
        self.by("bob", "runai exec attacker -i -- sh -s < attack.sh", 0)
    }

    /// The process that matches; waits until there is one.
    fn process(&self, is: impl Fn(&Process) -> bool) -> u32 {
        let mut found = None;
        let there = wait_until(|| {
            found = self.0.processes().into_iter().find(&is);
            found.is_some()
        });
        assert!(there, "{:?}", self.0.processes());
        found.expect("there").pid
    }

    fn server(&self) -> u32 {
        self.process(|it| it.command.starts_with("elastane up"))
    }

    fn victim(&self) -> u32 {
        self.process(|it| {
            let of = environment(it.pid).unwrap_or_default();
            it.command == "sleep 600" && of.contains_key("HUSH")
        })
    }

    fn supervisor_of(&self, pid: u32) -> u32 {
        every_process().into_iter().find(|it| it.pid == pid).expect("it lives").parent
    }

    /// Everything in the state directory, by path.
    fn private(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.0.state_dir()]);
        while let Some(folder) = folders.pop() {
            // Entries that the server removes meanwhile are skipped.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found
    }

    fn isolation(&self) -> Value {
        let (_, text) = self.0.get("/elastane/v1/status").expect("an answer");
        serde_json::from_str::<Value>(&text).expect("json")["isolation"].clone()
    }
}

/// Script with every attack: each line prints a text if it succeeds.
fn every_attack(lab: &Lab) -> String {
    let own = lab.attack("echo \"$HOME\" | sed 's,/home$,,'");
    let own = own.trim();
    let mut script = String::from("exec 2>/dev/null\n");
    let channel = lab.attack("echo $ELASTANE_CHANNEL");
    let is_own = |path: &PathBuf| path.starts_with(own) || path.as_os_str() == channel.trim();
    for path in lab.private().iter().filter(|path| !is_own(path)) {
        // The run may read these: they are programs.
        if ["shims", "tools"].iter().any(|name| path.iter().any(|part| part == *name)) {
            continue;
        }
        let path = path.display();
        script += &format!("head -c1 {path} | grep -q . && echo 'read {path}'\n");
        script += &format!("( : >> {path} ) && echo 'wrote {path}'\n");
        script += &format!("test -S {path} && echo 'saw the socket {path}'\n");
        script += &format!(
            "test -S {path} && ELASTANE_CHANNEL={path} elastane checkpoint --next-in 1 && echo \
             'reported in {path}'\n"
        );
    }
    let state = lab.0.state_dir();
    script += &format!("( : > {}/new ) && echo 'made a file'\n", state.display());
    script += &format!(
        "ls {}/runs/* | grep -v '^channel$' | grep . && echo 'listed runs'\n",
        state.display()
    );
    let victim = lab.victim();
    for pid in [lab.server(), victim, lab.supervisor_of(victim)] {
        for file in ["environ", "mem", "maps", "auxv", "stack"] {
            let path = format!("/proc/{pid}/{file}");
            // Memory has the addresses of `maps`; the kernel refuses to open it.
            script +=
                &format!("( exec 3< {path} && head -c1 <&3 >/dev/null ) && echo 'opened {path}'\n");
        }
        for link in ["cwd", "root", "exe", "fd/0"] {
            script += &format!("readlink /proc/{pid}/{link} && echo 'followed {link} of {pid}'\n");
        }
        script += &format!("kill -0 {pid} && echo 'may signal {pid}'\n");
        script += &format!("kill -KILL {pid} && echo 'killed {pid}'\n");
    }
    script += "elastane token && echo 'has the token'\n";
    script +=
        &format!("elastane --state-dir {} status && echo 'asked the server'\n", state.display());
    script += "runai list && echo 'asked the server as runai'\n";
    lab.attack(&script)
}

#[test]
fn a_run_of_another_user_gets_at_nothing_where_runs_have_accounts() {
    if !getuid().is_root() {
        return skipped("only root can give runs accounts");
    }
    let lab = Lab::new("elastane up --gpus 2x1GiB");
    assert_eq!(lab.isolation()["kind"], "accounts");
    assert_eq!(every_attack(&lab), "");
    let seen = lab.attack("ls /proc | grep '^[0-9]' | while read p; do cat /proc/$p/cmdline; done");
    assert!(!seen.contains("elastane up") && !seen.contains("supervise"), "{seen:?}");
    let log = lab.by("ann", "runai logs victim", 0);
    assert_eq!(log, "hush-in-log\n");
    assert!(lab.0.shell("runai logs victim -p team-a").text.contains("hush"), "it was not hurt");
}

#[test]
fn a_run_and_who_enters_it_have_the_account_of_its_submitter_and_no_rights() {
    if !getuid().is_root() {
        return skipped("only root can give runs accounts");
    }
    let lab = Lab::new("elastane up --gpus 2x1GiB");
    let who = "id -u; id -g; id -G; umask; pwd; echo $USER $LOGNAME; stat -c %u ~ .; \
               grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -d '\\t'";
    says(&lab.0, "runai config project team-a", 0, &[]);
    lab.by(
        "bob",
        &format!("runai submit who -i x --command -- sh -c '{}'", who.replace('\'', "'\\''")),
        0,
    );
    lab.by("bob", "runai wait who", 0);
    let (main, session) = (lab.by("bob", "runai logs who", 0), lab.attack(who));
    let streams = "echo out > /dev/stdout; echo errors > /dev/stderr";
    let said = lab.attack(streams);
    // The order in which the two pipes are read is undefined.
    let said: std::collections::BTreeSet<&str> = said.lines().collect();
    assert_eq!(said, ["errors", "out"].into());
    for text in [main, session] {
        let lines: Vec<&str> = text.lines().collect();
        let bob = lines[0];
        assert!(bob.parse::<u32>().is_ok_and(|uid| uid >= POOL), "{text}");
        assert!(lines[1..3].iter().all(|id| *id == bob), "no groups of root's\n{text}");
        assert_eq!(lines[5], format!("elastane-{bob} elastane-{bob}"));
        assert!(lines[6..8].iter().all(|uid| *uid == bob), "{text}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(text.contains(&format!("{set}:0000000000000000")), "{text}");
        }
        assert!(text.contains("NoNewPrivs:1"), "{text}");
        let keys = fs::read_to_string("/proc/key-users").unwrap_or_default();
        let own = |line: &&str| line.trim_start().starts_with(&format!("{bob}:"));
        assert_eq!(keys.lines().find(own), None, "an account has few keys to its name");
    }
    let uid = |pid: u32| {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(format!("/proc/{pid}")).expect("it lives").uid()
    };
    let victim = lab.victim();
    assert_ne!(uid(victim).to_string(), lab.attack("id -u").trim(), "ann is not bob");
    assert_eq!(uid(lab.supervisor_of(victim)), 0);
}

#[test]
fn a_run_that_deleted_its_folders_has_them_again_the_next_time() {
    if !getuid().is_root() {
        return skipped("only root can give runs accounts");
    }
    let lab = Lab::new("elastane up --gpus 2x1GiB");
    let script = "pod=$(dirname $HOME); \
                  if test -e $pod/seen; then \
                  touch here $HOME/there $ELASTANE_CHECKPOINT_DIR/kept && echo went on; exit; fi; \
                  touch $pod/seen; rm -rf $pod/work $HOME $ELASTANE_CHECKPOINT_DIR; exit 1";
    let line = format!("runai submit again -i x --backoff-limit 1 --command -- sh -c '{script}'");
    lab.by("bob", &line, 0);
    lab.by("bob", "runai wait again", 0);
    assert_eq!(lab.by("bob", "runai logs again", 0), "went on\n");
}

#[test]
fn what_a_run_puts_into_its_environment_reaches_no_program_with_the_servers_rights() {
    if !getuid().is_root() {
        return skipped("only root can give runs accounts");
    }
    let lab = Lab::new("elastane up --gpus 2x1GiB");
    let evil = "-e LD_PRELOAD=/no/such/evil.so -e PATH=/no/such:$PATH -e MARK=evil";
    lab.by("bob", &format!("runai submit evil -i x {evil} --command -- sleep 600"), 0);
    lab.by("bob", "runai wait evil --for running", 0);
    let url = format!("RUNAI_CP_URL=http://127.0.0.1:{}", lab.0.port());
    let exec =
        format!("HOME=$HOME/bob {url} ELASTANE_STATE_DIR=/none runai exec evil -- sleep 500");
    let mut visitor = lab.0.begin(&exec);
    let inside = lab.process(|it| it.command == "sleep 500");
    assert_eq!(environment(inside).expect("it lives")["MARK"], "evil");
    let beside = environment(lab.supervisor_of(inside)).expect("it lives");
    for name in ["LD_PRELOAD", "PATH", "MARK"] {
        assert!(!beside.contains_key(name), "{beside:?}");
    }
    end(&mut visitor);
}

#[test]
fn accounts_are_what_the_configuration_says_and_root_only_if_it_says_so() {
    if !getuid().is_root() {
        return skipped("only root can give runs accounts");
    }
    let table = "--accounts ann@example.org=nobody --account-domains example.org";
    let lab = Lab::new(&format!("elastane up --gpus 2x1GiB {table}"));
    let uid = |name: &str| {
        let text = lab.by(name, &format!("runai submit {name}-id -i x --command -- id -u"), 0);
        assert!(text.contains("submitted"), "{text}");
        lab.by(name, &format!("runai wait {name}-id"), 0);
        lab.by(name, &format!("runai logs {name}-id"), 0).trim().to_owned()
    };
    assert_eq!(uid("ann"), NOBODY.to_string());
    assert!(uid("bob").parse::<u32>().is_ok_and(|uid| uid >= POOL), "there is no account bob");
    // A system account by its name, and the administrator.
    lab.enrol("daemon");
    assert!(uid("daemon").parse::<u32>().is_ok_and(|uid| uid >= POOL));
    says(&lab.0, "runai config project team-a && runai submit own -i x --command -- id -u", 0, &[]);
    let own = says(&lab.0, "runai wait own && runai logs own", 0, &[]);
    assert!(own.lines().last().is_some_and(|uid| uid.starts_with("19000")), "{own}");
}

#[test]
fn runs_of_a_server_that_is_not_root_get_at_nothing_in_namespaces() {
    let Some(sandbox) = as_nobody() else { return };
    let lab = Lab::on(sandbox, &format!("{AS_NOBODY} elastane up --gpus 2x1GiB"));
    if lab.isolation()["kind"] != "namespaces" {
        return skipped("user namespaces are not permitted here");
    }
    assert_eq!(every_attack(&lab), "");
    lab.by("ann", "runai logs victim", 0);
}

#[test]
fn runs_get_at_nothing_under_landlock_where_there_are_no_namespaces() {
    let Some(sandbox) = as_nobody() else { return };
    // In a root of its own the kernel gives a process no user namespace.
    let root = sandbox.home().with_file_name("root");
    fs::create_dir(&root).expect("a folder");
    let root = root.display();
    let chrooted =
        format!("unshare --mount sh -c 'mount --rbind / {root} && exec chroot {root} \"$@\"' sh");
    if sandbox.shell(&format!("{chrooted} {AS_NOBODY} true")).code != Some(0) {
        return skipped("no mount namespace for another root");
    }
    let up = format!("{chrooted} {AS_NOBODY} env -C / elastane up --gpus 2x1GiB");
    let lab = Lab::on(sandbox, &up);
    if lab.isolation()["kind"] != "landlock" {
        return skipped("the kernel has no Landlock");
    }
    // Landlock hides no names, and the sockets require the key of their run.
    let had = every_attack(&lab);
    let more: Vec<&str> = had.lines().filter(|line| !line.starts_with("saw the socket")).collect();
    assert!(more.is_empty(), "{more:?}");
}

/// A machine whose server is started as another user.
pub(crate) fn as_nobody() -> Option<Sandbox> {
    if !getuid().is_root() {
        skipped("only root can start a server as another user");
        return None;
    }
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.state_dir()).expect("a folder");
    chown(sandbox.state_dir(), Some(NOBODY), Some(NOBODY)).expect("changed");
    if sandbox.shell(&format!("{AS_NOBODY} elastane version")).code == Some(0) {
        return Some(sandbox);
    }
    skipped("another user may not run the programs of this build");
    None
}

#[test]
fn a_server_that_cannot_keep_runs_apart_says_so_or_does_not_start() {
    if !getuid().is_root() {
        return skipped("a server that is not root keeps them apart by other means");
    }
    let mut sandbox = Sandbox::new();
    let powerless =
        "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin elastane up --gpus 1x1GiB";
    let refused = says(&sandbox, &format!("{powerless} --require-isolation"), 1, &[]);
    for part in ["--require-isolation", "cannot be kept apart", "SYS_ADMIN"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    sandbox.start_server(powerless);
    let told = "Isolation  none: runs have the server's account";
    let text = sandbox.server_text();
    assert!(text.contains(told) && text.contains("`elastane status` says why"), "{text}");
    assert!(!text.contains("SYS_ADMIN"), "details are in the status: {text}");
    says(&sandbox, "elastane status", 0, &[told, "SYS_ADMIN"]);
}

#[test]
fn the_local_token_ends_when_it_is_revoked_and_with_the_server_but_commands_go_on() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB --require-isolation");
    let token = |sandbox: &Sandbox| says(sandbox, "elastane token", 0, &[]).trim().to_owned();
    let asked = |sandbox: &Sandbox, token: &str| {
        sandbox.shell(&format!("RUNAI_TOKEN={token} runai whoami")).code
    };
    let first = token(&sandbox);
    assert_eq!(asked(&sandbox, &first), Some(0));
    let second = says(&sandbox, "elastane token --revoke", 0, &[]).trim().to_owned();
    assert!(asked(&sandbox, &first) != Some(0) && asked(&sandbox, &second) == Some(0));
    says(&sandbox, "elastane status", 0, &["is running"]);
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    assert_ne!(asked(&sandbox, &second), Some(0), "it is another start");
    says(&sandbox, "elastane status", 0, &["is running"]);
    assert_eq!(asked(&sandbox, &token(&sandbox)), Some(0));
}
