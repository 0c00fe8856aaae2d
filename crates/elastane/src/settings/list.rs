//! The list of the settings of the server, each defined once: name, type, default, reader, and
//! meaning. Flags, variables, keys of the file, the help, `elastane config show` and the tables of
//! the documentation are derived from it.
//!
//! ```text
//! /// Line in the help
//! key: Type = reader { value: "PLACEHOLDER", default: "text", meaning: "for the documentation" }
//! ```
//!
//! The type is the result of the reader; a setting without a default has an `Option` of it. A
//! setting without `value` is a switch.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use engine::TimeSlicing;
use engine_fractions::{FractionPolicy, MemoryOver};
use tracing::level_filters::LevelFilter;

use super::{Error, Origins, Setting, SettingText, Sources, read};
use crate::runtime::Choice;
use crate::{accounts, addresses, runtime};

const ISOLATION: &str = "Isolation of processes";
/// Section of the settings of the login provider.
pub(crate) const LOGIN_PROVIDER: &str = "Login provider";

/// The name of a flag, with hyphens in place of underscores.
const fn hyphenated<const BYTES: usize>(key: &str) -> [u8; BYTES] {
    let mut flag = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        flag[at] = if key.as_bytes()[at] == b'_' { b'-' } else { key.as_bytes()[at] };
        at += 1;
    }
    flag
}

macro_rules! settings {
    ($(
        $(#[doc = $help:literal])+
        $key:ident: $type:ty = $read:path { $($field:ident: $value:expr),* $(,)? }
    )+) => {
        /// The values of all settings.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct Settings {
            $($(#[doc = $help])+ pub(crate) $key: $type,)+
        }

        /// All settings, in the order of the help and the documentation.
        pub(crate) static ALL: &[Setting] = &[$(Setting {
            key: stringify!($key),
            flag: {
                const FLAG: [u8; stringify!($key).len()] = hyphenated(stringify!($key));
                match str::from_utf8(&FLAG) {
                    Ok(flag) => flag,
                    Err(_) => panic!("a key in ASCII gives a flag in ASCII"),
                }
            },
            help: concat!($($help),+),
            $($field: $value,)*
            ..Setting::TEXT
        }),+];

        impl Settings {
            /// Reads all settings, each independently.
            pub(crate) fn read(sources: &Sources) -> Result<Self, Error> {
                let mut all = ALL.iter();
                let mut next = || all.next().expect("as many as there are fields");
                Ok(Self { $($key: sources.read(next(), $read)?,)+ })
            }
        }
    };
}

settings! {
    /// Where the server keeps its state
    state_dir: PathBuf = read::state_dir {
        value: Some("DIR"),
        unset: "`/var/lib/elastane` if this user may read it, else `$XDG_STATE_HOME/elastane`, \
            else `~/.local/state/elastane`",
        meaning: "database, token, runs and their output",
    }

    /// Simulate one machine with these GPUs, such as 4x16GiB
    gpus: Option<SettingText> = read::given {
        value: Some("COUNTxSIZE"),
        unset: "those of the last server, else those found",
        excludes: Some("nodes"),
        meaning: "one machine with simulated GPUs; `0` for none. Without it the server has the \
            simulated GPUs of the last server, else the GPUs found, else `4x16GiB` simulated; see \
            [GPUs](#gpus)",
    }

    /// Simulate several machines, such as 2x2x16GiB, 2x2x16GiB@zone=a+1x8x80GiB@zone=b or
    /// 3x0,cpu=3920m,memory=15GB
    nodes: Option<SettingText> = read::given {
        value: Some("NODESxCOUNTxSIZE"),
        excludes: Some("gpus"),
        meaning: "several simulated machines, of several kinds and with labels if need be: \
            `2x4x16GiB@zone=a,run.ai/type=big+1x8x80GiB@zone=b`; `3x0,cpu=3920m,memory=15GB` are \
            three without GPUs, each with so many cores and so much memory; not together with \
            `gpus`",
    }

    /// Replace the simulated nodes of the last server, although that stops workloads
    replace_nodes: bool = read::switch {
        default: "false",
        origins: Origins::Flag,
        meaning: "replace the simulated nodes of the last server, although that stops workloads; \
            see [GPUs](#gpus)",
    }

    /// Runtime of workloads: docker, process, kubernetes, or auto for docker if it answers
    runtime: Choice = runtime::choice {
        value: Some("RUNTIME"),
        default: "auto",
        meaning: "what workloads run as: `docker` for [containers](../guides/docker.md), \
            `process`, `kubernetes` for the pods of [a cluster](../guides/kubernetes.md) that \
            `kubectl` makes, or `auto` for what they ran as last in this state directory, and at first \
            for containers where Docker or Podman answers (and can hand on GPUs, if there are \
            any), else processes",
    }

    /// Kubeconfig of the cluster, for --runtime kubernetes
    kubeconfig: Option<PathBuf> = read::path {
        value: Some("FILE"),
        unset: "the service account of the pod that the server runs in, else `$KUBECONFIG`, else \
            `~/.kube/config`",
        is_secret_file: true,
        meaning: "the kubeconfig of the cluster, for `--runtime kubernetes`",
    }

    /// Context of the kubeconfig, for --runtime kubernetes
    context: Option<String> = read::text {
        value: Some("NAME"),
        unset: "the current one",
        meaning: "the context of the kubeconfig, for `--runtime kubernetes`",
    }

    /// Names of this scheduler in pods, for --runtime kubernetes
    scheduler_name: Vec<String> = read::names {
        value: Some("NAMES"),
        default: "elastane",
        meaning: "the `schedulerName` of the pods that the server places, several with commas \
            between them, for `--runtime kubernetes`",
    }

    /// Project that is charged for pods in namespaces of no project, for --runtime kubernetes
    default_project: Option<String> = read::name {
        value: Some("NAME"),
        unset: "such pods wait",
        meaning: "the project that is charged for pods in namespaces of no project, unless a label \
            names another, for `--runtime kubernetes`",
    }

    /// Bindings of pods in flight at a time, for --runtime kubernetes
    bind_concurrency: usize = read::bind_concurrency {
        value: Some("COUNT"),
        default: "64",
        meaning: "maximum number of bindings of pods in flight at a time, for `--runtime kubernetes`",
    }

    /// Reasons a second that are written to waiting pods, or all, for --runtime kubernetes
    status_rate: engine_kube::Rate = read::rate {
        value: Some("RATE"),
        default: "20",
        meaning: "reasons that are written to waiting pods each second, `all` or `0` for none; \
            those beyond it are written later, the newest first, for `--runtime kubernetes`",
    }

    /// Events a second that are written for bound pods, or all, for --runtime kubernetes
    event_rate: engine_kube::Rate = read::rate {
        value: Some("RATE"),
        default: "20",
        meaning: "events `Scheduled` that are written for bound pods each second, `all` or `0` for \
            none; those beyond it are left out, for `--runtime kubernetes`",
    }

    /// Limits of GPU fractions: auto for the best that is safe, hard, mig, mps, dmem, or none
    fractions: FractionPolicy = runtime::fractions {
        value: Some("POLICY"),
        default: "auto",
        meaning: "what keeps workloads within their [part of a GPU](../guides/fractions.md): `auto` \
            for the best that is safe on this machine, `hard` to start no part of a GPU where its \
            user could work around the limit, `mig` for [MIG instances](../guides/fractions.md#mig) that an \
            administrator made, `mps` for limits by [NVIDIA's \
            MPS](../guides/fractions.md#mps), `dmem` for limits by [control \
            groups](../guides/fractions.md#control-groups), or `none` to count only",
    }

    /// Memory of a GPU held beyond a limit and not granted: report it, or end its newest process
    gpu_memory_over: MemoryOver = runtime::memory_over {
        value: Some("POLICY"),
        default: "report",
        meaning: "what is done about a workload that works around the limit of its [part of a \
            GPU](../guides/fractions.md#what-a-determined-user-can-do): `report` an event, or `end` \
            its newest process on the GPU as well ([E216](codes/E216.md))",
    }

    /// Compute time of shared GPUs: none for what programs take, strict, or fair
    gpu_time_slicing: TimeSlicing = runtime::time_slicing {
        value: Some("MODE"),
        default: "none",
        meaning: "how workloads with a part of a GPU [divide its compute \
            time](../guides/fractions.md#compute-time): `none` for what each takes, `strict` for its \
            share and never more, or `fair` for its share and of what others leave",
    }

    /// Where to listen
    listen: SocketAddr = read::address {
        value: Some("ADDRESS:PORT"),
        default: "127.0.0.1:7070",
        meaning: "where the API answers",
    }

    /// Address for links and logins behind a proxy, such as https://gpu.example.org
    public_url: Option<String> = addresses::public_url {
        value: Some("URL"),
        meaning: "where others reach the server, such as `https://gpu.example.org`: for links, \
            redirects and the addresses of workloads; see [names and proxies](#names-and-proxies)",
    }

    /// Proxies whose X-Forwarded-For is trusted, such as 127.0.0.1,10.0.0.0/8
    trusted_proxies: http_kit::Proxies = addresses::proxies {
        value: Some("ADDRESSES"),
        meaning: "proxies whose `X-Forwarded-For` is believed, such as `127.0.0.1,10.0.0.0/8`",
    }

    /// Encrypt with the certificate (and its chain) in this file, PEM; needs --tls-key
    tls_cert: Option<PathBuf> = read::path {
        value: Some("FILE"),
        meaning: "answer over https with this certificate and its chain after it, PEM; needs \
            `tls_key`; see [TLS](#tls)",
    }

    /// Key of the certificate, PEM
    tls_key: Option<PathBuf> = read::path {
        value: Some("FILE"),
        is_secret_file: true,
        meaning: "the key of the certificate, PEM",
    }

    /// Listen beyond this machine without encryption
    insecure_listen: bool = read::switch {
        default: "false",
        meaning: "accept an address that other machines reach, although traffic is not encrypted",
    }

    /// Database of the state: sqlite, or postgres://USER@HOST:5432/DATABASE
    database: store::Database = read::database {
        value: Some("URL"),
        default: "sqlite",
        shown: Some(read::database_shown),
        meaning: "where the state is: a file in the state directory, or a PostgreSQL database, \
            see [storage](storage.md)",
    }

    /// File with the password of the database, so that it is not in the URL
    database_password_file: Option<PathBuf> = read::path {
        value: Some("FILE"),
        is_secret_file: true,
        meaning: "the password of the database, so that it is not in the URL",
    }

    /// Read values from this file (TOML)
    config: Option<PathBuf> = read::path {
        value: Some("FILE"),
        origins: Origins::FlagAndVariable,
        is_secret_file: true,
        meaning: "the file with settings",
    }

    /// Name of the cluster
    cluster_name: String = read::name {
        value: Some("NAME"),
        default: "default",
        meaning: "name of the cluster, for people",
    }

    /// File with the keys that credentials are encrypted with
    credentials_key_file: Option<PathBuf> = read::path {
        value: Some("FILE"),
        unset: "`credentials-key` in the state directory",
        is_secret_file: true,
        meaning: "the keys that credentials are encrypted with, see \
            [storage](storage.md#credentials)",
    }

    /// Log level: off, error, warn, info, debug, trace
    log: LevelFilter = read::level {
        value: Some("LEVEL"),
        default: "warn",
        meaning: "`off`, `error`, `warn`, `info`, `debug`, `trace`",
    }

    /// Window of past usage that counts for fair shares, such as 7d or 7d,tumbling
    usage_window: Option<read::Window> = read::window {
        value: Some("SPAN"),
        meaning: "fairness over time: what a project used in this span lowers its part of what \
            no quota claims. `7d` is the last seven days; `7d,tumbling` restarts every seven \
            days, counted from 1 January 1970",
    }

    /// Half-life of past usage, such as 1d
    usage_half_life: Option<u64> = read::span_ms {
        value: Some("SPAN"),
        meaning: "the age at which past use counts half; needs `usage_window`",
    }

    /// How long events are kept
    events_kept: u64 = read::kept_ms {
        value: Some("SPAN"),
        default: "90d",
        meaning: "how long events are kept, and at most a million of them; see \
            [storage](storage.md#logs)",
    }

    /// How long the audit log is kept
    audit_kept: u64 = read::kept_ms {
        value: Some("SPAN"),
        default: "400d",
        meaning: "how long the audit log is kept, and at most ten million rows of it",
    }

    /// How long places are kept through a failure, at most 60s
    places_kept: u64 = read::places_kept_ms {
        value: Some("SPAN"),
        default: "60s",
        meaning: "how long, at most 60s, a pod keeps its place through one pause after a failure, and a gang \
            the places of its other pods while one is away; in all, this span and 5 % of what the \
            workload has run. `0s` keeps none; see \
            [kept places](../concepts/decisions.md#kept-places)",
    }

    /// How many ended workloads stay in the memory of the server; older ones are read when needed
    ended_workloads_kept: usize = read::ended_kept {
        value: Some("COUNT"),
        default: "1000",
        meaning: "how many ended workloads stay in the memory of the server, up to 100000; older \
            ones are in the database alone, see [storage](storage.md#archived-workloads)",
    }

    /// Limits of what users make, such as environment-bytes=256KiB,project-workloads=500000
    user_limits: spec::UserLimits = read::user_limits {
        value: Some("NAME=VALUE,..."),
        meaning: "[limits of what users make](limits.md), each by its name",
    }

    /// Disk space limit of the recording of the server; 0 turns it off
    recording_max: u64 = read::bytes_or_none {
        value: Some("SIZE"),
        default: "64MiB",
        meaning: "most that the [recording](../operations/recordings.md) of what the server does \
            takes on the disk, the oldest part going first; `0` for no recording",
    }

    /// Largest copy of a repository or bucket for a workload
    copies_max: u64 = read::bytes {
        value: Some("SIZE"),
        default: "50GiB",
        meaning: "most that a [copy of a repository](api.md#copies-of-repositories) or a \
            [bucket](api.md#copies-of-buckets) may take on the disk",
    }

    /// Folders of this machine that every workload may mount; others need an administrator
    host_paths: Vec<PathBuf> = read::folders {
        value: Some("DIR,DIR"),
        meaning: "folders of this machine that every workload may mount, with all below them; see \
            [who gets what of the machine](api.md#around-a-workload)",
    }

    /// Parent domain of the hosts of inferences and of ports that are opened in a browser
    workloads_domain: String = read::domain {
        value: Some("DOMAIN"),
        default: "localhost",
        meaning: "the domain below which each inference, and each port that is \
            [opened in a browser](../guides/browser.md), has a host of its own",
    }

    /// Allow privileged workloads of all users, not only of administrators
    allow_privileged: bool = read::switch {
        default: "false",
        meaning: "let everyone's workloads have rights over this machine and mount NFS exports, \
            not only administrators'",
    }

    /// Unix accounts for the runs of users, if the server is root
    accounts: BTreeMap<String, String> = accounts::table {
        value: Some("USER=ACCOUNT,..."),
        heading: Some(ISOLATION),
        meaning: "Unix accounts for the runs of users, if the server is root; see \
            [who a process is](../guides/processes.md#who-a-process-is). Root and system accounts \
            are given only here",
    }

    /// E-mail domains whose local parts are names of Unix accounts, or *
    account_domains: Vec<String> = accounts::domains {
        value: Some("DOMAIN,..."),
        heading: Some(ISOLATION),
        meaning: "domains of e-mail addresses whose local part is the name of a Unix account; `*` \
            for every domain",
    }

    /// Range of private ids for all other users
    account_pool: RangeInclusive<u32> = accounts::pool {
        value: Some("FIRST-LAST"),
        default: "1900000000-1900065535",
        heading: Some(ISOLATION),
        meaning: "private ids of all other users",
    }

    /// Refuse to start if workloads could read the server's files or each other's
    require_isolation: bool = read::switch {
        default: "false",
        heading: Some(ISOLATION),
        meaning: "refuse to start where workloads could read the server's files",
    }

    /// Let users log in at this OpenID Connect provider, such as https://id.example.org
    oidc_issuer: Option<String> = read::text {
        value: Some("URL"),
        heading: Some(LOGIN_PROVIDER),
        meaning: "the provider, exactly as it calls itself; https, except on this machine",
    }

    /// Client id of this server at the provider
    oidc_client_id: Option<String> = read::text {
        value: Some("ID"),
        heading: Some(LOGIN_PROVIDER),
        meaning: "what the provider calls this server",
    }

    /// File with the client secret of this server at the provider
    oidc_client_secret_file: Option<PathBuf> = read::path {
        value: Some("FILE"),
        heading: Some(LOGIN_PROVIDER),
        is_secret_file: true,
        meaning: "the secret by which the provider knows this server; none for a public client",
    }

    /// Scopes to request from the provider
    oidc_scopes: String = read::text {
        value: Some("SCOPES"),
        default: "openid email profile",
        heading: Some(LOGIN_PROVIDER),
        meaning: "what is asked for. Dex wants `groups` as well",
    }

    /// Claim with a person's e-mail address
    oidc_user_claim: String = read::text {
        value: Some("CLAIM"),
        default: "email",
        heading: Some(LOGIN_PROVIDER),
        meaning: "the claim with the e-mail address, which is the name of a user here. Entra ID \
            may have it in `preferred_username` only",
    }

    /// Claim with a person's groups, to which access rules give roles
    oidc_groups_claim: String = read::text {
        value: Some("CLAIM"),
        default: "groups",
        heading: Some(LOGIN_PROVIDER),
        meaning: "the claim with the groups, a list or one; `realm_access.roles` is a path",
    }

    /// Create a user at the first login; otherwise only existing users log in
    oidc_create_users: bool = read::switch {
        default: "false",
        heading: Some(LOGIN_PROVIDER),
        meaning: "create a user at the first login; otherwise only existing users log \
            in",
    }

    /// Accept every e-mail address that the provider does not mark as unverified
    oidc_trust_email: bool = read::switch {
        default: "false",
        heading: Some(LOGIN_PROVIDER),
        meaning: "take an e-mail address for verified when the provider does not say whether it \
            is; see [below](#verified-addresses)",
    }

    /// Allow logins with ID tokens that a program got for this server
    oidc_token_exchange: bool = read::switch {
        default: "false",
        heading: Some(LOGIN_PROVIDER),
        meaning: "exchange ID tokens that other programs got for this server; see \
            [below](#logging-in)",
    }
}
