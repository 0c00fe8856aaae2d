//! Origins of values, and errors about invalid ones.

mod advice;
mod kept;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use expect_test::{expect, expect_file};
use tracing::level_filters::LevelFilter;

use super::args::{Cli, Command};
use super::config::{Config, Machines, check};
use super::department::Department;
use super::initial_nodes::announce;
use super::project::Project;
use super::runtime::Choice;
use super::settings::{ALL, Error, SettingText, Settings, Sources};
use super::share::{Limit, Quota, Share};

/// Values of these words after `elastane up` and these variables.
fn sources(words: &[&str], env: &[(&str, &str)]) -> Result<Sources, Error> {
    let lookup = |name: &str| {
        let found = env.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned()).or((name == "HOME").then(|| "/h".to_owned()))
    };
    let line = ["elastane", "up"].iter().chain(words);
    let Cli { state_dir, command: Command::Up(flags), .. } = Cli::try_parse_from(line).unwrap()
    else {
        panic!("{words:?}")
    };
    Sources::collect(state_dir.as_deref(), flags.typed, &lookup)
}

/// Configuration with these words and variables.
fn up(words: &[&str], env: &[(&str, &str)]) -> Result<Config, Error> {
    check(&sources(words, env)?)
}

/// Configuration with these variables and no words.
fn with(env: &[(&str, &str)]) -> Result<Config, Error> {
    up(&[], env)
}

/// Creates a settings file.
fn file(dir: &Path, text: &str) -> String {
    let path = dir.join("elastane.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn without_a_word_everything_has_a_value() {
    let config = with(&[]).unwrap();
    let Config { settings, tls, database, login, machines, usage, secret_files } = &config;
    assert_eq!((tls, database, login), (&None, &store::Database::Sqlite, &None));
    assert_eq!((machines, usage, secret_files), (&Machines::Found, &None, &Vec::new()));
    assert_eq!(config.kept(), control::RetentionPolicy::default());
    assert_eq!(config.accounts(), engine_local::AccountPolicy::default());
    let Settings { state_dir, listen, log, runtime, copies_max, .. } = settings;
    assert_eq!(state_dir, &PathBuf::from("/h/.local/state/elastane"));
    assert_eq!(*listen, "127.0.0.1:7070".parse::<SocketAddr>().unwrap());
    assert_eq!((*log, *runtime, *copies_max), (LevelFilter::WARN, Choice::Auto, 50 << 30));
    assert_eq!(settings.trusted_proxies, http_kit::Proxies::default());
    let usual = oidc::Settings::new("", "");
    let Settings { oidc_scopes, oidc_user_claim, oidc_groups_claim, .. } = settings;
    assert_eq!(
        [oidc_scopes, oidc_user_claim, oidc_groups_claim],
        [&usual.scopes, &usual.user_claim, &usual.groups_claim]
    );
    let on = |text: &str| text.contains(": true");
    assert!(!on(&format!("{settings:?}")), "every switch is off");
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let text = "listen = \"127.0.0.1:1\"\ncluster_name = \"file\"\nlog = \"info\"\n";
    let file = file(dir.path(), text);
    let env = [("ELASTANE_LISTEN", "127.0.0.1:2"), ("ELASTANE_CLUSTER_NAME", "env")];
    let config = up(&["--listen", "127.0.0.1:3", "--config", &file], &env).unwrap();
    let Settings { listen, cluster_name, log, .. } = config.settings;
    assert_eq!((listen.port(), cluster_name.as_str(), log), (3, "env", LevelFilter::INFO));
    assert_eq!(config.secret_files, [PathBuf::from(file)], "no workload may read it");
}

#[test]
fn every_setting_is_taken_from_each_origin_that_it_may_have() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty").display().to_string();
    std::fs::write(&empty, "").unwrap();
    for setting in ALL {
        let key = setting.key;
        let origin = |sources: Result<Sources, Error>| {
            sources.ok()?.find(key).map(|given| (given.text.clone(), given.origin.clone()))
        };
        let given = |origin: String| {
            let text = if setting.is_switch() { "true" } else { empty.as_str() };
            Some((text.to_owned(), origin))
        };
        let (flag, variable) = (format!("--{}", setting.flag), setting.variable());
        let words = [flag.as_str(), &empty];
        let words = if setting.is_switch() { &words[..1] } else { &words[..] };
        assert_eq!(origin(sources(words, &[])), given(flag.clone()), "{key}");
        if let Some(name) = &variable {
            let text = if setting.is_switch() { "true" } else { &empty };
            assert_eq!(origin(sources(&[], &[(name, text)])), given(name.clone()), "{key}");
        }
        let text = if setting.is_switch() { "true".into() } else { format!("\"{empty}\"") };
        let file = file(dir.path(), &format!("\n{key} = {text}\n"));
        let there = setting.file_key().and_then(|_| given(format!("{key} in {file}:2")));
        assert_eq!(origin(sources(&["--config", &file], &[])), there, "{key}");
    }
}

#[test]
fn folders_that_every_workload_may_mount_are_absolute() {
    let open = |paths: &str| with(&[("ELASTANE_HOST_PATHS", paths)]);
    let want = ["/data", "/mnt/sets"].map(PathBuf::from);
    assert_eq!(open("/data, /mnt/sets,").unwrap().settings.host_paths, want);
    let why = open("/data,sets").unwrap_err().to_string();
    assert!(why.contains("ELASTANE_HOST_PATHS: `sets` is not an absolute path"), "{why}");
}

#[test]
fn a_database_is_a_url_and_its_password_may_be_in_a_file() {
    let of = |url: &str, env: &[_]| up(&["--database", url], env);
    let shown = |config: Config| match config.database {
        store::Database::Postgres(url) => url.to_string(),
        store::Database::Sqlite => "sqlite".to_owned(),
    };
    let config = of("postgres://ann:hush@db/gpus", &[]).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    assert_eq!(shown(config), "postgres://ann@db:5432/gpus");
    let env = [("ELASTANE_DATABASE", "sqlite")];
    assert_eq!(shown(with(&env).unwrap()), "sqlite");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password").display().to_string();
    std::fs::write(&path, "hush\n").unwrap();
    let file = [("ELASTANE_DATABASE_PASSWORD_FILE", path.as_str())];
    let config = of("postgres://ann@db/gpus", &file).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    assert!(with(&file).unwrap_err().to_string().contains("no password without"));
    let missing = [("ELASTANE_DATABASE_PASSWORD_FILE", "/nowhere")];
    let error = of("postgres://ann@db/gpus", &missing).unwrap_err().to_string();
    assert!(error.contains("cannot read /nowhere"), "{error}");
    for wrong in ["mysql://ann:hush@db/gpus", "postgres://ann:hush@db/gpus?pasword=hush", "/hush"] {
        let error = of(wrong, &[]).unwrap_err().to_string();
        assert!(error.starts_with("--database: ") && !error.contains("hush"), "{error}");
    }
}

#[test]
fn a_login_provider_is_an_issuer_a_client_and_perhaps_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret").display().to_string();
    std::fs::write(&secret, "hush\n").unwrap();
    let issuer = ("ELASTANE_OIDC_ISSUER", "https://id.example.org");
    let client = ("ELASTANE_OIDC_CLIENT_ID", "elastane");
    let file = |path| ("ELASTANE_OIDC_CLIENT_SECRET_FILE", path);
    let config = with(&[issuer, client, file(secret.as_str())]).unwrap();
    let login = config.login.clone().unwrap();
    assert_eq!(login.settings.client_secret.as_deref(), Some("hush"));
    assert!(!login.exchanges_tokens && !login.settings.trust_email, "both are opt-in");
    assert!(!login.creates_users && !format!("{config:?}").contains("hush"));
    for (env, said) in [
        (vec![issuer], "ELASTANE_OIDC_ISSUER: needs to be known there; give --oidc-client-id ID"),
        (vec![client], "ELASTANE_OIDC_CLIENT_ID: needs the provider; give --oidc-issuer URL"),
        (vec![issuer, client, file("/nowhere")], "cannot read /nowhere"),
        (vec![issuer, client, file("/dev/null")], "/dev/null is empty"),
        (vec![("ELASTANE_OIDC_ISSUER", "http://id.example.org"), client], "https://HOST[/PATH]"),
        (vec![issuer, client, ("ELASTANE_OIDC_SCOPES", "email")], "ELASTANE_OIDC_SCOPES: `openid`"),
        (vec![issuer, client, ("ELASTANE_OIDC_CREATE_USERS", "maybe")], "neither true nor false"),
    ] {
        let error = with(&env).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn the_past_that_counts_is_a_span_and_a_half_life() {
    let half_life = [("ELASTANE_USAGE_HALF_LIFE", "1d")];
    let usage = up(&["--usage-window", "7d"], &half_life).unwrap().usage.unwrap();
    assert_eq!((usage.length_ms(), usage.half_life_ms()), (7 * 86_400_000, Some(86_400_000)));
    let usage = up(&["--usage-window", "7d,tumbling"], &[]).unwrap().usage.unwrap();
    assert!(matches!(usage.kind(), model::WindowKind::Tumbling { .. }));
    for (window, env, said) in [
        (Some("soon"), None, "--usage-window: `soon` is not a span of time"),
        (Some("1s"), None, "--usage-window: the window of usage is between 1 minute"),
        (Some("7d,sliding"), None, "`sliding` is not a kind of window"),
        (Some("7d"), Some("1s"), "ELASTANE_USAGE_HALF_LIFE: the half-life of usage is between"),
        (None, Some("1d"), "ELASTANE_USAGE_HALF_LIFE: needs a window to count in"),
    ] {
        let env: Vec<_> = env.map(|text| ("ELASTANE_USAGE_HALF_LIFE", text)).into_iter().collect();
        let words = window.map(|window| ["--usage-window", window]);
        let error = up(words.iter().flatten().copied().collect::<Vec<_>>().as_slice(), &env);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn the_public_address_and_the_proxies_are_checked() {
    let public = ["--public-url", "https://gpu.example.org/"];
    let proxies = ["--trusted-proxies", "127.0.0.1, 10.0.0.0/8"];
    let config = up(&[public, proxies].concat(), &[]).unwrap().settings;
    assert_eq!(config.public_url.as_deref(), Some("https://gpu.example.org"));
    assert!(config.trusted_proxies.contain("10.1.2.3".parse().unwrap()));
    for (key, text, said) in [
        ("ELASTANE_PUBLIC_URL", "gpu", "ELASTANE_PUBLIC_URL: `gpu` is not an address; write one"),
        (
            "ELASTANE_TRUSTED_PROXIES",
            "nginx",
            "ELASTANE_TRUSTED_PROXIES: `nginx` is not an address",
        ),
    ] {
        let error = with(&[(key, text)]).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn workloads_have_a_domain_that_is_one() {
    let domain = |text: &str| up(&["--workloads-domain", text], &[]);
    let config = domain("Apps.example.org").unwrap();
    assert_eq!(config.settings.workloads_domain, "apps.example.org");
    for text in ["", "a..b", "a b", "a.example.org:80", "*.example.org", "127.0.0.1"] {
        let error = domain(text).expect_err(text).to_string();
        assert!(
            error.starts_with(&format!("--workloads-domain: `{text}` is not a domain")),
            "{error}"
        );
    }
}

#[test]
fn machines_of_a_higher_origin_replace_those_of_a_lower_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path(), "gpus = \"4x16GiB\"");
    let given = SettingText { text: "2x2x1GiB".into(), origin: "--nodes".into() };
    let config = up(&["--nodes", "2x2x1GiB", "--config", &file], &[]).unwrap();
    assert_eq!(config.machines, Machines::Nodes(given));
}

#[test]
fn wrong_files_name_the_line_and_the_nearest_key() {
    for (text, said) in [
        ("\n\nlistn = \"x\"", "toml:3: unknown key `listn`; did you mean `listen`?"),
        (
            "log = \"info\"\nstate-dir = \"x\"",
            "toml:2: unknown key `state-dir`; did you mean `state_dir`?",
        ),
        ("zzz = 1", "toml:1: unknown key `zzz`; known are account_domains, "),
        ("log = 7", "toml:1: `log` takes \"text\""),
        ("insecure_listen = \"yes\"", "toml:1: `insecure_listen` takes true or false"),
        ("log = \"info\"\nlog = \"warn\"", "toml:2: duplicate key"),
        ("log = ", "toml:1: "),
        ("[server]\nlisten = \"x\"", "toml:1: unknown key `server`"),
        ("gpus = \"1x1GiB\"\nnodes = \"1x1x1GiB\"", "cannot be used together with nodes in"),
        ("\nlog = \"loud\"", "toml:2: `loud` is not a level; write off, error"),
        ("config = \"x\"", "unknown key `config`"),
        ("replace_nodes = true", "unknown key `replace_nodes`"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = file(dir.path(), text);
        let fault = up(&["--config", &file], &[]).expect_err(text).to_string();
        assert!(fault.contains(said) && fault.contains("elastane.toml"), "{text}: {fault}");
    }
    let missing = with(&[("ELASTANE_CONFIG", "/nowhere/x.toml")]).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/x.toml"), "{missing}");
}

#[test]
fn wrong_values_name_where_they_come_from() {
    for (env, said) in [
        (
            ("ELASTANE_LISTEN", "7070"),
            "ELASTANE_LISTEN: `7070` is not an address; write one such as 127.0.0.1:7070",
        ),
        (("ELASTANE_LOG", "loud"), "ELASTANE_LOG: `loud` is not a level"),
        (("ELASTANE_CLUSTER_NAME", "A b"), "ELASTANE_CLUSTER_NAME: name `A b` is not allowed"),
        (("ELASTANE_INSECURE_LISTEN", "maybe"), "`maybe` is neither true nor false"),
    ] {
        let fault = with(&[env]).expect_err(env.0).to_string();
        assert!(fault.contains(said), "{fault}");
    }
}

#[test]
fn other_machines_are_let_in_only_on_demand() {
    let open = ["--listen", "0.0.0.0:7070", "--insecure-listen"];
    let fault = up(&open[..2], &[]).unwrap_err().to_string();
    assert!(fault.contains("--listen") && fault.contains("--insecure-listen"), "{fault}");
    assert_eq!(up(&open, &[]).unwrap().settings.listen.to_string(), "0.0.0.0:7070");
    let local = with(&[("ELASTANE_LISTEN", "localhost:9")]).unwrap();
    assert_eq!(local.settings.listen.to_string(), "127.0.0.1:9");
}

#[test]
fn simulated_gpus_are_announced_loudly() {
    let given = SettingText { text: "2x2x16GiB".into(), origin: "--nodes".into() };
    let dir = tempfile::tempdir().unwrap();
    let found = super::initial_nodes::find(&Machines::Nodes(given), dir.path(), false).unwrap();
    expect![[r#"
        running
          GPUs       *** SIMULATED: there is no such hardware ***
          Node       node-1: 2x simulated 16GiB
          Node       node-2: 2x simulated 16GiB
    "#]]
    .assert_eq(&format!("running\n{}", announce(&found)));
    let labelled = |text: &str| {
        let given = SettingText { text: text.into(), origin: "--nodes".into() };
        super::initial_nodes::find(&Machines::Nodes(given), dir.path(), false)
    };
    let found = labelled("1x0@zone=a,run.ai/type=big").unwrap();
    assert_eq!(announce(&found), "  Node       node-1: no GPU, run.ai/type=big, zone=a\n");
    let fault = labelled("1x0@node-pool=a").unwrap_err().to_string();
    assert!(fault.starts_with("--nodes: label node-pool says in which pool"), "{fault}");
    let given = SettingText { text: "4".into(), origin: "--gpus".into() };
    let fault = super::initial_nodes::find(&Machines::Gpus(given), dir.path(), false).unwrap_err();
    let fault = fault.to_string();
    assert!(fault.starts_with("--gpus: `4` is not a set of GPUs"), "{fault}");
}

#[test]
fn simulated_nodes_are_those_of_the_last_server_until_others_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let given = SettingText { text: "2x2x16GiB".into(), origin: "--nodes".into() };
    let names = |found: &super::initial_nodes::InitialNodes| {
        found.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let found = super::initial_nodes::find(&Machines::Nodes(given), dir.path(), false).unwrap();
    super::initial_nodes::remember(&found, dir.path()).unwrap();
    let again = super::initial_nodes::find(&Machines::Found, dir.path(), false).unwrap();
    assert_eq!(names(&again), "node-1 node-2");
    assert_eq!(again.nodes, found.nodes);
    let replaced = super::initial_nodes::find(&Machines::Found, dir.path(), true).unwrap();
    assert_ne!(names(&replaced), "node-1 node-2", "what the machine has");
    super::initial_nodes::remember(&replaced, dir.path()).unwrap();
    let after = super::initial_nodes::find(&Machines::Found, dir.path(), false).unwrap();
    assert_eq!(names(&after), names(&replaced));
    std::fs::write(dir.path().join("nodes"), "2x2\n").unwrap();
    let fault = super::initial_nodes::find(&Machines::Found, dir.path(), false).unwrap_err();
    assert!(fault.to_string().contains("give --nodes or --gpus"), "{fault}");
}

#[test]
fn gpus_that_nobody_asked_to_simulate_come_with_the_reason() {
    let gpu = |index, fault: Option<&str>| gpu::Gpu {
        index,
        uuid: format!("GPU-{index}"),
        product: "H100".into(),
        memory_bytes: 80 << 30,
        simulated: false,
        instances: None,
        fault: fault.map(str::to_owned),
    };
    let announced = |driver| announce(&super::initial_nodes::of_driver(driver, "box").unwrap());
    let lines = [
        "running\n".to_owned(),
        announced(None),
        announced(Some(Vec::new())),
        announced(Some(vec![gpu(0, None), gpu(1, Some("the driver does not have it any more"))])),
    ];
    expect![[r#"
        running

          GPUs       *** SIMULATED, because no NVIDIA driver is installed here: there is no such hardware ***
          Node       box: 4x simulated 16GiB

          GPUs       *** SIMULATED, because the NVIDIA driver counts no GPU here: there is no such hardware ***
          Node       box: 4x simulated 16GiB

          Node       box: 2x H100 80GiB
                     GPU 1 cannot be used (E207): the driver does not have it any more
    "#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_divided_gpu_is_used_where_instances_are_given_out_only_and_says_so_otherwise() {
    let gpu = |index, instances| gpu::Gpu {
        index,
        uuid: format!("GPU-{index}"),
        product: "H100".into(),
        memory_bytes: 80 << 30,
        simulated: false,
        instances,
        fault: None,
    };
    let instance = |uuid: &str, profile: &str, gib: u64| gpu::MigInstance {
        uuid: uuid.to_owned(),
        profile: profile.to_owned(),
        memory_bytes: gib << 30,
    };
    let two = vec![instance("MIG-1", "3g.40gb", 39), instance("MIG-2", "1g.10gb", 9)];
    let driver = vec![gpu(0, Some(two)), gpu(1, Some(Vec::new())), gpu(2, None)];
    let nodes = |gives| {
        let mut found = super::initial_nodes::of_driver(Some(driver.clone()), "box").unwrap();
        assert_eq!(found.whole_gpus(), ["GPU-2"]);
        found.give_instances(gives);
        found
    };
    let faults = |gives| {
        let fault = |gpu: &spec::NodeGpu| gpu.fault.clone().unwrap_or_default();
        nodes(gives).nodes[0].gpus.iter().map(fault).collect::<Vec<_>>()
    };
    let [divided, empty, whole] = &*faults(false) else { panic!("three GPUs") };
    assert!(divided.contains("`nvidia-smi -i 0 -mig 0`"), "{divided}");
    assert!(empty.contains("only a server with `--fractions mig`"), "{empty}");
    assert_eq!(whole, "");
    let [small, half, empty, whole] = &*faults(true) else { panic!("two instances, two GPUs") };
    assert_eq!([&**small, &**half], ["", ""]);
    assert!(empty.contains("`nvidia-smi mig -i 1 -cgi PROFILES -C`"), "{empty}");
    assert!(whole.contains("`nvidia-smi -i 2 -mig 1`"), "{whole}");
    let given = nodes(true);
    let gpus = &given.nodes[0].gpus;
    let uuids: Vec<_> = gpus.iter().map(|gpu| &*gpu.uuid).collect();
    assert_eq!(uuids, ["MIG-2", "MIG-1", "GPU-1", "GPU-2"], "the smallest first");
    let holds: Vec<_> = gpus.iter().map(spec::NodeGpu::capacity_millis).collect();
    assert_eq!(holds, [125, 500, 1000, 1000]);
    assert_eq!(gpus[0].instance.as_ref().map(|of| &*of.gpu_uuid), Some("GPU-0"));
    let shown = super::initial_nodes::announce(&given);
    assert!(shown.contains("2 MIG instances of 1 GPU and 2 GPUs of H100"), "{shown}");
}

#[test]
fn a_machine_keeps_its_name_as_a_node_when_the_host_is_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = dir.path().join("state");
    let name = |host| super::initial_nodes::node_name(&state_dir, host);
    assert_eq!(name("first").unwrap(), "first");
    assert_eq!(name("second").unwrap(), "first");
    std::fs::write(state_dir.join("node-name"), "No Name\n").unwrap();
    assert!(name("third").unwrap_err().to_string().contains("node-name"));
}

#[test]
fn project_flags_are_read_exactly() {
    let parse = |line: &str| super::parsed(line.split(' '));
    let line = "elastane project create team-a --gpu-quota 1.5 --gpu-limit none";
    let Command::Project(super::project::Project::Create { name, share, .. }) =
        parse(line).unwrap().command
    else {
        panic!("{line}")
    };
    assert_eq!((name.as_str(), share.gpu_quota), ("team-a", Some(Quota::Own(Limit::At(1500)))));
    assert_eq!(share.gpu_limit, Some(super::share::Limit::None));
    for (line, said) in [
        ("elastane project create a --gpu-quota -1", "`-1` is negative"),
        ("elastane project create a --cpu-quota -2", "`-2` is negative"),
        ("elastane simulate node-add n --gpus -1", "invalid value '-1' for '--gpus <N>'"),
        ("elastane project create a --gpu-quota nan", "`nan` is not a number"),
        ("elastane project create a --gpu-quotta 1", "a similar argument exists: '--gpu-quota'"),
        ("elastane project create a --memory-quota lots", "`lots` is not a size"),
        ("elastane up --gpus 1x1GiB --nodes 1x1x1GiB", "cannot be used with"),
        ("elastane upp", "a similar subcommand exists: 'up'"),
    ] {
        let fault = parse(line).expect_err(line).to_string();
        assert!(fault.contains(said), "{fault}");
    }
}

#[test]
fn help_of_up() {
    let text = Cli::try_parse_from(["elastane", "up", "-h"]).unwrap_err().to_string();
    expect_file!["tests/help_of_up.txt"].assert_eq(&text);
}

#[test]
fn help_of_the_program() {
    let text = Cli::try_parse_from(["elastane", "-h"]).unwrap_err().to_string();
    expect![[r#"
        Runs a GPU scheduler on this machine

        Usage: elastane [OPTIONS] <COMMAND>

        Commands:
          up                   Start the server: API, scheduler and engine in one process
          down                 Stop all workloads, then the server; the next `up` runs them again
          ui                   Open the web interface in a browser, logged in as the local administrator
          status               Show whether the server runs, its nodes, GPUs and workloads
          explain              Explain why a pod of Kubernetes waits, and what would let it start
          kubernetes           Install the server in a Kubernetes cluster, and check a cluster
          config               Show the settings of the server
          project              Create, list, change and delete projects
          department           Create, list, change and delete departments: groups of projects
          node-pool            Create, list, change and delete node pools
          node                 List, cordon, drain, taint and label nodes
          config-map           Set, list, show and delete config maps: texts for the workloads of a project,
                               as files or variables
          credential           Set and delete credentials: passwords and keys for the workloads of a project
          user                 Create, list and delete users, and reset their passwords
          service-account      Create, list and delete service accounts, and reset their secrets
          access-key           List and delete the access keys of users
          access-rule          Create, list and delete access rules: roles of users, service accounts and
                               groups
          policy               Apply, list, get and delete policies: defaults and rules for submissions
          usage                Show how many GPU hours were allocated and used, and what they cost
          simulate             Simulate a cluster described in a file: scenarios, what-if questions, traces
          snapshot             Print what the scheduler sees, as a scenario for `simulate --from`
          record               Save a recording of what the server did, without secrets, for a defect report
          replay               Replay a recording: the same decisions, events and reasons, and what-if
                               questions
          backup               Save the state to a file, while the server runs or not
          restore              Restore the state from a backup, into SQLite or PostgreSQL
          keys                 Rotate the keys that credentials are encrypted with
          cdi                  Write a CDI specification: parts of GPUs for container runtimes, without a
                               server
          checkpoint           Report a checkpoint, from within a workload: what stopping it costs counts
                               from then on
          token                Print a token of the local administrator, valid for at most 15 minutes
          completion           Print the completion script of a shell
          version              Print the version
          quickstart-workload  Train a small model on the CPU: the workload of the quick start
          help                 Print this message or the help of the given subcommand(s)

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Global options:
              --state-dir <DIR>  Where the server keeps its state [default: /var/lib/elastane if this user
                                 may read it, else $XDG_STATE_HOME/elastane, else ~/.local/state/elastane]
              --color <WHEN>     When states have colors: at a terminal (auto), always or never
    "#]]
    .assert_eq(&text);
}

#[test]
fn no_text_of_a_library_is_said_about_a_wrong_value() {
    let tried =
        cli_kit::testing::errors_say_what_to_write(<Cli as clap::CommandFactory>::command());
    assert!(tried > 50, "{tried}");
}

/// Every `update` command of the program, with what it says without values.
#[test]
fn an_update_without_values_names_what_can_be_given() {
    use clap::CommandFactory as _;

    let tree = Cli::command();
    let updates = |command: &&clap::Command| command.find_subcommand("update").is_some();
    let nouns: Vec<_> = tree.get_subcommands().filter(updates).map(|one| one.get_name()).collect();
    assert_eq!(nouns, ["project", "department", "node-pool"]);
    for noun in nouns {
        let error = match Cli::try_parse_from(["elastane", noun, "update", "x"]) {
            Err(error) => error.to_string(),
            Ok(Cli { command: Command::Project(Project::Update { share, .. }), .. })
            | Ok(Cli { command: Command::Department(Department::Update { share, .. }), .. }) => {
                let error = crate::share::must_change(noun, &share).unwrap_err();
                assert_eq!(error.code(), cli_kit::exit::USAGE);
                error.to_string()
            }
            Ok(_) => panic!("{noun}"),
        };
        assert!(error.contains("--g"), "{noun}: {error}");
    }
}

#[test]
fn only_the_quota_of_a_department_is_a_sum() {
    let share = Share { gpu_quota: Some(Quota::Sum), ..Share::default() };
    assert!(crate::share::must_change("department", &share).is_ok());
    let refused = crate::share::must_change("project", &share).unwrap_err();
    assert!(refused.to_string().contains("for the quota of a department"), "{refused}");
}
