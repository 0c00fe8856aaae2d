//! Every input in every state: the table is the reference page, with the drawing made from it.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use pod_life::{Effect, Ended, Input, Life, Step};

use crate::samples::{inputs, states};

/// Name of a state in the table. Stopping has two, because a pod that was given up has failed
/// however its run ends.
fn state_name(life: &Life) -> String {
    let given_up = matches!(life, Life::Stopping { given_up: true, .. });
    format!("{}{}", life.name(), if given_up { " (given up)" } else { "" })
}

fn input_name(input: &Input) -> String {
    match input {
        Input::Ends(Ended::Succeeded) => "Ends: succeeded".to_owned(),
        Input::Ends(Ended::Failed) => "Ends: failed".to_owned(),
        other => other.name().to_owned(),
    }
}

const fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::StartNext => "the next run starts",
        Effect::StartAgain => "the run starts again",
        Effect::Stop => "the run is stopped",
        Effect::StopOrphan => "the run is stopped, without a place",
        Effect::Vacate => "the place is free",
    }
}

fn cell(step: &Step) -> String {
    match step {
        Step::To(life, None) => format!("**{}**", state_name(life)),
        Step::To(life, Some(effect)) => {
            format!("**{}**; {}", state_name(life), effect_name(*effect))
        }
        Step::Ignored(why) => format!("ignored: {why}"),
        Step::Impossible => "impossible".to_owned(),
    }
}

/// The states with their changes, as a Mermaid diagram.
fn drawing() -> String {
    let mut edges: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for (at, state) in states().iter().enumerate() {
        for input in inputs() {
            if let Step::To(to, _) = state.after(&input)
                && state_name(&to) != state_name(state)
            {
                edges.entry((at, state_name(&to))).or_default().push(input_name(&input));
            }
        }
    }
    let id = |name: &str| name.replace([' ', '(', ')'], "");
    let mut text = "stateDiagram-v2\n    [*] --> Waiting\n".to_owned();
    for ((from, to), inputs) in edges {
        let from = id(&state_name(&states()[from]));
        let _ = writeln!(text, "    {from} --> {}: {}", id(&to), inputs.join(", "));
    }
    text
}

fn table() -> String {
    let mut text = String::new();
    for state in states() {
        let _ = writeln!(text, "### {}\n\n| input | outcome |\n|---|---|", state_name(&state));
        for input in inputs() {
            let _ = writeln!(text, "| {} | {} |", input_name(&input), cell(&state.after(&input)));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

#[test]
fn the_reference_page_is_made_from_the_transition_function() {
    let page = include_str!("pod-life.md");
    let page = page.replace("{drawing}\n", &drawing()).replace("{table}", &table());
    expect_file!["../../../../docs/reference/pod-life.md"].assert_eq(&page);
}

#[test]
fn a_pod_holds_a_place_until_it_is_vacated_or_lost() {
    for (state, input) in states().iter().flat_map(|s| inputs().into_iter().map(move |i| (s, i))) {
        let Step::To(to, effect) = state.after(&input) else { continue };
        let gains = !state.holds_place() && to.holds_place();
        let gives = state.holds_place() && !to.holds_place();
        let pair = format!("{} in {state:?}", input.name());
        assert!(!gains || matches!(input, Input::Placed | Input::Begins), "{pair}");
        assert_eq!(
            gives,
            effect == Some(Effect::Vacate) || matches!(input, Input::LosesPlace),
            "{pair}"
        );
    }
}

#[test]
fn a_run_is_requested_before_it_is_stopped_and_never_forgotten() {
    for (state, input) in states().iter().flat_map(|s| inputs().into_iter().map(move |i| (s, i))) {
        let Step::To(to, effect) = state.after(&input) else { continue };
        let pair = format!("{} in {state:?}", input.name());
        let starts = matches!(effect, Some(Effect::StartNext | Effect::StartAgain));
        let stops = matches!(effect, Some(Effect::Stop | Effect::StopOrphan));
        assert_eq!(!state.has_run() && to.has_run(), effect == Some(Effect::StartNext), "{pair}");
        assert!(!starts || to.has_run(), "{pair}");
        assert!(!stops || state.has_run(), "{pair}");
        // Without its exit, or the knowledge that it has none, a run is stopped as an orphan.
        let is_over = matches!(input, Input::Exits(..) | Input::LeavesPlace);
        let forgotten = state.has_run() && !to.has_run() && !is_over;
        assert_eq!(forgotten, effect == Some(Effect::StopOrphan), "{pair}");
    }
}

#[test]
fn an_end_is_only_undone_when_the_gang_starts_over() {
    for (state, input) in states().iter().flat_map(|s| inputs().into_iter().map(move |i| (s, i))) {
        let Step::To(to, _) = state.after(&input) else { continue };
        if state.ended().is_some() && to.ended() != state.ended() {
            assert_eq!(input, Input::StartsOver, "{state:?}");
        }
    }
}
