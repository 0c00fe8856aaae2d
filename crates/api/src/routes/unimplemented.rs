//! Published operations that are not served. Owns: that each answers 501 with what to use instead.
//! Does not know about: anything else about them.

use access::Route;
use api_types::Error;
use axum::Extension;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use http_kit::ApiError;
use http_kit::openapi::{Description, Output, any};

use crate::ApiState;

/// Operations of a family, and what to use instead of them.
struct Missing {
    family: &'static str,
    instead: &'static str,
    /// In lines: method, path, published name.
    operations: &'static str,
}

/// Published operations that this server does not implement: deprecated ones, and those without a
/// meaning or counterpart here.
const MISSING: &[Missing] = &[
    Missing {
        family: "Clusters",
        instead: "use /api/v1/clusters/{clusterUuid}/metrics",
        operations: "
GET /v1/k8s/clusters/{clusterUuid}/metrics get_cluster_metrics_0
",
    },
    Missing {
        family: "Departments",
        instead: "use /api/v1/org-unit/departments, and /api/v1/authorization/access-rules for who \
                  administers one",
        operations: "
GET /v1/k8s/clusters/{clusterId}/departments get_departments_0
PUT /v1/k8s/clusters/{clusterId}/departments/{departmentId}/access-control update_department_admins
GET /v1/k8s/clusters/{clusterUuid}/departments/metrics get_departments_metrics
GET /v1/k8s/clusters/{clusterUuid}/departments/{departmentId}/metrics get_department_metrics_0
",
    },
    Missing {
        family: "NodePools",
        instead: "use /api/v1/node-pools",
        operations: "
POST /v1/k8s/clusters/{clusterId}/node-pools create_node_pool
GET /v1/k8s/clusters/{clusterId}/node-pools get_node_pools
DELETE /v1/k8s/clusters/{clusterId}/node-pools/{id} delete_node_pool
PUT /v1/k8s/clusters/{clusterId}/node-pools/{id} update_node_pool
PUT /v1/k8s/clusters/{clusterId}/node-pools/{id}/labels update_node_pool_labels
",
    },
    Missing {
        family: "Nodes",
        instead: "use /api/v1/nodes",
        operations: "
GET /api/v1/clusters/{clusterUuid}/nodes get_nodes
",
    },
    Missing {
        family: "Projects",
        instead: "use /api/v1/org-unit/projects",
        operations: "
POST /v1/k8s/clusters/{clusterId}/projects create_project_0
GET /v1/k8s/clusters/{clusterId}/projects get_projects_0
DELETE /v1/k8s/clusters/{clusterId}/projects/{id} delete_project_0
GET /v1/k8s/clusters/{clusterId}/projects/{id} get_project_0
PUT /v1/k8s/clusters/{clusterId}/projects/{id} update_project_0
GET /v1/k8s/clusters/{clusterUuid}/projects/metrics get_projects_metrics
GET /v1/k8s/clusters/{clusterUuid}/projects/{projectId}/metrics get_project_metrics_0
",
    },
    Missing {
        family: "Tokens",
        instead: "use POST /api/v1/token",
        operations: "
POST /v1/k8s/auth/oauth/apptoken app_token
",
    },
    Missing {
        family: "Applications",
        instead: "use /api/v1/service-accounts",
        operations: "
POST /api/v1/apps create_application
GET /api/v1/apps get_applications
DELETE /api/v1/apps/{appId} delete_application_by_id
GET /api/v1/apps/{appId} get_application_by_id
PATCH /api/v1/apps/{appId} update_application_by_id
POST /api/v1/apps/{appId}/secret regenerate_application_secret
",
    },
    Missing {
        family: "AIApplications",
        instead: "applications made of several workloads are not known here; list their workloads \
                  with /api/v1/workloads",
        operations: "
GET /api/v1/ai-applications list_applications
GET /api/v1/ai-applications/count count_applications
GET /api/v1/ai-applications/{aiApplicationId} get_application
",
    },
    Missing {
        family: "AdministratorCommandLineInterface",
        instead: "the administrator's program is `elastane`, installed with the server",
        operations: "
GET /v1/k8s/admin-cli/{os} get_admin_cli_release
GET /v1/k8s/admin-cli/{os}/checksum get_admin_cli_release_checksum
GET /v1/k8s/admin-cli/{version}/{os} get_admin_cli_release_by_version
GET /v1/k8s/admin-cli/{version}/{os}/checksum get_admin_cli_release_by_version_checksum
",
    },
    Missing {
        family: "Datavolumes",
        instead: "data is not shared between projects by data volumes; use a data source that \
                  several projects see: /api/v1/asset/datasource/host-path, …/nfs, …/s3 or …/git \
                  with the scope `tenant` or `department`",
        operations: "
POST /api/v1/datavolumes create_datavolume
GET /api/v1/datavolumes get_datavolumes
GET /api/v1/datavolumes/count count_datavolumes
GET /api/v1/datavolumes/name-availability datavolume_name_availability
DELETE /api/v1/datavolumes/{datavolumeId} delete_datavolume
GET /api/v1/datavolumes/{datavolumeId} get_datavolume
PATCH /api/v1/datavolumes/{datavolumeId} patch_datavolume
GET /api/v1/datavolumes/{datavolumeId}/shared-scopes get_datavolume_shared_scopes
PATCH /api/v1/datavolumes/{datavolumeId}/shared-scopes patch_datavolume_shared_scopes
",
    },
    Missing {
        family: "DistributedInferences",
        instead: "a model on several machines is not served here; use \
                  /api/v1/workloads/inferences, or /api/v1/workloads/distributed without serving",
        operations: "
POST /api/v1/workloads/distributed-inferences create_distributed_inference
DELETE /api/v1/workloads/distributed-inferences/{workloadId} delete_distributed_inference
GET /api/v1/workloads/distributed-inferences/{workloadId} get_distributed_inference
PATCH /api/v1/workloads/distributed-inferences/{workloadId} update_distributed_inference_spec
",
    },
    Missing {
        family: "Policy",
        instead: "a model on several machines is not served here; set a policy for `inferences` or \
                  `distributed`",
        operations: "
DELETE /api/v2/policy/distributed-inferences delete_distributed_inference_policy
GET /api/v2/policy/distributed-inferences get_distributed_inference_policy_v2
PATCH /api/v2/policy/distributed-inferences update_distributed_inference_policy_v2
PUT /api/v2/policy/distributed-inferences overwrite_distributed_inference_policy_v2
",
    },
    Missing {
        family: "Policy",
        instead: "NIM services are submitted as inferences here; set a policy for `inferences`",
        operations: "
DELETE /api/v2/policy/nim-services delete_nim_service_policy
GET /api/v2/policy/nim-services get_nim_service_policy
PATCH /api/v2/policy/nim-services update_nim_service_policy
PUT /api/v2/policy/nim-services overwrite_nim_service_policy
",
    },
    Missing {
        family: "Idps",
        instead: "the login provider is a setting of the server: start it with --oidc-issuer and \
                  --oidc-client-id, see `elastane up --help`",
        operations: "
POST /api/v1/idps create_idp
GET /api/v1/idps get_idps
DELETE /api/v1/idps/{idp} delete_idp
GET /api/v1/idps/{idp} get_idp
PUT /api/v1/idps/{idp} update_idp
GET /api/v1/idps/{idp}/mappers get_idp_mappers
PUT /api/v1/idps/{idp}/mappers update_idp_mappers
",
    },
    Missing {
        family: "Logo",
        instead: "the web interface shows no logo of its tenant",
        operations: "
GET /api/v1/logo get_tenant_logo
POST /api/v1/logo upload_tenant_logo
",
    },
    Missing {
        family: "NVIDIANIM",
        instead: "use /api/v1/workloads/inferences with the image of the model server and its \
                  port in `servingPort`; where workloads run as processes, say in `command` what \
                  serves the model",
        operations: "
POST /api/v2/workloads/nim-services create_nim_service
GET /api/v2/workloads/nim-services/{workloadV2Id} get_nim_service_by_id
PATCH /api/v2/workloads/nim-services/{workloadV2Id} update_nim_service_spec
",
    },
    Missing {
        family: "NotificationChannels",
        instead: "follow /elastane/v1/events, a stream of everything that happens",
        operations: "
POST /api/v1/notification-channels create_notification_channel_config
GET /api/v1/notification-channels get_notification_channels
POST /api/v1/notification-channels/slack/create-app create_slack_app
DELETE /api/v1/notification-channels/{name} delete_notification_channel_config
GET /api/v1/notification-channels/{name} get_notification_channel_config
PATCH /api/v1/notification-channels/{name} patch_notification_channel_config
PUT /api/v1/notification-channels/{name} update_notification_channel_config
POST /api/v1/validate-notification-channel validate_notification_channel
",
    },
    Missing {
        family: "NotificationState",
        instead: "follow /elastane/v1/events, a stream of everything that happens",
        operations: "
GET /api/v1/notification-state get_notification_state
PATCH /api/v1/notification-state update_notification_state
",
    },
    Missing {
        family: "NotificationTypes",
        instead: "follow /elastane/v1/events, a stream of everything that happens",
        operations: "
GET /api/v1/notification-types get_notification_types
",
    },
    Missing {
        family: "Registry",
        instead: "the repositories of a registry are not listed here; name the image in \
                  `spec.image`, which the container runtime pulls, and keep the login of its \
                  registry with POST /api/v1/asset/credentials/docker-registry",
        operations: "
POST /api/v1/asset/registries create_registry
GET /api/v1/asset/registries list_registries
DELETE /api/v1/asset/registries/{assetId} delete_registry
GET /api/v1/asset/registries/{assetId} get_registry_by_id
PUT /api/v1/asset/registries/{assetId} update_registry
GET /api/v1/asset/registries/{assetId}/repositories get_repositories
GET /api/v1/asset/registries/{assetId}/repositories/tags get_repository_tags
",
    },
    Missing {
        family: "Reports",
        instead: "use /elastane/v1/usage: who held and used which GPUs, also as CSV",
        operations: "
POST /api/v1/org-unit/reports create_report
GET /api/v1/org-unit/reports list_reports
GET /api/v1/org-unit/reports/availability are_reports_available
GET /api/v1/org-unit/reports/count count_reports
DELETE /api/v1/org-unit/reports/{reportId} delete_report_by_id
GET /api/v1/org-unit/reports/{reportId} get_report_by_id
GET /api/v1/org-unit/reports/{reportId}/file download_report_by_id
",
    },
    Missing {
        family: "ResearcherCommandLineInterfaceDeprecated",
        instead: "use the same path under /api/v1/cli-exposer instead of /api/v1/cli",
        operations: "
GET /api/v1/cli/dist/{operatingSystem}/{architecture}/runai get_binary_deprecated
GET /api/v1/cli/docs/{documentName} get_manual_document_deprecated
GET /api/v1/cli/installer/linux get_installer_linux_deprecated
GET /api/v1/cli/installer/linux/commands get_installer_linux_commands_deprecated
GET /api/v1/cli/installer/mac get_installer_mac_deprecated
GET /api/v1/cli/installer/mac/commands get_installer_mac_commands_deprecated
GET /api/v1/cli/installer/unix get_installer_unix_deprecated
GET /api/v1/cli/installer/unix/commands get_installer_unix_commands_deprecated
GET /api/v1/cli/installer/windows/commands get_installer_windows_commands_deprecated
",
    },
    Missing {
        family: "Settings",
        instead: "security is a matter of how the server is started: `elastane up` has --listen, \
                  --tls-cert and --tls-key",
        operations: "
GET /api/v1/security/settings get_security_settings
GET /api/v1/security/settings/{key} get_security_setting_by_key
PUT /api/v1/security/settings/{key} update_security_setting_by_key
",
    },
    Missing {
        family: "StorageClassConfiguration",
        instead: "the one storage class cannot be configured: every volume is a folder on the \
                  machine; /api/v1/storage-classes shows it",
        operations: "
POST /api/v1/storage-class-configuration create_storage_class_configuration
GET /api/v1/storage-class-configuration list_storage_class_configuration
DELETE /api/v1/storage-class-configuration/{id} delete_storage_class_configuration_by_id
GET /api/v1/storage-class-configuration/{id} get_storage_class_configuration_by_id
PATCH /api/v1/storage-class-configuration/{id} patch_storage_class_configuration_by_id
PUT /api/v1/storage-class-configuration/{id} update_storage_class_configuration_by_id
",
    },
    Missing {
        family: "Subscriptions",
        instead: "follow /elastane/v1/events, a stream of everything that happens",
        operations: "
POST /api/v1/subscriptions create_subscription
GET /api/v1/subscriptions get_my_subscriptions
DELETE /api/v1/subscriptions/{id} delete_subscription
PUT /api/v1/subscriptions/{id} update_subscription
",
    },
    Missing {
        family: "Template",
        instead: "use /api/v1/workload-templates",
        operations: "
POST /api/v1/asset/workload-template create_template
GET /api/v1/asset/workload-template list_templates
DELETE /api/v1/asset/workload-template/{assetId} delete_template_by_id
GET /api/v1/asset/workload-template/{assetId} get_template_by_id
PUT /api/v1/asset/workload-template/{assetId} update_template
",
    },
    Missing {
        family: "UserApplications",
        instead: "use /api/v1/access-keys",
        operations: "
GET /api/v1/administration/user-applications get_user_applications_administration
DELETE /api/v1/administration/user-applications/{appId} delete_user_application_by_id_administration
POST /api/v1/user-applications create_user_application
GET /api/v1/user-applications get_user_applications
DELETE /api/v1/user-applications/{appId} delete_user_application_by_id
GET /api/v1/user-applications/{appId} get_user_application_by_id
POST /api/v1/user-applications/{appId}/secret regenerate_user_application_secret
",
    },
];

/// Answer of an operation without an implementation.
struct NotServed(ApiError);

impl Output for NotServed {
    fn describe(to: &mut Description) {
        to.answers::<Error>(501, "Not served; the message says what to use instead");
    }
}

impl IntoResponse for NotServed {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

async fn refuse(Extension(instead): Extension<&'static str>) -> NotServed {
    let why = format!("this operation is not served; {instead}");
    NotServed(ApiError::new(StatusCode::NOT_IMPLEMENTED, why))
}

/// Routes of the unimplemented operations, for every caller with a token.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    MISSING.iter().flat_map(|missing| {
        missing.operations.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let method = Method::from_bytes(words.next()?.as_bytes()).ok()?;
            let (path, id) = (words.next()?, words.next()?);
            let route = any(method, path, (id, missing.instead), refuse)?;
            Some(route.own().deprecated().of(missing.family).with(missing.instead))
        })
    })
}
