//! Model sharing between the workers of a job. Owns: the flags that are invalid with its strategy.
//! Does not know about: pods and their resources.

use super::JobError;
use crate::parse::{Form, Values};
use crate::values;

/// True if the workers of a job hold its model themselves and sum their gradients. Evaluation and
/// prediction read the model from a parameter server in any case.
pub(crate) fn is_all_reduced(form: Form, values: &Values) -> bool {
    form == Form::Train && values.text("distribution_strategy") == "AllreduceStrategy"
}

/// Number of processes of a worker: one for each of its GPUs, as the Python package starts them.
pub(crate) fn processes(values: &Values) -> u32 {
    // The value was validated when the job was submitted.
    let asked = values::resources(values.text(super::WORKER_REQUEST)).unwrap_or_default();
    asked.gpus.unwrap_or(1).max(1)
}

/// Refuses flags that are invalid with the strategy of the job.
pub(super) fn strategy(form: Form, values: &Values) -> Result<(), JobError> {
    let is_local = values.text("distribution_strategy") == "Local";
    let is_reduced = is_all_reduced(form, values);
    let servers = "with AllreduceStrategy there are none: each worker has the model; leave it out";
    let all =
        "with AllreduceStrategy an update is made of the gradients of all workers; leave it out";
    let none_is_old = "with AllreduceStrategy no gradient is old; leave it out";
    let silent = "with AllreduceStrategy all workers wait for the slowest one, so all would be replaced; \
                  leave it out";
    let refused = [
        ("distribution_strategy", is_local, "use ParameterServerStrategy with --num_workers=1"),
        ("num_ps_pods", is_reduced && values.count("num_ps_pods") > 0, servers),
        ("grads_to_wait", is_reduced && values.count("grads_to_wait") > 1, all),
        ("get_model_steps", is_reduced && values.count("get_model_steps") > 1, all),
        ("use_async", is_reduced && values.is_on("use_async"), all),
        ("gradients", is_reduced && values.text("gradients") == "reject", none_is_old),
        ("staleness_max", is_reduced && values.count("staleness_max") > 0, none_is_old),
        (
            "sync_version_tolerance",
            is_reduced && values.count("sync_version_tolerance") > 0,
            none_is_old,
        ),
        (
            "lr_staleness_modulation",
            is_reduced && values.is_on("lr_staleness_modulation"),
            none_is_old,
        ),
        (
            "checkpoint_steps",
            is_reduced
                && values.is_given("checkpoint_steps")
                && values.count("checkpoint_steps") > 0
                && values.some("checkpoint_dir").is_none(),
            "with AllreduceStrategy workers make the checkpoints; add --checkpoint_dir, a folder that \
             all of them can write",
        ),
        ("relaunch_timeout_worker", is_reduced && values.is_on("relaunch_timeout_worker"), silent),
    ];
    match refused.into_iter().find(|(_, is_refused, _)| *is_refused) {
        None => Ok(()),
        Some((flag, _, why)) => {
            Err(JobError::NotHere { flag, value: values.text(flag).to_owned(), why })
        }
    }
}

/// Refuses flags about stale gradients for a job that has none.
pub(super) fn gradients(values: &Values) -> Result<(), JobError> {
    let tolerance = values.count("sync_version_tolerance");
    let (is_async, rejects) = (values.is_on("use_async"), values.text("gradients") == "reject");
    let (staleness_max, steps) =
        (values.count("staleness_max"), values.count("get_model_steps").max(1));
    let (flag, why) = match (values.text("gradients"), is_async) {
        (_, false) if staleness_max > 0 => (
            "staleness_max",
            "it bounds what --use_async lets in; add that, or take --sync_version_tolerance",
        ),
        (_, true) if staleness_max > 0 && !rejects && steps > 1 => (
            "get_model_steps",
            "with --staleness_max a worker waits for its turn before each minibatch; leave it out, \
             or add --gradients=reject",
        ),
        (_, true) if staleness_max > 0 && steps - 1 > staleness_max => (
            "get_model_steps",
            "the worker's own steps make its gradients older than --staleness_max",
        ),
        ("wait", _) if tolerance > 0 => {
            ("gradients", "no gradient is old then; leave --sync_version_tolerance out")
        }
        ("reject", true) if staleness_max == 0 => (
            "gradients",
            "--use_async rejects none; leave one of the two out, or add --staleness_max",
        ),
        _ => return Ok(()),
    };
    Err(JobError::NotHere { flag, value: values.text(flag).to_owned(), why })
}
