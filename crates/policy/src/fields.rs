//! The fields that rules can be for: those that are acted on. Owns: what each holds, and which
//! workloads have it. Does not know what rules say.

use std::borrow::Cow;

use http_kit::ApiError;
use serde_json::Value;
use spec::WorkloadKind;

/// Whom a part of a policy is for: a kind of workload, or one of the pods of a distributed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Training,
    Workspace,
    Inference,
    /// The workers, and what holds for the workload as a whole.
    Worker,
    Master,
}

impl Who {
    /// Those of a kind of workload.
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

    /// Where a creation says it.
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

/// A field, by its path in a specification, and what it holds.
pub(super) type Field = (&'static str, Holds);

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holds {
    Text,
    /// In thousandths.
    Number,
    /// The same, where 0 is no limit.
    Limit,
    Bytes,
    Flag,
    /// A list that is one value.
    Texts,
    /// Something that is only looked at as a whole.
    Whole,
    /// A list of items that are put together.
    Items(&'static Items),
}

/// How the items of a list are told apart.
#[derive(Debug)]
pub(super) struct Items {
    /// An item goes by the first of these that it has.
    keys: &'static [&'static str],
    /// What has no effect.
    aside: &'static [&'static str],
    /// The fields of an item that there can be rules for.
    attributes: &'static [Field],
}

impl Items {
    /// What an item goes by.
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

    /// Whether an item does the same as a default.
    pub(super) fn same(&self, item: &Value, default: &Value) -> bool {
        let (item, default) = (self.effect(item), self.effect(default));
        if default["secret"].is_object() && default["secret"]["key"].is_null() {
            // Of a credential with one value that one is meant.
            return item["secret"]["name"] == default["secret"]["name"];
        }
        item == default
    }

    /// An item without what has no effect.
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
    ("annotations", Holds::Items(&PAIRS)),
    ("args", Holds::Text),
    ("command", Holds::Text),
    ("compute.cpuCoreLimit", Holds::Number),
    ("compute.cpuCoreRequest", Holds::Number),
    ("compute.cpuMemoryLimit", Holds::Bytes),
    ("compute.cpuMemoryRequest", Holds::Bytes),
    ("compute.extendedResources", Holds::Items(&RESOURCES)),
    ("compute.gpuDevicesRequest", Holds::Number),
    ("compute.gpuMemoryLimit", Holds::Bytes),
    ("compute.gpuMemoryRequest", Holds::Bytes),
    ("compute.gpuPortionLimit", Holds::Number),
    ("compute.gpuPortionRequest", Holds::Number),
    ("compute.gpuRequestType", Holds::Text),
    ("compute.largeShmRequest", Holds::Flag),
    ("createHomeDir", Holds::Flag),
    ("environmentVariables", Holds::Items(&VARIABLES)),
    ("image", Holds::Text),
    ("imagePullPolicy", Holds::Text),
    ("imagePullSecrets", Holds::Items(&PULL_SECRETS)),
    ("labels", Holds::Items(&PAIRS)),
    ("nodeAffinityRequired", Holds::Whole),
    ("nodePools", Holds::Texts),
    ("nodeType", Holds::Text),
    ("podAffinity.key", Holds::Text),
    ("podAffinity.type", Holds::Text),
    ("ports", Holds::Items(&PORTS)),
    ("preemptibility", Holds::Text),
    ("priorityClass", Holds::Text),
    ("relatedUrls", Holds::Items(&RELATED_URLS)),
    ("security.allowPrivilegeEscalation", Holds::Flag),
    ("security.capabilities", Holds::Texts),
    ("security.hostIpc", Holds::Flag),
    ("security.hostNetwork", Holds::Flag),
    ("security.privileged", Holds::Flag),
    ("security.readOnlyRootFilesystem", Holds::Flag),
    ("security.runAsGid", Holds::Number),
    ("security.runAsNonRoot", Holds::Flag),
    ("security.runAsUid", Holds::Number),
    ("security.seccompProfileType", Holds::Text),
    ("security.supplementalGroups", Holds::Text),
    ("security.uidGidSource", Holds::Text),
    ("storage.configMapVolume", Holds::Items(&CONFIG_MAPS)),
    ("storage.emptyDirVolume", Holds::Items(&EMPTY_DIRS)),
    ("storage.git", Holds::Items(&REPOSITORIES)),
    ("storage.hostPath", Holds::Items(&HOST_PATHS)),
    ("storage.nfs", Holds::Items(&NFS)),
    ("storage.pvc", Holds::Items(&CLAIMS)),
    ("storage.s3", Holds::Items(&BUCKETS)),
    ("storage.secretVolume", Holds::Items(&SECRET_VOLUMES)),
    ("terminationGracePeriodSeconds", Holds::Number),
    ("tolerations", Holds::Items(&TOLERATIONS)),
    ("workingDir", Holds::Text),
];

/// Of what ends.
const RUNS: &[Field] = &[
    ("autoDeletionTimeAfterCompletionSeconds", Holds::Number),
    ("backoffLimit", Holds::Number),
    ("elastic", Holds::Flag),
    ("restartPolicy", Holds::Text),
    ("stdin", Holds::Flag),
    ("terminateAfterPreemption", Holds::Flag),
    ("tty", Holds::Flag),
];

/// Of what people work in, as a whole.
const OPENED: &[Field] = &[("exposedUrls", Holds::Items(&EXPOSED_URLS))];

const TRAINING: &[Field] = &[("completions", Holds::Number), ("parallelism", Holds::Number)];

const DISTRIBUTED: &[Field] = &[
    ("cleanPodPolicy", Holds::Text),
    ("distributedFramework", Holds::Text),
    ("maxReplicas", Holds::Number),
    ("minReplicas", Holds::Number),
    ("mpiLauncherCreationPolicy", Holds::Text),
    ("numWorkers", Holds::Number),
    ("slotsPerWorker", Holds::Number),
];

const INFERENCE: &[Field] = &[
    ("autoscaling.activationReplicas", Holds::Number),
    ("autoscaling.concurrencyHardLimit", Holds::Limit),
    ("autoscaling.initialReplicas", Holds::Number),
    ("autoscaling.initializationTimeoutSeconds", Holds::Number),
    ("autoscaling.maxReplicas", Holds::Number),
    ("autoscaling.metric", Holds::Text),
    ("autoscaling.metricThreshold", Holds::Number),
    ("autoscaling.metricThresholdPercentage", Holds::Number),
    ("autoscaling.minReplicas", Holds::Number),
    ("autoscaling.scaleDownDelaySeconds", Holds::Number),
    ("autoscaling.scaleToZeroRetentionSeconds", Holds::Number),
    ("probes.readiness.failureThreshold", Holds::Number),
    ("probes.readiness.handler.httpGet.path", Holds::Text),
    ("probes.readiness.initialDelaySeconds", Holds::Number),
    ("probes.readiness.periodSeconds", Holds::Number),
    ("probes.readiness.successThreshold", Holds::Number),
    ("probes.readiness.timeoutSeconds", Holds::Number),
    ("servingConfiguration.initializationTimeoutSeconds", Holds::Number),
    ("servingConfiguration.requestTimeoutSeconds", Holds::Number),
    ("servingPort.authorizationType", Holds::Text),
    ("servingPort.authorizedUsers", Holds::Texts),
    ("servingPort.clusterLocalAccessOnly", Holds::Flag),
    ("servingPort.container", Holds::Number),
    ("servingPort.protocol", Holds::Text),
];

static VARIABLES: Items = Items { keys: &["name"], aside: &["description"], attributes: &[] };
static PAIRS: Items = Items { keys: &["name"], aside: &[], attributes: &[] };
static RESOURCES: Items =
    Items { keys: &["resource"], aside: &[], attributes: &[("quantity", Holds::Text)] };
static SECRET_VOLUMES: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("defaultMode", Holds::Text),
        ("mountPath", Holds::Text),
        ("secret", Holds::Text),
    ],
};
static CONFIG_MAPS: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("configMap", Holds::Text),
        ("defaultMode", Holds::Text),
        ("mountPath", Holds::Text),
        ("subPath", Holds::Text),
    ],
};
static PULL_SECRETS: Items = Items { keys: &["name"], aside: &[], attributes: &[] };
static PORTS: Items = Items {
    keys: &["container"],
    aside: &["name", "toolName", "toolType"],
    attributes: &[
        ("container", Holds::Number),
        ("external", Holds::Number),
        ("serviceType", Holds::Text),
    ],
};
static EXPOSED_URLS: Items = Items {
    keys: &["container"],
    aside: &["name", "toolName", "toolType"],
    attributes: &[
        ("authorizationType", Holds::Text),
        ("authorizedUsers", Holds::Texts),
        ("container", Holds::Number),
    ],
};
static RELATED_URLS: Items = Items {
    keys: &["name", "url"],
    aside: &["name"],
    attributes: &[("type", Holds::Text), ("url", Holds::Text)],
};
static EMPTY_DIRS: Items = Items {
    keys: &["name", "path"],
    aside: &["name"],
    attributes: &[("medium", Holds::Text), ("path", Holds::Text), ("sizeLimit", Holds::Bytes)],
};
static REPOSITORIES: Items = Items {
    keys: &["name", "path"],
    aside: &["name"],
    attributes: &[
        ("branch", Holds::Text),
        ("passwordSecret", Holds::Text),
        ("path", Holds::Text),
        ("repository", Holds::Text),
        ("revision", Holds::Text),
    ],
};
static BUCKETS: Items = Items {
    keys: &["name", "path"],
    aside: &["name"],
    attributes: &[
        ("accessKeySecret", Holds::Text),
        ("bucket", Holds::Text),
        ("path", Holds::Text),
        ("url", Holds::Text),
    ],
};
static HOST_PATHS: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("mountPath", Holds::Text),
        ("mountPropagation", Holds::Text),
        ("path", Holds::Text),
        ("readOnly", Holds::Flag),
    ],
};
static NFS: Items = Items {
    keys: &["name", "mountPath"],
    aside: &["name"],
    attributes: &[
        ("mountPath", Holds::Text),
        ("path", Holds::Text),
        ("readOnly", Holds::Flag),
        ("server", Holds::Text),
    ],
};
static CLAIMS: Items = Items {
    keys: &["name", "claimName", "path"],
    aside: &["name"],
    attributes: &[
        ("claimName", Holds::Text),
        ("ephemeral", Holds::Flag),
        ("existingPvc", Holds::Flag),
        ("path", Holds::Text),
        ("readOnly", Holds::Flag),
    ],
};
static TOLERATIONS: Items = Items {
    keys: &["name", "key"],
    aside: &["name"],
    attributes: &[
        ("effect", Holds::Text),
        ("key", Holds::Text),
        ("operator", Holds::Text),
        ("value", Holds::Text),
    ],
};

/// The value at a path of a specification.
pub(super) fn at<'a>(spec: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(spec, |value, name| value.get(name))
}
