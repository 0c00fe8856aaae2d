//! Part of a policy for one kind of pod, read from the stored form. Owns: the published form of
//! defaults and imposed assets. Does not know about: other policies.

use api_types::{CreationRequest, PolicyBody, WorkloadSpec};
use convert::{self, wire};
use http_kit::{ApiError, read_part};
use serde_json::{Map, Value};
use spec::WorkloadKind;
use view::Scope;

use super::fields::{FieldType, Items, PolicyTarget};
use super::rules::{CheckedSpec, Rules, dotted};
use crate::Context;

/// Part of a policy for all pods of a workload, or for the workers or the master of one.
pub(super) struct PolicySection {
    pub(super) who: PolicyTarget,
    /// Default values, for fields that a submission leaves out.
    pub(super) defaults: WorkloadSpec,
    /// Default values for fields that items of lists leave out, by the path of the list.
    attributes: Vec<(&'static str, Map<String, Value>)>,
    /// Values that every workload gets, whatever it requests.
    pub(super) imposed: WorkloadSpec,
    /// Assets that the imposed values are from, `<kind>/<id>`.
    pub(super) assets: Vec<String>,
    pub(super) rules: Rules,
}

impl PolicySection {
    /// All parts of a policy of a scope.
    pub(super) fn all(
        state: &Context,
        kind: WorkloadKind,
        scope: Scope,
        body: &PolicyBody,
    ) -> Result<Vec<Self>, ApiError> {
        let read = |who: &PolicyTarget| Self::read(state, (kind, *who), scope, body);
        PolicyTarget::of(kind).iter().map(read).collect()
    }

    fn read(
        state: &Context,
        (kind, who): (WorkloadKind, PolicyTarget),
        scope: Scope,
        body: &PolicyBody,
    ) -> Result<Self, ApiError> {
        let (at, ids) = of_part(who, "policy.imposedAssets", body.imposed_assets.as_ref())?;
        let ids = read_part::<Option<Vec<String>>>(&at, ids)?.unwrap_or_default();
        let (imposed, assets) = (state.imposed)(state, kind, scope, &at, ids)?;
        let (at, rules) = of_part(who, "policy.rules", body.rules.as_ref())?;
        let rules = Rules::read(who, &at, &rules)?;
        let (at, mut defaults) = of_part(who, "policy.defaults", body.defaults.as_ref())?;
        let mut attributes = Vec::new();
        for (path, holds) in who.fields() {
            if let FieldType::Items(items) = holds {
                let of_items = take_instances(&at, path, items, &mut defaults)?;
                attributes.extend(of_items.map(|of_items| (*path, of_items)));
            }
        }
        let defaults = read_part::<Option<WorkloadSpec>>(&at, defaults)?.unwrap_or_default();
        Ok(Self { who, defaults, attributes, imposed, assets, rules })
    }

    /// Specification of an empty submission under this policy alone.
    pub(super) fn values(&self) -> Result<WorkloadSpec, ApiError> {
        let mut values = self.imposed.clone().over(self.defaults.clone());
        self.complete(&mut values)?;
        Ok(values)
    }

    /// Fills what the items of lists leave out, and what follows from other values.
    pub(super) fn complete(&self, spec: &mut WorkloadSpec) -> Result<(), ApiError> {
        let mut whole = wire(spec);
        for (path, attributes) in &self.attributes {
            let list = whole.pointer_mut(&format!("/{}", path.replace('.', "/")));
            let items = list.and_then(Value::as_array_mut).into_iter().flatten();
            for item in items.filter_map(Value::as_object_mut) {
                for (name, value) in attributes {
                    item.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        let derived = self.rules.defaults_in(&whole);
        if self.attributes.is_empty() && derived.is_empty() {
            return Ok(());
        }
        for (path, value) in derived {
            let at = path.split('.').fold(&mut whole, |value, name| &mut value[name]);
            *at = value;
        }
        *spec = read_part(&self.at(), whole)?;
        Ok(())
    }

    /// Path of its defaults.
    pub(super) fn at(&self) -> String {
        dotted("policy.defaults", self.who.part().unwrap_or_default())
    }

    /// Defaults of another policy, or of its own, that break its rules; `around` has the values
    /// without those defaults.
    pub(super) fn broken_by(
        &self,
        other: &Self,
        around: &WorkloadSpec,
    ) -> Result<Vec<String>, ApiError> {
        let values = other.values()?;
        let means = wire(&values.clone().over(around.clone()));
        let left_alone = wire(around);
        let judged = CheckedSpec { said: wire(&values), means, left_alone, not_all: true };
        let at = self.at();
        Ok(self.rules.broken_by(&judged).into_iter().map(|why| format!("{at}.{why}")).collect())
    }

    /// Refuses defaults that can never be right.
    pub(super) fn check(&self, kind: WorkloadKind) -> Result<(), ApiError> {
        let at = self.at();
        let named = |error: ApiError| error.moved(self.who.spec(), &at).moved("spec", &at);
        if let Some(field) = self.defaults.all_not_yet().first() {
            return Err(ApiError::not_yet(format!("{at}.{field}")));
        }
        if self.defaults.assets.is_some() {
            let why = "a policy imposes assets: name data sources in imposedAssets";
            return Err(ApiError::field(&format!("{at}.assets"), why));
        }
        // Attributes may supply missing fields of an item.
        let mut defaults = self.defaults.clone();
        self.complete(&mut defaults)?;
        convert::check_spec(&defaults).map_err(named)?;
        let mut request = CreationRequest::default();
        match self.who {
            PolicyTarget::Master => {
                request.spec = Some(WorkloadSpec::default());
                request.master_spec = Some(defaults);
            }
            _ => request.spec = Some(defaults),
        }
        convert::fill_master(&mut request).map_err(named)?;
        convert::check_kind(kind, &request).map_err(named)
    }
}

/// A part of a document, and its path.
fn of_part(
    who: PolicyTarget,
    at: &str,
    whole: Option<&Value>,
) -> Result<(String, Value), ApiError> {
    let whole = whole.unwrap_or(&Value::Null);
    let Some(part) = who.part() else { return Ok((at.to_owned(), whole.clone())) };
    let parts: Option<Map<String, Value>> = read_part(at, whole.clone())?;
    let mut parts = parts.unwrap_or_default();
    if let Some(other) = parts.keys().find(|name| !matches!(name.as_str(), "worker" | "master")) {
        let why = "of distributed workloads there are the parts `worker` and `master`";
        return Err(ApiError::field(&format!("{at}.{}", units::shown(other)), why));
    }
    Ok((format!("{at}.{part}"), parts.remove(part).unwrap_or_default()))
}

/// Puts the items of a list in place of the object that they stand in. Answers the other part of
/// that.
fn take_instances(
    at: &str,
    path: &str,
    items: &Items,
    defaults: &mut Value,
) -> Result<Option<Map<String, Value>>, ApiError> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire {
        #[serde(default)]
        instances: Value,
        #[serde(default)]
        attributes: Option<Map<String, Value>>,
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    let Some(list) = defaults.pointer_mut(&pointer).filter(|list| list.is_object()) else {
        return Ok(None);
    };
    let at = dotted(at, path);
    let wire: Wire = read_part(&at, list.take())?;
    *list = wire.instances;
    for (name, value) in wire.attributes.iter().flatten() {
        let at = format!("{at}.attributes.{name}");
        let (fits, what) = match items.attribute(&at, name)?.1 {
            FieldType::Flag => (value.is_boolean(), "true or false"),
            FieldType::Number => (value.is_number(), "a number"),
            _ => (value.is_string(), "a text"),
        };
        if !fits {
            return Err(ApiError::field(&at, format!("must be {what}")));
        }
    }
    Ok(wire.attributes)
}
