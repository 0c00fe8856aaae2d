//! Stops of workloads for others. Owns: the cause, the workload for which it happened, and both as
//! they are stored. Does not know about: the decision.

use std::borrow::Cow;
use std::sync::Arc;

use records::{BeneficiaryBody, ReasonBody};
use units::Instant;
use uuid::Uuid;

/// The last eviction, move or resize of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionView {
    /// Stable code; explained in `docs/reference/codes/<code>.md`.
    pub code: Cow<'static, str>,
    /// One sentence with the numbers.
    pub message: Arc<str>,
    /// Time of the event.
    pub at: Instant,
    /// The workload for which it happened; `None` if it happened for none.
    pub beneficiary: Option<Beneficiary>,
}

/// The workload for which another was stopped, moved or resized, with the names that it had then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beneficiary {
    /// Its id; of an inference, not of a revision.
    pub id: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// Name of its project.
    pub project: Arc<str>,
}

impl From<ReasonBody> for EvictionView {
    fn from(stored: ReasonBody) -> Self {
        let ReasonBody { code, message, at_ms, beneficiary } = stored;
        let beneficiary = beneficiary.map(Into::into);
        Self { code: code.into(), message: message.into(), at: Instant(at_ms), beneficiary }
    }
}

impl From<&EvictionView> for ReasonBody {
    fn from(shown: &EvictionView) -> Self {
        Self {
            code: shown.code.to_string(),
            message: shown.message.to_string(),
            at_ms: shown.at.0,
            beneficiary: shown.beneficiary.as_ref().map(Into::into),
        }
    }
}

impl From<BeneficiaryBody> for Beneficiary {
    fn from(BeneficiaryBody { id, name, project }: BeneficiaryBody) -> Self {
        Self { id, name: name.into(), project: project.into() }
    }
}

impl From<&Beneficiary> for BeneficiaryBody {
    fn from(Beneficiary { id, name, project }: &Beneficiary) -> Self {
        Self { id: *id, name: name.to_string(), project: project.to_string() }
    }
}
