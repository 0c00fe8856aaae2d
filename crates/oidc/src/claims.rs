//! The user in the claims of a token: name and groups.

use serde_json::{Map, Value};

use crate::{Error, Settings};

/// Most groups of a person.
const GROUPS_MAX: usize = 200;
/// Longest name of a group, in bytes.
const GROUP_BYTES_MAX: usize = 200;

/// A user that a provider has authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Id of the account at the provider; never given to another.
    pub subject: String,
    /// The e-mail address.
    pub name: String,
    /// True if the provider reports that it verified this address, or is trusted to have done so.
    pub is_verified: bool,
    /// Groups, each once.
    pub groups: Vec<String>,
}

impl Person {
    /// Reads a person from verified claims.
    pub(crate) fn of(claims: &Map<String, Value>, settings: &Settings) -> Result<Self, Error> {
        let unknown = |why: String| Err(Error::UnknownUser(why));
        let claim = &settings.user_claim;
        let Some(name) = found(claims, claim).and_then(Value::as_str) else {
            return unknown(format!(
                "there is no claim `{claim}`; name another with --oidc-user-claim, or ask for it \
                 with --oidc-scopes"
            ));
        };
        let is_verified = is_verified(claims, name).unwrap_or(settings.trust_email);
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        let groups = groups(found(claims, &settings.groups_claim)).map_err(Error::UnknownUser)?;
        let (subject, name) = (subject.to_owned(), name.to_owned());
        Ok(Self { subject, name, is_verified, groups })
    }

    /// True if claims lack something that the userinfo endpoint may have.
    pub(crate) fn is_partial(claims: &Map<String, Value>, settings: &Settings) -> bool {
        let missing = |claim: &str| found(claims, claim).is_none();
        let unverified = !settings.trust_email && missing("email_verified");
        missing(&settings.user_claim) || missing(&settings.groups_claim) || unverified
    }
}

/// True if the provider verified that the address `name` belongs to the account; `None` if it does
/// not report it. `email_verified` is about the claim `email` and about no other.
fn is_verified(claims: &Map<String, Value>, name: &str) -> Option<bool> {
    let email = claims.get("email").and_then(Value::as_str);
    if !email.is_some_and(|email| email.eq_ignore_ascii_case(name)) {
        return None;
    }
    match claims.get("email_verified")? {
        Value::Bool(yes) => Some(*yes),
        // Some providers write it as a text. Any other value counts as false.
        other => Some(*other == "true"),
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
        let name = group.as_str().ok_or("a group is not a string")?;
        if name.is_empty() || name.len() > GROUP_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(format!("`{}` is not a valid name of a group", units::shown(name)));
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
    fn who_is_not_told_is_unknown() {
        let many: Vec<_> = (0..201).map(|n| n.to_string()).collect();
        let ann = "ann@x.org";
        for (claims, why) in [
            (json!({}), "no claim `email`; name another with --oidc-user-claim"),
            (json!({"email": 7}), "no claim `email`"),
            (json!({"email": ann, "groups": [7]}), "a group is not a string"),
            (json!({"email": ann, "groups": [""]}), "is not a valid name of a group"),
            (json!({"email": ann, "groups": ["a\nb"]}), "`a\\nb` is not a valid name"),
            (json!({"email": ann, "groups": many}), "names 201 groups"),
        ] {
            let said = person(claims, "groups").unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn an_address_is_verified_only_if_the_provider_says_so_of_that_address() {
        let ann = "ann@x.org";
        for (claims, claim, trusted, verified) in [
            (json!({"email_verified": true}), "email", false, true),
            (json!({"email_verified": "true"}), "email", false, true),
            (json!({"email_verified": false}), "email", false, false),
            (json!({"email_verified": "false"}), "email", false, false),
            (json!({"email_verified": 1}), "email", false, false),
            (json!({"email_verified": null}), "email", true, false),
            (json!({}), "email", false, false),
            (json!({}), "email", true, true),
            (json!({"email_verified": false}), "email", true, false),
            // Another claim is verified only if it is the same address.
            (json!({"upn": ann, "email_verified": true}), "upn", false, true),
            (json!({"upn": "bob@x.org", "email_verified": true}), "upn", false, false),
            (json!({"upn": "bob@x.org"}), "upn", true, true),
        ] {
            let settings = Settings::new("https://x.org", "c");
            let user_claim = claim.to_owned();
            let settings = Settings { user_claim, trust_email: trusted, ..settings };
            let mut all = json!({"email": "Ann@x.org", "sub": "7"});
            all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
            let person = Person::of(all.as_object().unwrap(), &settings).unwrap();
            assert_eq!(person.is_verified, verified, "{all} by {claim}, trusted: {trusted}");
        }
    }
}
