//! Options of the simulated driver that a workload can choose. Owns: which values are allowed. Does
//! not know about: what the driver does with them.

use std::collections::BTreeMap;

use units::shown;

use super::Invalid;
use crate::SIMULATED_DRIVER_LABEL;

/// Variables for the version of the driver and for its faults, separated by commas. The driver
/// reads them.
const VERSION: &str = "ELASTANE_SIMULATED_VERSION";
const FAULTS: &str = "ELASTANE_SIMULATED_FAULTS";

const VERSIONS: [&str; 7] = ["470", "525", "535", "550", "570", "580", "590"];
const XIDS: [&str; 4] = ["xid-13", "xid-31", "xid-48", "xid-79"];

pub(super) fn check_label(labels: &BTreeMap<String, String>) -> Result<(), Invalid> {
    match labels.get(SIMULATED_DRIVER_LABEL).map(String::as_str) {
        None | Some("true" | "false") => Ok(()),
        Some(other) => {
            let text = format!(
                "the label {SIMULATED_DRIVER_LABEL} cannot be `{}`; write true or false, or leave \
                 it out",
                shown(other)
            );
            Err(Invalid::new("labels", text))
        }
    }
}

pub(super) fn check_environment(env: &BTreeMap<String, String>) -> Result<(), Invalid> {
    let invalid = |text| Err(Invalid::new("environment", text));
    let given = |name: &str| env.get(name).map(String::as_str).filter(|value| !value.is_empty());
    if let Some(version) = given(VERSION).filter(|version| !VERSIONS.contains(version)) {
        let (version, known) = (shown(version), VERSIONS.join(", "));
        return invalid(format!("{VERSION} cannot be `{version}`; {known} are known"));
    }
    let mut faults = given(FAULTS).into_iter().flat_map(|all| all.split(','));
    match faults.find(|fault| !fault.is_empty() && !is_fault(fault)) {
        None => Ok(()),
        Some(fault) => invalid(format!(
            "{FAULTS} has the unknown fault `{}`; use lost, missing=FUNCTION, memory-after=NUMBER, \
             slow-ms=NUMBER, {}=NUMBER, separated by commas",
            shown(fault),
            XIDS.join("=NUMBER, ")
        )),
    }
}

fn is_fault(word: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    match word.split_once('=') {
        None => word == "lost",
        Some(("missing", function)) => function.starts_with("cu"),
        Some((name, value)) => {
            (["memory-after", "slow-ms"].contains(&name) || XIDS.contains(&name))
                && is_number(value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, value: &str) -> Result<(), String> {
        let env = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        check_environment(&env).map_err(|error| error.to_string())
    }

    #[test]
    fn known_versions_and_faults_are_allowed() {
        for version in ["", "470", "590"] {
            assert_eq!(checked(VERSION, version), Ok(()), "{version}");
        }
        for faults in ["", "lost", "missing=cuMemCreate,memory-after=3", "xid-31=0,slow-ms=50,"] {
            assert_eq!(checked(FAULTS, faults), Ok(()), "{faults}");
        }
        assert_eq!(checked("OTHER", "lose"), Ok(()));
    }

    #[test]
    fn others_are_refused_with_what_is_allowed() {
        let why = checked(VERSION, "535.54").expect_err("no version");
        assert!(why.contains("cannot be `535.54`; 470, 525,"), "{why}");
        for fault in ["lose", "memory-after=x", "xid-1=2", "missing=free", "slow-ms=-1", "lost=1"] {
            let why = checked(FAULTS, &format!("lost,{fault}")).expect_err("no fault");
            assert!(why.contains(fault) && why.contains("xid-79=NUMBER"), "{why}");
        }
    }

    #[test]
    fn the_label_is_true_or_false() {
        let checked = |value: &str| {
            let labels = BTreeMap::from([(SIMULATED_DRIVER_LABEL.to_owned(), value.to_owned())]);
            check_label(&labels).map_err(|error| error.to_string())
        };
        assert_eq!((checked("true"), checked("false")), (Ok(()), Ok(())));
        assert!(checked("yes").expect_err("no value").contains("write true or false"));
    }
}
