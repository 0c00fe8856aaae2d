//! Checks that the sentences about nodes, holders, advice and turns have their values beside them:
//! each number and each name of a sentence is a value of the same line.

use std::collections::BTreeSet;

use api_types::{Diagnosis, Time};
use reasons::diagnosis as found;
use serde::Serialize;
use serde_json::{Value, json};
use units::{Instant, format_bytes, format_millis};

/// Fields of values that are sentences and commands themselves.
const SENTENCES: [&str; 3] = ["message", "commands", "ask"];

/// Fields whose numbers count something.
const COUNTS: [&str; 9] =
    ["count", "disturbs", "gpus", "kinds", "nodes", "placeable", "pods", "priority", "room"];
/// Fields whose unit is that of the obstacle.
const EITHER: [&str; 2] = ["needed", "most"];

/// The words of sentences without a value, each with its sentence.
pub(super) fn unsaid(found: &found::Diagnosis, said: &Diagnosis, now: Instant) -> Vec<String> {
    let mut beside: Vec<(&str, Value)> = Vec::new();
    let (mut nodes, mut classes) = (said.nodes.iter(), said.node_classes.iter());
    for (part, set) in found.parts.iter().zip(sets(found, said)) {
        let of_set = part.lines().len() - part.classes.len();
        beside.extend(nodes.by_ref().take(of_set).map(|line| (&**line, set.clone())));
        let of_classes = nodes.by_ref().take(part.classes.len()).zip(classes.by_ref());
        beside.extend(of_classes.map(|(line, class)| (&**line, json!([class, set]))));
    }
    let mut holders = said.holders.iter().map(|line| &**line);
    let projects = said.project_holdings.iter().map(value);
    let projects = projects.chain(more(said.project_holdings_more));
    let workloads = said.workload_holdings.iter().map(value);
    let workloads = workloads.chain(more(said.workload_holdings_more));
    let all = projects.chain(workloads).chain(said.not_counted.iter().map(value));
    beside.extend(all.filter_map(|value| Some((holders.next()?, value))));
    assert_eq!((nodes.next(), holders.next()), (None, None), "each sentence has its values");
    beside.extend(said.advice.iter().map(|advice| (&*advice.message, value(advice))));
    beside.extend(said.ahead.iter().map(|ahead| (&*ahead.message, value(ahead))));
    let unsaid = |(sentence, values): (&str, Value)| {
        let said = words("count", &values, now);
        let missing: Vec<_> = told(sentence).filter(|word| !said.contains(*word)).collect();
        (!missing.is_empty()).then(|| format!("{missing:?} of `{sentence}` beside {values}"))
    };
    beside.into_iter().filter_map(unsaid).collect()
}

/// The numbers of each set of pods; a single pod has none.
fn sets(found: &found::Diagnosis, said: &Diagnosis) -> Vec<Value> {
    let mut sets = said.pod_sets.iter();
    let of_part = |part: &found::Part| {
        let has_set = part.pods > 1 || !part.set.is_empty();
        if has_set { sets.next().map_or(Value::Null, value) } else { Value::Null }
    };
    found.parts.iter().map(of_part).collect()
}

fn more(count: u32) -> Option<Value> {
    (count > 0).then(|| json!(count))
}

fn value(of: impl Serialize) -> Value {
    serde_json::to_value(of).unwrap()
}

/// The words of a sentence that have to be values: numbers, and the names of a server.
fn told(sentence: &str) -> impl Iterator<Item = &str> {
    let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    split(sentence).filter(move |word| has_digit(word) || super::PROJECTS.contains(word))
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !"._-=".contains(c));
    words.map(|word| word.trim_matches('.')).filter(|word| !word.is_empty())
}

/// Every form in which a sentence may show a value.
fn words(name: &str, of: &Value, now: Instant) -> BTreeSet<String> {
    match of {
        Value::Null | Value::Bool(_) => BTreeSet::new(),
        Value::Number(number) => {
            let amount = number.as_u64().unwrap_or_default();
            // An amount of GPUs or cores is no count, and a count is no amount.
            let forms = match COUNTS.contains(&name) {
                true => vec![number.to_string()],
                false if EITHER.contains(&name) => {
                    vec![number.to_string(), format_millis(amount), format_bytes(amount)]
                }
                false => vec![format_millis(amount), format_bytes(amount)],
            };
            forms.iter().flat_map(|form| split(form)).map(str::to_owned).collect()
        }
        Value::String(text) => {
            let until = serde_json::from_value::<Time>(of.clone()).ok();
            let until = until.map(|until| found::span(now, until.0));
            let texts = [Some(text.clone()), until].into_iter().flatten();
            texts.flat_map(|text| split(&text).map(str::to_owned).collect::<Vec<_>>()).collect()
        }
        Value::Array(all) => all.iter().flat_map(|one| words(name, one, now)).collect(),
        Value::Object(fields) => {
            let values = fields.iter().filter(|(name, _)| !SENTENCES.contains(&name.as_str()));
            let named = values.flat_map(|(name, value)| {
                // A label is one word of a sentence.
                let pair = value.as_str().map(|value| format!("{name}={value}"));
                let pair = pair
                    .into_iter()
                    .flat_map(|pair| split(&pair).map(str::to_owned).collect::<Vec<_>>());
                words(name, value, now).into_iter().chain(pair)
            });
            named.collect()
        }
    }
}

#[test]
fn a_word_without_its_value_is_found() {
    let holds = "ann/w1 holds 2 GPUs: same project, and not less important (priority 50)";
    let values =
        json!({"workload": {"name": "w1", "projectName": "ann"}, "held": 2000, "priority": 50});
    let missing = |values: &Value| {
        let said = words("count", values, Instant(0));
        told(holds).filter(|word| !said.contains(*word)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(missing(&values), Vec::<String>::new());
    for (field, words) in
        [("workload", &["ann", "w1"][..]), ("held", &["2"]), ("priority", &["50"])]
    {
        let mut less = values.clone();
        less.as_object_mut().unwrap().remove(field);
        assert_eq!(missing(&less), words, "without {field}");
    }
}
