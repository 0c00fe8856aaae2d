//! What a person wants, whichever dialect they said it in. Owns the meaning of a command line;
//! does not know flags, the wire, and how answers look.

mod submit;

pub use submit::{
    Access, ContainerOptions, DataSource, Distributed, Effect, Gpu, Inherits, Kind, Manifest,
    Master, Mode, Name, Place, Runs, SecretFiles, Serving, Spec, Submit, Toleration, Update,
    Variable,
};

use std::path::PathBuf;

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

/// What a command calls the workloads it is about; it sees no others.
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
    /// Trainings of several pods that work together by these rules.
    Framework(Framework),
    /// Workspaces.
    Workspace,
    /// Inferences.
    Inference,
}

impl Noun {
    /// How it was said.
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

/// By whose rules the pods of a training work together.
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

/// How to log in. What is not given is asked for.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// In a browser on this machine.
    Browser,
    /// In one elsewhere.
    RemoteBrowser,
    /// With a password.
    User {
        /// E-mail address.
        name: Option<String>,
        /// Password.
        password: Option<String>,
        /// The one to choose in place of one that was given out.
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
    /// As it is shown and kept.
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
    /// Submit what a manifest describes.
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
    /// List what is kept beside workloads.
    ListObjects(ListObjects),
    /// Describe one of these.
    DescribeObject(Objects, String, OutputOptions),
    /// Describe a workload.
    Describe(Describe),
    /// Explain why a workload is where it is.
    Explain(Target, OutputOptions),
    /// Show what a workload held and used over time.
    Metrics(Metrics),
    /// Describe nodes, all or those named.
    DescribeNodes(Vec<String>, OutputOptions),
    /// Show GPUs, queues and workloads as they change.
    Top,
    /// What nodes use, all or those named, and with details what each of their GPUs does.
    TopNodes {
        /// Which; none = all.
        names: Vec<String>,
        /// True if GPUs are listed one by one.
        details: bool,
        /// How to print.
        how: OutputOptions,
    },
    /// What jobs that run use.
    TopJobs {
        /// Of all projects.
        all_projects: bool,
        /// How to print.
        how: OutputOptions,
    },
    /// Print output.
    Logs {
        /// Whose.
        of: Target,
        /// Which part of it.
        which: client::Logs,
    },
    /// Stay until workloads are somewhere.
    Wait(Wait),
    /// Delete, suspend or resume workloads.
    Change(Change),
    /// Run a command in a pod.
    Exec {
        /// Of which workload.
        of: Target,
        /// What.
        command: Vec<String>,
        /// How it is tied to this program.
        stdio: Stdio,
    },
    /// Attach to the main process of a pod.
    Attach {
        /// Of which workload.
        of: Target,
        /// How it is tied to this program.
        stdio: Stdio,
    },
    /// Open a port in a browser.
    Open {
        /// Of which workload.
        of: Target,
        /// Name or number of the port; none where there is one.
        url: Option<String>,
        /// True if its address is only to be printed.
        print: bool,
    },
    /// Bring ports of a pod to this machine.
    PortForward {
        /// Of which workload.
        of: Target,
        /// Port here, port there.
        ports: Vec<(u16, u16)>,
        /// Where to listen.
        address: String,
    },
    /// Choose the default project.
    SetProject {
        /// Which.
        name: String,
        /// True if it was said as `project set`.
        by_noun: bool,
    },
    /// Choose the current cluster.
    SetCluster(String),
    /// Where the server is.
    SetServer(String),
    /// Log in.
    Login(Login),
    /// Log out.
    Logout,
    /// Who am I.
    Whoami(OutputOptions),
    /// Print the token.
    Token(OutputFormat),
    /// Show the settings.
    DescribeSettings(OutputFormat),
    /// Print settings for others, or write them to a file.
    GenerateSettings(Option<PathBuf>),
    /// Replace this program by the server's.
    Upgrade,
    /// What needs no server, and no settings that can be used.
    LocalCommand(LocalCommand),
}

/// What is done whatever the settings are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalCommand {
    /// Print what support needs to know, or write it to a file.
    Diagnose {
        /// Output format.
        shown: OutputFormat,
        /// Where it is written to.
        file: Option<PathBuf>,
    },
    /// What there is nothing of.
    Nothing {
        /// Why.
        why: &'static str,
        /// True if that is as good as having done it.
        done: bool,
    },
    /// Print the script by which a shell completes command lines.
    Complete(Shell),
    /// Which version.
    Version {
        /// Only the number.
        short: bool,
    },
}

/// How many seconds a pod is waited for that is to be attached to.
pub const ATTACH_WAIT_S: u64 = 30;

/// How a process there is tied to this program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stdio {
    /// It is handed what is typed here.
    pub stdin: bool,
    /// It has a terminal, which this one is.
    pub tty: bool,
}

impl Stdio {
    /// Both.
    pub const FULL: Self = Self { stdin: true, tty: true };
}

/// A workload by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What it is.
    pub noun: Noun,
    /// Name.
    pub name: String,
    /// One of its pods.
    pub pod: Option<String>,
}

/// Workloads to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What they are.
    pub noun: Noun,
    /// Which.
    pub names: Vec<String>,
    /// Until what.
    pub until: WaitCondition,
    /// At most so long, in seconds.
    pub timeout_s: Option<u64>,
}

/// What is waited for.
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
    /// Of all projects.
    pub all_projects: bool,
    /// Which.
    pub noun: Noun,
    /// Which of them.
    pub only: Only,
    /// Which rows.
    pub page: Page,
    /// The table this list is printed as unless the settings say otherwise.
    pub table: Option<TableStyle>,
    /// How to print.
    pub how: OutputOptions,
}

impl ListWorkloads {
    /// True if rows are chosen or ordered by what the server does not know: then all are read.
    pub const fn needs_all(&self) -> bool {
        self.how.sort.is_some() || !self.only.statuses.is_empty()
    }
}

/// Which workloads of a noun are meant. What is empty leaves all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// Phases.
    pub phases: Vec<String>,
    /// Statuses as the first dialect shows them, of which the server knows only the phases.
    pub statuses: Vec<String>,
    /// Nodes on which they have a pod.
    pub nodes: Vec<String>,
    /// Who submitted them.
    pub users: Vec<String>,
    /// Labels with their values; they have all of them.
    pub labels: Vec<(String, String)>,
}

/// Which rows of a list are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// Rows to skip.
    pub offset: usize,
    /// Rows to print at most.
    pub limit: Option<usize>,
}

impl Page {
    /// What is on it, and how many come after.
    pub fn of<T>(self, all: Vec<T>) -> (Vec<T>, usize) {
        let total = all.len();
        let limit = self.limit.unwrap_or(usize::MAX);
        let page: Vec<T> = all.into_iter().skip(self.offset).take(limit).collect();
        let rest = total.saturating_sub(self.offset.saturating_add(page.len()));
        (page, rest)
    }
}

/// What a server keeps beside workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    /// Values that workloads begin with.
    Template,
    /// What runs.
    Environment,
    /// What it gets.
    Compute,
    /// Data of every kind.
    Datasource,
    /// Data in volumes.
    Pvc,
    /// Data that is shared by copies.
    Datavolume,
    /// Secrets by name.
    Credential,
    /// Groups of projects.
    Department,
    /// Groups of nodes.
    Nodepool,
    /// Types of workloads.
    WorkloadType,
}

/// Objects to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListObjects {
    /// Which.
    pub of: Objects,
    /// How it was said.
    pub dialect: Dialect,
    /// Not only what the project can use.
    pub all_projects: bool,
    /// Which rows.
    pub page: Page,
    /// How to print.
    pub how: OutputOptions,
}

/// A workload whose measurements are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Which.
    pub of: Target,
    /// Of how many seconds until now.
    pub since_s: u64,
    /// How many moments.
    pub samples: u32,
    /// How to print.
    pub how: OutputOptions,
}

/// A workload to describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Describe {
    /// Which.
    pub of: Target,
    /// How to print.
    pub how: OutputOptions,
    /// Most events.
    pub events_max: usize,
    /// Which parts of it.
    pub parts: Parts,
}

/// Which parts of a description are shown, and how much of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Those that are not.
    pub left_out: Vec<Section>,
    /// Most pods; none = all.
    pub pods_max: Option<usize>,
    /// True if the last event comes first.
    pub newest_first: bool,
}

/// A part of a description that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// What it is, and why it waits.
    General,
    /// What it asks for and holds.
    Compute,
    /// Its pods.
    Pods,
    /// What happened.
    Events,
    /// Where it is reached.
    Networks,
    /// What is mounted.
    Storage,
    /// What its containers run.
    Containers,
}

/// What to do to existing workloads.
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
    /// What to do.
    pub verb: Verb,
    /// With what.
    pub noun: Noun,
    /// Which; none means all of the project.
    pub names: Option<Vec<String>>,
    /// True if it is done without a question.
    pub yes: bool,
}
