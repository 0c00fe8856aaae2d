//! Changes of an inference that its replicas do not see. Owns: which settings these are. Does not
//! know about: their values.

use crate::{Serving, WorkloadSpec};

impl WorkloadSpec {
    /// This specification with the autoscaling of another.
    #[must_use]
    pub fn with_scaling_of(&self, other: &Self) -> Self {
        let both = self.serving.as_ref().zip(other.serving.as_ref());
        let serving = both.map(|(own, other)| Serving {
            scaling: other.scaling.clone(),
            concurrency_max: other.concurrency_max,
            ..own.clone()
        });
        Self { serving: serving.or_else(|| self.serving.clone()), ..self.clone() }
    }

    /// This specification of an inference after a change to `changed`, if its replicas can stay:
    /// the two differ in the autoscaling alone, and in values that no change of an inference sets.
    #[must_use]
    pub fn rescaled(&self, changed: &Self) -> Option<Self> {
        let mut changed = changed.clone();
        changed.name.clone_from(&self.name);
        changed.submitted_by.clone_from(&self.submitted_by);
        changed.submitter_id.clone_from(&self.submitter_id);
        changed.revision = self.revision;
        (changed.pods.pods, changed.pods.pods_min) = (self.pods.pods, self.pods.pods_min);
        let rescaled = self.with_scaling_of(&changed);
        (rescaled == changed).then_some(rescaled)
    }
}
