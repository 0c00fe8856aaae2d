//! Coded reasons and causes that are not the scheduler's. Each code has a page in
//! `docs/reference/codes/`.

use reasons::Code;
use spec::ExitKind;
#[cfg(test)]
use view::{GPU_HELD, GPU_LOST, GPU_TAKEN};

/// A pod of it begins nowhere before an earlier run of that pod has ended.
pub(crate) const CLEARING_UP: Code = Code { code: "P304", name: "ClearingUp" };
/// The scheduler has not looked at it yet.
pub(crate) const NOT_CONSIDERED: Code = Code { code: "P308", name: "NotConsidered" };
/// It is a gang that lacks pods, and keeps the places of the others for a while.
pub(crate) const PLACES_KEPT: Code = Code { code: "P309", name: "PlacesKept" };
/// The scheduler failed on it, and does not look at it any more.
pub(crate) const SET_ASIDE: Code = Code { code: "P307", name: "SetAside" };
/// The place of a pod does not exist any more.
pub(crate) const NODE_GONE: Code = Code { code: "E201", name: "NodeGone" };
/// It ran for as long as its project or department allows.
pub(crate) const TIME_LIMIT: Code = Code { code: "E203", name: "TimeLimit" };
/// Its GPUs were idle for as long as its project or department allows.
pub(crate) const IDLE_LIMIT: Code = Code { code: "E204", name: "IdleLimit" };
/// It was killed because it had more memory than it may.
pub(crate) const OUT_OF_MEMORY: Code = Code { code: "E205", name: "OutOfMemory" };
/// It runs, and a limit that it was given is not kept on this machine.
pub(crate) const LIMIT_NOT_KEPT: Code = Code { code: "E206", name: "LimitNotKept" };
/// Its image cannot be pulled now.
pub(crate) const IMAGE_PULL: Code = Code { code: "E209", name: "ImagePullBackOff" };
/// Its process runs and does not answer where it should.
pub const NOT_READY: Code = Code { code: "E210", name: "NotReady" };
/// This machine could not start it just then.
pub(crate) const NOT_STARTED: Code = Code { code: "E211", name: "NotStarted" };
/// It has failed, and is not started again.
pub const FAILED: Code = Code { code: "E212", name: "Failed" };
/// It was not started because its part of a GPU would not be kept.
pub(crate) const GPU_NOT_KEPT: Code = Code { code: "E215", name: "GpuFractionNotKept" };
/// It holds more memory of a GPU than it may.
pub(crate) const GPU_MEMORY_OVER: Code = Code { code: "E216", name: "GpuMemoryOver" };
/// It is a training whose workers make no steps.
pub(crate) const NO_STEPS: Code = Code { code: "E217", name: "NoSteps" };
/// It is a training of which two workers do not reach each other.
pub(crate) const PARTED: Code = Code { code: "E218", name: "WorkersParted" };
/// Its node got a taint that it does not tolerate.
pub(crate) const TAINTED: Code = Code { code: "E213", name: "Tainted" };
/// The newest revision of an inference never got ready, and the one before it goes on serving.
pub const UPDATE_FAILED: Code = Code { code: "E220", name: "UpdateFailed" };
/// It was killed because the disk of the server was almost full, and it had grown most.
pub(crate) const OUT_OF_DISK: Code = Code { code: "E219", name: "DiskFull" };
/// `elastane down` stopped everything.
pub(crate) const SERVER_STOPPED: Code = Code { code: "E202", name: "ServerStopped" };

/// Why a workload failed for good, by how its last run ended.
#[must_use]
pub const fn of_failure(last: Option<ExitKind>) -> Code {
    match last {
        Some(ExitKind::NotKept) => GPU_NOT_KEPT,
        _ => FAILED,
    }
}

/// All of them.
#[cfg(test)]
pub(crate) const ALL: [Code; 24] = [
    NODE_GONE,
    SERVER_STOPPED,
    TIME_LIMIT,
    IDLE_LIMIT,
    OUT_OF_MEMORY,
    LIMIT_NOT_KEPT,
    GPU_LOST,
    GPU_TAKEN,
    IMAGE_PULL,
    NOT_READY,
    NOT_STARTED,
    FAILED,
    TAINTED,
    GPU_NOT_KEPT,
    GPU_MEMORY_OVER,
    NO_STEPS,
    PARTED,
    OUT_OF_DISK,
    UPDATE_FAILED,
    GPU_HELD,
    CLEARING_UP,
    NOT_CONSIDERED,
    PLACES_KEPT,
    SET_ASIDE,
];
