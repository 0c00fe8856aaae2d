//! Resources of the pods of a job. Owns: their flags, and that no limit is below its request.

use super::{JobError, of};
use crate::parse::{Form, Values};
use crate::values::{self, Resources};

/// Flag with the resources of a worker, and so its number of GPUs.
pub(crate) const WORKER_REQUEST: &str = "worker_resource_request";

/// Resource requests and limits of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodResources {
    /// Requests.
    pub request: Resources,
    /// Limits.
    pub limit: Resources,
}

/// Part of a job to which flags apply.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    Master,
    Worker,
    Server,
}

/// Resources of a part from its flags.
///
/// # Errors
/// A flag has no valid amount, or a limit is below its request.
pub(super) fn part(values: &Values, form: Form, part: Of) -> Result<PodResources, JobError> {
    let [cpu, cpu_max, memory, memory_max, request, limit] = match part {
        Of::Master => [
            "master_cpu_request",
            "master_cpu_limit",
            "master_memory_request",
            "master_memory_limit",
            "master_resource_request",
            "master_resource_limit",
        ],
        Of::Worker => [
            "worker_cpu_request",
            "worker_cpu_limit",
            "worker_memory_request",
            "worker_memory_limit",
            WORKER_REQUEST,
            "worker_resource_limit",
        ],
        // The first form has no parameter servers.
        Of::Server => ["", "", "", "", "ps_resource_request", "ps_resource_limit"],
    };
    if form == Form::Seed {
        let amount = |cpu: &'static str, memory: &'static str| {
            Ok(Resources {
                cpu_millis: Some(of(cpu, values::millicores(values.text(cpu)))?),
                memory_bytes: Some(of(memory, values::memory(values.text(memory)))?),
                ..Resources::default()
            })
        };
        let pod =
            PodResources { request: amount(cpu, memory)?, limit: amount(cpu_max, memory_max)? };
        return pod.checked(values, &[(cpu, cpu_max), (memory, memory_max)]);
    }
    let asked = of(request, values::resources(values.text(request)))?;
    let most = match values.some(limit) {
        Some(text) => of(limit, values::resources(text))?,
        None => asked,
    };
    PodResources { request: asked, limit: most }.checked(values, &[(request, limit); 3])
}

impl PodResources {
    /// These amounts, if no limit is below its request; with the flags of requests and limits of
    /// cpu, memory and gpu, as far as the form has them.
    fn checked(
        self,
        values: &Values,
        flags: &[(&'static str, &'static str)],
    ) -> Result<Self, JobError> {
        let Self { request: asked, limit: most } = self;
        let amounts = [
            ("cpu", asked.cpu_millis, most.cpu_millis),
            ("memory", asked.memory_bytes, most.memory_bytes),
            ("gpu", asked.gpus.map(u64::from), most.gpus.map(u64::from)),
        ];
        for ((of, asked, most), &(request, flag)) in amounts.into_iter().zip(flags) {
            if most.is_some_and(|most| asked.is_some_and(|asked| most < asked)) {
                let (value, requested) = (values.text(flag), values.text(request));
                let (value, requested) = (value.to_owned(), requested.to_owned());
                return Err(JobError::BelowRequest { flag, value, of, request, requested });
            }
        }
        Ok(self)
    }
}
