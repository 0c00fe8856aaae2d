//! Variables that look like settings and are none. Owns: the known names beginning with
//! `ELASTANE_`, and the warning about other ones.

use cli_kit::message::print_always;
use cli_kit::suggest;

use super::{ALL, Origins, Setting, VARIABLE_PREFIX};

/// Names, without the prefix, of variables that are not settings: those of clients, and those in
/// the environment of workloads, in which a server may be started as well.
const OTHERS: [&str; 9] = [
    "CA",
    "CHANNEL",
    "CHECKPOINT_DIR",
    "DEVICES",
    "MOUNTS_DIR",
    "RUN",
    "SECRETS_DIR",
    "SIMULATED_GPUS",
    "URL",
];

/// Warns about variables of this process that were probably meant as settings.
pub(crate) fn warn() {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    warnings(names).iter().for_each(|text| print_always(&format!("warning: {text}")));
}

/// Warnings about the names that were probably meant as settings.
fn warnings(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<_> = names.filter_map(|name| warning(&name)).collect();
    all.sort_unstable();
    all
}

fn warning(name: &str) -> Option<String> {
    let own = name.strip_prefix(VARIABLE_PREFIX)?;
    let key = own.to_ascii_lowercase();
    let setting = ALL.iter().find(|setting| setting.key == key);
    match setting {
        Some(setting) if setting.origins == Origins::Flag => {
            let flag = setting.flag;
            return Some(format!("the variable {name} has no effect; --{flag} is a flag only"));
        }
        Some(setting) if setting.variable().as_deref() == Some(name) => return None,
        _ if OTHERS.contains(&own) => return None,
        _ => {}
    }
    let has_variable = |setting: &&Setting| setting.origins != Origins::Flag;
    let keys = ALL.iter().filter(has_variable).map(|setting| setting.key);
    let hint = match suggest::nearest(&key, keys) {
        Some(near) => {
            format!("did you mean `{VARIABLE_PREFIX}{}`?", near.to_ascii_uppercase())
        }
        None => "`elastane config show` lists the settings".to_owned(),
    };
    let name = units::shown(name);
    Some(format!("the variable {name} has no effect, since there is no such setting; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_no_setting_is_warned_of_with_the_nearest() {
        let none = "has no effect, since there is no such setting;";
        for (name, said) in [
            ("ELASTANE_LISTN", format!("{none} did you mean `ELASTANE_LISTEN`?")),
            ("ELASTANE_NODE", format!("{none} did you mean `ELASTANE_NODES`?")),
            ("ELASTANE_TLS_CRT", format!("{none} did you mean `ELASTANE_TLS_CERT`?")),
            ("ELASTANE_REQUIRE_ISOLATON", format!("{none} did you mean `ELASTANE_REQUIRE_ISO")),
            ("ELASTANE_nodes", format!("{none} did you mean `ELASTANE_NODES`?")),
            ("ELASTANE_COLOUR_SCHEME", format!("{none} `elastane config show` lists")),
            ("ELASTANE_REPLACE_NODES", "has no effect; --replace-nodes is a flag only".to_owned()),
        ] {
            let warnings = warnings([name.to_owned()].into_iter());
            let said = format!("the variable {name} {said}");
            assert!(warnings.len() == 1 && warnings[0].starts_with(&said), "{warnings:?}");
        }
    }

    #[test]
    fn variables_that_mean_something_and_those_of_others_are_not() {
        let settings = ALL.iter().filter_map(Setting::variable);
        let others = OTHERS.iter().map(|name| format!("{VARIABLE_PREFIX}{name}"));
        let foreign = ["HOME", "ELASTANE", "MY_ELASTANE_NODES"].map(str::to_owned);
        assert_eq!(warnings(settings.chain(others).chain(foreign)), Vec::<String>::new());
    }
}
