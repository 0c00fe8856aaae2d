//! Conversion of node pools from and to the wire. Owns: which of the published settings are
//! supported.

use api_types::{
    Nodepool, NodepoolCreateFields, NodepoolStatus, NodepoolUpdateFields, PlacementStrategies,
    PlacementStrategy, SchedulingConfiguration, TENANT_ID, asks_for_something,
};
use http_kit::{ApiError, Row, Scalar, Type};
use model::Fill;
use orchestrator::{POOL_DEFAULT_ID, PoolChange};
use spec::{PoolFractions, PoolSettings, PoolSpec, TOPOLOGY, TimeSlicing};
use units::Instant;
use view::{PoolView, View};

use super::Context;

/// Implied label of the nodes of the default pool.
const DEFAULT_LABEL: (&str, &str) = ("elastane.dev/node-pool", "default");

/// Refuses unsupported settings.
fn check(asked: &NodepoolUpdateFields) -> Result<(), ApiError> {
    let detection = asked.gpu_network_acceleration_detection.as_deref();
    let optimization = asked.gpu_resource_optimization.as_ref();
    let on = |flag: Option<bool>| flag == Some(true);
    let refused = [
        ("overProvisioningRatio", asked.over_provisioning_ratio.is_some_and(|r| r != 1)),
        (
            "gpuNetworkAccelerationLabelKey",
            asks_for_something(&asked.gpu_network_acceleration_label_key),
        ),
        ("gpuNetworkAccelerationDetection", detection == Some("Use")),
        ("gpuResourceOptimization.swapEnabled", optimization.is_some_and(|o| on(o.swap_enabled))),
        (
            "gpuResourceOptimization.nodeLevelSchedulerEnabled",
            optimization.is_some_and(|o| on(o.node_level_scheduler_enabled)),
        ),
    ];
    let first = refused.into_iter().find(|(_, asked)| *asked);
    first.map_or(Ok(()), |(what, _)| Err(ApiError::not_yet(what)))
}

/// Fill order of nodes, by either of its names.
fn fill(
    asked: &NodepoolUpdateFields,
    of: &'static str,
    which: impl Fn(&PlacementStrategies) -> Option<PlacementStrategy>,
) -> Result<Option<Fill>, ApiError> {
    let newer = asked.scheduling_configuration.as_ref();
    let newer = newer.and_then(|asked| asked.placement_strategy.as_ref()).and_then(&which);
    let older = asked.placement_strategy.as_ref().and_then(&which);
    if older.is_some() && newer.is_some() && older != newer {
        let field = format!("placementStrategy.{of}");
        let why = "is another than in schedulingConfiguration; send one of them";
        return Err(ApiError::field(&field, why));
    }
    Ok(newer.or(older).map(|asked| match asked {
        PlacementStrategy::Spread => Fill::Spread,
        PlacementStrategy::Binpack => Fill::BinPack,
    }))
}

/// Milliseconds of a duration such as `1h30m`; `None` for an empty text.
fn span(text: &str) -> Result<Option<u64>, ApiError> {
    const UNITS: [(&str, u128); 10] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
        ("w", 604_800_000_000_000),
    ];
    let wrong = || {
        let why =
            format!("`{}` is not a duration; write one like 30s, 10m or 1h30m", units::shown(text));
        ApiError::field("schedulingConfiguration.minGuaranteedRuntime", why)
    };
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(None);
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut sum_ns: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let (_, each) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let millis = units::parse_cpu_millis(number).map_err(|_| wrong())?;
        sum_ns = sum_ns.saturating_add(u128::from(millis).saturating_mul(*each) / 1000);
        rest = next;
    }
    let ms = u64::try_from(sum_ns / 1_000_000).unwrap_or(u64::MAX);
    Ok((ms > 0).then_some(ms))
}

/// Time slicing; `None` for an empty text.
fn time_slicing(text: &str) -> Result<Option<TimeSlicing>, ApiError> {
    let wrong = |why| {
        let why = format!("{why}, or nothing for what the server was started with");
        ApiError::field("gpuTimeSlicing", why)
    };
    (!text.is_empty()).then(|| TimeSlicing::named(text).map_err(wrong)).transpose()
}

/// Enforcement of GPU fractions; `None` for an empty text.
fn fractions(text: &str) -> Result<Option<PoolFractions>, ApiError> {
    let wrong = |why| {
        let why = format!("{why}, or nothing for what the server was started with");
        ApiError::field("gpuFractions", why)
    };
    (!text.is_empty()).then(|| PoolFractions::named(text).map_err(wrong)).transpose()
}

/// Converts a creation.
pub fn pool_creation(request: NodepoolCreateFields) -> Result<PoolSpec, ApiError> {
    let name = request.name.clone();
    let label = (request.label_key.clone(), request.label_value.clone());
    let change = pool_change(request.usage(), false)?;
    Ok(PoolSpec { name, settings: change.made_to(PoolSettings::new(Some(label))) })
}

/// Converts an update. With `replaces_all`, values that are not given get their defaults, except
/// the label.
pub fn pool_change(
    request: NodepoolUpdateFields,
    replaces_all: bool,
) -> Result<PoolChange, ApiError> {
    check(&request)?;
    let gpu = fill(&request, "gpu", |asked| asked.gpu)?;
    let cpu = fill(&request, "cpu", |asked| asked.cpu)?;
    let scheduling = request.scheduling_configuration;
    let runtime = scheduling.and_then(|asked| asked.min_guaranteed_runtime);
    let min_runtime_ms = runtime.as_deref().map(span).transpose()?;
    let topology = request.network_topology_id.map(|id| Some(id).filter(|id| !id.is_empty()));
    let time_slicing = request.gpu_time_slicing.as_deref().map(time_slicing).transpose()?;
    let fractions = request.gpu_fractions.as_deref().map(fractions).transpose()?;
    let usual = replaces_all.then_some(PoolSettings::new(None));
    let usual = usual.as_ref();
    Ok(PoolChange {
        label_key: request.label_key,
        label_value: request.label_value,
        gpu: gpu.or(usual.map(|usual| usual.gpu)),
        cpu: cpu.or(usual.map(|usual| usual.cpu)),
        min_runtime_ms: min_runtime_ms.or(usual.map(|usual| usual.min_runtime_ms)),
        topology: topology.or(usual.map(|usual| usual.topology.clone())),
        time_slicing: time_slicing.or(usual.map(|usual| usual.time_slicing)),
        fractions: fractions.or(usual.map(|usual| usual.fractions)),
    })
}

/// Converts a node pool to the wire.
pub fn node_pool(view: &PoolView, all: &View, context: &Context) -> Nodepool {
    let settings = &view.settings;
    let topology = settings.topology.as_ref().and_then(|id| all.objects.get(TOPOLOGY, id));
    let strategy = |fill| {
        Some(match fill {
            Fill::Spread => PlacementStrategy::Spread,
            Fill::BinPack => PlacementStrategy::Binpack,
        })
    };
    let placement =
        PlacementStrategies { cpu: strategy(settings.cpu), gpu: strategy(settings.gpu) };
    let label = settings.label.as_ref();
    let (key, value) = label.map_or(DEFAULT_LABEL, |(key, value)| (key, value));
    let empty = view.nodes.is_empty();
    Nodepool {
        id: view.id.clone(),
        name: view.name.clone(),
        label_key: key.to_owned(),
        label_value: value.to_owned(),
        cluster_id: context.cluster_id.clone(),
        cluster_name: context.cluster_name.clone(),
        tenant_id: TENANT_ID,
        is_default: view.id == POOL_DEFAULT_ID,
        phase: if empty { "Empty" } else { "Ready" }.to_owned(),
        phase_message: if empty { "no node is in it".to_owned() } else { String::new() },
        status: NodepoolStatus { nodes: view.nodes.clone() },
        placement_strategy: placement,
        scheduling_configuration: SchedulingConfiguration {
            placement_strategy: Some(placement),
            min_guaranteed_runtime: settings.min_runtime_ms.map(|ms| format!("{ms}ms")),
        },
        network_topology_id: settings.topology.clone(),
        network_topology_name: topology.map(|topology| topology.name.clone()),
        gpu_time_slicing: settings.time_slicing.map(|mode| mode.name().to_owned()),
        gpu_fractions: settings.fractions.map(|mode| mode.name().to_owned()),
        over_provisioning_ratio: 1,
        created_by: view.created_by.clone(),
        created_at: view.created_at.into(),
        updated_by: view.updated_by.clone(),
        updated_at: view.updated_at.into(),
    }
}

impl Row<crate::Listed> for Nodepool {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("name", Type::Text),
        ("phase", Type::Text),
        ("clusterId", Type::Text),
        ("labelKey", Type::Text),
        ("labelValue", Type::Text),
        ("isDefault", Type::Flag),
        ("createdAt", Type::Time),
        ("updatedAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "labelKey", "labelValue"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "id" => Scalar::text(self.id.as_str()),
            "name" => Scalar::text(self.name.as_str()),
            "phase" => Scalar::text(self.phase.as_str()),
            "clusterId" => Scalar::text(self.cluster_id.as_str()),
            "labelKey" => Scalar::text(self.label_key.as_str()),
            "labelValue" => Scalar::text(self.label_value.as_str()),
            "isDefault" => Scalar::Flag(self.is_default),
            "createdAt" => Scalar::time(self.created_at.0),
            "updatedAt" => Scalar::time(self.updated_at.0),
            _ => Scalar::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_the_published_rule() {
        for (text, ms) in [
            ("0", None),
            ("30s", Some(30_000)),
            ("+1h30m", Some(5_400_000)),
            ("1.5s", Some(1500)),
            ("2w", Some(14 * 86_400_000)),
            ("500us", None),
            ("1d1ms", Some(86_400_001)),
        ] {
            assert_eq!(span(text).unwrap(), ms, "{text}");
        }
        for text in ["", "5", "h", "1x", "-1s", "1 h", "1..5s", "s1", "1h5"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
