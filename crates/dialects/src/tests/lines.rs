//! Command lines of both dialects, the published ones first.

use client::{Logs, Since};

use crate::intent::{
    Change, Dialect, Framework, Gpu, Intent, Kind, ListWorkloads, LocalCommand, Login, Mode, Name,
    Noun, OutputFormat, Page, Runs, Stdio, Submit, Target, Variable, Verb,
};
use crate::submission::submission;
use crate::understood;
use cli_kit::exit::Error;
use cli_kit::settings::TableStyle;

/// Intent of a command line, or the text of its error.
pub(super) fn meaning(line: &str) -> Result<Intent, String> {
    let words = shell_words::split(line).unwrap();
    let argv = words.iter().map(Into::into).collect();
    understood(argv).map(|understood| understood.intent).map_err(|error| error.to_string())
}

pub(super) fn submit(line: &str) -> Submit {
    match meaning(line) {
        Ok(Intent::Submit(submit)) => *submit,
        other => panic!("{line}: {other:?}"),
    }
}

fn change(verb: Verb, names: &[&str]) -> Intent {
    let names = Some(names.iter().map(ToString::to_string).collect());
    Intent::Change(Change { verb, noun: Noun::Job, names, yes: false })
}

fn target(name: &str) -> Target {
    Target { noun: Noun::Job, name: name.to_owned(), pod: None }
}

#[test]
fn published_submissions_mean_what_the_documents_say() {
    let elastic = submit("runai submit elastic1 -i gcr.io/run-ai-demo/quickstart -g 2 --elastic ");
    assert_eq!(elastic.name, Name::Given("elastic1".into()));
    assert_eq!(elastic.spec.image.as_deref(), Some("gcr.io/run-ai-demo/quickstart"));
    assert_eq!(elastic.spec.gpu, Some(Gpu::Devices(2)));
    assert_eq!(elastic.kind, Kind::Training(Runs { elastic: true, ..Runs::default() }));

    let line = "runai submit filler1 -i ubuntu -g 1 --interactive --command -- sleep infinity";
    let filler = submit(line);
    assert_eq!((filler.kind, filler.spec.gpu), (Kind::Workspace, Some(Gpu::Devices(1))));
    assert_eq!(filler.spec.command, ["sleep", "infinity"]);
    assert!(filler.spec.args.is_empty());
    assert_eq!(filler.command_line, line);

    let half = submit("runai submit frac05 -i gcr.io/run-ai-demo/quickstart -g 0.5 --interactive");
    assert_eq!(half.spec.gpu, Some(Gpu::Portion { devices: 1, millis: 500 }));
    let third = submit("runai submit frac03 -i gcr.io/run-ai-demo/quickstart -g 0.3 ");
    assert_eq!(third.spec.gpu, Some(Gpu::Portion { devices: 1, millis: 300 }));
}

#[test]
fn both_dialects_submit_the_same_training() {
    let v1 = submit("runai submit a2 -i runai.jfrog.io/demo/quickstart -g 2 -p team-a");
    let v2 = submit("runai training submit a2 -i runai.jfrog.io/demo/quickstart -g 2 -p team-a");
    assert_eq!(v2.dialect, Dialect::V2);
    let same = Submit { dialect: Dialect::V1, command_line: v1.command_line.clone(), ..v2 };
    assert_eq!(v1, same);
}

#[test]
fn published_lists_choose_their_tables() {
    let list = |line: &str| match meaning(line) {
        Ok(Intent::ListWorkloads(list)) => list,
        other => panic!("{line}: {other:?}"),
    };
    let wide = ListWorkloads { table: Some(TableStyle::V1), ..ListWorkloads::default() };
    for line in ["runai list", "runai list jobs", "runai list job"] {
        assert_eq!(list(line), wide, "{line}");
    }
    let short = ListWorkloads {
        all_projects: true,
        table: Some(TableStyle::V2),
        ..ListWorkloads::default()
    };
    assert_eq!(list("runai list -A"), short);
    let wide_of_all = ListWorkloads { all_projects: true, ..wide };
    assert_eq!(list("runai list jobs -A"), wide_of_all);
    let page = Page { offset: 0, limit: Some(50), has_more_pages: true };
    let any = ListWorkloads { page, noun: Noun::Workload, ..short };
    assert_eq!(list("runai workload list -A"), any);
    assert_eq!(list("runai training list").noun, Noun::Training);
    for (word, noun) in [
        ("training", Noun::Standard),
        ("Workspace", Noun::Workspace),
        ("distributed", Noun::Distributed),
        ("inference", Noun::Inference),
    ] {
        assert_eq!(list(&format!("runai workload list --type {word}")).noun, noun);
    }
    let mpi = list("runai training list --framework MPI").noun;
    assert_eq!(mpi, Noun::Framework(Framework::Mpi));
}

#[test]
fn the_first_word_is_a_kind_only_if_another_follows() {
    for (line, intent) in [
        ("runai delete elastic1 filler1", change(Verb::Delete, &["elastic1", "filler1"])),
        ("runai delete job a2 -p team-a", change(Verb::Delete, &["a2"])),
        ("runai delete job", change(Verb::Delete, &["job"])),
        ("runai delete job job", change(Verb::Delete, &["job"])),
        ("runai suspend train1", change(Verb::Suspend, &["train1"])),
        ("runai resume train1", change(Verb::Resume, &["train1"])),
    ] {
        assert_eq!(meaning(line).unwrap(), intent, "{line}");
    }
    let all = |yes| Change { verb: Verb::Delete, noun: Noun::Job, names: None, yes };
    assert_eq!(meaning("runai delete -A").unwrap(), Intent::Change(all(false)));
    assert_eq!(meaning("runai delete --all -y").unwrap(), Intent::Change(all(true)));
}

#[test]
fn projects_are_chosen_in_old_and_new_words() {
    for (line, by_noun) in
        [("runai project set team-a", true), ("runai config project team-a", false)]
    {
        let intent = Intent::SetProject { name: "team-a".into(), by_noun };
        assert_eq!(meaning(line).unwrap(), intent, "{line}");
    }
}

#[test]
fn a_project_may_be_named_anywhere_in_the_line() {
    for line in ["runai -p x list", "runai list -p x", "runai list jobs --project=x"] {
        let words = shell_words::split(line).unwrap();
        let line_read = understood(words.iter().map(Into::into).collect()).unwrap();
        assert_eq!(line_read.global.project.as_deref(), Some("x"), "{line}");
    }
}

#[test]
fn logs_and_shells_name_their_job() {
    let of = target("train1");
    let logs = |which| Intent::Logs { of: target("train1"), which };
    let all = Logs::default();
    let time = "2026-11-21T20:00:00Z".parse().unwrap();
    for (line, which) in [
        ("-f -t 5", Logs { follow: true, tail_lines: Some(5), ..all.clone() }),
        ("--tail -1", all.clone()),
        ("--previous", Logs { previous: true, ..all.clone() }),
        ("--since 2m", Logs { since: Some(Since::Seconds(120)), ..all.clone() }),
        (
            "--since-time 2026-11-21T21:00:00+01:00 --timestamps",
            Logs { since: Some(Since::Time(time)), timestamps: true, ..all },
        ),
    ] {
        assert_eq!(meaning(&format!("runai logs train1 {line}")).unwrap(), logs(which), "{line}");
    }
    for (line, why) in [
        ("--since 2m --since-time 2026-11-21T20:00:00Z", "cannot be used with"),
        ("--since yesterday", "write whole seconds, minutes, hours or days"),
        ("--since-time yesterday", "`yesterday` is not a time; write 2026-01-31T12:00:00Z"),
    ] {
        let said = meaning(&format!("runai logs train1 {line}")).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let command = vec!["/bin/bash".to_owned()];
    let stdio = Stdio::FULL;
    let bash = Intent::Exec { of: of.clone(), command, stdio };
    assert_eq!(meaning("runai bash train1").unwrap(), bash);
    let none = Stdio { stdin: false, tty: false };
    for (line, stdio) in [
        ("runai exec train1 ls -la /", none),
        ("runai exec train1 -it -- ls -la /", stdio),
        ("runai exec -i train1 -- ls -la /", Stdio { tty: false, ..stdio }),
    ] {
        let command = ["ls", "-la", "/"].map(str::to_owned).to_vec();
        let exec = Intent::Exec { of: of.clone(), command, stdio };
        assert_eq!(meaning(line).unwrap(), exec, "{line}");
    }
    for (line, stdio) in [
        ("runai attach train1", stdio),
        ("runai attach train1 --no-tty", Stdio { tty: false, ..stdio }),
        ("runai attach --no-stdin --no-tty train1", none),
    ] {
        assert_eq!(meaning(line).unwrap(), Intent::Attach { of: of.clone(), stdio }, "{line}");
    }
}

#[test]
fn who_attaches_has_input_and_terminal() {
    for head in ["submit", "training submit", "workspace submit", "pytorch submit"] {
        let of = |tail: &str| {
            let asked = submit(&format!("runai {head} j -i x {tail}"));
            (asked.spec.stdio, asked.mode)
        };
        assert_eq!(of(""), (Stdio::default(), Mode::Submit), "{head}");
        assert_eq!(of("--stdin"), (Stdio { stdin: true, tty: false }, Mode::Submit), "{head}");
        assert_eq!(of("--attach"), (Stdio::FULL, Mode::Attach { within_s: 30 }), "{head}");
        let patient = of("--stdin -t --attach --pod-running-timeout 2m");
        assert_eq!(patient, (Stdio::FULL, Mode::Attach { within_s: 120 }), "{head}");
    }
}

#[test]
fn ports_are_pairs() {
    let forward = |ports: &[(u16, u16)], address: &str| {
        let (of, ports, address) = (target("web"), ports.to_vec(), address.to_owned());
        Intent::PortForward { of, ports, address }
    };
    let line = "runai port-forward web --port 8080:80 --port 6006 --mpi";
    assert_eq!(meaning(line).unwrap(), forward(&[(8080, 80), (6006, 6006)], "localhost"));
    let line = "runai port-forward web --port 0:80 --address 0.0.0.0";
    assert_eq!(meaning(line).unwrap(), forward(&[(0, 80)], "0.0.0.0"));
    for wrong in ["80:", ":80", "80:0", "0", "80:80:80", "http", "70000"] {
        let refused = meaning(&format!("runai port-forward web --port {wrong}"));
        assert!(refused.is_err(), "{wrong}");
    }
    assert!(meaning("runai port-forward web").is_err(), "no port");
}

#[test]
fn ports_are_opened_by_name_or_number() {
    for (flags, url, print) in [
        ("", None, false),
        ("--url lab", Some("lab"), false),
        ("--url 80 --print", Some("80"), true),
    ] {
        let opened = Intent::Open { of: target("web"), url: url.map(str::to_owned), print };
        assert_eq!(meaning(&format!("runai open web {flags}")).unwrap(), opened, "{flags}");
    }
}

#[test]
fn old_style_strings_are_split_as_a_shell_would() {
    let old = submit("runai submit j -i img --command 'python -u' --args 'train.py \"a b\"'");
    assert_eq!(old.spec.command, ["python", "-u"]);
    assert_eq!(old.spec.args, ["train.py", "a b"]);
    let arguments = submit("runai submit j -i img -- --epochs 3").spec;
    assert_eq!((arguments.command.len(), arguments.args), (0, vec!["--epochs".into(), "3".into()]));
}

#[test]
fn gpus_are_asked_for_in_shares_and_sizes() {
    for (line, gpu) in [
        ("runai submit j -i x -g 0", Gpu::Devices(0)),
        ("runai submit j -i x -g 2.0", Gpu::Devices(2)),
        ("runai submit j -i x --gpu-memory 8G", Gpu::Memory { devices: 1, size: "8G".into() }),
        (
            "runai training submit j -i x -g 2 --gpu-portion-request 0.25",
            Gpu::Portion { devices: 2, millis: 250 },
        ),
        ("runai training submit j -i x --gpu-portion-request 1", Gpu::Devices(1)),
        (
            "runai workspace submit j -i x --gpu-request-type memory --gpu-memory-request 500M",
            Gpu::Memory { devices: 1, size: "500M".into() },
        ),
    ] {
        assert_eq!(submit(line).spec.gpu, Some(gpu), "{line}");
    }
    assert_eq!(submit("runai submit j -i x").spec.gpu, None);
}

#[test]
fn unnamed_jobs_are_numbered() {
    assert_eq!(submit("runai submit -i x").name, Name::Numbered("job".into()));
    assert_eq!(submit("runai submit -i x --job-name-prefix p").name, Name::Numbered("p".into()));
    for (line, prefix) in [
        ("runai training submit -i x", "training"),
        ("runai workspace submit -i x", "workspace"),
        ("runai training pytorch submit -i x --workers 2", "training"),
        ("runai inference submit -i x", "inference"),
    ] {
        assert_eq!(submit(line).name, Name::Numbered(prefix.into()), "{line}");
    }
    assert_eq!(submit("runai submit -i x --name n").name, Name::Given("n".into()));
}

#[test]
fn a_variable_is_told_from_an_asset_by_its_equals_sign() {
    let pair = [("A".to_owned(), Variable::Text("b=c".to_owned()))];
    assert_eq!(submit("runai submit j -i x -e A=b=c").spec.environment, pair);
    assert_eq!(submit("runai training submit j -i x -e A=b=c").spec.environment, pair);
    let old = submit("runai training submit j -i x --environment A=b=c --environment torch");
    assert_eq!(old.spec.environment, pair);
    assert_eq!(old.inherits.environment.as_deref(), Some("torch"));
}

#[test]
fn bad_lines_say_what_is_allowed() {
    for (line, said) in [
        ("runai submit j -i x -g -1", "`-1` is negative"),
        ("runai submit j -i x -g 1.5", "use a value between 0 and 1 (0.5) or a whole count"),
        ("runai submit j -i x -g nan", "`nan` is not a number"),
        ("runai submit j -i x -g 1 --gpu-memory 1G", "cannot be used with"),
        ("runai submit j -i x --gpu-memory lots", "`lots` is not a size"),
        ("runai submit j --name k -i x", "cannot be used with"),
        ("runai submit j -i x --elastik", "a similar argument exists: '--elastic'"),
        (
            "runai submit j -i x --priority high",
            "'--priority' is a flag of 'runai training submit'",
        ),
        (
            "runai training submit j -i x --interactive",
            "'runai workspace submit' submits such a workload",
        ),
        ("runai training submit j -i x --gpu 1", "here it is '--gpu-devices-request'"),
        ("runai training submit j -i x --gpus 1", "here it is '--gpu-devices-request'"),
        ("runai submit-dist b -i x", "the framework comes first: mpi, pytorch, tf, xgboost\n"),
        ("runai submit j -i x --toleration foo", "write operator=…,key=…,value=…,effect=…"),
        ("runai submit a -i x sleep 5", "stand behind `--`, as in `--command -- sleep 5`"),
        ("runai training submit a -i x --workers 3", "a flag of 'runai training pytorch submit'"),
        ("runai training submit --name a -i x", "the name is the first word here, without a flag"),
        ("runai delete --all -A", "'-A' is short for '--all' here: all of one project"),
        ("runai submit j -i x --gpus 1", "here it is '--gpu'"),
        ("runai training submit j -i x --env A=1", "here it is '--environment-variable'"),
        ("runai training submit j -i x --gpu-memory 1G", "here it is '--gpu-memory-request'"),
        ("runai submit j -i x --volume /a", "write DIR:DIR"),
        ("runai submit j -i x -v /a:/b:ro:h:i", "`i` is one word too many"),
        ("runai submit j -i x --local-image", "--local-image is not supported yet"),
        ("runai training submit j -i x --nfs a=b", "`a` is not known here; write server=…"),
        (
            "runai training submit j -i x --datavolume a=b",
            "--datavolume is not supported yet: there",
        ),
        ("runai submit j -i x --interactive --command", "write `--command -- COMMAND ARGS…`"),
        ("runai submit j -i x -e A", "write a name, `=` and a value"),
        ("runai training submit j -i x -g 0.5", "--gpu-portion-request 0.5"),
        ("runai training submit j -i x -g -1", "`-1` is negative"),
        ("runai training submit j -i x --gpu-portion-request 1.5", "at most 1; ask for whole GPUs"),
        ("runai training submit j -i x --gpu-request-type portion", "--gpu-portion-request"),
        ("runai training submit j -i x --environment a --environment b", "one environment asset"),
        ("runai submit j -i x --node-affinity zone", "write LABEL=VALUE, or LABEL=VALUE,VALUE"),
        ("runai submit j -i x --node-affinity zone=a,", "write LABEL=VALUE, or LABEL=VALUE,VALUE"),
        ("runai lits", "a similar subcommand exists: 'list'"),
        ("runai list -a", "there is '-A, --all-projects'"),
        ("runai submit j -i x -G 1", "there is '-g, --gpu'"),
        ("runai training list -a", "there is '-A, --all'"),
        ("runai list job a1", "only `list nodes` takes names"),
        ("runai describe job a b", "describe takes one name"),
        ("runai explain a b", "explain takes one name"),
        ("runai delete", "<NAME>..."),
        ("runai training list --type workspace", "--type: no training is a workspace"),
        ("runai workspace list --framework tf", "no workspace is a TensorFlow training"),
        (
            "runai workload list --type job",
            "[possible values: training, workspace, distributed, inference]",
        ),
    ] {
        let text = meaning(line).expect_err(line);
        assert!(text.contains(said), "{line}\n{text}");
    }
}

#[test]
fn a_fault_shows_how_that_command_is_used() {
    for (line, usage) in [
        ("runai list job a1", "Usage: runai list "),
        ("runai training submit j -i x --tty", "Usage: runai training submit "),
        ("runai workload list --type job", "invalid value 'job' for '--type <TYPE>'"),
    ] {
        let text = meaning(line).expect_err(line);
        assert!(text.contains(usage), "{line}\n{text}");
    }
}

#[test]
fn the_version_is_told_by_a_flag_as_well() {
    for flag in ["--version", "-V"] {
        let said = meaning(&format!("runai {flag}")).unwrap_err();
        assert_eq!(said, format!("runai {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn wrong_flags_and_values_are_told_with_what_is_meant_and_nothing_else() {
    let said = meaning("runai submit a -i ubuntu --gpuu 1").unwrap_err();
    assert!(said.contains("'--gpu'") && !said.contains("as a value"), "{said}");
    for submit in ["submit", "training submit"] {
        let said = meaning(&format!("runai {submit} a -i ubuntu --backoff-limit -3")).unwrap_err();
        assert!(said.contains("'-3' for '--backoff-limit <N>': write a whole number from 0"));
        let flag = "--termination-grace-period";
        assert!(meaning(&format!("runai {submit} a -i ubuntu {flag} 2m")).is_ok());
        let said = meaning(&format!("runai {submit} a -i ubuntu {flag} -1")).unwrap_err();
        assert!(said.contains("write whole seconds, minutes, hours or days"), "{said}");
    }
    assert_eq!(
        submit("runai submit a -i u --termination-grace-period 2m").spec.grace_seconds,
        Some(120)
    );
}

#[test]
fn every_published_way_to_log_in_is_understood() {
    let ann = || Some("ann@example.org".to_owned());
    let hush = || Some("hush".to_owned());
    let user = |password, new_password| Login::User { name: ann(), password, new_password };
    let application =
        |name: Option<&str>, secret| Login::Application { name: name.map(str::to_owned), secret };
    for (line, way) in [
        ("runai login", Login::Browser),
        ("runai login sso", Login::Browser),
        ("runai login remote-browser", Login::RemoteBrowser),
        ("runai login user -u ann@example.org -p hush", user(hush(), None)),
        ("runai login user --user ann@example.org --password hush", user(hush(), None)),
        ("runai login user -u ann@example.org --new-password hush", user(None, hush())),
        ("runai login application --name ci --secret hush", application(Some("ci"), hush())),
        ("runai login application --client-id 7 --secret hush", application(Some("7"), hush())),
        // A random name may begin so.
        (
            "runai login application --name ci --secret -e",
            application(Some("ci"), Some("-e".into())),
        ),
        ("runai login user -u ann@example.org -p -e", user(Some("-e".into()), None)),
        ("runai login application --interactive", application(None, None)),
    ] {
        assert_eq!(meaning(line), Ok(Intent::Login(way)), "{line}");
    }
    for (line, said) in [
        ("runai login --user ann@example.org", "use `runai login user -u NAME`"),
        ("runai login --idp-issuer-url https://x.org", "the server knows its login provider"),
        ("runai login nobody", "unrecognized subcommand"),
    ] {
        let text = meaning(line).unwrap_err();
        assert!(text.contains(said), "{line}: {text}");
    }
    assert_eq!(meaning("runai logout"), Ok(Intent::Logout));
    let set = meaning("runai config set --cp-url https://x.org");
    assert_eq!(set, Ok(Intent::SetServer("https://x.org".into())));
}

#[test]
fn commands_about_this_program_are_known_or_refused_with_the_reason() {
    let diagnose =
        |shown| Intent::LocalCommand(LocalCommand::Diagnose { shown, file: Some("f".into()) });
    for (line, intent) in [
        ("auth token", Intent::Token(OutputFormat::Text)),
        ("auth get-token -o json", Intent::Token(OutputFormat::Json)),
        ("config describe", Intent::DescribeSettings(OutputFormat::Text)),
        ("config show -o yaml", Intent::DescribeSettings(OutputFormat::Yaml)),
        ("config generate --json", Intent::GenerateSettings(None)),
        ("config generate --file f", Intent::GenerateSettings(Some("f".into()))),
        ("diagnostics --file f", diagnose(OutputFormat::Text)),
        ("diagnostics -o json --file f", diagnose(OutputFormat::Json)),
        ("upgrade", Intent::Upgrade),
        ("update", Intent::Upgrade),
    ] {
        assert_eq!(meaning(&format!("runai {line}")), Ok(intent), "{line}");
    }
    for (line, part, good) in [
        ("kubeconfig set", "no cluster of Kubernetes", false),
        ("report metrics output", "collects no usage data", true),
        ("report metrics clear", "collects no usage data", true),
        ("report metrics config --enabled true", "nothing can be set", false),
        ("my-credential create --name x", "`runai credential list`", false),
        ("my-credential list", "`runai credential list`", false),
        ("inference suspend a", "`runai inference update a --min-replicas 0`", false),
        ("inference suspend -p b a", "`runai inference update a --min-replicas 0`", false),
        ("inference resume", "`runai inference update NAME --min-replicas 0`", false),
        ("inference distributed submit a -i x", "`runai inference submit NAME", false),
        ("inference nim submit a -i x", "`runai inference submit NAME", false),
    ] {
        let said = meaning(&format!("runai {line}"));
        let Ok(Intent::LocalCommand(LocalCommand::Nothing { why, done })) = said else {
            panic!("{line}: {said:?}")
        };
        assert!(why.contains(part) && done == good, "{line}: {why}");
    }
    for line in ["upgrade --gpu-memory-limit 4G", "update --gpu-memory-limit 4G j"] {
        let refused = meaning(&format!("runai {line}")).unwrap_err();
        assert!(refused.contains("type `runai workload update --gpu-memory-limit 4G"), "{refused}");
    }
    let refused = meaning("runai config set --cp-url https://x --auth-url https://y").unwrap_err();
    assert!(refused.contains("the server knows its login provider"), "{refused}");
}

/// Workload specification that the server derives from a submission.
pub(super) fn asked_of_server(line: &str) -> Result<spec::WorkloadSpec, Error> {
    let (workload_type, request) = submission(line)?.request("j")?;
    api::workload_asked_for(workload_type, request).map_err(Error::Usage)
}

#[test]
fn no_text_of_a_library_is_said_about_a_wrong_value() {
    let tried = cli_kit::testing::errors_say_what_to_write(crate::args::tree());
    assert!(tried > 90, "{tried}");
}

#[test]
fn a_command_line_in_quotes_is_told_to_be_one_word() {
    for line in [
        "runai submit j -i ubuntu -- \"echo hello && echo world\"",
        "runai training submit q -i ubuntu -- \"echo hello && echo world\"",
        "runai training submit q -i ubuntu --command -- \"echo hello && echo world\"",
    ] {
        let notes = submit(line).notes;
        let shell = "`echo hello && echo world` is one word, which names a program; for a shell: \
                     -- bash -c 'echo hello && echo world'";
        assert_eq!(notes, [shell.to_owned()], "{line}");
    }
    for words in ["bash -c 'a b'", "sleep 10", "sleep"] {
        assert!(submit(&format!("runai training submit q -i x -- {words}")).notes.is_empty());
    }
}
