//! Paths of the API server. Owns: where kinds and objects are, and what a list is limited to. Does
//! not know about: requests.

use crate::error::{Call, Rule, Verb};
use crate::types::Resource;

/// Objects of a kind that a list or a watch is limited to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Namespace; none: all.
    pub namespace: Option<String>,
    /// Selector by labels, empty for all.
    pub labels: String,
    /// Selector by fields, empty for all.
    pub fields: String,
}

/// A kind, as paths and roles name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) plural: &'a str,
}

/// Questions about rights.
pub(crate) const REVIEWS: Kind<'static> =
    Kind { group: "authorization.k8s.io", version: "v1", plural: "selfsubjectaccessreviews" };

impl Kind<'static> {
    pub(crate) const fn of<R: Resource>() -> Self {
        Self { group: R::GROUP, version: R::VERSION, plural: R::PLURAL }
    }
}

/// An object, or all of a kind, as a path names it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Target<'a> {
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) subresource: Option<&'a str>,
}

impl Kind<'_> {
    /// The folder of its group and version.
    pub(crate) fn root(self) -> String {
        match self.group {
            "" => format!("/api/{}", encoded(self.version)),
            group => format!("/apis/{}/{}", encoded(group), encoded(self.version)),
        }
    }

    /// `true` for a right to objects of this kind.
    pub(crate) fn is_of(self, rule: &Rule) -> bool {
        rule.group == self.group && rule.resource == self.plural
    }

    pub(crate) fn path(self, target: Target<'_>) -> String {
        let mut path = self.root();
        let folder = target.namespace.map(|namespace| ["namespaces", namespace]);
        let parts = folder.into_iter().flatten().chain([self.plural]);
        for part in parts.chain(target.name).chain(target.subresource) {
            path.push('/');
            path.push_str(&encoded(part));
        }
        path
    }

    pub(crate) fn call(self, verb: Verb, target: Target<'_>) -> Call {
        let resource = match target.subresource {
            Some(subresource) => format!("{}/{subresource}", self.plural),
            None => self.plural.to_owned(),
        };
        let namespace = target.namespace.map(str::to_owned);
        let rule = Rule { verb, group: self.group.to_owned(), resource, namespace };
        Call { rule, name: target.name.map(str::to_owned) }
    }
}

/// A path with parameters.
pub(crate) fn with_parameters(path: String, parameters: &[(&str, &str)]) -> String {
    let mut all = path;
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    for ((name, value), sign) in given.zip(std::iter::once('?').chain(std::iter::repeat('&'))) {
        all.push(sign);
        all.push_str(name);
        all.push('=');
        all.push_str(&encoded(value));
    }
    all
}

/// A part of a path or a query: anything but unreserved characters is escaped, so that no name
/// leads to another object.
fn encoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    // A segment of dots would be resolved.
    if text == "." || text == ".." { text.replace('.', "%2E") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Node, Pod};

    #[test]
    fn no_name_leads_to_another_object() {
        let pod = |name| Target { namespace: Some("a"), name: Some(name), ..Target::default() };
        let path = |name| Kind::of::<Pod>().path(pod(name));
        assert_eq!(path("p-0"), "/api/v1/namespaces/a/pods/p-0");
        assert_eq!(path("../x?y#z"), "/api/v1/namespaces/a/pods/..%2Fx%3Fy%23z");
        assert_eq!(path(".."), "/api/v1/namespaces/a/pods/%2E%2E");
        let groups = Kind { group: "apps", version: "v1", plural: "deployments" };
        assert_eq!(groups.path(Target::default()), "/apis/apps/v1/deployments");
    }

    #[test]
    fn parameters_without_a_value_are_left_out() {
        let path = Kind::of::<Node>().path(Target::default());
        let parameters = [("limit", ""), ("labelSelector", "a=b,!c"), ("continue", "x==")];
        let path = with_parameters(path, &parameters);
        assert_eq!(path, "/api/v1/nodes?labelSelector=a%3Db%2C%21c&continue=x%3D%3D");
    }

    #[test]
    fn a_call_and_its_rule_are_named() {
        let status = Target { namespace: Some("a"), name: Some("p"), subresource: Some("status") };
        let call = Kind::of::<Pod>().call(Verb::Patch, status);
        assert_eq!(call.to_string(), "patch pods/status a/p");
        let rule = r#"apiGroups [""], resources ["pods/status"], verbs ["patch"], in a Role of "#;
        assert!(call.rule.to_string().starts_with(rule), "{}", call.rule);
        let all = Kind { group: "apps", version: "v1", plural: "deployments" };
        assert_eq!(all.call(Verb::List, Target::default()).to_string(), "list deployments.apps");
    }
}
