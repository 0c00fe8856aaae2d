//! Roles, access rules and permissions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// What a role allows to do to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// Resource.
    pub resource_type: String,
    /// Its name for people.
    pub display_name: String,
    /// Group it is shown in.
    pub group_id: String,
    /// `create`, `read`, `update`, `delete`.
    pub actions: Vec<String>,
}

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RoleV1)]
pub struct Role {
    /// Id.
    pub id: u64,
    /// Name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// When it was made.
    pub created_at: Time,
    /// Last change.
    pub updated_at: Time,
    /// Who made it.
    pub created_by: String,
    /// True if it was made here.
    pub custom: bool,
    /// True if it can be given.
    pub enabled: bool,
    /// True if it counts.
    pub effective_enabled: bool,
    /// What it allows.
    pub permissions: Vec<Permission>,
}

/// Kind of subject of an access rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectType {
    /// A person.
    User,
    /// A program, by its older name.
    App,
    /// A program.
    ServiceAccount,
    /// A group of an identity provider.
    Group,
}

/// Kind of scope of an access rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeType {
    /// The program's own.
    System,
    /// The installation.
    Tenant,
    /// The cluster.
    Cluster,
    /// A department.
    Department,
    /// A project.
    Project,
}

/// An access rule to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessRuleCreationFields {
    /// Id or name of the subject.
    pub subject_id: String,
    /// What it is.
    pub subject_type: SubjectType,
    /// Id of the role.
    pub role_id: u64,
    /// Id of the scope.
    pub scope_id: String,
    /// What it is.
    pub scope_type: ScopeType,
    /// The cluster of the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
}

/// An access rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRule {
    /// Id.
    pub id: u64,
    /// Subject.
    pub subject_id: String,
    /// What it is.
    pub subject_type: SubjectType,
    /// Id of the role.
    pub role_id: u64,
    /// Its name.
    pub role_name: String,
    /// Id of the scope.
    pub scope_id: String,
    /// What it is.
    pub scope_type: ScopeType,
    /// Its name.
    pub scope_name: String,
    /// The cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The tenant.
    pub tenant_id: u64,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Time,
    /// Last change.
    pub updated_at: Time,
}

/// A page of access rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GetAccessRules200Response)]
pub struct AccessRulesPage {
    /// How many there are.
    pub total_records: u64,
    /// How many of them match.
    pub display_records: u64,
    /// Those of the page.
    pub access_rules: Vec<AccessRule>,
}

/// The rules of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeAccessRulesResponse {
    /// A page of them.
    pub access_rules: AccessRulesPage,
}

/// Asks where the caller may do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetPermittedScopesRequest {
    /// Resource.
    pub resource_type: String,
    /// `create`, `read`, `update` or `delete`; all of them if left out.
    #[serde(default)]
    pub action: Option<String>,
}

/// Where the caller may do something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermittedScopes {
    /// True if everywhere, and beyond the installation.
    pub system: bool,
    /// The installation, if in all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Clusters, if in all of them.
    pub clusters: Vec<String>,
    /// Departments, if in all of them.
    pub departments: Vec<String>,
    /// Single projects.
    pub projects: Vec<String>,
}

/// Where the caller may do each action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermittedScopesActions {
    /// Create.
    pub create: PermittedScopes,
    /// Read.
    pub read: PermittedScopes,
    /// Update.
    pub update: PermittedScopes,
    /// Delete.
    pub delete: PermittedScopes,
}

/// What to do to many access rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessRulesBatchAction {
    /// Delete them.
    Delete,
    /// Say which could be deleted.
    ValidateDelete,
}

/// An action on many access rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessRulesBatchFields {
    /// Which, as texts here.
    pub ids: Vec<String>,
    /// What.
    pub action: AccessRulesBatchAction,
}

/// The same role for many subjects in many scopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessRulesBatchCreateFields {
    /// The role, the subjects, the scopes.
    pub payload: AccessRulesToCreate,
}

/// The role, the subjects, the scopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = AccessRulesBatchCreateFieldsPayload)]
pub struct AccessRulesToCreate {
    /// Id of the role.
    pub role_id: u64,
    /// The cluster of the scopes.
    #[serde(default)]
    pub cluster_id: Option<String>,
    /// Subjects.
    pub subjects: Vec<AccessRuleSubject>,
    /// Scopes.
    pub scopes: Vec<AccessRuleScope>,
}

/// A subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = AccessRuleSubjectsInner)]
pub struct AccessRuleSubject {
    /// Id or name.
    pub subject_id: String,
    /// What it is.
    pub subject_type: SubjectType,
}

/// A scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = AccessRuleScopesInner)]
pub struct AccessRuleScope {
    /// Id.
    pub scope_id: String,
    /// What it is.
    pub scope_type: ScopeType,
}

/// What became of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRulesBatchCreateResponse {
    /// Made.
    pub succeeded: Vec<AccessRule>,
    /// Refused.
    pub failed: Vec<FailedAccessRule>,
}

/// A rule that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AccessRulesBatchCreateResponseFailedInner)]
pub struct FailedAccessRule {
    /// The rule.
    pub payload: AccessRuleCreationFields,
    /// The status it alone would have got.
    pub code: u16,
    /// Why.
    pub message: String,
}
