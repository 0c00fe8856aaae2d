//! `elastane user`, `application`, `access-key` and `access-rule`: who may use the server, and for what.

pub(super) mod args;

use std::io::Write;
use std::path::{Path, PathBuf};

use api_types::{
    AccessRuleCreationFields, RoleV1, ScopeType, ServiceAccount, ServiceAccountCreationRequest,
    SubjectType, TENANT_ID, Time, User2, UserCreationRequest1,
};
use client::Client;

use self::args::{AccessKey, AccessRule, Application, Scope, Subject, User};
use cli_kit::exit::Error;
use cli_kit::plain::Plain;
use cli_kit::table::Table;

fn connect(state_dir: &Path) -> Result<Client, Error> {
    Ok(client::find(None, None, Some(state_dir), None)?.client)
}

pub(super) async fn user(state_dir: PathBuf, verb: User) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        User::Create { email, keep_password } => {
            let reset_password = Some(!keep_password);
            let request = UserCreationRequest1 { email, reset_password, notify: None };
            let made = client.create_user(&request).await?;
            writeln!(out, "user {} created; the password is shown once:", made.username)?;
            writeln!(out, "{}", made.temp_password)?;
        }
        User::List => {
            let mut table = Table::new(&["User", "Kind", "Groups", "Last Login", "Created By"]);
            for user in client.users().await? {
                let kind = if user.is_local { "password" } else { "login provider" };
                let groups = user.groups.join(", ");
                let last = time(user.last_login);
                table.row([user.username, kind.to_owned(), groups, last, user.created_by]);
            }
            write!(out, "{}", table.ruled())?;
        }
        User::Delete { email } => {
            client.delete_user(&existing_user(&client, &email).await?.id).await?;
            writeln!(out, "user {email} deleted")?;
        }
        User::ResetPassword { email } => {
            let user = existing_user(&client, &email).await?;
            let reset = client.reset_password(&user.id).await?;
            writeln!(out, "the new password of {} is shown once:", user.username)?;
            writeln!(out, "{}", reset.temp_password)?;
        }
    }
    Ok(())
}

pub(super) async fn application(state_dir: PathBuf, verb: Application) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        Application::Create { name } => {
            let made =
                client.create_service_account(&ServiceAccountCreationRequest { name }).await?;
            writeln!(out, "application {} created; the secret is shown once:", made.name)?;
            writeln!(out, "client id  {}\nsecret     {}", made.client_id, made.client_secret)?;
        }
        Application::List => {
            let mut table =
                Table::new(&["Application", "Client Id", "Enabled", "Last Login", "Created By"]);
            for one in client.service_accounts().await? {
                let enabled = if one.enabled { "yes" } else { "no" }.to_owned();
                let last = time(one.last_login);
                table.row([one.name, one.client_id, enabled, last, one.created_by]);
            }
            write!(out, "{}", table.ruled())?;
        }
        Application::Delete { name } => {
            client.delete_service_account(&existing(&client, &name).await?.id).await?;
            writeln!(out, "application {name} deleted")?;
        }
        Application::ResetSecret { name } => {
            let one = existing(&client, &name).await?;
            let renewed = client.renew_secret(&one.id).await?;
            writeln!(out, "the new secret of {} is shown once:", one.name)?;
            writeln!(out, "client id  {}\nsecret     {}", one.client_id, renewed.client_secret)?;
        }
    }
    Ok(())
}

pub(super) async fn access_key(state_dir: PathBuf, verb: AccessKey) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        AccessKey::List => {
            let mut table = Table::new(&["User", "Name", "Client Id", "Last Login"]);
            for key in client.all_access_keys().await? {
                table.row([key.created_by, key.name, key.client_id, time(key.last_login)]);
            }
            write!(out, "{}", table.ruled())?;
        }
        AccessKey::Delete { client_id } => {
            client.delete_any_access_key(&client_id).await?;
            writeln!(out, "access key {client_id} deleted")?;
        }
    }
    Ok(())
}

pub(super) async fn access_rule(state_dir: PathBuf, verb: AccessRule) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        AccessRule::Create { role, subject, scope } => {
            let roles = client.roles().await?;
            let role = named_role(&roles, &role)?;
            let (subject_type, subject_id) = named_subject(&client, subject).await?;
            let (scope_type, scope_id) = named_scope(&client, scope).await?;
            let (role_id, cluster_id) = (role.id, None);
            let request = AccessRuleCreationFields {
                subject_id,
                subject_type,
                role_id,
                scope_id,
                scope_type,
                cluster_id,
            };
            let made = client.create_access_rule(&request).await?;
            writeln!(out, "access rule {} created: {} in {}", made.id, role.name, made.scope_name)?;
        }
        AccessRule::List => {
            let (rules, accounts) =
                (client.access_rules().await?, client.service_accounts().await?);
            let mut table = Table::new(&["Rule", "Subject", "Kind", "Role", "Scope"]);
            for rule in rules {
                // Programs are named by their ids in rules.
                let account = accounts.iter().find(|one| one.id == rule.subject_id);
                let subject = account.map_or(rule.subject_id, |one| one.name.clone());
                let (kind, scope) = words(rule.subject_type, rule.scope_type);
                let place = format!("{scope}{}", rule.scope_name);
                table.row([rule.id.to_string(), subject, kind.to_owned(), rule.role_name, place]);
            }
            write!(out, "{}", table.ruled())?;
        }
        AccessRule::Roles => {
            let mut table = Table::new(&["Role", "Name", "Description"]);
            for role in client.roles().await? {
                table.row([role.id.to_string(), role.name, role.description]);
            }
            write!(out, "{}", table.ruled())?;
        }
        AccessRule::Delete { id } => {
            client.delete_access_rule(id).await?;
            writeln!(out, "access rule {id} deleted")?;
        }
    }
    Ok(())
}

fn time(at: Option<Time>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.to_string())
}

async fn existing_user(client: &Client, email: &str) -> Result<User2, Error> {
    let mut users = client.users().await?.into_iter();
    users.find(|user| user.username.eq_ignore_ascii_case(email)).ok_or_else(|| {
        let hint = "run `elastane user list` to see those there are";
        Error::NotFound(format!("user {email} was not found; {hint}"))
    })
}

async fn existing(client: &Client, name: &str) -> Result<ServiceAccount, Error> {
    let mut accounts = client.service_accounts().await?.into_iter();
    accounts.find(|one| one.name == name || one.id == name).ok_or_else(|| {
        let hint = "run `elastane application list` to see those there are";
        Error::NotFound(format!("application {name} was not found; {hint}"))
    })
}

fn named_role<'a>(roles: &'a [RoleV1], name: &str) -> Result<&'a RoleV1, Error> {
    let same = |role: &&RoleV1| {
        role.name.eq_ignore_ascii_case(name) || name.parse().is_ok_and(|id: u64| id == role.id)
    };
    roles.iter().find(same).ok_or_else(|| {
        let known: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
        let known = known.join(", ");
        Error::NotFound(format!("role {name} was not found; there are {known}"))
    })
}

async fn named_subject(client: &Client, subject: Subject) -> Result<(SubjectType, String), Error> {
    match subject {
        Subject { user: Some(email), .. } => Ok((SubjectType::User, email)),
        Subject { group: Some(group), .. } => Ok((SubjectType::Group, group)),
        Subject { application, .. } => {
            let account = existing(client, &application.unwrap_or_default()).await?;
            Ok((SubjectType::ServiceAccount, account.id))
        }
    }
}

async fn named_scope(client: &Client, scope: Scope) -> Result<(ScopeType, String), Error> {
    match scope {
        Scope { project: Some(name), .. } => {
            let project = super::project::existing(client, &name).await?;
            Ok((ScopeType::Project, project.id))
        }
        Scope { department: Some(name), .. } => {
            let department = client
                .department(&name)
                .await?
                .ok_or_else(|| Error::NotFound(format!("department {name} was not found")))?;
            Ok((ScopeType::Department, department.id))
        }
        Scope { .. } => Ok((ScopeType::Tenant, TENANT_ID.to_string())),
    }
}

/// The kind of a subject, and what stands before the name of a scope.
const fn words(subject: SubjectType, scope: ScopeType) -> (&'static str, &'static str) {
    let subject = match subject {
        SubjectType::User => "user",
        SubjectType::App | SubjectType::ServiceAccount => "application",
        SubjectType::Group => "group",
    };
    let scope = match scope {
        ScopeType::System | ScopeType::Tenant => "everywhere: ",
        ScopeType::Cluster => "cluster ",
        ScopeType::Department => "department ",
        ScopeType::Project => "project ",
    };
    (subject, scope)
}
