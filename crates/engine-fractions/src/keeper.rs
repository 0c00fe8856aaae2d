//! Mechanism that enforces parts of real GPUs. Owns: its selection, by the administrator's choice.
//! Does not know about: how each works.

use std::path::Path;

use engine::FractionLimit;

use crate::dmem::Dmem;
use crate::mig::Mig;
use crate::mps::Mps;
use crate::policy::{FractionOptions, FractionPolicy, Runs};

/// Mechanism that enforces parts of real GPUs.
#[derive(Debug)]
pub(crate) enum Keeper {
    Libraries,
    Mps(Mps),
    Dmem(Dmem),
    Mig(Mig),
}

impl Keeper {
    /// The chosen mechanism, once a check has shown that it works. `program` is the server's.
    ///
    /// # Errors
    /// Reason why it cannot be used here, and advice.
    pub(crate) fn find(
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, String> {
        let mig = || Mig::find(program, runs, options).map(Self::Mig);
        match (options.policy, runs) {
            (FractionPolicy::Best | FractionPolicy::Counted, _) => Ok(Self::Libraries),
            (FractionPolicy::Mps, _) => Mps::find(program, runs, options).map(Self::Mps),
            (FractionPolicy::Dmem, _) => Dmem::find(program, runs, options).map(Self::Dmem),
            (FractionPolicy::Mig, _) => mig(),
            // Where there are whole GPUs as well, they would be of no use: what to do is not
            // chosen.
            (FractionPolicy::HardOnly, Runs::Containers)
                if options.gpus.is_empty() && !options.instances.is_empty() =>
            {
                mig()
            }
            (FractionPolicy::HardOnly, _) => {
                Dmem::find_hard(program, runs, options).map(Self::Dmem)
            }
        }
    }

    /// Enforcement of the parts by this mechanism; `None` for the libraries, which report it
    /// themselves.
    pub(crate) fn kept(&self, runs: Runs<'_>, options: &FractionOptions) -> Option<FractionLimit> {
        match self {
            Self::Libraries => None,
            Self::Mps(mps) => Some(mps.kept(options)),
            Self::Dmem(dmem) => Some(dmem.kept(runs, options)),
            Self::Mig(mig) => Some(mig.kept(runs)),
        }
    }
}
