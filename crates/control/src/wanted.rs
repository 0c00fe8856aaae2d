//! The engine's check of a submission, before the submission is queued: the engine may have to read
//! the machine's state.

use engine::Engine;
use orchestrator::{Error, Wanted};
use spec::{WorkloadSpec, without_place};

/// A specification, the engine's check of it, and whether it is rejected if no node could hold it.
pub(crate) fn wanted(engine: &dyn Engine, spec: WorkloadSpec, strict: bool) -> Box<Wanted> {
    let runs = runs_on(engine, &spec);
    Box::new(Wanted { spec, runs, strict })
}

fn runs_on(engine: &dyn Engine, spec: &WorkloadSpec) -> Result<(), Error> {
    spec.sets().try_for_each(|set| {
        engine.check(&without_place(spec, set)).map_err(|error| match error {
            engine::Error::NotHere { field, .. } => Error::invalid(field, error.to_string()),
            _ => Error::invalid("image", error.to_string()),
        })
    })
}
