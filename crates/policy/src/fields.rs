//! The fields that rules can be for: those that have an effect. Owns: the type of each, and the
//! workloads that have it. Does not know the rules.

use std::borrow::Cow;

use http_kit::ApiError;
use serde_json::Value;
use spec::WorkloadKind;

/// Target of a part of a policy: a kind of workload, or one kind of pod of a distributed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyTarget {
    Training,
    Workspace,
    Inference,
    /// The workers, and what holds for the workload as a whole.
    Worker,
    Master,
}

impl PolicyTarget {
    /// Targets of a kind of workload.
    pub(super) const fn of(kind: WorkloadKind) -> &'static [Self] {
        match kind {
            WorkloadKind::Training => &[Self::Training],
            WorkloadKind::Workspace => &[Self::Workspace],
            WorkloadKind::Inference => &[Self::Inference],
            WorkloadKind::Distributed => &[Self::Worker, Self::Master],
        }
    }

    /// The part of a policy that is for them, where it has parts.
    pub(super) const fn part(self) -> Option<&'static str> {
        match self {
            Self::Worker => Some("worker"),
            Self::Master => Some("master"),
            _ => None,
        }
    }

    /// Field of a creation that holds the specification.
    pub(super) const fn spec(self) -> &'static str {
        match self {
            Self::Master => "masterSpec",
            _ => "spec",
        }
    }

    /// The fields there can be rules for.
    pub(super) fn fields(self) -> impl Iterator<Item = &'static Field> {
        let more: &[&[Field]] = match self {
            Self::Training => &[RUNS, OPENED, TRAINING],
            Self::Workspace => &[RUNS, OPENED],
            Self::Master => &[RUNS],
            Self::Worker => &[RUNS, OPENED, DISTRIBUTED],
            Self::Inference => &[INFERENCE],
        };
        ALL.iter().chain(more.iter().copied().flatten())
    }
}

/// A field, by its path in a specification, and its type.
pub(super) type Field = (&'static str, FieldType);

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldType {
    Text,
    /// A number, in thousandths.
    Number,
    /// A number in thousandths, where 0 is no limit.
    Limit,
    Bytes,
    Flag,
    /// A list that is one value.
    Texts,
    /// A value that is only checked as a whole.
    Whole,
    /// A field that no workload has here: rules for it are kept, and nothing breaks them.
    Absent,
    /// A list of items, which are merged with those of defaults.
    Items(&'static Items),
}

/// The key of the items of a list.
#[derive(Debug)]
pub(super) struct Items {
    /// Candidates for the key of an item: the first that it has.
    keys: &'static [&'static str],
    /// Fields of an item without an effect.
    aside: &'static [&'static str],
    /// The fields of an item that there can be rules for.
    attributes: &'static [Field],
}

impl Items {
    /// Key of an item.
    pub(super) fn key<'a>(&self, item: &'a Value) -> Cow<'a, str> {
        let text = |key: &&str| match &item[*key] {
            Value::String(text) => Some(Cow::Borrowed(text.as_str())),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            _ => None,
        };
        self.keys.iter().find_map(text).unwrap_or_default()
    }

    /// A field of an item, for a policy that names it at some place.
    pub(super) fn attribute(&self, at: &str, name: &str) -> Result<&'static Field, ApiError> {
        self.attributes.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let known: Vec<&str> = self.attributes.iter().map(|(known, _)| *known).collect();
            let why = match known.as_slice() {
                [] => "the items of this list have nothing to be said of each".to_owned(),
                known => format!("is none of {}", known.join(", ")),
            };
            ApiError::field(at, why)
        })
    }

    /// True if an item does the same as a default.
    pub(super) fn same(&self, item: &Value, default: &Value) -> bool {
        let (item, default) = (self.effect(item), self.effect(default));
        if default["secret"].is_object() && default["secret"]["key"].is_null() {
            // A credential with a single value needs no key.
            return item["secret"]["name"] == default["secret"]["name"];
        }
        item == default
    }

    /// An item without the fields that have no effect.
    fn effect(&self, item: &Value) -> Value {
        let mut item = item.clone();
        if let Some(fields) = item.as_object_mut() {
            fields.retain(|name, value| !self.aside.contains(&name.as_str()) && !value.is_null());
            fields.retain(|name, value| name != "exclude" || *value == Value::Bool(true));
        }
        item
    }
}

const ALL: &[Field] = &[
    ("annotations", FieldType::Items(&PAIRS)),
    ("args", FieldType::Text),
    ("command", FieldType::Text),
    ("compute.cpuCoreLimit", FieldType::Number),
    ("compute.cpuCoreRequest", FieldType::Number),
    ("compute.cpuMemoryLimit", FieldType::Bytes),
    ("compute.cpuMemoryRequest", FieldType::Bytes),
    ("compute.extendedResources", FieldType::Items(&RESOURCES)),
    ("compute.gpuDevicesRequest", FieldType::Number),
    ("compute.gpuMemoryLimit", FieldType::Bytes),
    ("compute.gpuMemoryRequest", FieldType::Bytes),
    ("compute.gpuPortionLimit", FieldType::Number),
    ("compute.gpuPortionRequest", FieldType::Number),
    ("compute.gpuRequestType", FieldType::Text),
    ("compute.largeShmRequest", FieldType::Flag),
    // MIG instances are extended resources.
    ("compute.migProfile", FieldType::Absent),
    ("createHomeDir", FieldType::Flag),
    ("environmentVariables", FieldType::Items(&VARIABLES)),
    ("image", FieldType::Text),
    ("imagePullPolicy", FieldType::Text),
    ("imagePullSecrets", FieldType::Items(&PULL_SECRETS)),
    ("labels", FieldType::Items(&PAIRS)),
    ("nodeAffinityRequired", FieldType::Whole),
    ("nodePools", FieldType::Texts),
    ("nodeType", FieldType::Text),
    ("podAffinity.key", FieldType::Text),
    ("podAffinity.type", FieldType::Text),
    ("ports", FieldType::Items(&PORTS)),
    ("preemptibility", FieldType::Text),
    ("priorityClass", FieldType::Text),
    ("relatedUrls", FieldType::Items(&RELATED_URLS)),
    ("security.allowPrivilegeEscalation", FieldType::Flag),
    ("security.capabilities", FieldType::Texts),
    ("security.hostIpc", FieldType::Flag),
    ("security.hostNetwork", FieldType::Flag),
    ("security.privileged", FieldType::Flag),
    ("security.readOnlyRootFilesystem", FieldType::Flag),
    ("security.runAsGid", FieldType::Number),
    ("security.runAsNonRoot", FieldType::Flag),
    ("security.runAsUid", FieldType::Number),
    ("security.seccompProfileType", FieldType::Text),
    ("security.supplementalGroups", FieldType::Text),
    ("security.uidGidSource", FieldType::Text),
    ("storage.configMapVolume", FieldType::Items(&CONFIG_MAPS)),
    ("storage.dataVolume", FieldType::Absent),
    ("storage.emptyDirVolume", FieldType::Items(&EMPTY_DIRS)),
    ("storage.git", FieldType::Items(&REPOSITORIES)),
    ("storage.hostPath", FieldType::Items(&HOST_PATHS)),
    ("storage.nfs", FieldType::Items(&NFS)),
    ("storage.pvc", FieldType::Items(&CLAIMS)),
    ("storage.s3", FieldType::Items(&BUCKETS)),
    ("storage.secretVolume", FieldType::Items(&SECRET_VOLUMES)),
    ("terminationGracePeriodSeconds", FieldType::Number),
    ("tolerations", FieldType::Items(&TOLERATIONS)),
    ("workingDir", FieldType::Text),
];

/// Fields of workloads that end.
const RUNS: &[Field] = &[
    ("autoDeletionTimeAfterCompletionSeconds", FieldType::Number),
    ("backoffLimit", FieldType::Number),
    ("elastic", FieldType::Flag),
    ("restartPolicy", FieldType::Text),
    ("stdin", FieldType::Flag),
    ("terminateAfterPreemption", FieldType::Flag),
    ("tty", FieldType::Flag),
];

/// Fields of interactive workloads, for the workload as a whole.
const OPENED: &[Field] = &[("exposedUrls", FieldType::Items(&EXPOSED_URLS))];

const TRAINING: &[Field] =
    &[("completions", FieldType::Number), ("parallelism", FieldType::Number)];

const DISTRIBUTED: &[Field] = &[
    ("cleanPodPolicy", FieldType::Text),
    ("distributedFramework", FieldType::Text),
    ("maxReplicas", FieldType::Number),
    ("minReplicas", FieldType::Number),
    ("mpiLauncherCreationPolicy", FieldType::Text),
    ("numWorkers", FieldType::Number),
    ("slotsPerWorker", FieldType::Number),
    ("sshAuthMountPath", FieldType::Absent),
];

const INFERENCE: &[Field] = &[
    ("autoscaling.activationReplicas", FieldType::Number),
    ("autoscaling.concurrencyHardLimit", FieldType::Limit),
    ("autoscaling.initialReplicas", FieldType::Number),
    ("autoscaling.initializationTimeoutSeconds", FieldType::Number),
    ("autoscaling.maxReplicas", FieldType::Number),
    ("autoscaling.metric", FieldType::Text),
    ("autoscaling.metricThreshold", FieldType::Number),
    ("autoscaling.metricThresholdPercentage", FieldType::Number),
    ("autoscaling.minReplicas", FieldType::Number),
    ("autoscaling.scaleDownDelaySeconds", FieldType::Number),
    ("autoscaling.scaleToZeroRetentionSeconds", FieldType::Number),
    ("probes.readiness.failureThreshold", FieldType::Number),
    ("probes.readiness.handler.httpGet.path", FieldType::Text),
    ("probes.readiness.initialDelaySeconds", FieldType::Number),
    ("probes.readiness.periodSeconds", FieldType::Number),
    ("probes.readiness.successThreshold", FieldType::Number),
    ("probes.readiness.timeoutSeconds", FieldType::Number),
    ("servingConfiguration.initializationTimeoutSeconds", FieldType::Number),
    ("servingConfiguration.requestTimeoutSeconds", FieldType::Number),
    ("servingPort.authorizationType", FieldType::Text),
    ("servingPort.authorizedUsers", FieldType::Texts),
    ("servingPort.clusterLocalAccessOnly", FieldType::Flag),
    ("servingPort.container", FieldType::Number),
    ("servingPort.protocol", FieldType::Text),
];

static VARIABLES: Items = Items { keys: &["name"], aside: &["description"], attributes: &[] };
static PAIRS: Items = Items { keys: &["name"], aside: &[], attributes: &[] };
static RESOURCES: Items =
    Items { keys: &["resource"], aside: &[], attributes: &[("quantity", FieldType::Text)] };
static SECRET_VOLUMES: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("defaultMode", FieldType::Text),
        ("mountPath", FieldType::Text),
        ("secret", FieldType::Text),
    ],
};
static CONFIG_MAPS: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("configMap", FieldType::Text),
        ("defaultMode", FieldType::Text),
        ("mountPath", FieldType::Text),
        ("subPath", FieldType::Text),
    ],
};
static PULL_SECRETS: Items = Items { keys: &["name"], aside: &[], attributes: &[] };
static PORTS: Items = Items {
    keys: &["container"],
    aside: &["name", "toolName", "toolType"],
    attributes: &[
        ("container", FieldType::Number),
        ("external", FieldType::Number),
        ("serviceType", FieldType::Text),
    ],
};
static EXPOSED_URLS: Items = Items {
    keys: &["container"],
    aside: &["name", "toolName", "toolType"],
    attributes: &[
        ("authorizationType", FieldType::Text),
        ("authorizedUsers", FieldType::Texts),
        ("container", FieldType::Number),
    ],
};
static RELATED_URLS: Items = Items {
    keys: &["name", "url"],
    aside: &["name"],
    attributes: &[("type", FieldType::Text), ("url", FieldType::Text)],
};
static EMPTY_DIRS: Items = Items {
    keys: &["name", "path"],
    aside: &["name"],
    attributes: &[
        ("medium", FieldType::Text),
        ("path", FieldType::Text),
        ("sizeLimit", FieldType::Bytes),
    ],
};
static REPOSITORIES: Items = Items {
    keys: &["name", "path"],
    aside: &["name"],
    attributes: &[
        ("branch", FieldType::Text),
        ("passwordSecret", FieldType::Text),
        ("path", FieldType::Text),
        ("repository", FieldType::Text),
        ("revision", FieldType::Text),
    ],
};
static BUCKETS: Items = Items {
    keys: &["name", "path"],
    aside: &["name"],
    attributes: &[
        ("accessKeySecret", FieldType::Text),
        ("bucket", FieldType::Text),
        ("path", FieldType::Text),
        ("url", FieldType::Text),
    ],
};
static HOST_PATHS: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("mountPath", FieldType::Text),
        ("mountPropagation", FieldType::Text),
        ("path", FieldType::Text),
        ("readOnly", FieldType::Flag),
    ],
};
static NFS: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("mountPath", FieldType::Text),
        ("path", FieldType::Text),
        ("readOnly", FieldType::Flag),
        ("server", FieldType::Text),
    ],
};
static CLAIMS: Items = Items {
    keys: &["name", "claimName", "path"],
    aside: &["name"],
    attributes: &[
        ("claimName", FieldType::Text),
        ("ephemeral", FieldType::Flag),
        ("existingPvc", FieldType::Flag),
        ("path", FieldType::Text),
        ("readOnly", FieldType::Flag),
    ],
};
static TOLERATIONS: Items = Items {
    keys: &["name", "key"],
    aside: &["name"],
    attributes: &[
        ("effect", FieldType::Text),
        ("key", FieldType::Text),
        ("operator", FieldType::Text),
        ("value", FieldType::Text),
    ],
};

/// The value at a path of a specification.
pub(super) fn at<'a>(spec: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(spec, |value, name| value.get(name))
}
