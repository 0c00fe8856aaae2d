//! Commands in a form common to both dialects. Owns the meaning of a command line; does not know
//! flags, the wire, and how answers look.

mod submit;

pub use submit::{
    Access, ContainerOptions, DataSource, Distributed, Effect, Gpu, Inherits, Kind, Manifest,
    Master, Mode, Name, Place, Runs, SecretFiles, Serving, Spec, Submit, Toleration, Update,
    Variable,
};

use std::borrow::Cow;
use std::path::PathBuf;
use std::str::FromStr;

use cli_kit::complete::Shell;
pub use cli_kit::output::{OutputFormat, OutputOptions};
use cli_kit::settings::TableStyle;

/// The dialect of the command line; it decides messages, never effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `runai submit`.
    V1,
    /// `runai training submit`.
    V2,
}

/// Noun of a command: the kind of workloads that it sees. It sees no others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Noun {
    /// Any, in the first dialect.
    #[default]
    Job,
    /// Any.
    Workload,
    /// Trainings of one pod and of several.
    Training,
    /// Trainings of one pod.
    Standard,
    /// Trainings of several pods.
    Distributed,
    /// Trainings of several pods that use this framework.
    Framework(Framework),
    /// Workspaces.
    Workspace,
    /// Inferences.
    Inference,
}

impl Noun {
    /// Dialect that has the noun.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Job => Dialect::V1,
            _ => Dialect::V2,
        }
    }

    /// The word for one of them.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Workload => "workload",
            Self::Training => "training",
            Self::Standard => "standard training",
            Self::Distributed => "distributed training",
            Self::Framework(framework) => framework.training(),
            Self::Workspace => "workspace",
            Self::Inference => "inference",
        }
    }
}

/// Framework of a distributed training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    /// A launcher starts ranks in the workers.
    Mpi,
    /// PyTorch.
    PyTorch,
    /// TensorFlow.
    Tf,
    /// XGBoost.
    XgBoost,
    /// JAX.
    Jax,
}

impl Framework {
    const fn training(self) -> &'static str {
        match self {
            Self::Mpi => "MPI training",
            Self::PyTorch => "PyTorch training",
            Self::Tf => "TensorFlow training",
            Self::XgBoost => "XGBoost training",
            Self::Jax => "JAX training",
        }
    }
}

/// Login method. The client prompts for values that are `None`.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// In a browser on this machine.
    Browser,
    /// In a browser on another machine.
    RemoteBrowser,
    /// With a password.
    User {
        /// E-mail address.
        name: Option<String>,
        /// Password.
        password: Option<String>,
        /// Password that replaces an initial password.
        new_password: Option<String>,
    },
    /// As a program.
    Application {
        /// Name or client id.
        name: Option<String>,
        /// Secret.
        secret: Option<String>,
    },
}

impl Login {
    /// Name of the method, as shown and stored.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::RemoteBrowser => "remote-browser",
            Self::User { .. } => "user",
            Self::Application { .. } => "application",
        }
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({})", self.word())
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent {
    /// Submit a workload.
    Submit(Box<Submit>),
    /// Submit a workload from a manifest.
    SubmitManifest(Box<Manifest>),
    /// Change a workload that exists.
    Update(Box<Update>),
    /// List workloads.
    ListWorkloads(ListWorkloads),
    /// List projects.
    ListProjects(Dialect, Page, OutputOptions),
    /// List nodes, all or those named.
    ListNodes(Dialect, Vec<String>, Page, OutputOptions),
    /// List clusters.
    ListClusters(Dialect, Page, OutputOptions),
    /// List objects other than workloads.
    ListObjects(ListObjects),
    /// Describe such an object, by name.
    DescribeObject(Objects, String, OutputOptions),
    /// Describe a workload.
    Describe(Describe),
    /// Explain the state of a workload.
    Explain(Target, OutputOptions),
    /// Explain the state of a pod of Kubernetes.
    ExplainPod(KubernetesPodName, OutputOptions),
    /// Show what a workload held and used over time.
    Metrics(Metrics),
    /// Describe nodes, all or those named.
    DescribeNodes(Vec<String>, OutputOptions),
    /// Show GPUs, queues and workloads as they change.
    Top,
    /// Resource usage of nodes, all or those named.
    TopNodes {
        /// Names of the nodes; empty = all.
        names: Vec<String>,
        /// True if each GPU is listed.
        details: bool,
        /// Output options.
        how: OutputOptions,
    },
    /// Resource usage of running jobs.
    TopJobs {
        /// True for the jobs of all projects.
        all_projects: bool,
        /// Output options.
        how: OutputOptions,
    },
    /// Print output.
    Logs {
        /// Workload, and optionally its pod.
        of: Target,
        /// Part of the output to print.
        which: client::Logs,
    },
    /// Wait until workloads reach a state.
    Wait(Wait),
    /// Delete, suspend or resume workloads.
    Change(Change),
    /// Run a command in a pod.
    Exec {
        /// Workload, and optionally its pod.
        of: Target,
        /// Command and its arguments.
        command: Vec<String>,
        /// Connection of the command to this terminal.
        stdio: Stdio,
    },
    /// Attach to the main process of a pod.
    Attach {
        /// Workload, and optionally its pod.
        of: Target,
        /// Connection of the main process to this terminal.
        stdio: Stdio,
    },
    /// Open a port in a browser.
    Open {
        /// Workload.
        of: Target,
        /// Name or number of the port; `None` if the workload has one port.
        url: Option<String>,
        /// True if its address is only printed.
        print: bool,
    },
    /// Forward local ports to a pod.
    PortForward {
        /// Workload, and optionally its pod.
        of: Target,
        /// Pairs of local port and port of the pod.
        ports: Vec<(u16, u16)>,
        /// Local address to listen on.
        address: String,
    },
    /// Choose the default project.
    SetProject {
        /// Name of the project.
        name: String,
        /// True if the command was `project set`.
        by_noun: bool,
    },
    /// Choose the current cluster.
    SetCluster(String),
    /// Set the address of the server.
    SetServer(String),
    /// Log in.
    Login(Login),
    /// Log out.
    Logout,
    /// Print the current user.
    Whoami(OutputOptions),
    /// Print the token.
    Token(OutputFormat),
    /// Show the settings.
    DescribeSettings(OutputFormat),
    /// Print settings for other users, or write them to a file.
    GenerateSettings(Option<PathBuf>),
    /// Replace this program by the version of the server.
    Upgrade,
    /// Command that needs no server and no valid settings.
    LocalCommand(LocalCommand),
}

/// Commands that need no server and no valid settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalCommand {
    /// Print the diagnostics for a support request, or write them to a file.
    Diagnose {
        /// Output format.
        shown: OutputFormat,
        /// File to write to; `None` = standard output.
        file: Option<PathBuf>,
    },
    /// Command that has nothing to act on.
    Nothing {
        /// Reason, as printed.
        why: Cow<'static, str>,
        /// True if the command succeeds with a note; false if it fails.
        done: bool,
    },
    /// Print the script by which a shell completes command lines.
    Complete(Shell),
    /// Print the version.
    Version {
        /// True if only the number is printed.
        short: bool,
    },
}

/// Default time in seconds for which `--attach` waits for a pod to run.
pub const ATTACH_WAIT_S: u64 = 30;

/// Connection of a process in a pod to this program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stdio {
    /// Standard input is forwarded to it.
    pub stdin: bool,
    /// It has a terminal, connected to the local one.
    pub tty: bool,
}

impl Stdio {
    /// Standard input and terminal.
    pub const FULL: Self = Self { stdin: true, tty: true };
}

/// A workload by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Kind of workload.
    pub noun: Noun,
    /// Name.
    pub name: String,
    /// Name of one of its pods; `None` if not given.
    pub pod: Option<String>,
}

/// A pod of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesPodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl FromStr for KubernetesPodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name))
                if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!(
                "`{}` is not NAMESPACE/NAME of a pod, such as team-a/train1; `kubectl get pods -A` \
                 lists pods",
                units::shown(text)
            )),
        }
    }
}

/// Workloads to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Kind of workload.
    pub noun: Noun,
    /// Names of the workloads.
    pub names: Vec<String>,
    /// State to wait for.
    pub until: WaitCondition,
    /// Maximum wait in seconds; `None` = no limit.
    pub timeout_s: Option<u64>,
}

/// Condition to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WaitCondition {
    /// It runs, or has ended well.
    Running,
    /// It has ended.
    #[value(name = "completed", alias = "complete")]
    Ended,
    /// It is gone.
    Deleted,
}

/// Workloads to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListWorkloads {
    /// True for the workloads of all projects.
    pub all_projects: bool,
    /// Kind of workload.
    pub noun: Noun,
    /// Filter on the workloads.
    pub only: Only,
    /// Offset and number of rows.
    pub page: Page,
    /// Default table style of this list; the settings override it.
    pub table: Option<TableStyle>,
    /// Output options.
    pub how: OutputOptions,
}

impl ListWorkloads {
    /// True if rows are filtered or sorted by values that the server does not know: then all are
    /// read.
    pub const fn needs_all(&self) -> bool {
        self.how.sort.is_some() || !self.only.statuses.is_empty()
    }
}

/// Filter on the workloads of a noun. An empty list filters nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// Phases.
    pub phases: Vec<String>,
    /// Statuses as the table shows them, of which the server knows only the phases.
    pub statuses: Vec<String>,
    /// Nodes; the workload has a pod on one of them.
    pub nodes: Vec<String>,
    /// Submitting users.
    pub users: Vec<String>,
    /// Labels with their values; the workload has all of them.
    pub labels: Vec<(String, String)>,
}

/// Rows of a list that are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// Rows to skip.
    pub offset: usize,
    /// Maximum number of rows; `None` = no limit.
    pub limit: Option<usize>,
    /// True if the command has flags for further pages.
    pub has_more_pages: bool,
}

impl Page {
    /// The rows on this page, and the number of rows after it.
    pub fn of<T>(self, all: Vec<T>) -> (Vec<T>, usize) {
        let total = all.len();
        let limit = self.limit.unwrap_or(usize::MAX);
        let page: Vec<T> = all.into_iter().skip(self.offset).take(limit).collect();
        let rest = total.saturating_sub(self.offset.saturating_add(page.len()));
        (page, rest)
    }
}

/// Types of objects other than workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    /// Default values for workloads.
    Template,
    /// Environment assets: image and command.
    Environment,
    /// Compute assets: resource requests.
    Compute,
    /// Data sources of every type.
    Datasource,
    /// Persistent volume claims.
    Pvc,
    /// Data volumes: shared data.
    Datavolume,
    /// Credentials: secrets by name.
    Credential,
    /// Departments: groups of projects.
    Department,
    /// Node pools: groups of nodes.
    Nodepool,
    /// Types of workloads.
    WorkloadType,
}

/// Objects to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListObjects {
    /// Type of the objects.
    pub of: Objects,
    /// Dialect of the command line.
    pub dialect: Dialect,
    /// True for all of them, false for those that the project can use.
    pub all_projects: bool,
    /// Offset and number of rows.
    pub page: Page,
    /// Output options.
    pub how: OutputOptions,
}

/// A workload whose measurements are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Workload.
    pub of: Target,
    /// Length of the period in seconds, until now.
    pub since_s: u64,
    /// Number of samples.
    pub samples: u32,
    /// Output options.
    pub how: OutputOptions,
}

/// A workload to describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Describe {
    /// Workload.
    pub of: Target,
    /// Output options.
    pub how: OutputOptions,
    /// Maximum number of events.
    pub events_max: usize,
    /// Sections to show.
    pub parts: Parts,
}

/// Sections and rows of a description that are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Sections to leave out.
    pub left_out: Vec<Section>,
    /// Maximum number of pods; `None` = all.
    pub pods_max: Option<usize>,
    /// True if the newest event comes first.
    pub newest_first: bool,
}

/// A part of a description that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Type and state, and the reason why it waits.
    General,
    /// Requested and allocated resources.
    Compute,
    /// Its pods.
    Pods,
    /// Events.
    Events,
    /// Addresses.
    Networks,
    /// Mounts.
    Storage,
    /// Containers.
    Containers,
}

/// Action on existing workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Delete.
    Delete,
    /// Suspend.
    Suspend,
    /// Resume.
    Resume,
}

/// Existing workloads to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Action.
    pub verb: Verb,
    /// Kind of workload.
    pub noun: Noun,
    /// Names of the workloads; `None` = all of the project.
    pub names: Option<Vec<String>>,
    /// True if no confirmation is required.
    pub yes: bool,
}
