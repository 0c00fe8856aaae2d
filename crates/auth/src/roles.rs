//! Permissions of roles: the predefined roles as published, each a matrix of resources and actions.
//!
//! Owns: the words of resources and actions, and the matrix. Does not know which principals have a
//! role, and where it holds.

/// An action on a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Make a new one.
    Create,
    /// Read it.
    Read,
    /// Change it, stop it, start it.
    Update,
    /// Make it go away.
    Delete,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 4] = [Self::Create, Self::Read, Self::Update, Self::Delete];

    /// The published word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// A set of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actions(u8);

impl Actions {
    const NONE: Self = Self(0);
    const R: Self = Self(2);
    const CRUD: Self = Self(15);
    const RU: Self = Self(6);

    /// True if an action is one of them.
    #[must_use]
    pub const fn has(self, action: Action) -> bool {
        self.0 & (1 << action as u8) != 0
    }
}

macro_rules! resources {
    ($($name:ident $word:literal $shown:literal $group:literal;)+) => {
        /// A resource that actions are for, by its published word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Resource {
            $(#[doc = $shown] $name,)+
        }

        impl Resource {
            /// All resources.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The published word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// Name for people.
            #[must_use]
            pub const fn shown(self) -> &'static str {
                match self { $(Self::$name => $shown,)+ }
            }

            /// The published group.
            #[must_use]
            pub const fn group(self) -> &'static str {
                match self { $(Self::$name => $group,)+ }
            }
        }
    };
}

resources! {
    Tenant "tenant" "Account" "organization";
    Department "department" "Departments" "organization";
    Project "project" "Projects" "organization";
    Cluster "cluster" "Clusters" "physical-resource";
    NodePools "nodepools" "Node pools" "physical-resource";
    Nodes "nodes" "Nodes" "physical-resource";
    NetworkTopologies "network-topologies" "Network topologies" "physical-resource";
    StorageClasses "storage-class-configuration" "Storage classes" "physical-resource";
    Settings "settings" "General settings" "organization";
    SecuritySettings "security-settings" "Security settings" "organization";
    Users "users" "Users" "iam";
    ServiceAccounts "service-account" "Service accounts" "iam";
    AccessKeys "access-keys" "Access keys" "iam";
    Roles "roles" "Roles" "iam";
    AccessRules "access_rules" "Access rules" "iam";
    EventHistory "events-history" "Event history" "iam";
    Dashboards "dashboards-overview" "Dashboards" "dashboard";
    Consumption "dashboards-consumption" "Consumption" "dashboard";
    Workloads "workloads" "Workloads" "workload";
    Workspaces "workspaces" "Workspaces" "workload";
    Trainings "trainings" "Trainings" "workload";
    Inferences "inferences" "Inferences" "workload";
    WorkloadProperties "workload-properties" "Workload properties" "workload";
    Policies "policies" "Policies" "workload";
    Environments "environments" "Environments" "workload-asset";
    ComputeResources "compute-resources" "Compute resources" "workload-asset";
    Templates "templates" "Templates" "workload-asset";
    Credentials "credentials" "Credentials" "workload-asset";
    Registries "registries" "Registries" "workload-asset";
    PvcAssets "pvc-assets" "PVC" "workload-asset";
    NfsAssets "nfs-assets" "NFS" "workload-asset";
    S3Assets "s3-assets" "S3" "workload-asset";
    GitAssets "git-assets" "Git" "workload-asset";
    HostPathAssets "host-path-assets" "Host path" "workload-asset";
    ConfigMapAssets "cm-volume-assets" "Config map" "workload-asset";
    SecretAssets "secret-volume-assets" "Secret" "workload-asset";
    DataVolumes "datavolumes" "Data volumes" "workload-asset";
}

impl Resource {
    /// The resource with this published word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|resource| resource.word() == word)
    }

    const fn is_workload(self) -> bool {
        matches!(self, Self::Workloads | Self::Workspaces | Self::Trainings | Self::Inferences)
    }

    const fn is_data_source(self) -> bool {
        matches!(
            self,
            Self::PvcAssets
                | Self::NfsAssets
                | Self::S3Assets
                | Self::GitAssets
                | Self::HostPathAssets
                | Self::ConfigMapAssets
                | Self::SecretAssets
        )
    }

    const fn is_asset(self) -> bool {
        self.is_data_source()
            || matches!(
                self,
                Self::Environments
                    | Self::ComputeResources
                    | Self::Templates
                    | Self::Credentials
                    | Self::Registries
                    | Self::DataVolumes
            )
    }

    /// True for resources that all users need to see: the cluster and its free capacity.
    const fn is_surroundings(self) -> bool {
        matches!(
            self,
            Self::Cluster
                | Self::NodePools
                | Self::Nodes
                | Self::NetworkTopologies
                | Self::StorageClasses
                | Self::Department
                | Self::Project
                | Self::Roles
                | Self::WorkloadProperties
                | Self::Dashboards
        )
    }
}

/// A predefined role.
#[derive(Debug)]
pub struct Role {
    /// Id, an integer as published.
    pub id: u64,
    /// Name.
    pub name: &'static str,
    /// Purpose of the role.
    pub description: &'static str,
    /// True if workloads and assets of others are only to be seen.
    pub own_only: bool,
    matrix: fn(Resource) -> Actions,
}

impl Role {
    /// Actions that it allows on a resource.
    #[must_use]
    pub fn actions(&self, resource: Resource) -> Actions {
        (self.matrix)(resource)
    }

    /// True if it allows this.
    #[must_use]
    pub fn allows(&self, action: Action, resource: Resource) -> bool {
        self.actions(resource).has(action)
    }

    /// True if it allows everything the other does.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let within = |resource: &Resource| {
            let (own, others) = (self.actions(*resource), other.actions(*resource));
            own.0 & others.0 == others.0
        };
        (!self.own_only || other.own_only) && Resource::ALL.iter().all(within)
    }

    /// The role with this id.
    #[must_use]
    pub fn by_id(id: u64) -> Option<&'static Self> {
        ROLES.iter().find(|role| role.id == id)
    }
}

fn surroundings(resource: Resource) -> Actions {
    if resource.is_surroundings() { Actions::R } else { Actions::NONE }
}

fn viewer(resource: Resource) -> Actions {
    let seen = resource.is_workload() || resource.is_asset() || resource == Resource::Policies;
    if seen { Actions::R } else { surroundings(resource) }
}

fn researcher(resource: Resource) -> Actions {
    use Resource::{Credentials, Environments, Policies, Templates};
    match resource {
        resource if resource.is_workload() => Actions::CRUD,
        resource if resource.is_data_source() => Actions::CRUD,
        Environments | Templates | Credentials | Resource::ComputeResources => Actions::CRUD,
        Policies | Resource::DataVolumes | Resource::Registries => Actions::R,
        other => surroundings(other),
    }
}

fn ml_engineer(resource: Resource) -> Actions {
    match resource {
        Resource::Inferences => Actions::CRUD,
        Resource::Workloads => Actions::CRUD,
        Resource::Trainings | Resource::Workspaces => Actions::R,
        other => researcher(other),
    }
}

fn editor(resource: Resource) -> Actions {
    use Resource::{AccessRules, Department, Policies, Project, Users};
    match resource {
        resource if resource.is_workload() || resource.is_asset() => Actions::CRUD,
        Project => Actions::CRUD,
        Department | Policies => Actions::RU,
        AccessRules | Users | Resource::ServiceAccounts => Actions::R,
        Resource::Consumption => Actions::R,
        other => surroundings(other),
    }
}

fn research_manager(resource: Resource) -> Actions {
    match resource {
        Resource::Project => Actions::RU,
        Resource::Policies => Actions::CRUD,
        Resource::Consumption => Actions::R,
        resource if resource.is_workload() => Actions::R,
        resource if resource.is_asset() => Actions::CRUD,
        other => surroundings(other),
    }
}

fn department_administrator(resource: Resource) -> Actions {
    match resource {
        Resource::AccessRules | Resource::Policies => Actions::CRUD,
        Resource::Department => Actions::RU,
        other => editor(other),
    }
}

fn department_viewer(resource: Resource) -> Actions {
    match resource {
        Resource::AccessRules | Resource::Users | Resource::ServiceAccounts => Actions::R,
        Resource::Consumption => Actions::R,
        other => viewer(other),
    }
}

macro_rules! asset_administrator {
    ($name:ident, $resource:ident => $owned:expr) => {
        fn $name($resource: Resource) -> Actions {
            if $owned { Actions::CRUD } else { surroundings($resource) }
        }
    };
}
asset_administrator!(environments, resource => resource == Resource::Environments);
asset_administrator!(compute_resources, resource => resource == Resource::ComputeResources);
asset_administrator!(data_sources, resource => resource.is_data_source());
asset_administrator!(data_volumes, resource => resource == Resource::DataVolumes);
asset_administrator!(templates, resource => resource == Resource::Templates);
asset_administrator!(credentials, resource => {
    matches!(resource, Resource::Credentials | Resource::Registries)
});

const fn role(
    id: u64,
    name: &'static str,
    description: &'static str,
    matrix: fn(Resource) -> Actions,
) -> Role {
    Role { id, name, description, own_only: false, matrix }
}

/// The role that may do everything.
pub const SYSTEM_ADMINISTRATOR: u64 = 1;

/// The predefined roles.
pub static ROLES: [Role; 15] = [
    role(SYSTEM_ADMINISTRATOR, "System administrator", "Everything", |_| Actions::CRUD),
    role(
        2,
        "Department administrator",
        "Projects, access rules, policies, assets and workloads of a department",
        department_administrator,
    ),
    role(3, "Department viewer", "Sees everything of a department", department_viewer),
    role(4, "Editor", "Projects, assets and workloads", editor),
    role(5, "Research manager", "Projects, policies and assets; sees workloads", research_manager),
    role(6, "L1 researcher", "Workloads and assets of a project", researcher),
    Role {
        own_only: true,
        ..role(
            7,
            "L2 researcher",
            "Workloads and assets of a project; changes only its own",
            researcher,
        )
    },
    role(8, "ML engineer", "Inferences; sees other workloads", ml_engineer),
    role(9, "Viewer", "Sees workloads and assets", viewer),
    role(10, "Environment administrator", "Environments", environments),
    role(11, "Compute resource administrator", "Compute resources", compute_resources),
    role(12, "Data source administrator", "Data sources", data_sources),
    role(13, "Data volume administrator", "Data volumes", data_volumes),
    role(14, "Template administrator", "Templates", templates),
    role(15, "Credentials administrator", "Credentials", credentials),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn roles_and_resources_have_one_name_each() {
        let ids: BTreeSet<u64> = ROLES.iter().map(|role| role.id).collect();
        let names: BTreeSet<&str> = ROLES.iter().map(|role| role.name).collect();
        assert_eq!((ids.len(), names.len()), (ROLES.len(), ROLES.len()));
        for resource in Resource::ALL {
            assert_eq!(Resource::named(resource.word()), Some(*resource));
        }
        assert_eq!(Resource::named("everything"), None);
    }

    #[test]
    fn only_the_system_administrator_makes_principals_and_reads_the_audit_log() {
        use Action::{Create, Delete, Read, Update};
        for role in ROLES.iter().filter(|role| role.id != SYSTEM_ADMINISTRATOR) {
            for action in [Create, Update, Delete] {
                for resource in [
                    Resource::Users,
                    Resource::ServiceAccounts,
                    Resource::AccessKeys,
                    Resource::Cluster,
                    Resource::Tenant,
                    Resource::SecuritySettings,
                ] {
                    assert!(!role.allows(action, resource), "{} {resource:?}", role.name);
                }
            }
            assert!(!role.allows(Read, Resource::EventHistory), "{}", role.name);
        }
    }

    #[test]
    fn everybody_sees_nodes_and_what_is_free() {
        for role in &ROLES {
            for resource in [Resource::Nodes, Resource::NodePools, Resource::Cluster] {
                assert!(role.allows(Action::Read, resource), "{} {resource:?}", role.name);
            }
        }
    }

    #[test]
    fn a_role_covers_no_more_than_it_allows() {
        let role = |id| Role::by_id(id).unwrap();
        assert!(role(1).covers(role(2)) && !role(2).covers(role(1)));
        assert!(role(6).covers(role(7)) && !role(7).covers(role(6)), "own only is less");
        assert!(role(2).covers(role(6)) && !role(6).covers(role(9 + 4)));
        assert!(!role(9).covers(role(6)));
        for role in &ROLES {
            assert!(role.covers(role), "{}", role.name);
        }
    }
}
