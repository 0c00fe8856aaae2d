//! Flags the published documents list and this version does not have. They are known by name, so
//! that a script which uses one learns that it is missing, not that it is misspelt.

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Without a value (or with `=true`).
const V1_SWITCHES: &[&str] = &[
    "allow-privilege-escalation",
    "attach",
    "create-home-dir",
    "dry-run",
    "host-ipc",
    "host-network",
    "inference",
    "jupyter",
    "large-shm",
    "mount-propagation",
    "run-as-user",
    "stdin",
    "tty",
];
/// With a value.
const V1_VALUES: &[&str] = &[
    "add-capability",
    "address",
    "completions",
    "cpu-limit",
    "extended-resource",
    "git-sync",
    "image-pull-policy",
    "memory-limit",
    "mig",
    "mig-profile",
    "nfs-server",
    "node-pools",
    "node-type",
    "parallelism",
    "port",
    "preferred-pod-topology-key",
    "pvc",
    "pvc-exists",
    "pvc-new",
    "required-pod-topology-key",
    "s3",
    "service-type",
    "template",
    "toleration",
    "ttl-after-finish",
    "volume",
];
const V2_SWITCHES: &[&str] = &[
    "allow-privilege-escalation",
    "attach",
    "create-home-dir",
    "dry-run",
    "host-ipc",
    "host-network",
    "image-pull-my-credentials",
    "large-shm",
    "privileged",
    "run-as-non-root",
    "run-as-user",
    "stdin",
    "tty",
];
const V2_VALUES: &[&str] = &[
    "auto-deletion-time-after-completion",
    "capability",
    "compute",
    "configmap-map-volume",
    "cpu-core-limit",
    "cpu-memory-limit",
    "datasource",
    "datavolume",
    "empty-dir-volume",
    "env-my-credentials",
    "env-pod-field-ref",
    "env-secret",
    "exclude-node",
    "existing-pvc",
    "extended-resource",
    "external-url",
    "git-sync",
    "gpu-memory-limit",
    "gpu-portion-limit",
    "host-path",
    "image-pull-policy",
    "new-pvc",
    "nfs",
    "node-pools",
    "node-type",
    "parallelism",
    "pod-running-timeout",
    "port",
    "preferred-pod-topology-key",
    "required-pod-topology-key",
    "run-as-gid",
    "run-as-uid",
    "runs",
    "s3",
    "seccomp-profile",
    "secret-volume",
    "supplemental-groups",
    "template",
    "toleration",
    "user-group-source",
    "wait-for-submit",
];
/// Where flags belong: the path of the command, its switches, its flags with a value.
type Place = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);
/// All of them.
const PLACES: [Place; 3] = [
    (&["submit"], V1_SWITCHES, V1_VALUES),
    (&["training", "submit"], V2_SWITCHES, V2_VALUES),
    (&["workspace", "submit"], V2_SWITCHES, V2_VALUES),
];

/// Adds the flags to the tree, hidden.
#[must_use]
pub(crate) fn add_to(tree: Command) -> Command {
    PLACES.into_iter().fold(tree, at)
}

fn at(command: Command, (path, switches, values): Place) -> Command {
    let Some((word, rest)) = path.split_first() else {
        let hidden = |name: &&'static str| Arg::new(*name).long(*name).hide(true);
        let switches = switches.iter().map(|name| hidden(name).action(ArgAction::SetTrue));
        let values = values.iter().map(|name| {
            let arg = hidden(name).action(ArgAction::Append).allow_hyphen_values(true);
            let arg = arg.value_parser(ValueParser::os_string());
            if *name == "volume" { arg.short('v') } else { arg }
        });
        return command.args(switches).args(values);
    };
    command.mut_subcommand(*word, |inner| at(inner, (rest, switches, values)))
}

/// Refuses a command line that uses one of them.
///
/// # Errors
/// Names the flag.
pub(crate) fn refuse(tree: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    for (path, switches, values) in PLACES {
        let mut at = Some(matches);
        for word in path {
            at = at.and_then(|matches| matches.subcommand_matches(word));
        }
        let Some(at) = at else { continue };
        let typed = |name: &&&str| at.value_source(name) == Some(ValueSource::CommandLine);
        if let Some(name) = switches.iter().chain(values).find(typed) {
            let text = format!("--{name} is not supported yet; leave it out");
            return Err(super::command_of(tree, matches)
                .clone()
                .error(ErrorKind::UnknownArgument, text));
        }
    }
    Ok(())
}
