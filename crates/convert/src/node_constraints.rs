//! Conversion of node constraints and MIG instances from and to the wire. Owns: the published
//! words, and the errors for values without meaning.

use api_types::{
    ExtendedResource, MatchExpression, MatchExpressionOperator as Word, NodeAffinityRequired,
    NodeSelectorTerm, PodAffinity, PodAffinityType, Toleration as WireToleration, TolerationEffect,
    TolerationOperator,
};
use http_kit::ApiError;
use model::{Effect, MigRequest, Operator, Requirement, Toleration};
use spec::{Colocation, Place};

/// Prefix of resources that are MIG profiles.
const MIG: &str = "nvidia.com/mig-";

/// Converts node constraints.
pub(super) fn place(spec: &api_types::WorkloadSpec) -> Result<Place, ApiError> {
    let mut place =
        Place { colocation: colocation(spec.pod_affinity.as_ref())?, ..Place::default() };
    let terms = spec.node_affinity_required.iter().flat_map(|one| &one.node_selector_terms);
    for (at, term) in terms.enumerate() {
        let field = format!("spec.nodeAffinityRequired.nodeSelectorTerms[{at}]");
        if term.match_expressions.is_empty() {
            return Err(ApiError::field(&field, "has no matchExpressions, and so matches no node"));
        }
        let each = term.match_expressions.iter().enumerate();
        let each =
            each.map(|(at, one)| requirement(&format!("{field}.matchExpressions[{at}]"), one));
        place.affinity.push(each.collect::<Result<_, _>>()?);
    }
    for (at, one) in spec.tolerations.iter().flatten().enumerate() {
        if one.exclude == Some(true) {
            continue;
        }
        let toleration = toleration(&format!("spec.tolerations[{at}]"), one)?;
        let mut known = place.tolerations.iter().zip(&place.toleration_names);
        if !known.any(|(own, name)| *own == toleration && *name == one.name) {
            place.tolerations.push(toleration);
            place.toleration_names.push(one.name.clone());
        }
    }
    if place.toleration_names.iter().all(Option::is_none) {
        place.toleration_names.clear();
    }
    Ok(place)
}

fn requirement(field: &str, wire: &MatchExpression) -> Result<Requirement, ApiError> {
    let values = wire.values.clone().unwrap_or_default();
    let wrong = |why: &str| Err(ApiError::field(&format!("{field}.values"), why));
    let number = || match values.as_slice() {
        [one] => one.parse::<i64>().ok(),
        _ => None,
    };
    let operator = match (wire.operator, number()) {
        (Word::In | Word::NotIn, _) if values.is_empty() => return wrong("must name a value"),
        (Word::In, _) => Operator::In(values),
        (Word::NotIn, _) => Operator::NotIn(values),
        (Word::Exists | Word::DoesNotExist, _) if !values.is_empty() => {
            return wrong("goes without values; leave them out");
        }
        (Word::Exists, _) => Operator::Exists,
        (Word::DoesNotExist, _) => Operator::DoesNotExist,
        (Word::Gt | Word::Lt, None) => return wrong("must be one whole number, as a string"),
        (Word::Gt, Some(bound)) => Operator::Gt(bound),
        (Word::Lt, Some(bound)) => Operator::Lt(bound),
    };
    if wire.key.is_empty() {
        return Err(ApiError::field(&format!("{field}.key"), "must be set"));
    }
    Ok(Requirement { key: wire.key.clone(), operator })
}

fn toleration(field: &str, wire: &WireToleration) -> Result<Toleration, ApiError> {
    if wire.seconds.is_some() {
        return Err(ApiError::not_yet(format!("{field}.seconds")));
    }
    let exists = wire.operator == Some(TolerationOperator::Exists);
    let key = wire.key.clone().filter(|key| !key.is_empty());
    if key.is_none() && !exists {
        let why = "must be set; only with operator Exists it may be left out";
        return Err(ApiError::field(&format!("{field}.key"), why));
    }
    if exists && wire.value.as_ref().is_some_and(|value| !value.is_empty()) {
        return Err(ApiError::field(&format!("{field}.value"), "goes with operator Equal only"));
    }
    Ok(Toleration {
        key,
        value: (!exists).then(|| wire.value.clone().unwrap_or_default()),
        effect: match wire.effect {
            None | Some(TolerationEffect::Any) => None,
            Some(TolerationEffect::NoSchedule) => Some(Effect::NoSchedule),
            Some(TolerationEffect::NoExecute) => Some(Effect::NoExecute),
            Some(TolerationEffect::PreferNoSchedule) => Some(Effect::PreferNoSchedule),
        },
    })
}

fn colocation(wire: Option<&PodAffinity>) -> Result<Option<Colocation>, ApiError> {
    let Some(PodAffinity { kind, key }) = wire else { return Ok(None) };
    match key {
        Some(key) if !key.is_empty() => {
            let required = *kind != Some(PodAffinityType::Preferred);
            Ok(Some(Colocation { key: key.clone(), required }))
        }
        _ if kind.is_none() => Ok(None),
        _ => {
            let why = "must be a label of nodes, such as kubernetes.io/hostname";
            Err(ApiError::field("spec.podAffinity.key", why))
        }
    }
}

/// The MIG instances among extended resources; no other extended resources are supported.
pub(super) fn mig(wire: &[ExtendedResource]) -> Result<Option<MigRequest>, ApiError> {
    const FIELD: &str = "spec.compute.extendedResources";
    let mut wanted = Vec::new();
    for (at, one) in wire.iter().enumerate().filter(|(_, one)| one.exclude != Some(true)) {
        let Some(profile) = one.resource.strip_prefix(MIG) else {
            let why = format!(
                "no node has `{}`; there are MIG profiles, such as {MIG}1g.10gb",
                units::shown(&one.resource)
            );
            return Err(ApiError::field(&format!("{FIELD}[{at}].resource"), why));
        };
        let profile = profile
            .parse()
            .map_err(|why| ApiError::field(&format!("{FIELD}[{at}].resource"), format!("{why}")))?;
        let count = one.quantity.as_deref().and_then(|text| text.parse::<u16>().ok());
        let count = count.filter(|count| *count > 0).ok_or_else(|| {
            let why = "must be a whole number of instances from 1 to 65535, such as \"1\"";
            ApiError::field(&format!("{FIELD}[{at}].quantity"), why)
        })?;
        wanted.push((profile, count));
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    MigRequest::new(wanted).map(Some).map_err(|why| ApiError::field(FIELD, why.to_string()))
}

/// Converts node constraints to the fields of a request.
pub(super) fn to_wire(place: &Place, to: &mut api_types::WorkloadSpec) {
    let values = |values: &[String]| Some(values.to_vec());
    let expression = |one: &Requirement| {
        let (operator, values) = match &one.operator {
            Operator::In(all) => (Word::In, values(all)),
            Operator::NotIn(all) => (Word::NotIn, values(all)),
            Operator::Exists => (Word::Exists, None),
            Operator::DoesNotExist => (Word::DoesNotExist, None),
            Operator::Gt(bound) => (Word::Gt, Some(vec![bound.to_string()])),
            Operator::Lt(bound) => (Word::Lt, Some(vec![bound.to_string()])),
        };
        MatchExpression { key: one.key.clone(), operator, values }
    };
    let terms = place.affinity.iter();
    let terms = terms
        .map(|term| NodeSelectorTerm { match_expressions: term.iter().map(expression).collect() });
    let node_selector_terms: Vec<_> = terms.collect();
    let names = place.toleration_names.iter().cloned().chain(std::iter::repeat(None));
    let tolerations = place.tolerations.iter().zip(names).map(|(one, name)| WireToleration {
        name,
        operator: Some(match one.value {
            Some(_) => TolerationOperator::Equal,
            None => TolerationOperator::Exists,
        }),
        key: one.key.clone(),
        value: one.value.clone(),
        effect: one.effect.map(|effect| match effect {
            Effect::NoSchedule => TolerationEffect::NoSchedule,
            Effect::NoExecute => TolerationEffect::NoExecute,
            Effect::PreferNoSchedule => TolerationEffect::PreferNoSchedule,
        }),
        ..WireToleration::default()
    });
    let tolerations: Vec<_> = tolerations.collect();
    to.node_affinity_required = Some(NodeAffinityRequired { node_selector_terms })
        .filter(|affinity| !affinity.node_selector_terms.is_empty());
    to.tolerations = Some(tolerations).filter(|all| !all.is_empty());
    to.pod_affinity = place.colocation.as_ref().map(|near| PodAffinity {
        kind: Some(match near.required {
            true => PodAffinityType::Required,
            false => PodAffinityType::Preferred,
        }),
        key: Some(near.key.clone()),
    });
}

/// MIG instances as extended resources.
pub(super) fn resources(mig: &MigRequest) -> Vec<ExtendedResource> {
    let one = |(profile, count)| ExtendedResource {
        resource: format!("{MIG}{profile}"),
        quantity: Some(format!("{count}")),
        exclude: None,
    };
    mig.iter().map(one).collect()
}
