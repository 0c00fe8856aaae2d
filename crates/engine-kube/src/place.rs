//! The nodes that a pod of Kubernetes may, or should, be on. Owns: the meaning of its node selector,
//! node affinity and tolerations. Does not know about: its requests.

use kube_api::types::{NodeCondition, NodeTerm, Pod, PodSpec, Toleration};
use model::{Effect, HOST_LABEL, Operator, Preference, Requirement, Term};
use spec::{Hold, Place};

const NODE_AFFINITY: &str = "spec.affinity.nodeAffinity";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// The field of a node that a condition can be on.
const NAME_FIELD: &str = "metadata.name";

/// The nodes of a pod; the field that holds it if there is one.
pub(crate) fn place_of(pod: &Pod) -> Result<Place, Hold> {
    let spec = &pod.spec;
    if let Some(field) = spec.affinity.others.keys().next() {
        return Err(not_yet(format!("spec.affinity.{field}")));
    }
    Ok(Place {
        affinity: required(spec)?,
        preferred: preferred(spec)?,
        tolerations: spec.tolerations.iter().map(toleration).collect(),
        labels: pod.metadata.labels.clone(),
        ..Place::default()
    })
}

/// The hold of a pod with a field that is not supported.
pub(crate) fn not_yet(field: String) -> Hold {
    Hold { field, why: "is not supported yet".to_owned() }
}

/// Terms of which one must hold: those of its affinity, each with its node selector.
fn required(spec: &PodSpec) -> Result<Vec<Term>, Hold> {
    let selected = |(key, value): (&String, &String)| Requirement {
        key: key.clone(),
        operator: Operator::In(vec![value.clone()]),
    };
    let selector: Term = spec.node_selector.iter().map(selected).collect();
    let Some(required) = &spec.affinity.node_affinity.required else {
        return Ok(if selector.is_empty() { Vec::new() } else { vec![selector] });
    };
    let mut terms = Vec::new();
    for (at, term) in required.node_selector_terms.iter().enumerate() {
        let mut term = term_of(term, &format!("{REQUIRED}[{at}]"))?;
        // One without conditions matches no node.
        if !term.is_empty() {
            term.extend(selector.iter().cloned());
            terms.push(term);
        }
    }
    if terms.is_empty() {
        let why = "has no condition, and so matches no node".to_owned();
        return Err(Hold { field: format!("{NODE_AFFINITY}.{REQUIRED}"), why });
    }
    Ok(terms)
}

/// Terms that should hold. One without conditions has no effect.
fn preferred(spec: &PodSpec) -> Result<Vec<Preference>, Hold> {
    let mut all = Vec::new();
    for (at, one) in spec.affinity.node_affinity.preferred.iter().enumerate() {
        let term = term_of(&one.preference, &format!("{PREFERRED}[{at}].preference"))?;
        if !term.is_empty() {
            all.push(Preference { weight: one.weight, term });
        }
    }
    Ok(all)
}

/// The conditions of a term on labels and on fields.
fn term_of(term: &NodeTerm, path: &str) -> Result<Term, Hold> {
    let of = |list: &str, at, condition: &NodeCondition| {
        let hold =
            |why: String| Hold { field: format!("{NODE_AFFINITY}.{path}.{list}[{at}]"), why };
        requirement(condition).map_err(hold)
    };
    let labels = term.match_expressions.iter().enumerate();
    let labels = labels.map(|(at, condition)| of("matchExpressions", at, condition));
    let fields = term.match_fields.iter().enumerate().map(|(at, condition)| {
        let requirement = of("matchFields", at, condition)?;
        if requirement.key != NAME_FIELD {
            let field = format!("{NODE_AFFINITY}.{path}.matchFields[{at}]");
            let why = format!("compares `{}`; only {NAME_FIELD} is a field", requirement.key);
            return Err(Hold { field, why });
        }
        // Each node has this label with its name.
        Ok(Requirement { key: HOST_LABEL.to_owned(), ..requirement })
    });
    labels.chain(fields).collect()
}

fn requirement(condition: &NodeCondition) -> Result<Requirement, String> {
    let operator = operator(condition)?;
    if matches!(&operator, Operator::In(values) if values.is_empty()) {
        return Err(format!("compares `{}` with no value", condition.key));
    }
    Ok(Requirement { key: condition.key.clone(), operator })
}

fn operator(condition: &NodeCondition) -> Result<Operator, String> {
    let NodeCondition { key, operator, values } = condition;
    let number = || {
        let value = values.first().map_or("", String::as_str);
        value.parse().map_err(|_| format!("compares `{key}` with `{value}`, which is no number"))
    };
    Ok(match operator.as_str() {
        "In" => Operator::In(values.clone()),
        "NotIn" => Operator::NotIn(values.clone()),
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt(number()?),
        "Lt" => Operator::Lt(number()?),
        other => return Err(format!("has the unknown operator `{other}`")),
    })
}

fn toleration(given: &Toleration) -> model::Toleration {
    model::Toleration {
        key: Some(given.key.clone()).filter(|key| !key.is_empty()),
        value: Some(given.value.clone()).filter(|_| given.operator != "Exists"),
        effect: match given.effect.as_str() {
            "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
            "NoSchedule" => Some(Effect::NoSchedule),
            "NoExecute" => Some(Effect::NoExecute),
            _ => None,
        },
    }
}
