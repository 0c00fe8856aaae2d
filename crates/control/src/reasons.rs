//! Coded causes that are not the scheduler's. Each code has a page in `docs/reference/codes/`.

use sched::Code;

/// Every code this crate gives out beside [`sched::CODES`].
pub const CODES: [Code; 2] = [NODE_GONE, SERVER_STOPPED];

/// The place of a pod does not exist any more.
pub(crate) const NODE_GONE: Code = Code { code: "E201", name: "NodeGone" };
/// `elastane down` stopped everything.
pub(crate) const SERVER_STOPPED: Code = Code { code: "E202", name: "ServerStopped" };
