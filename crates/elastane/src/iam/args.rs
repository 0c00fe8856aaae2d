//! What can be typed after `elastane user`, `application`, `access-key` and `access-rule`.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates as Known;

use crate::complete;
use cli_kit::output::Format;
use cli_kit::parse_number::whole;

/// `user …`.
#[derive(Debug, Subcommand)]
pub(crate) enum User {
    /// Create a user and print the password to begin with
    Create {
        /// E-mail address
        email: String,
        /// The password printed may be kept; else it has to be changed first
        #[arg(long)]
        keep_password: bool,
    },
    /// List the users
    #[command(visible_alias = "ls")]
    List(Format),
    /// Delete a user with roles and access keys; workloads go on
    Delete {
        /// E-mail address
        #[arg(add = Known::new(complete::users))]
        email: String,
    },
    /// Give a user a new password to begin with, and end sessions and access keys
    ResetPassword {
        /// E-mail address
        #[arg(add = Known::new(complete::users))]
        email: String,
    },
}

/// `application …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Application {
    /// Create a service account and print its secret
    Create {
        /// Name
        name: String,
    },
    /// List the service accounts
    #[command(visible_alias = "ls")]
    List(Format),
    /// Delete a service account with its roles
    Delete {
        /// Name
        #[arg(add = Known::new(complete::applications))]
        name: String,
    },
    /// Give a service account a new secret; the old one ends
    ResetSecret {
        /// Name
        #[arg(add = Known::new(complete::applications))]
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
        /// Who gets it
        #[command(flatten)]
        subject: Subject,
        /// Where it holds
        #[command(flatten)]
        scope: Scope,
    },
    /// List the access rules
    #[command(visible_alias = "ls")]
    List(Format),
    /// List the roles
    Roles(Format),
    /// Take a role away
    Delete {
        /// Number of the rule
        #[arg(value_parser = whole(0..=u64::MAX))]
        id: u64,
    },
}

/// Who gets a role.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Subject {
    /// A user, by e-mail address
    #[arg(long, value_name = "EMAIL", add = Known::new(complete::users))]
    pub(crate) user: Option<String>,
    /// A service account, by name
    #[arg(long, value_name = "NAME", add = Known::new(complete::applications))]
    pub(crate) application: Option<String>,
    /// A group, as the login provider calls it
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,
}

/// Where a role holds.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Scope {
    /// In a project
    #[arg(long, value_name = "NAME", add = Known::new(complete::projects))]
    pub(crate) project: Option<String>,
    /// In a department and its projects
    #[arg(long, value_name = "NAME", add = Known::new(complete::departments))]
    pub(crate) department: Option<String>,
    /// In the whole installation
    #[arg(long)]
    pub(crate) everywhere: bool,
}
