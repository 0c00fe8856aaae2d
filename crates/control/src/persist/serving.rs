//! Serving between the types of this crate and the storage types, both ways.

use std::collections::BTreeSet;

use store::{ProbeBody, RelatedUrlBody, RevisionBody, ScalingBody, ServingBody, UrlBody};

use crate::Error;
use crate::serving::{
    Audience, ExposedUrl, Metric, Probe, RelatedUrl, Revision, Scaling, Serving, Target,
};

words!(Metric, metric_word, metric, "metric":
    Concurrency = "concurrency", Throughput = "throughput", Latency = "latency");

pub(super) fn body(serving: &Serving) -> ServingBody {
    let Serving { scaling, probe, .. } = serving;
    let (audience, users) = audience_body(&serving.audience);
    ServingBody {
        container_port: serving.container_port,
        scaling: ScalingBody {
            replicas_min: scaling.replicas_min,
            replicas_max: scaling.replicas_max,
            replicas_initial: scaling.replicas_initial,
            replicas_activation: scaling.replicas_activation,
            metric: scaling.target.map(|target| metric_word(target.metric).to_owned()),
            threshold: scaling.target.map_or(0, |target| target.threshold),
            percent_millis: scaling.target.map_or(0, |target| target.percent_millis),
            window_ms: scaling.window_ms,
            down_delay_ms: scaling.down_delay_ms,
            zero_retention_ms: scaling.zero_retention_ms,
        },
        concurrency_max: serving.concurrency_max,
        start_ms_max: serving.start_ms_max,
        request_ms_max: serving.request_ms_max,
        local_only: serving.local_only,
        audience,
        users,
        probe: ProbeBody {
            path: probe.path.clone(),
            first_ms: probe.first_ms,
            period_ms: probe.period_ms,
            wait_ms_max: probe.wait_ms_max,
            successes: probe.successes,
            failures: probe.failures,
        },
    }
}

pub(super) fn from_body(body: ServingBody) -> Result<Serving, Error> {
    let ServingBody { scaling, probe, .. } = body;
    let target = |word: &str| {
        let metric = metric(word)?;
        let (threshold, percent_millis) = (scaling.threshold, scaling.percent_millis);
        Ok::<_, Error>(Target { metric, threshold, percent_millis })
    };
    Ok(Serving {
        container_port: body.container_port,
        scaling: Scaling {
            replicas_min: scaling.replicas_min,
            replicas_max: scaling.replicas_max,
            replicas_initial: scaling.replicas_initial,
            replicas_activation: scaling.replicas_activation,
            target: scaling.metric.as_deref().map(target).transpose()?,
            window_ms: scaling.window_ms,
            down_delay_ms: scaling.down_delay_ms,
            zero_retention_ms: scaling.zero_retention_ms,
        },
        concurrency_max: body.concurrency_max,
        start_ms_max: body.start_ms_max,
        request_ms_max: body.request_ms_max,
        local_only: body.local_only,
        audience: audience(&body.audience, body.users),
        probe: Probe {
            path: probe.path,
            first_ms: probe.first_ms,
            period_ms: probe.period_ms,
            wait_ms_max: probe.wait_ms_max,
            successes: probe.successes,
            failures: probe.failures,
        },
    })
}

fn audience_body(audience: &Audience) -> (String, Vec<String>) {
    let (word, users) = match audience {
        Audience::Everyone => ("everyone", Vec::new()),
        Audience::Authenticated => ("authenticated", Vec::new()),
        Audience::Users(users) => ("users", users.iter().cloned().collect()),
    };
    (word.to_owned(), users)
}

fn audience(word: &str, users: Vec<String>) -> Audience {
    match word {
        "everyone" => Audience::Everyone,
        "authenticated" => Audience::Authenticated,
        "users" => Audience::Users(users.into_iter().collect()),
        // What this version does not know is open to no one.
        _ => Audience::Users(BTreeSet::new()),
    }
}

pub(super) fn url_body(url: &ExposedUrl) -> UrlBody {
    let ExposedUrl { port, audience, name, tool: (tool_type, tool_name) } = url.clone();
    let (audience, users) = audience_body(&audience);
    UrlBody { port, audience, users, name, tool_type, tool_name }
}

pub(super) fn url_from_body(body: UrlBody) -> ExposedUrl {
    let UrlBody { port, audience: word, users, name, tool_type, tool_name } = body;
    ExposedUrl { port, audience: audience(&word, users), name, tool: (tool_type, tool_name) }
}

pub(super) fn related_body(of: &RelatedUrl) -> RelatedUrlBody {
    let RelatedUrl { url, name, tool_type } = of.clone();
    RelatedUrlBody { url, name, tool_type }
}

pub(super) fn related_from_body(body: RelatedUrlBody) -> RelatedUrl {
    let RelatedUrlBody { url, name, tool_type } = body;
    RelatedUrl { url, name, tool_type }
}

pub(super) const fn revision_body(revision: Revision) -> RevisionBody {
    RevisionBody { of: revision.of, number: revision.number }
}

pub(super) const fn revision_from_body(body: RevisionBody) -> Revision {
    Revision { of: body.of, number: body.number }
}
