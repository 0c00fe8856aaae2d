//! Which nodes pods may go to, and MIG instances, as they are stored.

use model::{Effect, MigRequest, Operator, Requirement, Toleration};
use store::{PlaceBody, RequirementBody, TolerationBody};

use crate::Error;
use crate::spec::{Near, Place};

words!(Effect, effect_word, effect, "effect of a taint":
    NoSchedule = "no-schedule", PreferNoSchedule = "prefer-no-schedule", NoExecute = "no-execute");

pub(super) fn place_body(place: &Place) -> PlaceBody {
    let toleration = |one: &Toleration| TolerationBody {
        key: one.key.clone(),
        value: one.value.clone(),
        effect: one.effect.map(|effect| effect_word(effect).to_owned()),
    };
    PlaceBody {
        affinity: place.affinity.iter().map(|t| t.iter().map(requirement_body).collect()).collect(),
        tolerations: place.tolerations.iter().map(toleration).collect(),
        near: place.near.as_ref().map(|near| (near.key.clone(), near.required)),
    }
}

fn requirement_body(requirement: &Requirement) -> RequirementBody {
    let (operator, values) = match &requirement.operator {
        Operator::In(values) => ("in", values.clone()),
        Operator::NotIn(values) => ("not-in", values.clone()),
        Operator::Exists => ("exists", Vec::new()),
        Operator::DoesNotExist => ("does-not-exist", Vec::new()),
        Operator::Gt(bound) => ("gt", vec![bound.to_string()]),
        Operator::Lt(bound) => ("lt", vec![bound.to_string()]),
    };
    RequirementBody { key: requirement.key.clone(), operator: operator.to_owned(), values }
}

pub(super) fn place_from_body(body: PlaceBody) -> Result<Place, Error> {
    let term = |term: Vec<RequirementBody>| term.into_iter().map(requirement).collect();
    let toleration = |body: TolerationBody| {
        let effect = body.effect.as_deref().map(effect).transpose()?;
        Ok(Toleration { key: body.key, value: body.value, effect })
    };
    Ok(Place {
        affinity: body.affinity.into_iter().map(term).collect::<Result<_, Error>>()?,
        tolerations: body.tolerations.into_iter().map(toleration).collect::<Result<_, Error>>()?,
        near: body.near.map(|(key, required)| Near { key, required }),
    })
}

fn requirement(body: RequirementBody) -> Result<Requirement, Error> {
    let RequirementBody { key, operator, values } = body;
    let unknown = || Error::Internal {
        message: format!("the database holds `{operator}` of a label, which is not known"),
    };
    let bound = || values.first().and_then(|text| text.parse().ok()).ok_or_else(unknown);
    let operator = match operator.as_str() {
        "gt" => Operator::Gt(bound()?),
        "lt" => Operator::Lt(bound()?),
        "in" => Operator::In(values),
        "not-in" => Operator::NotIn(values),
        "exists" => Operator::Exists,
        "does-not-exist" => Operator::DoesNotExist,
        _ => return Err(unknown()),
    };
    Ok(Requirement { key, operator })
}

pub(super) fn mig(instances: Vec<(String, u16)>) -> Result<MigRequest, Error> {
    let wrong = |why: model::MigError| Error::Internal {
        message: format!("the database holds MIG instances that are none: {why}"),
    };
    let each = instances.into_iter().map(|(profile, count)| Ok((profile.parse()?, count)));
    let each = each.collect::<Result<Vec<_>, model::MigError>>().map_err(wrong)?;
    MigRequest::new(each).map_err(wrong)
}
