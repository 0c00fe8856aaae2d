//! The types of the REST interface, shared by the server and every client written in Rust.
//!
//! Owns: field names and shapes exactly as published, and our documented additions. Does not know
//! about: HTTP, validation beyond shape, and the types of the core; the server converts explicitly.

mod access;
mod advised;
mod asset;
mod audit;
mod change;
mod cluster;
mod code_page;
mod department;
mod diagnosis;
mod elastane_ext;
mod error;
mod fraction_limit;
mod grid_row;
mod identity;
mod inference;
mod inherit;
mod kubernetes_pod;
mod manifest;
mod metric;
mod mig_instance;
mod names;
mod node_constraints;
mod optional;
mod phase;
mod pod;
mod policy;
mod pool;
mod project;
mod property;
mod quota_effects;
mod revision;
mod scalar;
mod scoped_meta;
mod session;
mod session_message;
mod storage_class;
mod submit;
mod template;
mod tenant;
mod token;
mod topology;
mod training;
mod unsupported;
mod usage;
mod what_if;
mod workload;

pub use access::{
    AccessRule, AccessRuleCreationFields, AccessRuleScope, AccessRuleSubject,
    AccessRulesBatchAction, AccessRulesBatchCreateFields, AccessRulesBatchCreateResponse,
    AccessRulesBatchFields, AccessRulesPage, AccessRulesToCreate, FailedAccessRule,
    GetPermittedScopesRequest, MeAccessRulesResponse, Permission, PermittedScopes,
    PermittedScopesActions, Role, ScopeType, SubjectType,
};
pub use advised::{Advice, AdvisedChange, AdvisedRequest, ChangeFor, Raise, RepairedGpus};
pub use asset::{
    AccessKeySpec, Asset, AssetCreation, AssetCreationMeta, AssetKind, AssetList, AssetMeta,
    AssetRef, AssetUpdate, AssetUpdateMeta, AssetUsageInfo, ClaimInfo, ConfigMapAssetSpec,
    Connection, CredentialUpdate, DistFramework, DockerRegistrySpec, EnvironmentAssetSpec,
    EnvironmentVariableCredential, EnvironmentVariableOfAsset, ExternalToolInfo, ExternalUrlInfo,
    GenericSecretSpec, GitAssetSpec, HostPathSpec, InternalToolInfo, KeyValuePair, MixedAssetList,
    NfsAssetSpec, NgcApiKeySpec, NodePortInfo, PasswordSpec, PvcAccessModes, PvcAssetSpec,
    S3AssetSpec, SecretAssetSpec, SecretText, ServingPortInfo, WorkloadRefAndStatus,
    WorkloadSupportedTypes,
};
pub use audit::{AuditLog, AuditLogsPage};
pub use change::{Change, ChangeFrame, ChangeKind, ChangePosition, ChangeReset, ResetReason};
pub use cluster::{
    ClusterCreationRequest, ClusterDisplayedStatus, ClusterInstallationInfoResponse,
    ClusterUpdateRequest, CountResponse, DisplayedCluster, GpuInfo, Node, NodeLabels, NodePatch,
    NodePlatform, NodeScheduling, NodeStatusConditionDetails, Nodes, SimulatedNode, Taint,
    TaintEffect, TaintKey,
};
pub use code_page::CodePage;
pub use department::{
    DepartmentCreationRequest, DepartmentForList, DepartmentProjectChild, DepartmentStatus,
    DepartmentUpdateRequest, DepartmentsPage,
};
pub use diagnosis::{
    Diagnosis, Instances, NodesAlike, NodesFailing, NotCounted, PodsPlaced, ProjectHolding,
    WorkloadAhead, WorkloadHolding,
};
pub use elastane_ext::{
    ConfigMap, ConfigMapBody, ConfigMapSummary, ConfigMaps, Eviction, Explanation, Gpu, GpuFault,
    GpuPod, Gpus, Health, Isolation, Leftover, LimitsKept, LiveEvent, NodeStatus, Outage,
    OutageKind, PodStates, Reason, SessionEnd, ShareInPool, Status, Stopped, Ticket, TicketRequest,
    Volume, Volumes, WebSocketTicket, WorkloadExtras,
};
pub use error::{Error, FieldFault, HttpResponse, MissingPermission, is_within};
pub use fraction_limit::FractionLimit;
pub use grid_row::{RowWhy, ServerRow, SharedReason, SharedWhy, WorkloadGridRow, WorkloadRowsPage};
pub use identity::{
    AccessKey, AccessKeyPostResponse, AccessKeys, PasswordChanged, RegeneratedSecret,
    ServiceAccount, ServiceAccountCreationRequest, ServiceAccountPatchRequest,
    ServiceAccountPostResponse, TemporaryPassword, User, UserChangePasswordRequest,
    UserCreationRequest, UserPostResponse,
};
pub use inference::{
    AutoScaling, Probe, ProbeHandler, ProbeHandlerHttpGet, Probes, ServingConfiguration,
    ServingPort, ServingPortAccessAuthorizationTypeEnum, ServingPortProtocol,
};
pub use kubernetes_pod::KubernetesPod;
pub use manifest::{
    Gvk, WorkloadV2, WorkloadV2CreateRequest, WorkloadV2GetResponse, WorkloadV2Metadata,
    WorkloadV2MetadataCreateParams, WorkloadV2MetadataUpdateParams, WorkloadV2SyncInfo,
    WorkloadV2UpdateRequest,
};
pub use metric::{
    GroupedMeasurementGroup, GroupedMeasurementResponse, GroupedMetricsResponse, MeasuredValue,
    MeasurementResponse, MetricsResponse, TelemetryGroup, TelemetryResponse, TelemetryValue,
};
pub use mig_instance::MigInstance;
pub use names::{ResourceKind, WorkloadName};
pub use node_constraints::{
    ExtendedResource, MatchExpression, MatchExpressionOperator, NodeAffinityRequired,
    NodeSelectorTerm, PodAffinity, PodAffinityType, Toleration, TolerationEffect,
    TolerationOperator,
};
pub use phase::WorkloadPhase;
pub use pod::{
    EventsPage, HistoryMeta, HistoryPage, HistoryRecord, HistorySpec, InvolvedObject,
    KubernetesEvent, PhaseUpdate, Pod, PodContainer, PodsPage,
};
pub use policy::{
    Policies, PolicyBody, PolicyChangeRequest, PolicyCreationFields, PolicyListEntry, PolicyMeta,
    PolicyRequest, PolicyV2,
};
pub use pool::{
    GpuResourceOptimization, Nodepool, NodepoolCreateFields, NodepoolStatus, NodepoolUpdateFields,
    Nodepools, PlacementStrategies, PlacementStrategy, SchedulingConfiguration,
};
pub use project::{
    NodePoolQuota, NodeTypesPerWorkload, Parent, Project, ProjectCreationRequest, ProjectEffective,
    ProjectStatus, ProjectUpdateRequest, ProjectsPage, QuotaResource, QuotaStatus, Rank,
    ResourceShare, Resources, ResourcesMemory, ResourcesNodePool, SchedulingRules, ShareRequest,
    TotalResources, Units,
};
pub use property::{
    PriorityClassBody, ResourceInterfaceOfVersion, WorkloadCategories, WorkloadCategory,
    WorkloadPriorities, WorkloadPriority, WorkloadTypeConfig, WorkloadTypeCreateFields,
    WorkloadTypeUpdateFields, WorkloadTypes,
};
pub use quota_effects::{LabelsOf, PoolLabel, QuotaChange, QuotaEffects, SharesOf};
pub use revision::{InferenceUpdateRequest, Revision, RevisionPodsPage, RevisionsPage};
pub use scalar::{Micros, Millis, Time, number_from_millis};
pub use session::{
    LinkRequest, LoginLink, PrincipalKind, SessionInfo, SessionPrincipal, SessionRequest,
    SessionRight, SessionVersions,
};
pub use session_message::{TerminalSize, channel};
pub use storage_class::{
    AccessModeCustomization, StorageClass, StorageClassCustomization, StorageClassNames,
    StorageClassPermissions, StorageClassSpec, StorageClasses, VolumeModeCustomization,
    VolumeModes,
};
pub use submit::{
    AssetIdRef, AssetIds, CleanPodPolicy, Compute, ConfigMapInstance, CreationRequest,
    DistributedCreationRequest, DistributedFramework, EmptyDirInstance, EnvironmentVariable,
    EnvironmentVariableConfigMap, EnvironmentVariableSecret, ExposedUrl, GitInstance,
    GpuRequestType, HostPathInstance, ImagePullPolicy, ImagePullSecret, MpiLauncherCreationPolicy,
    NameValue, NfsInstance, ParameterServers, PodGroups, Port, PortServiceType, Preemptibility,
    PvcInstance, RelatedUrl, RestartPolicy, S3Instance, SecretVolume, Security, Storage,
    TrainingCreationRequest, WorkloadSpec, WorkspaceCreationRequest,
};
pub use template::{
    Pagination, TemplateCreation, TemplateCreationMeta, TemplateList, TemplateMasterSection,
    TemplateMetaFields, TemplateUpdate, TemplateUpdateMeta, WorkloadTemplate, WorkloadType,
};
pub use tenant::{
    Priorities, Priority, Setting, TenantSettingCreationRequest, TenantSettingCreationResponse,
};
pub use token::{LoginRequest, LoginStart, OAuth2TokenResponse, TokenRequest, TokenResponse};
pub use topology::{
    NetworkTopology, NetworkTopologyCreateRequest, TopologiesPage, WorkloadTopology,
};
pub use training::{JobTraining, PodTraining};
pub use unsupported::{Unsupported, asks_for_something};
pub use usage::{GpuPrice, GpuPrices, GpuUsage, GpuUsageRow};
pub use what_if::{PodFate, Search, StartEstimate, WhatIf, WouldDo, WouldHappen, WouldWait};
pub use workload::{
    ActionsSupport, AllocatedResources, BatchAction, BatchFailure, BatchResponse, DesiredPhase,
    ExternalConnection, RequestCores, RequestQuantity, RequestResources, RequestedPods,
    TypedWorkload, UsedDataSource, UsedEnvironment, Workload, WorkloadBatch, WorkloadCondition,
    WorkloadsPage,
};

/// Header with the name of a client; becomes the `source` of the objects it creates.
pub const SOURCE_HEADER: &str = "x-elastane-source";
/// Header of responses while the engine of the pods does not answer: the notice for their reader.
pub const NOTICE_HEADER: &str = "x-elastane-notice";

/// Largest page of a list.
pub const PAGE_ITEMS_MAX: u64 = 500;
/// Most workloads in a batch.
pub const BATCH_ITEMS_MAX: usize = 500;
/// Default page size of a list.
pub const PAGE_ITEMS_DEFAULT: u64 = 50;

/// The one tenant of an installation.
pub const TENANT_ID: u64 = 1;
/// Id of the node pool for nodes that are in no other.
pub const NODE_POOL_ID: &str = "1";
