//! The endpoints of users, service accounts and roles, one method each.

use api_types as wire;
use reqwest::Method;
use serde_json::json;

use crate::routes::escape;
use crate::{Client, Error};

const USERS: &str = "/api/v1/users";
const ACCOUNTS: &str = "/api/v1/service-accounts";
const KEYS: &str = "/api/v1/administration/access-keys";
const LINKS: &str = "/elastane/v1/session/links";
const RULES: &str = "/api/v1/authorization/access-rules";

impl Client {
    /// All users.
    ///
    /// # Errors
    /// As every request.
    pub async fn users(&self) -> Result<Vec<wire::User>, Error> {
        let limit = wire::PAGE_ITEMS_MAX;
        let mut all: Vec<wire::User> = Vec::new();
        loop {
            let path = format!("{USERS}?limit={limit}&offset={}", all.len());
            let page: Vec<wire::User> = self.get(&path).await?;
            let is_last = (page.len() as u64) < limit;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Creates a user; the initial password is in the answer.
    ///
    /// # Errors
    /// As every request; 409 if the user exists.
    pub async fn create_user(
        &self,
        request: &wire::UserCreationRequest,
    ) -> Result<wire::UserPostResponse, Error> {
        self.send(Method::POST, USERS, request).await
    }

    /// Deletes a user with its roles and keys.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_user(&self, id: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("{USERS}/{id}")).await
    }

    /// A one-time login link: for the caller, or for a user who has to choose a first password.
    ///
    /// # Errors
    /// As every request; 409 for a user who has chosen a password.
    pub async fn login_link(&self, request: &wire::LinkRequest) -> Result<wire::LoginLink, Error> {
        self.send(Method::POST, LINKS, request).await
    }

    /// Resets the password of a user to a new initial one.
    ///
    /// # Errors
    /// As every request.
    pub async fn reset_password(&self, id: &str) -> Result<wire::TemporaryPassword, Error> {
        self.send(Method::POST, &format!("{USERS}/{id}/password"), &json!({})).await
    }

    /// The department of this name.
    ///
    /// # Errors
    /// As every request.
    pub async fn department(&self, name: &str) -> Result<Option<wire::DepartmentForList>, Error> {
        let limit = wire::PAGE_ITEMS_MAX;
        let mut offset = 0;
        loop {
            let path = format!("/api/v1/org-unit/departments?limit={limit}&offset={offset}");
            let page: wire::DepartmentsPage = self.get(&path).await?;
            let mut found = page.departments.into_iter();
            match (found.find(|department| department.name == name), page.next) {
                (None, Some(next)) if next > offset => offset = next,
                (found, _) => return Ok(found),
            }
        }
    }

    /// The roles.
    ///
    /// # Errors
    /// As every request.
    pub async fn roles(&self) -> Result<Vec<wire::Role>, Error> {
        self.get("/api/v1/authorization/roles").await
    }

    /// All access rules.
    ///
    /// # Errors
    /// As every request.
    pub async fn access_rules(&self) -> Result<Vec<wire::AccessRule>, Error> {
        let limit = wire::PAGE_ITEMS_MAX;
        let mut all: Vec<wire::AccessRule> = Vec::new();
        loop {
            let path = format!("{RULES}?limit={limit}&offset={}", all.len());
            let page: wire::AccessRulesPage = self.get(&path).await?;
            let is_last = (page.access_rules.len() as u64) < limit;
            all.extend(page.access_rules);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Creates an access rule, which grants a role.
    ///
    /// # Errors
    /// As every request; 409 if the subject has the role in this scope.
    pub async fn create_access_rule(
        &self,
        request: &wire::AccessRuleCreationFields,
    ) -> Result<wire::AccessRule, Error> {
        self.send(Method::POST, RULES, request).await
    }

    /// Deletes an access rule.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_access_rule(&self, id: u64) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("{RULES}/{id}")).await
    }

    /// The service accounts.
    ///
    /// # Errors
    /// As every request.
    pub async fn service_accounts(&self) -> Result<Vec<wire::ServiceAccount>, Error> {
        self.get(ACCOUNTS).await
    }

    /// Creates a service account; its secret is in the answer.
    ///
    /// # Errors
    /// As every request; 409 if the name is in use.
    pub async fn create_service_account(
        &self,
        request: &wire::ServiceAccountCreationRequest,
    ) -> Result<wire::ServiceAccountPostResponse, Error> {
        self.send(Method::POST, ACCOUNTS, request).await
    }

    /// Deletes a service account with its roles.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_service_account(&self, id: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("{ACCOUNTS}/{id}")).await
    }

    /// Creates a new secret of a service account; the old one becomes invalid.
    ///
    /// # Errors
    /// As every request.
    pub async fn renew_secret(&self, id: &str) -> Result<wire::RegeneratedSecret, Error> {
        self.send(Method::POST, &format!("{ACCOUNTS}/{id}/secret"), &json!({})).await
    }

    /// Access keys of all users.
    ///
    /// # Errors
    /// As every request.
    pub async fn all_access_keys(&self) -> Result<Vec<wire::AccessKey>, Error> {
        let all: wire::AccessKeys = self.get(KEYS).await?;
        Ok(all.access_keys)
    }

    /// Deletes an access key of any user.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_any_access_key(&self, id: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("{KEYS}/{}", escape(id))).await
    }
}
