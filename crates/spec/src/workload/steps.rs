//! Steps from each version of the document of a workload to the next. A step is never changed.

use serde_json::{Value, json};

use crate::document::Step;

/// All steps, in order.
pub(super) const STEPS: &[Step] = &[shared_gpus, named_objects];

/// Step from 1 to 2: the request on a shared device may have a limit.
fn shared_gpus(workload: &mut Value) {
    let gpus = |set: &mut Value| {
        let Some(gpu) = set.get_mut("gpu") else { return };
        let (old, new, amount) = match gpu.as_object().and_then(|gpu| gpu.keys().next()) {
            Some(old) if old == "share" => ("share", "compute", "millis"),
            Some(old) if old == "memory" => ("memory", "memory", "bytes"),
            _ => return,
        };
        let asked = gpu[old].take();
        *gpu = json!({"shared": {"devices": asked["devices"], new: {"request": asked[amount]}}});
    };
    gpus(workload);
    workload.get_mut("more").and_then(Value::as_array_mut).into_iter().flatten().for_each(gpus);
}

/// Step from 2 to 3: objects that values were taken from have names beside their keys.
fn named_objects(workload: &mut Value) {
    let uses = workload.get_mut("uses").and_then(Value::as_array_mut);
    uses.into_iter().flatten().for_each(|one| *one = json!({"key": one.take()}));
}
