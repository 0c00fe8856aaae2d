//! Coded reasons and causes that do not come from the scheduler. Each code has a page in
//! `docs/reference/codes/`.

use reasons::Code;
use spec::ExitKind;

use crate::{GPU_HELD, GPU_LOST, GPU_TAKEN};

/// A pod waits for the end of an earlier run of it.
pub const CLEARING_UP: Code = Code { code: "P304", name: "ClearingUp" };
/// The scheduler has not considered the workload yet.
pub const NOT_CONSIDERED: Code = Code { code: "P308", name: "NotConsidered" };
/// No project is charged for an adopted pod.
pub const NO_PROJECT: Code = Code { code: "P310", name: "NoProject" };
/// An adopted pod has a field that is not supported.
pub const FIELD_NOT_SUPPORTED: Code = Code { code: "P311", name: "FieldNotSupported" };
/// A gang lacks pods, and the places of its other pods are kept for a while.
pub const PLACES_KEPT: Code = Code { code: "P309", name: "PlacesKept" };
/// The scheduler failed on the workload, which is excluded from decisions.
pub const SET_ASIDE: Code = Code { code: "P307", name: "SetAside" };
/// The node of a pod no longer exists.
pub const NODE_GONE: Code = Code { code: "E201", name: "NodeGone" };
/// The workload ran for the maximum time of its project or department.
pub const TIME_LIMIT: Code = Code { code: "E203", name: "TimeLimit" };
/// The GPUs of the workload were idle for the maximum time of its project or department.
pub const IDLE_LIMIT: Code = Code { code: "E204", name: "IdleLimit" };
/// The run was killed because it used more memory than its limit.
pub const OUT_OF_MEMORY: Code = Code { code: "E205", name: "OutOfMemory" };
/// The run is running, and one of its limits is not enforced on this machine.
pub const LIMIT_NOT_KEPT: Code = Code { code: "E206", name: "LimitNotKept" };
/// The image of the run cannot be pulled now.
pub const IMAGE_PULL: Code = Code { code: "E209", name: "ImagePullBackOff" };
/// The process of the run is running and does not answer its probe.
pub const NOT_READY: Code = Code { code: "E210", name: "NotReady" };
/// The machine could not start the run at that moment.
pub const NOT_STARTED: Code = Code { code: "E211", name: "NotStarted" };
/// The workload has failed, and is not restarted.
pub const FAILED: Code = Code { code: "E212", name: "Failed" };
/// The run was not started because its part of a GPU would not be enforced.
pub const GPU_NOT_KEPT: Code = Code { code: "E215", name: "GpuFractionNotKept" };
/// The run holds more memory of a GPU than it may.
pub const GPU_MEMORY_OVER: Code = Code { code: "E216", name: "GpuMemoryOver" };
/// The workers of a training make no steps.
pub const NO_STEPS: Code = Code { code: "E217", name: "NoSteps" };
/// Two workers of a training do not reach each other.
pub const PARTED: Code = Code { code: "E218", name: "WorkersParted" };
/// The node of the workload got a taint that it does not tolerate.
pub const TAINTED: Code = Code { code: "E213", name: "Tainted" };
/// The newest revision of an inference never got ready, and the one before it goes on serving.
pub const UPDATE_FAILED: Code = Code { code: "E220", name: "UpdateFailed" };
/// The run was killed because the disk of the server was almost full, and it had grown most.
pub const OUT_OF_DISK: Code = Code { code: "E219", name: "DiskFull" };
/// `elastane down` stopped all workloads.
pub const SERVER_STOPPED: Code = Code { code: "E202", name: "ServerStopped" };

/// Code of a failed workload, by the end of its last run.
#[must_use]
pub const fn of_failure(last: Option<ExitKind>) -> Code {
    match last {
        Some(ExitKind::NotKept) => GPU_NOT_KEPT,
        _ => FAILED,
    }
}

/// All codes.
pub const ALL: [Code; 26] = [
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
    NO_PROJECT,
    FIELD_NOT_SUPPORTED,
    PLACES_KEPT,
    SET_ASIDE,
];
