//! The published types of series, and the formula of each. Types without a measurement are in the
//! table too: other programs request them, and their series is empty.

use control::{Values, of};

/// Formula of a type. Every result is in thousandths of the published unit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Formula {
    /// A value stored in thousandths.
    Millis(&'static str),
    /// A value stored in the published unit: bytes, counts.
    Whole(&'static str),
    /// A value stored in bytes, published in millions of bytes.
    Megabytes(&'static str),
    /// A value stored in thousandths, published in percent.
    Percent(&'static str),
    /// A value stored in millionths.
    Micros(&'static str),
    /// A sum divided by a count, both stored in millionths.
    Each(&'static str, &'static str),
    /// A part of a whole, in percent.
    Part(&'static str, &'static str),
    /// The first value minus the second, both in thousandths.
    Rest(&'static str, &'static str),
    /// A series for each GPU.
    PerGpu(&'static Formula),
    /// No measurement here.
    Unmeasured,
}

impl Formula {
    /// The value of the GPU with this number, or of the whole.
    pub(crate) fn of(self, values: &Values, gpu: Option<u32>) -> Option<u64> {
        let get = |name: &str| match gpu {
            None => values.get(name).copied(),
            Some(index) => values.get(&of::gpu(name, index)).copied(),
        };
        match self {
            Self::Millis(name) => get(name),
            Self::Whole(name) => get(name).map(|value| value.saturating_mul(1000)),
            Self::Megabytes(name) => get(name).map(|bytes| bytes / 1000),
            Self::Percent(name) => get(name).map(|millis| millis.saturating_mul(100)),
            Self::Micros(name) => get(name).map(|micros| micros / 1000),
            Self::Each(sum, count) => {
                let each = u128::from(get(sum)?) * 1000;
                u64::try_from(each.checked_div(get(count)?.into())?).ok()
            }
            Self::Part(part, whole) => part_of(get(part)?, get(whole)?),
            Self::Rest(whole, part) => Some(get(whole)?.saturating_sub(get(part)?)),
            Self::PerGpu(inner) => inner.of(values, gpu),
            Self::Unmeasured => None,
        }
    }

    /// Weight of a value in a mean of several.
    pub(crate) fn weight(self, values: &Values) -> u64 {
        match self {
            Self::Each(_, count) => values.get(count).copied().unwrap_or_default(),
            _ => 1,
        }
    }

    /// The numbers of the GPUs of which there are values.
    pub(crate) fn gpus(self, values: &Values) -> impl Iterator<Item = u32> {
        let name = match self {
            Self::PerGpu(inner) => inner.name(),
            _ => None,
        };
        values
            .keys()
            .filter_map(move |key| key.strip_prefix(name?)?.strip_prefix('.')?.parse().ok())
    }

    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Millis(name)
            | Self::Whole(name)
            | Self::Megabytes(name)
            | Self::Percent(name)
            | Self::Micros(name)
            | Self::Each(name, _)
            | Self::Part(name, _)
            | Self::Rest(name, _) => Some(name),
            Self::PerGpu(_) | Self::Unmeasured => None,
        }
    }
}

/// Thousandths of a percent.
fn part_of(part: u64, whole: u64) -> Option<u64> {
    let ratio = (u128::from(part) * 100_000).checked_div(u128::from(whole))?;
    u64::try_from(ratio).ok()
}

/// A type and its formula.
pub(crate) type Metric = (&'static str, Formula);

/// The series of a subject.
pub(crate) trait Measured: Send + 'static {
    /// Types of the series.
    const METRICS: &'static [Metric];
    /// True if the series can be limited to a node pool.
    const BY_POOL: bool = false;
    /// Names that the series can be grouped by.
    const GROUPS: &'static [&'static str] = &[];
}

macro_rules! measured {
    ($(#[$about:meta])* $name:ident { $($rest:tt)* } $($metric:ident = $formula:expr;)+ $(; $($unmeasured:ident)+)?) => {
        $(#[$about])*
        pub(crate) struct $name;

        impl Measured for $name {
            $($rest)*
            const METRICS: &'static [Metric] = &[
                $((stringify!($metric), $formula),)+
                $($((stringify!($unmeasured), Formula::Unmeasured),)+)?
            ];
        }
    };
}

use Formula::{Each, Megabytes, Micros, Millis, Part, PerGpu, Percent, Rest, Unmeasured, Whole};

measured! {
    /// Series of a cluster.
    OfCluster {
        const BY_POOL: bool = true;
        const GROUPS: &'static [&'static str] = &["Category", "Nodepool", "Project", "Department"];
    }
    TOTAL_GPU_NODES = Whole(of::GPU_NODES);
    GPU_UTILIZATION = Percent(of::BUSY);
    GPU_UTILIZATION_DISTRIBUTION = Unmeasured;
    GPU_MEMORY_UTILIZATION = Part(of::GPU_MEMORY, of::GPU_MEMORY_TOTAL);
    CPU_UTILIZATION = Part(of::CPU, of::CPU_TOTAL);
    CPU_MEMORY_UTILIZATION = Part(of::MEMORY, of::MEMORY_TOTAL);
    TOTAL_GPU = Millis(of::GPU_TOTAL);
    GPU_QUOTA = Millis(of::GPU_QUOTA);
    ALLOCATED_GPU = Millis(of::GPU);
    UNALLOCATED_GPU = Rest(of::GPU_TOTAL, of::GPU);
    AVG_WORKLOAD_WAIT_TIME = Millis(of::WAITED_MS);
    WORKLOADS_COUNT = Millis(of::WORKLOADS);
}

/// Series of a node pool: those of a cluster.
pub(crate) struct OfNodePool;

impl Measured for OfNodePool {
    const METRICS: &'static [Metric] = OfCluster::METRICS;
}

measured! {
    /// Series of a node.
    OfNode {}
    GPU_UTILIZATION_PER_GPU = PerGpu(&Percent(of::BUSY));
    GPU_UTILIZATION = Percent(of::BUSY);
    GPU_MEMORY_UTILIZATION_PER_GPU = PerGpu(&Part(of::GPU_MEMORY, of::GPU_MEMORY_TOTAL));
    GPU_MEMORY_UTILIZATION = Part(of::GPU_MEMORY, of::GPU_MEMORY_TOTAL);
    GPU_MEMORY_USAGE_BYTES_PER_GPU = PerGpu(&Whole(of::GPU_MEMORY));
    GPU_MEMORY_USAGE_BYTES = Whole(of::GPU_MEMORY);
    GPU_ALLOCATION_PER_GPU = PerGpu(&Millis(of::GPU));
    GPU_MEMORY_ALLOCATION_BYTES_PER_GPU = PerGpu(&Whole(of::GPU_MEMORY_HELD));
    GPU_IDLE_TIME_SECONDS_PER_GPU = PerGpu(&Millis(of::IDLE_MS));
    CPU_USAGE_CORES = Millis(of::CPU);
    CPU_UTILIZATION = Part(of::CPU, of::CPU_TOTAL);
    CPU_MEMORY_USAGE_BYTES = Whole(of::MEMORY);
    CPU_MEMORY_UTILIZATION = Part(of::MEMORY, of::MEMORY_TOTAL);
    ;
    GPU_OOMKILL_BURST_COUNT_PER_GPU GPU_OOMKILL_IDLE_COUNT_PER_GPU
    GPU_OOMKILL_SWAP_OUT_OF_RAM_COUNT_PER_GPU GPU_GRAPHICS_ENGINE_ACTIVITY_PER_GPU
    GPU_SM_ACTIVITY_PER_GPU GPU_SM_OCCUPANCY_PER_GPU GPU_TENSOR_ACTIVITY_PER_GPU
    GPU_FP64_ENGINE_ACTIVITY_PER_GPU GPU_FP32_ENGINE_ACTIVITY_PER_GPU
    GPU_FP16_ENGINE_ACTIVITY_PER_GPU GPU_MEMORY_BANDWIDTH_UTILIZATION_PER_GPU
    GPU_NVLINK_TRANSMITTED_BANDWIDTH_PER_GPU GPU_NVLINK_RECEIVED_BANDWIDTH_PER_GPU
    GPU_PCIE_TRANSMITTED_BANDWIDTH_PER_GPU GPU_PCIE_RECEIVED_BANDWIDTH_PER_GPU
    NVLINK_BANDWIDTH_TOTAL NVLINK_BANDWIDTH_TOTAL_PER_GPU
}

measured! {
    /// Series of a workload.
    OfWorkload {}
    GPU_UTILIZATION = Percent(of::BUSY);
    GPU_MEMORY_USAGE_BYTES = Whole(of::GPU_MEMORY);
    GPU_MEMORY_REQUEST_BYTES = Whole(of::GPU_MEMORY_HELD);
    CPU_USAGE_CORES = Millis(of::CPU);
    CPU_REQUEST_CORES = Millis(of::CPU_HELD);
    CPU_MEMORY_USAGE_BYTES = Whole(of::MEMORY);
    CPU_MEMORY_REQUEST_BYTES = Whole(of::MEMORY_HELD);
    POD_COUNT = Millis(of::PODS);
    RUNNING_POD_COUNT = Millis(of::PODS_RUNNING);
    GPU_ALLOCATION = Millis(of::GPU);
    ;
    CPU_LIMIT_CORES CPU_MEMORY_LIMIT_BYTES
    NIM_NUM_REQUESTS_RUNNING NIM_NUM_REQUESTS_WAITING NIM_NUM_REQUEST_MAX
    NIM_REQUEST_SUCCESS_TOTAL NIM_REQUEST_FAILURE_TOTAL NIM_GPU_CACHE_USAGE_PERC
    NIM_TIME_TO_FIRST_TOKEN_SECONDS NIM_E2E_REQUEST_LATENCY_SECONDS
    NIM_TIME_TO_FIRST_TOKEN_SECONDS_PERCENTILES NIM_E2E_REQUEST_LATENCY_SECONDS_PERCENTILES
    NVLINK_BANDWIDTH_TOTAL
}

measured! {
    /// Series of a pod.
    OfPod {}
    GPU_UTILIZATION_PER_GPU = PerGpu(&Percent(of::BUSY));
    GPU_UTILIZATION = Percent(of::BUSY);
    GPU_MEMORY_USAGE_BYTES_PER_GPU = PerGpu(&Whole(of::GPU_MEMORY));
    GPU_MEMORY_USAGE_BYTES = Whole(of::GPU_MEMORY);
    CPU_USAGE_CORES = Millis(of::CPU);
    CPU_MEMORY_USAGE_BYTES = Whole(of::MEMORY);
    ;
    GPU_GRAPHICS_ENGINE_ACTIVITY_PER_GPU GPU_SM_ACTIVITY_PER_GPU GPU_SM_OCCUPANCY_PER_GPU
    GPU_TENSOR_ACTIVITY_PER_GPU GPU_FP64_ENGINE_ACTIVITY_PER_GPU GPU_FP32_ENGINE_ACTIVITY_PER_GPU
    GPU_FP16_ENGINE_ACTIVITY_PER_GPU GPU_MEMORY_BANDWIDTH_UTILIZATION_PER_GPU
    GPU_NVLINK_TRANSMITTED_BANDWIDTH_PER_GPU GPU_NVLINK_RECEIVED_BANDWIDTH_PER_GPU
    GPU_PCIE_TRANSMITTED_BANDWIDTH_PER_GPU GPU_PCIE_RECEIVED_BANDWIDTH_PER_GPU
    GPU_SWAP_MEMORY_BYTES_PER_GPU
    NIM_NUM_REQUESTS_RUNNING NIM_NUM_REQUESTS_WAITING NIM_NUM_REQUEST_MAX
    NIM_REQUEST_SUCCESS_TOTAL NIM_REQUEST_FAILURE_TOTAL NIM_GPU_CACHE_USAGE_PERC
    NIM_TIME_TO_FIRST_TOKEN_SECONDS NIM_E2E_REQUEST_LATENCY_SECONDS
    NIM_TIME_TO_FIRST_TOKEN_SECONDS_PERCENTILES NIM_E2E_REQUEST_LATENCY_SECONDS_PERCENTILES
    NVLINK_BANDWIDTH_TOTAL NVLINK_BANDWIDTH_TOTAL_PER_GPU
}

measured! {
    /// Series of an inference: its requests. The last two are not published ones.
    OfInference {}
    THROUGHPUT = Micros(of::ANSWERED);
    LATENCY = Each(of::ANSWER_MS, of::ANSWERED);
    CONCURRENCY = Millis(of::REQUESTS);
    REPLICAS = Millis(of::REPLICAS);
}

measured! {
    /// Series of a replica: the requests it was given. The last is not a published one.
    OfReplica {}
    THROUGHPUT = Micros(of::ANSWERED);
    LATENCY = Each(of::ANSWER_MS, of::ANSWERED);
    CONCURRENCY = Millis(of::REQUESTS);
}

measured! {
    /// Series of a project or department.
    OfOrgUnit {
        const BY_POOL: bool = true;
    }
    GPU_QUOTA = Millis(of::GPU_QUOTA);
    CPU_QUOTA_MILLICORES = Whole(of::CPU_QUOTA);
    CPU_MEMORY_QUOTA_MB = Megabytes(of::MEMORY_QUOTA);
    GPU_ALLOCATION = Millis(of::GPU);
    CPU_ALLOCATION_MILLICORES = Whole(of::CPU_HELD);
    CPU_MEMORY_ALLOCATION_MB = Megabytes(of::MEMORY_HELD);
    GPU_MEMORY_UTILIZATION = Part(of::GPU_MEMORY, of::GPU_MEMORY_TOTAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_of_what_was_measured_and_of_nothing_else() {
        let known = [
            ("cpu", 1500),
            ("gpu_memory", 3),
            ("gpu_memory_total", 8),
            ("busy.0", 250),
            ("busy.2", 0),
            ("answered", 1_500_000),
            ("answer_ms", 60_000_000),
        ];
        let values: Values = known.map(|(name, value)| (name.to_owned(), value)).into();
        let busy = PerGpu(&Percent(of::BUSY));
        for (formula, gpu, want) in [
            (Millis(of::CPU), None, Some(1500)),
            (Whole(of::GPU_MEMORY), None, Some(3000)),
            (Part(of::GPU_MEMORY, of::GPU_MEMORY_TOTAL), None, Some(37_500)),
            (Percent(of::BUSY), None, None),
            (busy, Some(0), Some(25_000)),
            (busy, Some(1), None),
            (busy, Some(2), Some(0)),
            (Part(of::CPU, of::CPU_TOTAL), None, None),
            (Micros(of::ANSWERED), None, Some(1500)),
            (Each(of::ANSWER_MS, of::ANSWERED), None, Some(40_000)),
            (Each(of::ANSWER_MS, of::REQUESTS), None, None),
            (Unmeasured, None, None),
        ] {
            assert_eq!(formula.of(&values, gpu), want, "{formula:?} {gpu:?}");
        }
        assert_eq!(busy.gpus(&values).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(part_of(1, 0), None, "of nothing there is no part");
    }

    #[test]
    fn no_type_is_there_twice() {
        for metrics in [
            OfCluster::METRICS,
            OfNode::METRICS,
            OfWorkload::METRICS,
            OfPod::METRICS,
            OfInference::METRICS,
            OfReplica::METRICS,
            OfOrgUnit::METRICS,
        ] {
            let names: std::collections::BTreeSet<_> =
                metrics.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), metrics.len());
        }
    }
}
