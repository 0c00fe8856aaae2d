//! Conversion of serving settings from and to the wire. Owns: the defaults (reference C.4 and
//! D.10), and the valid combinations.

use std::ops::RangeInclusive;

use api_types::{
    AutoScaling, Probe as WireProbe, ProbeHandler, ProbeHandlerHttpGet, Probes,
    ServingConfiguration, ServingPort, ServingPortAccessAuthorizationTypeEnum as Authorization,
    ServingPortProtocol, WorkloadSpec as Wire, number_from_millis,
};
use http_kit::ApiError;
use spec::{Audience, Metric, Probe, Scaling, Serving, Target, WorkloadSpec};

use super::positive;

/// Default part of a threshold to aim at, in thousandths of a percent.
const PERCENT_MILLIS_DEFAULT: u32 = 70_000;
/// Default time in seconds until the first replica is ready.
const START_S_DEFAULT: u32 = 600;
/// Default time in seconds until an answer starts.
const REQUEST_S_DEFAULT: u32 = 300;
/// Maximum time in seconds until the first replica is ready: large models take their time.
const START_S_MAX: u32 = 24 * 3600;
/// Maximum in seconds of the delay before a scale-down (reference D.9), of the time until an answer
/// starts, and of probe times.
const DELAY_S_MAX: u32 = 3600;
/// Default time in seconds after which an unneeded replica is removed, and its annotation.
const WINDOW_S_DEFAULT: u32 = 60;
const WINDOW: &str = "autoscaling.knative.dev/window";

/// Converts the serving settings of a specification.
pub(super) fn serving(spec: &Wire) -> Result<Serving, ApiError> {
    let port = spec.serving_port.clone().unwrap_or_default();
    let timing = spec.serving_configuration.clone().unwrap_or_default();
    let scaling = spec.autoscaling.clone().unwrap_or_default();
    let Some(container_port) = port.container.filter(|port| *port > 0) else {
        let why = "must be set: the port at which the container serves, 1 to 65535";
        return Err(ApiError::field("spec.servingPort.container", why));
    };
    if port.protocol == Some(ServingPortProtocol::Grpc) {
        return Err(ApiError::value_not_yet("spec.servingPort.protocol", "grpc"));
    }
    let start_s = timing.initialization_timeout_seconds.or(scaling.initialization_timeout_seconds);
    let start = "spec.servingConfiguration.initializationTimeoutSeconds";
    let request = "spec.servingConfiguration.requestTimeoutSeconds";
    Ok(Serving {
        container_port,
        concurrency_max: scaling.concurrency_hard_limit.filter(|limit| *limit > 0),
        start_ms_max: ms(time_s(start, start_s, 1..=START_S_MAX)?.unwrap_or(START_S_DEFAULT)),
        request_ms_max: ms(time_s(request, timing.request_timeout_seconds, 1..=DELAY_S_MAX)?
            .unwrap_or(REQUEST_S_DEFAULT)),
        local_only: port.cluster_local_access_only.unwrap_or(false),
        audience: audience(
            "spec.servingPort",
            authorization(&port),
            port.authorized_users.clone().unwrap_or_default(),
            port.authorized_groups.as_ref().is_some_and(|groups| !groups.is_empty()),
        )?,
        probe: probe(spec.probes.clone().unwrap_or_default(), container_port)?,
        scaling: self::scaling(&scaling, window_s(spec)?)?,
        recreate: false,
    })
}

/// A specification with the defaults of serving filled in.
pub(super) fn with_defaults(spec: Wire) -> Wire {
    let (scaling, timing) =
        (spec.autoscaling.unwrap_or_default(), spec.serving_configuration.unwrap_or_default());
    let (port, probes) = (spec.serving_port.unwrap_or_default(), spec.probes.unwrap_or_default());
    let (probe, usual) = (probes.readiness.unwrap_or_default(), Probe::default());
    let seconds = |ms: u64| u32::try_from(ms / 1000).ok();
    let start_s = timing.initialization_timeout_seconds.or(scaling.initialization_timeout_seconds);
    let start_s = start_s.or(Some(START_S_DEFAULT));
    let by_load = matches!(scaling.metric.as_deref(), Some("concurrency" | "throughput"));
    let percentage = by_load.then(|| number_from_millis(PERCENT_MILLIS_DEFAULT.into()));
    let least = scaling.min_replicas.unwrap_or(1);
    let at_first = Some(least.max(1));
    Wire {
        autoscaling: Some(AutoScaling {
            metric_threshold_percentage: scaling.metric_threshold_percentage.or(percentage),
            min_replicas: Some(least),
            max_replicas: scaling.max_replicas.or(at_first),
            initial_replicas: scaling.initial_replicas.or(at_first),
            activation_replicas: scaling.activation_replicas.or(at_first),
            concurrency_hard_limit: scaling.concurrency_hard_limit.or(Some(0)),
            scale_to_zero_retention_seconds: scaling.scale_to_zero_retention_seconds.or(Some(0)),
            scale_down_delay_seconds: scaling.scale_down_delay_seconds.or(Some(0)),
            initialization_timeout_seconds: start_s,
            ..scaling
        }),
        serving_configuration: Some(ServingConfiguration {
            initialization_timeout_seconds: start_s,
            request_timeout_seconds: timing.request_timeout_seconds.or(Some(REQUEST_S_DEFAULT)),
        }),
        serving_port: Some(ServingPort {
            protocol: port.protocol.or(Some(ServingPortProtocol::Http)),
            authorization_type: Some(authorization(&port)),
            cluster_local_access_only: port.cluster_local_access_only.or(Some(false)),
            ..port
        }),
        probes: Some(Probes {
            readiness: Some(WireProbe {
                initial_delay_seconds: probe.initial_delay_seconds.or(seconds(usual.first_ms)),
                period_seconds: probe.period_seconds.or(seconds(usual.period_ms)),
                timeout_seconds: probe.timeout_seconds.or(seconds(usual.wait_ms_max)),
                success_threshold: probe.success_threshold.or(Some(usual.successes)),
                failure_threshold: probe.failure_threshold.or(Some(usual.failures)),
                handler: probe.handler,
            }),
        }),
        ..spec
    }
}

/// Authorization type, by default: the listed users, else all users of this server.
fn authorization(port: &ServingPort) -> Authorization {
    let lists_users = port.authorized_users.as_ref().is_some_and(|users| !users.is_empty());
    port.authorization_type.unwrap_or(match lists_users {
        true => Authorization::AuthorizedUsers,
        false => Authorization::AuthenticatedUsers,
    })
}

fn ms(seconds: u32) -> u64 {
    u64::from(seconds) * 1000
}

/// Checks that a time in seconds is within bounds.
fn time_s(
    field: &str,
    seconds: Option<u32>,
    allowed: RangeInclusive<u32>,
) -> Result<Option<u32>, ApiError> {
    if let Some(other) = seconds.filter(|seconds| !allowed.contains(seconds)) {
        let (least, most) = (allowed.start(), allowed.end());
        let why = format!("{other} s is not allowed; use {least} to {most}, or leave it out");
        return Err(ApiError::field(field, why));
    }
    Ok(seconds)
}

fn scaling(wire: &AutoScaling, window_s: u32) -> Result<Scaling, ApiError> {
    let field = |name: &str| format!("spec.autoscaling.{name}");
    let replicas_min = wire.min_replicas.unwrap_or(1);
    let replicas_max =
        positive(&field("maxReplicas"), wire.max_replicas)?.unwrap_or(replicas_min.max(1));
    let at_first = replicas_min.max(1);
    let activation = positive(&field("activationReplicas"), wire.activation_replicas)?;
    let target = target(wire)?;
    let retention_s = wire.scale_to_zero_retention_seconds.unwrap_or(0);
    if retention_s > 0 && replicas_min > 0 {
        let why = "goes with minReplicas 0 only; leave it out";
        return Err(ApiError::field(&field("scaleToZeroRetentionSeconds"), why));
    }
    let delay_s = wire.scale_down_delay_seconds.unwrap_or(0);
    for (name, seconds) in
        [("scaleToZeroRetentionSeconds", retention_s), ("scaleDownDelaySeconds", delay_s)]
    {
        time_s(&field(name), Some(seconds), 0..=DELAY_S_MAX)?;
    }
    Ok(Scaling {
        replicas_min,
        replicas_max,
        replicas_initial: wire.initial_replicas.unwrap_or(at_first),
        replicas_activation: activation.unwrap_or(at_first),
        target,
        window_ms: ms(window_s),
        down_delay_ms: ms(delay_s),
        zero_retention_ms: ms(retention_s),
    })
}

fn target(wire: &AutoScaling) -> Result<Option<Target>, ApiError> {
    let metric = match wire.metric.as_deref() {
        None => None,
        Some("concurrency") => Some(Metric::Concurrency),
        Some("throughput") => Some(Metric::Throughput),
        Some("latency") => Some(Metric::Latency),
        Some(other) => {
            let why = format!(
                "`{}` is not measured here; use concurrency, throughput or latency",
                units::shown(other)
            );
            return Err(ApiError::field("spec.autoscaling.metric", why));
        }
    };
    let percentage = "spec.autoscaling.metricThresholdPercentage";
    let percent_millis = match &wire.metric_threshold_percentage {
        None => PERCENT_MILLIS_DEFAULT,
        Some(_) if matches!(metric, None | Some(Metric::Latency)) => {
            let why = "goes with the metrics concurrency and throughput only; leave it out";
            return Err(ApiError::field(percentage, why));
        }
        Some(number) => {
            let text = super::decimal(number);
            let millis = units::parse_gpu_millis(&text).ok().and_then(|m| u32::try_from(m).ok());
            millis.filter(|millis| (1000..=100_000).contains(millis)).ok_or_else(|| {
                ApiError::field(percentage, format!("`{text}` is not a percentage from 1 to 100"))
            })?
        }
    };
    match (metric, wire.metric_threshold) {
        (None, None) => Ok(None),
        (Some(metric), Some(threshold)) => Ok(Some(Target { metric, threshold, percent_millis })),
        (Some(_), None) => {
            Err(ApiError::field("spec.autoscaling.metricThreshold", "must be set with a metric"))
        }
        (None, Some(_)) => {
            Err(ApiError::field("spec.autoscaling.metric", "must be set with a metricThreshold"))
        }
    }
}

/// Time in seconds after which an unneeded replica is removed, from the annotation if there is one.
fn window_s(spec: &Wire) -> Result<u32, ApiError> {
    let named = |pair: &&api_types::NameValue| pair.name == WINDOW && pair.exclude != Some(true);
    let Some(pair) = spec.annotations.iter().flatten().find(named) else {
        return Ok(WINDOW_S_DEFAULT);
    };
    let last = pair.value.char_indices().next_back().map_or(0, |(at, _)| at);
    let (number, unit) = pair.value.split_at(last);
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    let seconds = number.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    seconds.filter(|seconds| (6..=3600).contains(seconds)).ok_or_else(|| {
        let value = units::shown(&pair.value);
        let why = format!("{WINDOW}: `{value}` is not a time from 6s to 1h, such as 60s");
        ApiError::field("spec.annotations", why)
    })
}

/// Converts the audience; `at` is the field for errors, `groups` is true if groups are given.
pub(super) fn audience(
    at: &str,
    kind: Authorization,
    users: Vec<String>,
    groups: bool,
) -> Result<Audience, ApiError> {
    let field = |name: &str| format!("{at}.{name}");
    let by_list = !matches!(kind, Authorization::Public | Authorization::AuthenticatedUsers);
    if groups || kind == Authorization::AuthorizedGroups {
        return Err(ApiError::value_not_yet(&field("authorizedGroups"), "a group of users"));
    }
    if !by_list && !users.is_empty() {
        let why = "goes with authorizationType authorizedUsers only; set that, or leave it out";
        return Err(ApiError::field(&field("authorizedUsers"), why));
    }
    if by_list && users.is_empty() {
        let why = "must name a user or group with this authorizationType";
        return Err(ApiError::field(&field("authorizedUsers"), why));
    }
    Ok(match kind {
        Authorization::Public => Audience::Everyone,
        Authorization::AuthenticatedUsers => Audience::Authenticated,
        _ => Audience::Users(users.into_iter().map(known_as).collect()),
    })
}

/// The name of a user: an e-mail address in lower case.
fn known_as(name: String) -> String {
    if name.contains('@') { name.to_lowercase() } else { name }
}

fn probe(wire: Probes, serving_port: u16) -> Result<Probe, ApiError> {
    let Some(wire) = wire.readiness else { return Ok(Probe::default()) };
    let field = |name: &str| format!("spec.probes.readiness.{name}");
    let time_ms = |name: &str, seconds: Option<u32>, least: u32, otherwise_ms: u64| {
        let seconds = time_s(&field(name), seconds, least..=DELAY_S_MAX)?;
        Ok::<_, ApiError>(seconds.map_or(otherwise_ms, ms))
    };
    let count = |name: &str, count: Option<u32>, otherwise: u32| {
        Ok::<_, ApiError>(positive(&field(name), count)?.unwrap_or(otherwise))
    };
    let usual = Probe::default();
    let get = wire.handler.and_then(|handler| handler.http_get);
    if let Some(get) = &get {
        if get.port.is_some_and(|port| port != serving_port) {
            let why = format!("only the serving port {serving_port} is looked at; leave it out");
            return Err(ApiError::field(&field("handler.httpGet.port"), why));
        }
        if get.host.is_some() {
            let why = "it is the replica that is looked at; leave it out";
            return Err(ApiError::field(&field("handler.httpGet.host"), why));
        }
        if get.scheme.as_deref().is_some_and(|scheme| scheme != "HTTP") {
            return Err(ApiError::value_not_yet(&field("handler.httpGet.scheme"), "HTTPS"));
        }
    }
    let path = get.map(|get| get.path.unwrap_or_else(|| "/".to_owned()));
    if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        let why = "is not a path; begin it with `/`";
        return Err(ApiError::field(&field("handler.httpGet.path"), why));
    }
    Ok(Probe {
        path,
        first_ms: time_ms("initialDelaySeconds", wire.initial_delay_seconds, 0, 0)?,
        period_ms: time_ms("periodSeconds", wire.period_seconds, 1, usual.period_ms)?,
        wait_ms_max: time_ms("timeoutSeconds", wire.timeout_seconds, 1, usual.wait_ms_max)?,
        successes: count("successThreshold", wire.success_threshold, usual.successes)?,
        failures: count("failureThreshold", wire.failure_threshold, usual.failures)?,
    })
}

/// Removes the port of the probe if a change sets another serving port.
pub fn probing_the_port_of(change: &Wire, mut now: Wire) -> Wire {
    let moves = change.serving_port.as_ref().is_some_and(|port| port.container.is_some());
    let readiness = now.probes.as_mut().and_then(|probes| probes.readiness.as_mut());
    let handler = readiness.and_then(|probe| probe.handler.as_mut());
    if let (true, Some(get)) = (moves, handler.and_then(|handler| handler.http_get.as_mut())) {
        get.port = None;
    }
    now
}

/// Converts an audience to the fields of a request.
pub(super) fn audience_to_wire(audience: &Audience) -> (Authorization, Option<Vec<String>>) {
    match audience {
        Audience::Everyone => (Authorization::Public, None),
        Audience::Authenticated => (Authorization::AuthenticatedUsers, None),
        Audience::Users(users) => {
            (Authorization::AuthorizedUsers, Some(users.iter().cloned().collect()))
        }
    }
}

/// Adds the serving settings to a specification, in the fields of a request.
pub(super) fn shown(spec: &WorkloadSpec, of_pods: Wire) -> Wire {
    let Some(serving) = &spec.serving else { return of_pods };
    let (scaling, probe) = (&serving.scaling, &serving.probe);
    let seconds = |ms: u64| u32::try_from(ms / 1000).unwrap_or(u32::MAX);
    let some = |seconds: u32| Some(seconds).filter(|seconds| *seconds > 0);
    // Values that default to `minReplicas` are left out, so that they follow its changes.
    let own = |count: u32| Some(count).filter(|count| *count != scaling.replicas_min.max(1));
    let by_load = scaling.target.filter(|target| target.metric != Metric::Latency);
    let percentage = by_load.map(|target| number_from_millis(target.percent_millis.into()));
    let readiness = WireProbe {
        initial_delay_seconds: Some(seconds(probe.first_ms)),
        period_seconds: Some(seconds(probe.period_ms)),
        timeout_seconds: Some(seconds(probe.wait_ms_max)),
        success_threshold: Some(probe.successes),
        failure_threshold: Some(probe.failures),
        handler: probe.path.clone().map(|path| ProbeHandler {
            http_get: Some(ProbeHandlerHttpGet {
                path: Some(path),
                port: Some(serving.container_port),
                scheme: Some("HTTP".to_owned()),
                ..ProbeHandlerHttpGet::default()
            }),
        }),
    };
    let (authorization, users) = audience_to_wire(&serving.audience);
    Wire {
        // Fields that an inference cannot set.
        backoff_limit: None,
        restart_policy: None,
        elastic: None,
        autoscaling: Some(AutoScaling {
            metric_threshold_percentage: percentage,
            min_replicas: Some(scaling.replicas_min),
            max_replicas: own(scaling.replicas_max),
            initial_replicas: own(scaling.replicas_initial),
            activation_replicas: own(scaling.replicas_activation),
            concurrency_hard_limit: serving.concurrency_max,
            scale_to_zero_retention_seconds: some(seconds(scaling.zero_retention_ms)),
            scale_down_delay_seconds: some(seconds(scaling.down_delay_ms)),
            initialization_timeout_seconds: None,
            metric: scaling.target.map(|target| target.metric.name().to_owned()),
            metric_threshold: scaling.target.map(|target| target.threshold),
        }),
        serving_configuration: Some(ServingConfiguration {
            initialization_timeout_seconds: Some(seconds(serving.start_ms_max)),
            request_timeout_seconds: Some(seconds(serving.request_ms_max)),
        }),
        serving_port: Some(ServingPort {
            container: Some(serving.container_port),
            protocol: Some(ServingPortProtocol::Http),
            authorization_type: Some(authorization),
            authorized_users: users,
            authorized_groups: None,
            cluster_local_access_only: Some(serving.local_only),
        }),
        probes: Some(Probes { readiness: Some(readiness) }),
        ..of_pods
    }
}
