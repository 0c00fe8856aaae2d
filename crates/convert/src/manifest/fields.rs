//! The list of the fields of manifests, with the effect of each. Owns: which Kubernetes fields are
//! supported, which are accepted without effect, and which are refused with a reason. Does not know
//! the meaning of values.

/// A field by its Kubernetes name; a name that ends with `*` stands for all with this prefix.
pub(super) type Field = (&'static str, Fate);

/// The effect of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// Its value is used.
    Acts,
    /// An object with these fields, or a list of such objects.
    In(&'static [Field]),
    /// An object with keys of the user, whose values have these fields.
    Named(&'static [Field]),
    /// Accepted without effect; a note names it.
    Noted,
    /// Accepted without effect. For these values no note is needed, as they are the actual
    /// behaviour.
    Usual(&'static [&'static str]),
    /// Refused, with the reason.
    Refused(&'static str),
}

use Fate::{Acts, In, Named, Noted, Refused, Usual};

const ONE_PROCESS: &str = "a pod here is one process";
const NO_POD_FIELDS: &str = "there are no Kubernetes pods whose fields could be read; POD_NAME, \
                             POD_INDEX and NODE_NAME are set in each pod";
const NO_SUCH_VOLUME: &str =
    "volumes here are emptyDir, hostPath, nfs, persistentVolumeClaim, configMap and secret";
const WHOLE: &str = "a config map or a secret is mounted as a whole; mount one file with subPath";
const OWN_VOLUMES: &str = "a pod here has no volumes of its own";

/// Fields around the specification, for every kind.
pub(super) const MANIFEST: &[Field] = &[
    ("apiVersion", Acts),
    ("kind", Acts),
    ("metadata", In(META)),
    ("spec", Acts),
    ("status", Noted),
];

/// The project replaces the namespace, so the client removes the project's own one.
const META: &[Field] = &[
    ("name", Acts),
    ("generateName", Acts),
    ("labels", Acts),
    ("annotations", Acts),
    ("namespace", Noted),
    ("creationTimestamp", Noted),
    ("deletionGracePeriodSeconds", Noted),
    ("deletionTimestamp", Noted),
    ("finalizers", Noted),
    ("generation", Noted),
    ("managedFields", Noted),
    ("ownerReferences", Noted),
    ("resourceVersion", Noted),
    ("selfLink", Noted),
    ("uid", Noted),
];

pub(super) const JOB: &[Field] = &[
    ("parallelism", Acts),
    ("completions", Acts),
    ("completionMode", Acts),
    ("backoffLimit", Acts),
    ("activeDeadlineSeconds", Acts),
    ("ttlSecondsAfterFinished", Acts),
    ("suspend", Acts),
    ("template", In(TEMPLATE)),
    ("backoffLimitPerIndex", Noted),
    ("managedBy", Noted),
    ("manualSelector", Noted),
    ("maxFailedIndexes", Noted),
    ("podFailurePolicy", Noted),
    ("podReplacementPolicy", Noted),
    ("selector", Noted),
    ("successPolicy", Noted),
];

/// Specification of a Deployment or a StatefulSet.
pub(super) const REPLICATED: &[Field] = &[
    ("replicas", Acts),
    ("suspend", Acts),
    ("template", In(TEMPLATE)),
    ("minReadySeconds", Noted),
    ("ordinals", Noted),
    ("paused", Noted),
    ("persistentVolumeClaimRetentionPolicy", Noted),
    ("podManagementPolicy", Noted),
    ("progressDeadlineSeconds", Noted),
    ("revisionHistoryLimit", Noted),
    ("selector", Noted),
    ("serviceName", Noted),
    ("strategy", Noted),
    ("updateStrategy", Noted),
    ("volumeClaimTemplates", Refused(OWN_VOLUMES)),
];

/// Specification of a training operator's job; each kind has its replicas under a name of its own.
pub(super) const OPERATOR: &[Field] = &[
    ("runPolicy", In(RUN_POLICY)),
    ("pytorchReplicaSpecs", Named(REPLICAS)),
    ("tfReplicaSpecs", Named(REPLICAS)),
    ("xgbReplicaSpecs", Named(REPLICAS)),
    ("mpiReplicaSpecs", Named(REPLICAS)),
    ("jaxReplicaSpecs", Named(REPLICAS)),
    ("slotsPerWorker", Acts),
    ("nprocPerNode", Acts),
    ("launcherCreationPolicy", Acts),
    ("elasticPolicy", In(ELASTIC_POLICY)),
    // Older versions have them next to the replicas.
    ("activeDeadlineSeconds", Acts),
    ("backoffLimit", Acts),
    ("cleanPodPolicy", Acts),
    ("ttlSecondsAfterFinished", Acts),
    ("suspend", Acts),
    ("enableDynamicWorker", Noted),
    ("enableGangScheduling", Noted),
    ("mainContainer", Noted),
    ("mpiImplementation", Usual(&["OpenMPI"])),
    ("runLauncherAsWorker", Noted),
    ("sshAuthMountPath", Noted),
    ("successPolicy", Noted),
];

const RUN_POLICY: &[Field] = &[
    ("activeDeadlineSeconds", Acts),
    ("backoffLimit", Acts),
    ("cleanPodPolicy", Acts),
    ("suspend", Acts),
    ("ttlSecondsAfterFinished", Acts),
    ("schedulingPolicy", In(SCHEDULING_POLICY)),
    ("managedBy", Noted),
];

const SCHEDULING_POLICY: &[Field] = &[
    ("priorityClass", Acts),
    ("minAvailable", Noted),
    ("minResources", Noted),
    ("queue", Noted),
    ("scheduleTimeoutSeconds", Noted),
];

const ELASTIC_POLICY: &[Field] = &[
    ("minReplicas", Acts),
    ("maxReplicas", Acts),
    ("maxRestarts", Noted),
    ("metrics", Noted),
    ("nProcPerNode", Noted),
    ("rdzvBackend", Noted),
    ("rdzvConf", Noted),
    ("rdzvHost", Noted),
    ("rdzvId", Noted),
    ("rdzvPort", Noted),
    ("standalone", Noted),
];

const REPLICAS: &[Field] =
    &[("replicas", Acts), ("restartPolicy", Acts), ("template", In(TEMPLATE))];

pub(super) const LEADER_WORKER_SET: &[Field] = &[
    ("replicas", Acts),
    ("startupPolicy", Acts),
    ("suspend", Acts),
    ("leaderWorkerTemplate", In(LEADER_WORKER_TEMPLATE)),
    ("rolloutStrategy", Refused("what runs is not changed, so nothing is rolled out")),
    ("networkConfig", Refused("a pod finds its leader by LWS_LEADER_ADDRESS")),
];

const LEADER_WORKER_TEMPLATE: &[Field] = &[
    ("size", Acts),
    ("restartPolicy", Acts),
    ("leaderTemplate", In(TEMPLATE)),
    ("workerTemplate", In(TEMPLATE)),
    ("subGroupPolicy", Refused("a group has no groups in it")),
    ("volumeClaimTemplates", Refused(OWN_VOLUMES)),
    ("persistentVolumeClaimRetentionPolicy", Refused(OWN_VOLUMES)),
];

const TEMPLATE: &[Field] = &[("metadata", In(META)), ("spec", In(POD))];

pub(super) const POD: &[Field] = &[
    ("containers", In(CONTAINER)),
    ("restartPolicy", Acts),
    ("terminationGracePeriodSeconds", Acts),
    ("activeDeadlineSeconds", Acts),
    ("priorityClassName", Acts),
    ("nodeName", Acts),
    ("nodeSelector", Acts),
    ("affinity", In(AFFINITY)),
    ("tolerations", In(TOLERATION)),
    ("schedulingGates", Acts),
    ("volumes", In(VOLUME)),
    ("securityContext", In(POD_SECURITY)),
    ("hostNetwork", Acts),
    ("hostIPC", Acts),
    // Also accepted for a pod: here every workload can be suspended.
    ("suspend", Acts),
    ("schedulerName", Usual(&["runai-scheduler", "kai-scheduler", "default-scheduler"])),
    ("automountServiceAccountToken", Noted),
    ("dnsConfig", Noted),
    ("dnsPolicy", Usual(&["ClusterFirst", "Default"])),
    ("enableServiceLinks", Noted),
    ("hostAliases", Noted),
    ("hostPID", Noted),
    ("hostUsers", Noted),
    ("hostname", Noted),
    ("imagePullSecrets", Noted),
    ("os", Noted),
    ("overhead", Noted),
    ("preemptionPolicy", Noted),
    ("priority", Noted),
    ("readinessGates", Noted),
    ("resources", Noted),
    ("runtimeClassName", Noted),
    ("serviceAccount", Usual(&["default"])),
    ("serviceAccountName", Usual(&["default"])),
    ("setHostnameAsFQDN", Noted),
    ("shareProcessNamespace", Noted),
    ("subdomain", Noted),
    ("topologySpreadConstraints", Noted),
    ("ephemeralContainers", Refused(ONE_PROCESS)),
    ("initContainers", Refused(ONE_PROCESS)),
    ("resourceClaims", Refused("GPUs are asked for as nvidia.com/gpu")),
];

const AFFINITY: &[Field] =
    &[("nodeAffinity", In(NODE_AFFINITY)), ("podAffinity", Noted), ("podAntiAffinity", Noted)];

const NODE_AFFINITY: &[Field] = &[
    ("requiredDuringSchedulingIgnoredDuringExecution", In(NODE_SELECTOR)),
    ("preferredDuringSchedulingIgnoredDuringExecution", Noted),
];

const NODE_SELECTOR: &[Field] = &[("nodeSelectorTerms", In(NODE_SELECTOR_TERM))];

const NODE_SELECTOR_TERM: &[Field] = &[
    ("matchExpressions", Acts),
    ("matchFields", Refused("nodes are chosen by their labels; use matchExpressions")),
];

const TOLERATION: &[Field] = &[
    ("key", Acts),
    ("operator", Acts),
    ("value", Acts),
    ("effect", Acts),
    ("tolerationSeconds", Noted),
];

const POD_SECURITY: &[Field] = &[
    ("runAsUser", Acts),
    ("runAsGroup", Acts),
    ("runAsNonRoot", Acts),
    ("supplementalGroups", Acts),
    ("seccompProfile", In(SECCOMP)),
    ("appArmorProfile", Noted),
    ("fsGroup", Noted),
    ("fsGroupChangePolicy", Noted),
    ("seLinuxChangePolicy", Noted),
    ("seLinuxOptions", Noted),
    ("supplementalGroupsPolicy", Noted),
    ("sysctls", Noted),
    ("windowsOptions", Noted),
];

const SECCOMP: &[Field] =
    &[("type", Acts), ("localhostProfile", Refused("profiles are RuntimeDefault and Unconfined"))];

const CONTAINER: &[Field] = &[
    ("image", Acts),
    ("command", Acts),
    ("args", Acts),
    ("workingDir", Acts),
    ("stdin", Acts),
    ("tty", Acts),
    ("env", In(VARIABLE)),
    ("resources", In(RESOURCES)),
    ("imagePullPolicy", Acts),
    ("volumeMounts", In(VOLUME_MOUNT)),
    ("securityContext", In(CONTAINER_SECURITY)),
    // There is one container, whose name is not used.
    ("name", Acts),
    ("lifecycle", Noted),
    ("livenessProbe", Noted),
    ("ports", Noted),
    ("readinessProbe", Noted),
    ("resizePolicy", Noted),
    ("startupProbe", Noted),
    ("stdinOnce", Noted),
    ("terminationMessagePath", Usual(&["/dev/termination-log"])),
    ("terminationMessagePolicy", Usual(&["File"])),
    ("envFrom", Refused("name each variable under env, with valueFrom")),
    ("restartPolicy", Refused(ONE_PROCESS)),
    ("volumeDevices", Refused(NO_SUCH_VOLUME)),
];

const VARIABLE: &[Field] = &[("name", Acts), ("value", Acts), ("valueFrom", In(VALUE_FROM))];

const VALUE_FROM: &[Field] = &[
    ("secretKeyRef", In(KEY)),
    ("configMapKeyRef", In(KEY)),
    ("fieldRef", Refused(NO_POD_FIELDS)),
    ("resourceFieldRef", Refused(NO_POD_FIELDS)),
    ("fileKeyRef", Refused(NO_POD_FIELDS)),
];

const KEY: &[Field] = &[("name", Acts), ("key", Acts), ("optional", Noted)];

const RESOURCES: &[Field] = &[
    ("limits", In(AMOUNTS)),
    ("requests", In(AMOUNTS)),
    ("claims", Refused("GPUs are asked for as nvidia.com/gpu")),
];

const AMOUNTS: &[Field] = &[
    ("cpu", Acts),
    ("memory", Acts),
    ("nvidia.com/gpu", Acts),
    ("nvidia.com/mig-*", Acts),
    ("ephemeral-storage", Noted),
    ("hugepages-*", Noted),
    ("rdma/*", Noted),
    ("*", Refused("no node has it; there are cpu, memory, nvidia.com/gpu and nvidia.com/mig-…")),
];

const CONTAINER_SECURITY: &[Field] = &[
    ("runAsUser", Acts),
    ("runAsGroup", Acts),
    ("runAsNonRoot", Acts),
    ("allowPrivilegeEscalation", Acts),
    ("privileged", Acts),
    ("readOnlyRootFilesystem", Acts),
    ("capabilities", In(&[("add", Acts), ("drop", Noted)])),
    ("seccompProfile", In(SECCOMP)),
    ("appArmorProfile", Noted),
    ("procMount", Noted),
    ("seLinuxOptions", Noted),
    ("windowsOptions", Noted),
];

const VOLUME: &[Field] = &[
    ("name", Acts),
    ("emptyDir", In(&[("medium", Acts), ("sizeLimit", Acts)])),
    ("hostPath", In(&[("path", Acts), ("type", Noted)])),
    ("nfs", In(&[("server", Acts), ("path", Acts), ("readOnly", Acts)])),
    ("persistentVolumeClaim", In(&[("claimName", Acts), ("readOnly", Acts)])),
    (
        "configMap",
        In(&[
            ("name", Acts),
            ("defaultMode", Noted),
            ("optional", Noted),
            ("items", Refused(WHOLE)),
        ]),
    ),
    (
        "secret",
        In(&[
            ("secretName", Acts),
            ("defaultMode", Noted),
            ("optional", Noted),
            ("items", Refused(WHOLE)),
        ]),
    ),
    ("*", Refused(NO_SUCH_VOLUME)),
];

const VOLUME_MOUNT: &[Field] = &[
    ("name", Acts),
    ("mountPath", Acts),
    ("readOnly", Acts),
    ("subPath", Acts),
    ("mountPropagation", Acts),
    ("recursiveReadOnly", Noted),
    ("subPathExpr", Refused("write the folder as subPath")),
];
