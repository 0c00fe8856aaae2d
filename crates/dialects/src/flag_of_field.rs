//! Flags of the fields of a request. Owns: which flag of each dialect sets a field, so that an
//! error about a field names what was typed. Does not know about: the values.

use crate::intent::Dialect;

/// Fields with the flag of the second and of the first dialect; empty where that dialect has none.
/// A field stands for those within it, too.
const FLAGS: [(&str, &str, &str); 67] = [
    ("name", "", "name"),
    ("nodePools", "node-pools", "node-pools"),
    ("spec.annotations", "annotation", "annotation"),
    (
        "spec.autoDeletionTimeAfterCompletionSeconds",
        "auto-deletion-time-after-completion",
        "ttl-after-finish",
    ),
    ("spec.autoscaling.activationReplicas", "activation-replicas", ""),
    ("spec.autoscaling.concurrencyHardLimit", "concurrency-hard-limit", ""),
    ("spec.autoscaling.initialReplicas", "initial-replicas", ""),
    ("spec.autoscaling.maxReplicas", "max-replicas", "replicas"),
    ("spec.autoscaling.metric", "metric", ""),
    ("spec.autoscaling.metricThreshold", "metric-threshold", ""),
    ("spec.autoscaling.metricThresholdPercentage", "metric-threshold-percentage", ""),
    ("spec.autoscaling.minReplicas", "min-replicas", "replicas"),
    ("spec.autoscaling.scaleDownDelaySeconds", "scale-down-delay-seconds", ""),
    ("spec.autoscaling.scaleToZeroRetentionSeconds", "scale-to-zero-retention-seconds", ""),
    ("spec.backoffLimit", "backoff-limit", "backoff-limit"),
    ("spec.completions", "runs", "completions"),
    ("spec.compute.cpuCoreLimit", "cpu-core-limit", "cpu-limit"),
    ("spec.compute.cpuCoreRequest", "cpu-core-request", "cpu"),
    ("spec.compute.cpuMemoryLimit", "cpu-memory-limit", "memory-limit"),
    ("spec.compute.cpuMemoryRequest", "cpu-memory-request", "memory"),
    ("spec.compute.extendedResources", "extended-resource", "mig-profile"),
    ("spec.compute.gpuDevicesRequest", "gpu-devices-request", "gpu"),
    ("spec.compute.gpuMemoryLimit", "gpu-memory-limit", "gpu-memory-limit"),
    ("spec.compute.gpuMemoryRequest", "gpu-memory-request", "gpu-memory"),
    ("spec.compute.gpuPortionLimit", "gpu-portion-limit", "gpu-portion-limit"),
    ("spec.compute.gpuPortionRequest", "gpu-portion-request", "gpu"),
    ("spec.compute.gpuRequestType", "gpu-request-type", ""),
    ("spec.createHomeDir", "create-home-dir", "create-home-dir"),
    ("spec.elastic", "elastic", "elastic"),
    ("spec.environmentVariables", "environment-variable", "environment"),
    ("spec.exposedUrls", "external-url", ""),
    ("spec.image", "image", "image"),
    ("spec.imagePullPolicy", "image-pull-policy", "image-pull-policy"),
    ("spec.labels", "label", "label"),
    ("spec.maxReplicas", "max-replicas", ""),
    ("spec.minReplicas", "min-replicas", ""),
    ("spec.nodePools", "node-pools", "node-pools"),
    ("spec.nodeType", "node-type", "node-type"),
    ("spec.numWorkers", "workers", ""),
    ("spec.parallelism", "parallelism", "parallelism"),
    ("spec.ports", "port", "port"),
    ("spec.preemptibility", "preemptibility", ""),
    ("spec.preemptionDelaySeconds", "preemption-delay", "preemption-delay"),
    ("spec.priorityClass", "priority", ""),
    ("spec.restartPolicy", "restart-policy", ""),
    ("spec.schedulingGates", "scheduling-gate", "scheduling-gate"),
    ("spec.security.capabilities", "capability", "add-capability"),
    ("spec.security.hostIpc", "host-ipc", "host-ipc"),
    ("spec.security.hostNetwork", "host-network", "host-network"),
    ("spec.security.runAsGid", "run-as-gid", ""),
    ("spec.security.runAsUid", "run-as-uid", ""),
    ("spec.security.seccompProfileType", "seccomp-profile", ""),
    ("spec.security.supplementalGroups", "supplemental-groups", ""),
    ("spec.security.uidGidSource", "user-group-source", ""),
    (
        "spec.servingConfiguration.initializationTimeoutSeconds",
        "initialization-timeout-seconds",
        "",
    ),
    ("spec.servingPort", "serving-port", ""),
    ("spec.storage.configMapVolume", "configmap-map-volume", "configmap-map-volume"),
    ("spec.storage.emptyDirVolume", "empty-dir-volume", "empty-dir-volume"),
    ("spec.storage.git", "git-sync", "git-sync"),
    ("spec.storage.hostPath", "host-path", "host-path"),
    ("spec.storage.nfs", "nfs", "nfs"),
    ("spec.storage.s3", "s3", "s3"),
    ("spec.storage.secretVolume", "secret-volume", ""),
    ("spec.terminationGracePeriodSeconds", "termination-grace-period", "termination-grace-period"),
    ("spec.timeLimitSeconds", "time-limit", "time-limit"),
    ("spec.tolerations", "toleration", "toleration"),
    ("spec.workingDir", "working-dir", "working-dir"),
];

/// The flag of a dialect that sets a field of a request; that of a master is its own.
#[must_use]
pub fn flag_of_field(field: &str, dialect: Dialect) -> Option<String> {
    let (field, prefix) = match field.strip_prefix("masterSpec.") {
        Some(rest) => (format!("spec.{rest}"), "master-"),
        None => (field.to_owned(), ""),
    };
    let (_, second, first) =
        FLAGS.iter().find(|(known, ..)| api_types::is_within(&field, known))?;
    let flag = if dialect == Dialect::V2 { second } else { first };
    (!flag.is_empty()).then(|| format!("--{prefix}{flag}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use expect_test::expect_file;

    use super::*;

    /// Long flags of a command.
    fn flags_of(words: &[&str]) -> Vec<String> {
        let mut command = &crate::tree();
        for word in words {
            command = command.find_subcommand(word).unwrap();
        }
        command.get_arguments().filter_map(|one| one.get_long()).map(str::to_owned).collect()
    }

    /// Flags of the submissions of the first and of the second dialect.
    fn flags_of_submissions() -> (BTreeSet<String>, BTreeSet<String>) {
        let second = [
            &["training", "submit"][..],
            &["training", "pytorch", "submit"],
            &["workspace", "submit"],
            &["inference", "submit"],
        ];
        let first = flags_of(&["submit"]).into_iter().collect();
        (first, second.into_iter().flat_map(flags_of).collect())
    }

    /// A new flag is either in the table, or here because it sets no field by itself.
    #[test]
    fn each_flag_without_a_field_is_known() {
        let (first, second) = flags_of_submissions();
        let without =
            |flags: BTreeSet<String>,
             of: fn(&(&str, &'static str, &'static str)) -> &'static str| {
                let known: BTreeSet<&str> = FLAGS.iter().map(of).collect();
                let masters =
                    |flag: &str| flag.strip_prefix("master-").is_some_and(|of| known.contains(of));
                let rest =
                    flags.into_iter().filter(|flag| !known.contains(&**flag) && !masters(flag));
                rest.collect::<Vec<_>>().join("\n")
            };
        let first = without(first, |row| row.2);
        let second = without(second, |row| row.1);
        expect_file!["tests/flags_without_a_field.txt"]
            .assert_eq(&format!("# first dialect\n{first}\n\n# second dialect\n{second}\n"));
    }

    #[test]
    fn each_flag_is_one_of_its_dialect() {
        let (first, second) = flags_of_submissions();
        for (field, in_second, in_first) in FLAGS {
            for (flag, known) in [(in_second, &second), (in_first, &first)] {
                let is_known = flag.is_empty() || known.iter().any(|one| one == flag);
                assert!(is_known, "{field}: --{flag}");
            }
        }
        assert!(FLAGS.is_sorted_by_key(|(field, ..)| *field));
    }

    #[test]
    fn an_error_about_a_field_names_the_flag() {
        for (field, second, first) in [
            ("spec.servingPort.container", Some("--serving-port"), None),
            ("spec.compute.gpuDevicesRequest", Some("--gpu-devices-request"), Some("--gpu")),
            (
                "spec.environmentVariables[2].name",
                Some("--environment-variable"),
                Some("--environment"),
            ),
            ("spec.autoscaling.metricThreshold", Some("--metric-threshold"), None),
            (
                "masterSpec.compute.cpuCoreRequest",
                Some("--master-cpu-core-request"),
                Some("--master-cpu"),
            ),
            ("spec.imagery", None, None),
            ("clusterId", None, None),
        ] {
            assert_eq!(flag_of_field(field, Dialect::V2).as_deref(), second, "{field}");
            assert_eq!(flag_of_field(field, Dialect::V1).as_deref(), first, "{field}");
        }
    }
}
