//! The flags of `login`, as typed.

use clap::{Args, Subcommand};

/// `login`, without more words in a browser on this machine.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Login {
    /// Way to log in
    #[command(subcommand)]
    pub(crate) way: Option<Way>,
}

/// Ways to log in.
#[derive(Debug, Subcommand)]
pub(crate) enum Way {
    /// In a browser on this machine, at the login provider
    Sso,
    /// In a browser on another machine: prints an address and asks for the code shown there
    RemoteBrowser,
    /// With a user's name and password
    User(User),
    /// As a service account, or with an access key
    #[command(alias = "access-key")]
    Application(Application),
}

/// `login user`.
#[derive(Debug, Args)]
pub(crate) struct User {
    /// E-mail address of the user
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Password; the program asks for it if it is left out, which keeps it out of process lists
    // Everywhere else `-p` is the project; of the same id, this one stands in for it.
    #[arg(id = "project", short = 'p', long = "password", value_name = "PASSWORD")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) password: Option<String>,
    /// New password, in place of the one that was given out
    #[arg(long, value_name = "PASSWORD", allow_hyphen_values = true)]
    pub(crate) new_password: Option<String>,
}

/// `login application`.
#[derive(Debug, Args)]
pub(crate) struct Application {
    /// Name or client id of a service account, or client id of an access key
    #[arg(long, visible_alias = "client-id", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Its secret; the program asks for it if it is left out
    #[arg(long, alias = "client-secret", value_name = "SECRET", allow_hyphen_values = true)]
    pub(crate) secret: Option<String>,
    /// Ask for both (done for whichever is left out)
    #[arg(long)]
    pub(crate) interactive: bool,
}
