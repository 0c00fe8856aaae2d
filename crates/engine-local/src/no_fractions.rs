//! In the place of `fractions` where its libraries do not exist: other processors than x86-64. Owns:
//! saying so. Does not know about anything else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::{Error, FractionLimit, GpuUse, RunKey, RunSpec};
use gpu::Activity;

use crate::fraction_policy::FractionOptions;
use crate::fraction_spec::Fraction;
use crate::isolation::Account;
use crate::record::{ProcessSpec, RunDir};
use crate::session_server::RunContext;

const WHY: &str = "fractions of GPUs are limited on x86-64 only";

#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) mounts: Vec<(PathBuf, PathBuf)>,
}

impl Delivery {
    pub(crate) fn complete(&self, _env: &mut BTreeMap<String, String>) {}
}

#[derive(Debug)]
pub(crate) struct Added {
    pub(crate) fraction: Fraction,
    pub(crate) delivery: Delivery,
}

#[derive(Debug)]
pub(crate) struct Fractions {}

impl Fractions {
    pub(crate) fn none(_why: &str) -> Self {
        Self {}
    }
    pub(crate) fn open(
        _folder: &Path,
        _program: &Path,
        _mounts: bool,
        _options: &FractionOptions,
    ) -> Self {
        Self {}
    }
    pub(crate) fn limit(&self, _simulated: bool) -> FractionLimit {
        FractionLimit::none(WHY)
    }
    pub(crate) fn of(&self, _spec: &RunSpec, _dir: &RunDir) -> Result<Option<Added>, Error> {
        Ok(None)
    }
    pub(crate) fn folder(&self) -> &Path {
        Path::new("")
    }
    pub(crate) fn prepare(
        &self,
        _key: RunKey,
        _fraction: &Fraction,
        _dir: &RunDir,
        _account: Option<&Account>,
    ) -> Result<(), Error> {
        Ok(())
    }
    pub(crate) fn adopt(&self, _key: RunKey, _fraction: &Fraction) -> Result<(), Error> {
        Ok(())
    }
    pub(crate) fn forget(&self, _key: RunKey) {}
    pub(crate) fn activities(&self) -> Vec<Activity> {
        Vec::new()
    }
    pub(crate) fn idle(&self, _key: RunKey, _used: &[GpuUse]) -> Vec<GpuUse> {
        Vec::new()
    }
    pub(crate) fn claims(&self, _dir: impl Fn(RunKey) -> RunDir) -> BTreeMap<RunKey, Vec<u64>> {
        BTreeMap::new()
    }
    pub(crate) fn reconcile(&self, _: RunKey, _: &RunDir, _before: &[u64], _seen: &[GpuUse]) {}
}

#[derive(Debug)]
pub(crate) struct Held;

pub(crate) fn hold(_process: &ProcessSpec) -> std::io::Result<Held> {
    Ok(Held)
}

pub(crate) fn verify(
    _process: &ProcessSpec,
    _around: &RunContext,
) -> std::io::Result<Result<(), String>> {
    Ok(Ok(()))
}
