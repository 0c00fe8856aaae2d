//! The engine suite against real processes, and what only this engine promises.

use crate::bench::Bench;

engine_conformance::conformance_suite!(Bench::new());
engine_conformance::conformance_suite!(sessions of Bench::new());
engine_conformance::conformance_suite!(background of Bench::new());
engine_conformance::conformance_suite!(copies of Bench::new());

/// The suite with isolated runs, by the means that this machine has for the user of the tests.
mod apart {
    use std::path::Path;

    use engine_local::Separation;

    use crate::bench::{Bench, SUPERVISOR};

    fn bench() -> Bench {
        Bench::with(Path::new(SUPERVISOR), Some(Separation::default()))
    }

    engine_conformance::conformance_suite!(bench());
    engine_conformance::conformance_suite!(sessions of bench());
    engine_conformance::conformance_suite!(background of bench());
    engine_conformance::conformance_suite!(copies of bench());
}
