//! Whom claims are about: name and groups.

use serde_json::{Map, Value};

use crate::{Error, Settings};

/// Most groups of a person.
const GROUPS_MAX: usize = 200;
/// Longest name of a group, in bytes.
const GROUP_BYTES_MAX: usize = 200;

/// Somebody a provider vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// What the provider calls the account; never given to another.
    pub subject: String,
    /// The e-mail address.
    pub name: String,
    /// Groups, each once.
    pub groups: Vec<String>,
}

impl Person {
    /// Reads a person from claims that are believed.
    pub(crate) fn of(claims: &Map<String, Value>, settings: &Settings) -> Result<Self, Error> {
        let nobody = |why: String| Err(Error::Nobody(why));
        let claim = &settings.user_claim;
        let Some(name) = found(claims, claim).and_then(Value::as_str) else {
            return nobody(format!(
                "there is no claim `{claim}`; name another with --oidc-user-claim, or ask for it \
                 with --oidc-scopes"
            ));
        };
        let verified = claims.get("email_verified").filter(|_| claim == "email");
        if verified.is_some_and(|yes| *yes == false || *yes == "false") {
            return nobody(format!("it has not verified that {} is theirs", units::shown(name)));
        }
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        let groups = groups(found(claims, &settings.groups_claim)).map_err(Error::Nobody)?;
        Ok(Self { subject: subject.to_owned(), name: name.to_owned(), groups })
    }

    /// Whether claims leave something open that may be told elsewhere.
    pub(crate) fn is_partial(claims: &Map<String, Value>, settings: &Settings) -> bool {
        let missing = |claim: &str| found(claims, claim).is_none();
        missing(&settings.user_claim) || missing(&settings.groups_claim)
    }
}

/// A claim by its name, else by the path that its dots make.
fn found<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        found(claims.get(first)?.as_object()?, rest)
    })
}

fn groups(claim: Option<&Value>) -> Result<Vec<String>, String> {
    let all: Vec<&Value> = match claim {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
    };
    if all.len() > GROUPS_MAX {
        return Err(format!(
            "it names {} groups; have it send those that matter here, at most {GROUPS_MAX}",
            all.len()
        ));
    }
    let mut groups = Vec::new();
    for group in all {
        let name = group.as_str().ok_or("a group is no text")?;
        if name.is_empty() || name.len() > GROUP_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(format!("`{}` is no name of a group", units::shown(name)));
        }
        groups.push(name.to_owned());
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn person(claims: Value, groups_claim: &str) -> Result<Person, Error> {
        let settings = Settings::new("https://x.org", "c");
        let settings = Settings { groups_claim: groups_claim.to_owned(), ..settings };
        Person::of(claims.as_object().unwrap(), &settings)
    }

    #[test]
    fn groups_are_a_list_or_one_by_name_or_path() {
        for (claims, claim, groups) in [
            (json!({"groups": ["b", "a", "b"]}), "groups", vec!["a", "b"]),
            (json!({"groups": "a"}), "groups", vec!["a"]),
            (json!({}), "groups", vec![]),
            (json!({"realm": {"roles": ["a"]}}), "realm.roles", vec!["a"]),
            (json!({"https://x.org/groups": ["a"]}), "https://x.org/groups", vec!["a"]),
        ] {
            let mut claims = claims;
            claims["email"] = json!("ann@x.org");
            claims["sub"] = json!("7");
            assert_eq!(person(claims, claim).unwrap().groups, groups);
        }
    }

    #[test]
    fn who_is_not_told_is_nobody() {
        let many: Vec<_> = (0..201).map(|n| n.to_string()).collect();
        let ann = "ann@x.org";
        for (claims, why) in [
            (json!({}), "no claim `email`; name another with --oidc-user-claim"),
            (json!({"email": 7}), "no claim `email`"),
            (json!({"email": ann, "email_verified": false}), "has not verified that ann@x.org"),
            (json!({"email": ann, "email_verified": "false"}), "has not verified"),
            (json!({"email": ann, "groups": [7]}), "a group is no text"),
            (json!({"email": ann, "groups": [""]}), "is no name of a group"),
            (json!({"email": ann, "groups": ["a\nb"]}), "`a\\nb` is no name"),
            (json!({"email": ann, "groups": many}), "names 201 groups"),
        ] {
            let said = person(claims, "groups").unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
