//! Names of images. Owns: when two mean the same, and which ones are quickstarts.

use crate::RunSpec;

/// Images of trainings in the published guides, which every engine has its own stand-in for: a
/// name, and the words after `quickstart-workload` that make it this one.
pub const QUICKSTARTS: [(&str, &[&str]); 4] = [
    ("gcr.io/run-ai-demo/quickstart", &[]),
    ("runai.jfrog.io/demo/quickstart", &[]),
    ("gcr.io/run-ai-demo/quickstart-distributed", &[]),
    ("gcr.io/run-ai-demo/quickstart-hpo", &["hpo"]),
];

/// True if a run on simulated GPUs gets the simulated driver: on request, or by default for the
/// quickstarts. No other run gets it, because its results of computations are wrong.
#[must_use]
pub fn has_simulated_driver(spec: &RunSpec) -> bool {
    let image = plain_name(&spec.image);
    let is_quickstart = QUICKSTARTS.iter().any(|(name, _)| plain_name(name) == image);
    spec.simulated_driver.unwrap_or(is_quickstart)
}

/// The name without digest, tag and default registry: `ubuntu:24.04` is `docker.io/library/ubuntu`.
#[must_use]
pub fn plain_name(name: &str) -> &str {
    let name = name.trim();
    let name = name.split_once('@').map_or(name, |(name, _digest)| name);
    let name = match name.rsplit_once(':') {
        // A colon before a slash belongs to the registry's port.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    let hub = name.strip_prefix("docker.io/").or_else(|| name.strip_prefix("index.docker.io/"));
    let name = hub.unwrap_or(name);
    name.strip_prefix("library/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_digest_and_default_registry_do_not_matter() {
        for name in ["ubuntu", "ubuntu:24.04", "docker.io/library/ubuntu", "ubuntu@sha256:0a"] {
            assert_eq!(plain_name(name), "ubuntu", "{name}");
        }
        assert_eq!(plain_name("localhost:5000/team/x:1"), "localhost:5000/team/x");
    }
}
