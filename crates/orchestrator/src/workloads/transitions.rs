//! The one place at which the life of a pod changes. Owns: that a pod is in the state that follows
//! from its inputs, and that its place is free once it has left it. Does not know about: the states
//! and the inputs (`pod_life`), and the requests to the engine, which the callers make.

use pod_life::{Effect, Input, Life, Step};

use crate::effect::Note;
use crate::state::State;
use crate::workloads::Home;

/// A change of the life of a pod.
#[derive(Debug)]
pub(crate) struct Transition {
    /// Its life before.
    pub(crate) from: Life,
    /// Effect that the caller carries out; a place is vacated already.
    pub(crate) effect: Option<Effect>,
}

impl State {
    /// Applies an input to the life of a pod; `None` if it changes nothing.
    pub(crate) fn happens(&mut self, home: Home, input: &Input) -> Option<Transition> {
        let (id, number) = home;
        let pod = self.workloads.pod(id, number)?;
        let (life, model) = (pod.life(), pod.model);
        let (to, effect) = match life.after(input) {
            Step::To(to, effect) => (to, effect),
            Step::Ignored(_) => return None,
            Step::Impossible => {
                let text = format!("pod {number} of {id}: {} in {life:?}", input.name());
                debug_assert!(false, "{text}");
                self.outbox.note(Note::Error(format!("{text}: this input cannot occur")));
                return None;
            }
        };
        let from = self.workloads.set_life(home, to)?;
        if let (Some(Effect::Vacate), Some(model)) = (effect, model) {
            self.cluster.vacate(model);
        }
        self.outbox.show([id]);
        Some(Transition { from, effect })
    }

    /// True if the life of each pod agrees with its place in the model, for tests.
    pub(crate) fn lives_fit_places(&self) -> bool {
        self.workloads.values().flat_map(|workload| workload.pods.iter()).all(|pod| {
            let (life, place) = (pod.life(), self.binding(pod));
            let fits = life.holds_place() == place.current.is_some()
                && life.is_stopping() == place.releasing
                && !matches!(life, Life::Exited { .. });
            debug_assert!(fits, "pod {}: {life:?} at {place:?}", pod.id);
            fits
        })
    }
}
