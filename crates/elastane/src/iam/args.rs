//! The command lines of `elastane user`, `service-account`, `access-key` and `access-rule`.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use crate::complete;
use cli_kit::output::Format;
use cli_kit::parse_number::whole;

/// `user …`.
#[derive(Debug, Subcommand)]
pub(crate) enum User {
    /// Create a user and print the first password
    Create {
        /// E-mail address
        email: String,
        /// Do not require the user to change the printed password at the first login
        #[arg(long)]
        keep_password: bool,
        /// Print a link in place of a password: who opens it within ten minutes chooses one
        #[arg(long, conflicts_with = "keep_password")]
        link: bool,
    },
    /// List the users
    #[command(visible_alias = "ls")]
    List(Format),
    /// Delete a user with its access rules and access keys; its workloads keep running
    Delete {
        /// E-mail address
        #[arg(add = ArgValueCandidates::new(complete::users))]
        email: String,
    },
    /// Reset the password of a user, and end its sessions and access keys
    ResetPassword {
        /// E-mail address
        #[arg(add = ArgValueCandidates::new(complete::users))]
        email: String,
    },
}

/// `service-account …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceAccount {
    /// Create a service account and print its secret
    Create {
        /// Name
        name: String,
    },
    /// List the service accounts
    #[command(visible_alias = "ls")]
    List(Format),
    /// Delete a service account and its access rules
    Delete {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::service_accounts))]
        name: String,
    },
    /// Replace the secret of a service account
    ResetSecret {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::service_accounts))]
        name: String,
    },
}

/// `access-key …`. Users make their own.
#[derive(Debug, Subcommand)]
pub(crate) enum AccessKey {
    /// List the access keys of all users
    #[command(visible_alias = "ls")]
    List(Format),
    /// Delete an access key of any user
    Delete {
        /// Client id
        client_id: String,
    },
}

/// `access-rule …`.
#[derive(Debug, Subcommand)]
pub(crate) enum AccessRule {
    /// Give a user, service account or group a role in a project, a department or everywhere
    Create {
        /// Role, such as l1-researcher or editor; `access-rule roles` lists them
        #[arg(long)]
        role: String,
        /// Subject that gets it
        #[command(flatten)]
        subject: Subject,
        /// Scope in which it holds
        #[command(flatten)]
        scope: Scope,
    },
    /// List the access rules
    #[command(visible_alias = "ls")]
    List(Format),
    /// List the roles
    Roles(Format),
    /// Delete an access rule
    Delete {
        /// Number of the rule
        #[arg(value_parser = whole(0..=u64::MAX))]
        id: u64,
    },
}

/// Subject that gets a role.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Subject {
    /// A user, by e-mail address
    #[arg(long, value_name = "EMAIL", add = ArgValueCandidates::new(complete::users))]
    pub(crate) user: Option<String>,
    /// A service account, by name
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::service_accounts))]
    pub(crate) service_account: Option<String>,
    /// A group, as the login provider calls it
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,
}

/// Scope in which a role holds.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Scope {
    /// In a project
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::projects))]
    pub(crate) project: Option<String>,
    /// In a department and its projects
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::departments))]
    pub(crate) department: Option<String>,
    /// In the whole installation
    #[arg(long)]
    pub(crate) everywhere: bool,
}
