//! Roles, access rules and permissions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// Actions that a role allows on a resource.
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
    /// Purpose of the role.
    pub description: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Its creator.
    pub created_by: String,
    /// True if it was made here.
    pub custom: bool,
    /// True if it can be given.
    pub enabled: bool,
    /// True if it counts.
    pub effective_enabled: bool,
    /// Permissions that it grants.
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
    /// Kind of the subject.
    pub subject_type: SubjectType,
    /// Id of the role.
    pub role_id: u64,
    /// Id of the scope.
    pub scope_id: String,
    /// Kind of the scope.
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
    /// Kind of the subject.
    pub subject_type: SubjectType,
    /// Id of the role.
    pub role_id: u64,
    /// Its name.
    pub role_name: String,
    /// Id of the scope.
    pub scope_id: String,
    /// Kind of the scope.
    pub scope_type: ScopeType,
    /// Its name.
    pub scope_name: String,
    /// The cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The tenant.
    pub tenant_id: u64,
    /// Its creator.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
}

/// A page of access rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GetAccessRules200Response)]
pub struct AccessRulesPage {
    /// Total number of access rules.
    pub total_records: u64,
    /// Number of access rules that match.
    pub display_records: u64,
    /// Access rules of the page.
    pub access_rules: Vec<AccessRule>,
}

/// The rules of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeAccessRulesResponse {
    /// A page of them.
    pub access_rules: AccessRulesPage,
}

/// Request for the scopes in which the caller may do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetPermittedScopesRequest {
    /// Resource.
    pub resource_type: String,
    /// `create`, `read`, `update` or `delete`; all of them if left out.
    #[serde(default)]
    pub action: Option<String>,
}

/// Scopes in which the caller may do something.
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

/// Scopes in which the caller may do each action.
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

/// Kind of action on many access rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessRulesBatchAction {
    /// Delete them.
    Delete,
    /// Report which could be deleted.
    ValidateDelete,
}

/// An action on many access rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessRulesBatchFields {
    /// Ids of the rules, as texts here.
    pub ids: Vec<String>,
    /// The action.
    pub action: AccessRulesBatchAction,
}

/// One role for many subjects in many scopes.
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
    /// Kind of the subject.
    pub subject_type: SubjectType,
}

/// A scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = AccessRuleScopesInner)]
pub struct AccessRuleScope {
    /// Id.
    pub scope_id: String,
    /// Kind of the scope.
    pub scope_type: ScopeType,
}

/// Result for each access rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRulesBatchCreateResponse {
    /// Access rules that were created.
    pub succeeded: Vec<AccessRule>,
    /// Access rules that were refused.
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
    /// Reason for the refusal.
    pub message: String,
}
