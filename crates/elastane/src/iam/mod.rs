//! `elastane user`, `service-account`, `access-key` and `access-rule`: users of the server, and
//! their rights.

pub(super) mod args;

use std::io::Write;
use std::path::{Path, PathBuf};

use api_types as wire;
use api_types::{
    AccessKey, AccessRuleCreationFields, ChangeKind, LinkRequest, Role, ScopeType, ServiceAccount,
    ServiceAccountCreationRequest, SubjectType, TENANT_ID, Time, User, UserCreationRequest,
};
use client::Client;

use self::args::{AccessRule, Scope, Subject};
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::{Plain, print_note};
use cli_kit::output::{OutputOptions, list, show};
use cli_kit::suggest;
use cli_kit::table::Table;

fn connect(state_dir: &Path) -> Result<Client, Error> {
    Ok(client::find(None, None, Some(state_dir), None)?.client)
}

pub(super) async fn user(state_dir: PathBuf, verb: args::User) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        args::User::Create { email, keep_password, link } => {
            let reset_password = Some(!keep_password);
            let request = UserCreationRequest { email, reset_password, notify: None };
            let made = client.create_user(&request).await?;
            if link {
                let request = LinkRequest { user: Some(made.id) };
                let link = client.login_link(&request).await?;
                writeln!(
                    out,
                    "user {} created; this link is good once, until {}:",
                    made.username, link.expires_at
                )?;
                writeln!(out, "{}", link.url)?;
                let place = link.url.split('/').nth(2).unwrap_or_default();
                if http_kit::is_loopback(http_kit::without_port(place)) {
                    print_note(
                        "It leads to this machine only; with `elastane up --public-url URL` links \
                         lead to where users reach the server",
                    );
                }
            } else {
                writeln!(out, "user {} created; the password is shown once:", made.username)?;
                writeln!(out, "{}", made.temp_password)?;
            }
        }
        args::User::List(format) => {
            let how = OutputOptions::from(format);
            let name = |user: &User| format!("user/{}", user.username);
            let look = async |out: &mut dyn Write| {
                list(&how, client.users().await?, name, users_table, out)
            };
            show(
                &how,
                &mut std::io::stdout(),
                Some(ChangeWait::watch(&client, &[ChangeKind::User], None)),
                look,
            )
            .await?;
        }
        args::User::Delete { email } => {
            client.delete_user(&existing_user(&client, &email).await?.id).await?;
            writeln!(out, "user {email} deleted")?;
        }
        args::User::ResetPassword { email } => {
            let user = existing_user(&client, &email).await?;
            let reset = client.reset_password(&user.id).await?;
            writeln!(out, "the new password of {} is shown once:", user.username)?;
            writeln!(out, "{}", reset.temp_password)?;
        }
    }
    Ok(())
}

pub(super) async fn service_account(
    state_dir: PathBuf,
    verb: args::ServiceAccount,
) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        args::ServiceAccount::Create { name } => {
            let made =
                client.create_service_account(&ServiceAccountCreationRequest { name }).await?;
            writeln!(out, "service account {} created; the secret is shown once:", made.name)?;
            writeln!(out, "client id  {}\nsecret     {}", made.client_id, made.client_secret)?;
        }
        args::ServiceAccount::List(format) => {
            let how = OutputOptions::from(format);
            let name = |one: &ServiceAccount| format!("service-account/{}", one.name);
            let look = async |out: &mut dyn Write| {
                list(&how, client.service_accounts().await?, name, accounts_table, out)
            };
            show(&how, &mut std::io::stdout(), None, look).await?;
        }
        args::ServiceAccount::Delete { name } => {
            client.delete_service_account(&existing(&client, &name).await?.id).await?;
            writeln!(out, "service account {name} deleted")?;
        }
        args::ServiceAccount::ResetSecret { name } => {
            let one = existing(&client, &name).await?;
            let renewed = client.renew_secret(&one.id).await?;
            writeln!(out, "the new secret of {} is shown once:", one.name)?;
            writeln!(out, "client id  {}\nsecret     {}", one.client_id, renewed.client_secret)?;
        }
    }
    Ok(())
}

pub(super) async fn access_key(state_dir: PathBuf, verb: args::AccessKey) -> Result<(), Error> {
    let client = connect(&state_dir)?;
    let mut out = Plain(std::io::stdout());
    match verb {
        args::AccessKey::List(format) => {
            let how = OutputOptions::from(format);
            let name = |key: &AccessKey| format!("access-key/{}", key.client_id);
            let look = async |out: &mut dyn Write| {
                list(&how, client.all_access_keys().await?, name, keys_table, out)
            };
            show(&how, &mut std::io::stdout(), None, look).await?;
        }
        args::AccessKey::Delete { client_id } => {
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
        AccessRule::List(format) => {
            let how = OutputOptions::from(format);
            let name = |rule: &wire::AccessRule| format!("access-rule/{}", rule.id);
            let look = async |out: &mut dyn Write| {
                let (rules, accounts) =
                    (client.access_rules().await?, client.service_accounts().await?);
                list(&how, rules, name, |rules| rules_table(rules, &accounts), out)
            };
            show(&how, &mut std::io::stdout(), None, look).await?;
        }
        AccessRule::Roles(format) => {
            let how = OutputOptions::from(format);
            let name = |role: &Role| format!("role/{}", short_name(&role.name));
            let look = async |out: &mut dyn Write| {
                list(&how, client.roles().await?, name, roles_table, out)
            };
            show(&how, &mut std::io::stdout(), None, look).await?;
        }
        AccessRule::Delete { id } => {
            client.delete_access_rule(id).await?;
            writeln!(out, "access rule {id} deleted")?;
        }
    }
    Ok(())
}

fn users_table(users: &[User]) -> Table {
    let mut table = Table::new(&["User", "Kind", "Groups", "Last Login", "Created By"]);
    for user in users {
        let kind = if user.is_local { "password" } else { "login provider" };
        table.row([
            user.username.clone(),
            kind.to_owned(),
            user.groups.join(", "),
            time(user.last_login),
            user.created_by.clone(),
        ]);
    }
    table
}

fn accounts_table(accounts: &[ServiceAccount]) -> Table {
    let mut table =
        Table::new(&["Service Account", "Client Id", "Enabled", "Last Login", "Created By"]);
    for one in accounts {
        let enabled = if one.enabled { "yes" } else { "no" };
        table.row([
            one.name.clone(),
            one.client_id.clone(),
            enabled.to_owned(),
            time(one.last_login),
            one.created_by.clone(),
        ]);
    }
    table
}

fn keys_table(keys: &[AccessKey]) -> Table {
    let mut table = Table::new(&["User", "Name", "Client Id", "Last Login"]);
    for key in keys {
        let (user, name) = (key.created_by.clone(), key.name.clone());
        table.row([user, name, key.client_id.clone(), time(key.last_login)]);
    }
    table
}

fn rules_table(rules: &[wire::AccessRule], accounts: &[ServiceAccount]) -> Table {
    let mut table = Table::new(&["Rule", "Subject", "Kind", "Role", "Scope"]);
    for rule in rules {
        // Rules refer to service accounts by their ids.
        let account = accounts.iter().find(|one| one.id == rule.subject_id);
        let subject = account.map_or(&rule.subject_id, |one| &one.name).clone();
        let (kind, scope) = words(rule.subject_type, rule.scope_type);
        let place = format!("{scope}{}", rule.scope_name);
        let role = rule.role_name.clone();
        table.row([rule.id.to_string(), subject, kind.to_owned(), role, place]);
    }
    table
}

fn roles_table(roles: &[Role]) -> Table {
    let mut table = Table::new(&["Role", "Short Name", "Name", "Description"]);
    for role in roles {
        let short = short_name(&role.name);
        table.row([role.id.to_string(), short, role.name.clone(), role.description.clone()]);
    }
    table
}

fn time(at: Option<Time>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.to_string())
}

async fn existing_user(client: &Client, email: &str) -> Result<User, Error> {
    let users = client.users().await?;
    let found = users.iter().find(|user| user.username.eq_ignore_ascii_case(email));
    found.cloned().ok_or_else(|| {
        let names = users.iter().map(|user| user.username.as_str());
        let hint = suggest::hint_or(email, names, "`elastane user list` lists them");
        Error::NotFound(format!("user {} was not found{hint}", units::shown(email)))
    })
}

async fn existing(client: &Client, name: &str) -> Result<ServiceAccount, Error> {
    let accounts = client.service_accounts().await?;
    let found = accounts.iter().find(|one| one.name == name || one.id == name);
    found.cloned().ok_or_else(|| {
        let names = accounts.iter().map(|one| one.name.as_str());
        let hint = suggest::hint_or(name, names, "`elastane service-account list` lists them");
        Error::NotFound(format!("service account {} was not found{hint}", units::shown(name)))
    })
}

fn named_role<'a>(roles: &'a [Role], name: &str) -> Result<&'a Role, Error> {
    let asked = short_name(name);
    let same = |role: &&Role| short_name(&role.name) == asked || role.id.to_string() == name.trim();
    if let Some(role) = roles.iter().find(same) {
        return Ok(role);
    }
    // A part of the name is enough if only one role has it.
    let has = |role: &&Role| short_name(&role.name).split('-').any(|word| word == asked);
    let mut having = roles.iter().filter(has);
    if let (Some(role), None) = (having.next(), having.next()) {
        return Ok(role);
    }
    let known: Vec<String> = roles.iter().map(|role| short_name(&role.name)).collect();
    let there = format!("there are {}", known.join(", "));
    let hint = suggest::hint_or(&asked, known.iter().map(String::as_str), &there);
    Err(Error::NotFound(format!("role {} was not found{hint}", units::shown(name))))
}

/// The name of a role as one word: `l1-researcher`, `template-admin`.
fn short_name(name: &str) -> String {
    let words = name.split([' ', '-', '_']).filter(|word| !word.is_empty());
    let words = words.map(|word| match word.to_lowercase().as_str() {
        "administrator" => "admin".to_owned(),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join("-")
}

async fn named_subject(client: &Client, subject: Subject) -> Result<(SubjectType, String), Error> {
    match subject {
        Subject { user: Some(email), .. } => Ok((SubjectType::User, email)),
        Subject { group: Some(group), .. } => Ok((SubjectType::Group, group)),
        Subject { service_account, .. } => {
            let account = existing(client, &service_account.unwrap_or_default()).await?;
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
            let department = crate::department::existing(client, &name).await?;
            Ok((ScopeType::Department, department.id))
        }
        Scope { .. } => Ok((ScopeType::Tenant, TENANT_ID.to_string())),
    }
}

/// The kind of a subject, and the word before the name of a scope.
const fn words(subject: SubjectType, scope: ScopeType) -> (&'static str, &'static str) {
    let subject = match subject {
        SubjectType::User => "user",
        SubjectType::App | SubjectType::ServiceAccount => "service-account",
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_is_known_by_its_number_its_name_and_what_is_short_for_it() {
        let names = ["System administrator", "Template administrator", "L1 researcher", "Viewer"];
        let role = |(id, name): (u64, &str)| {
            let at = "2026-01-01T00:00:00Z";
            serde_json::from_value::<Role>(json!({
                "id": id, "name": name, "description": "", "createdAt": at, "updatedAt": at,
                "createdBy": "", "custom": false, "enabled": true, "effectiveEnabled": true,
                "permissions": []
            }))
        };
        let roles: Vec<Role> = (1..).zip(names).map(|one| role(one).expect("a role")).collect();
        for (asked, id) in [
            ("2", 2),
            ("system administrator", 1),
            ("system-admin", 1),
            ("template", 2),
            ("researcher", 3),
            ("L1_Researcher", 3),
            ("viewer", 4),
        ] {
            assert_eq!(named_role(&roles, asked).map(|role| role.id).ok(), Some(id), "{asked}");
        }
        let said = |asked| named_role(&roles, asked).unwrap_err().to_string();
        assert!(
            said("admin")
                .ends_with("there are system-admin, template-admin, l1-researcher, viewer")
        );
        assert!(said("veiwer").contains("did you mean `viewer`?"));
    }
}
