//! Converts a submission to the body of a request. Owns: the wire field of each value.

use api_types as wire;

use crate::intent::{
    Distributed, Effect, Framework, Gpu, Kind, Master, Place, Runs, SecretFiles, Serving, Spec,
    Submit, Toleration, Update, Variable,
};

/// Body of a creation request, in a project known by its number. Inherited values are not included.
pub fn creation(submit: &Submit, name: &str, project_id: String) -> wire::CreationRequest {
    let mut request = wire::CreationRequest {
        name: name.to_owned(),
        project_id,
        strict: submit.strict.then_some(true),
        ..wire::CreationRequest::default()
    };
    let mut asked = wire::WorkloadSpec {
        command_line: Some(submit.command_line.clone()),
        ..spec(&submit.spec)
    };
    match &submit.kind {
        Kind::Training(Runs { completions, parallelism, elastic }) => {
            asked.completions = *completions;
            asked.parallelism = *parallelism;
            asked.elastic = elastic.then_some(true);
        }
        Kind::Workspace => {}
        Kind::Distributed(distributed) => {
            together(distributed, &mut asked);
            match &distributed.master {
                Master::AsWorkers => {}
                Master::None => request.master_spec_same_as_worker = Some(false),
                Master::Own(master) => request.master_spec = Some(spec(master)),
            }
        }
        Kind::Inference(serving) => serves(serving, &mut asked),
    }
    request.spec = Some(asked);
    request
}

/// Body of an update request.
pub fn change(update: &Update) -> wire::InferenceUpdateRequest {
    let Update { spec: set, serving, labels_gone, annotations_gone, .. } = update;
    let mut asked = spec(set);
    serves(serving, &mut asked);
    asked.labels =
        some(set.labels.iter().map(pair).chain(labels_gone.iter().map(|name| removed(name))));
    let gone = annotations_gone.iter().map(|name| removed(name));
    asked.annotations = some(set.annotations.iter().map(pair).chain(gone));
    wire::InferenceUpdateRequest {
        spec: asked,
        recreate: update.recreate.then_some(true),
        from_revision: update.from_revision,
    }
}

/// A name and value pair that removes the name.
fn removed(name: &str) -> wire::NameValue {
    wire::NameValue { name: name.to_owned(), value: String::new(), exclude: Some(true) }
}

fn spec(of: &Spec) -> wire::WorkloadSpec {
    let words = |words: &[String]| (!words.is_empty()).then(|| shell_words::join(words));
    wire::WorkloadSpec {
        image: of.image.clone(),
        command: words(&of.command),
        args: words(&of.args),
        compute: compute(of),
        environment_variables: some(of.environment.iter().map(variable)),
        storage: storage(of),
        ports: some(of.around.ports.iter().cloned()),
        exposed_urls: some(of.around.urls.iter().cloned()),
        security: Some(&of.around.security)
            .filter(|security| **security != wire::Security::default())
            .cloned(),
        image_pull_policy: of.around.pull,
        create_home_dir: of.around.home,
        auto_deletion_time_after_completion_seconds: of.around.delete_after_s,
        scheduling_gates: of.around.gates.clone(),
        preemption_delay_seconds: of.around.preemption_delay_s,
        time_limit_seconds: of.around.time_limit_s,
        working_dir: of.working_dir.clone(),
        priority_class: of.priority.clone(),
        preemptibility: of.preemptible.map(|preemptible| match preemptible {
            true => wire::Preemptibility::Preemptible,
            false => wire::Preemptibility::NonPreemptible,
        }),
        backoff_limit: of.backoff_limit,
        restart_policy: of.restart,
        termination_grace_period_seconds: of.grace_seconds,
        stdin: of.stdio.stdin.then_some(true),
        tty: of.stdio.tty.then_some(true),
        labels: some(of.labels.iter().map(pair)),
        annotations: some(of.annotations.iter().map(pair)),
        node_pools: some(of.place.node_pools.iter().cloned()),
        node_type: of.place.node_type.clone(),
        node_affinity_required: affinity(&of.place),
        tolerations: some(of.place.tolerations.iter().map(toleration)),
        pod_affinity: of.place.near.clone().map(|(key, required)| wire::PodAffinity {
            kind: Some(match required {
                true => wire::PodAffinityType::Required,
                false => wire::PodAffinityType::Preferred,
            }),
            key: Some(key),
        }),
        ..wire::WorkloadSpec::default()
    }
}

fn storage(of: &Spec) -> Option<wire::Storage> {
    let storage = wire::Storage {
        secret_volume: some(of.secret_files.iter().map(files)),
        ..of.around.storage.clone()
    };
    Some(storage).filter(|storage| *storage != wire::Storage::default())
}

/// The items as a list; `None` if there are none.
fn some<T>(items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let items: Vec<T> = items.collect();
    (!items.is_empty()).then_some(items)
}

/// Node affinity: all of these labels, each with one of its values, and none of the excluded nodes,
/// by their hostname label.
fn affinity(of: &Place) -> Option<wire::NodeAffinityRequired> {
    let expression = |key: &str, operator, values: &[String]| wire::MatchExpression {
        key: key.to_owned(),
        operator,
        values: Some(values.to_vec()),
    };
    let has = |(key, values): &(String, Vec<String>)| {
        expression(key, wire::MatchExpressionOperator::In, values)
    };
    let others =
        expression("kubernetes.io/hostname", wire::MatchExpressionOperator::NotIn, &of.excluded);
    let others = (!of.excluded.is_empty()).then_some(others);
    let match_expressions: Vec<_> = of.affinity.iter().map(has).chain(others).collect();
    let any = !match_expressions.is_empty();
    let term = wire::NodeSelectorTerm { match_expressions };
    any.then(|| wire::NodeAffinityRequired { node_selector_terms: vec![term] })
}

fn pair((name, value): &(String, String)) -> wire::NameValue {
    wire::NameValue { name: name.clone(), value: value.clone(), exclude: None }
}

fn variable((name, value): &(String, Variable)) -> wire::EnvironmentVariable {
    let mut variable = wire::EnvironmentVariable { name: Some(name.clone()), ..Default::default() };
    match value {
        Variable::Text(text) => variable.value = Some(text.clone()),
        Variable::Secret { credential, key } => {
            variable.secret = Some(wire::EnvironmentVariableSecret {
                name: Some(credential.clone()),
                key: key.clone(),
            });
        }
    }
    variable
}

fn files(of: &SecretFiles) -> wire::SecretVolume {
    wire::SecretVolume {
        secret: Some(of.credential.clone()),
        mount_path: Some(of.path.clone()),
        ..wire::SecretVolume::default()
    }
}

fn toleration(of: &Toleration) -> wire::Toleration {
    wire::Toleration {
        operator: Some(match of.value {
            Some(_) => wire::TolerationOperator::Equal,
            None => wire::TolerationOperator::Exists,
        }),
        key: of.key.clone(),
        value: of.value.clone(),
        effect: of.effect.map(|effect| match effect {
            Effect::NoSchedule => wire::TolerationEffect::NoSchedule,
            Effect::NoExecute => wire::TolerationEffect::NoExecute,
            Effect::PreferNoSchedule => wire::TolerationEffect::PreferNoSchedule,
        }),
        ..wire::Toleration::default()
    }
}

fn compute(of: &Spec) -> Option<wire::Compute> {
    let resource = |(name, quantity): &(String, String)| wire::ExtendedResource {
        resource: name.clone(),
        quantity: Some(quantity.clone()),
        exclude: None,
    };
    let mut compute = wire::Compute {
        cpu_core_request: of.cpu_millis.map(wire::number_from_millis),
        cpu_memory_request: of.memory.clone(),
        cpu_core_limit: of.around.cpu_millis_max.map(wire::number_from_millis),
        cpu_memory_limit: of.around.memory_max.clone(),
        large_shm_request: of.around.shared_memory_large,
        gpu_portion_limit: of.gpu_millis_max.map(wire::number_from_millis),
        gpu_memory_limit: of.gpu_memory_max.clone(),
        extended_resources: some(of.extended.iter().map(resource)),
        ..wire::Compute::default()
    };
    match &of.gpu {
        None => {}
        Some(Gpu::Devices(devices)) => compute.gpu_devices_request = Some((*devices).into()),
        Some(Gpu::Portion { devices, millis }) => {
            compute.gpu_devices_request = Some((*devices).into());
            compute.gpu_request_type = Some(wire::GpuRequestType::Portion);
            compute.gpu_portion_request = Some(wire::number_from_millis(*millis));
        }
        Some(Gpu::Memory { devices, size }) => {
            compute.gpu_devices_request = Some((*devices).into());
            compute.gpu_request_type = Some(wire::GpuRequestType::Memory);
            compute.gpu_memory_request = Some(size.clone());
        }
    }
    (compute != wire::Compute::default()).then_some(compute)
}

fn together(of: &Distributed, asked: &mut wire::WorkloadSpec) {
    asked.distributed_framework = Some(match of.framework {
        Framework::Mpi => wire::DistributedFramework::MPI,
        Framework::PyTorch => wire::DistributedFramework::PyTorch,
        Framework::Tf => wire::DistributedFramework::TF,
        Framework::XgBoost => wire::DistributedFramework::XGBoost,
        Framework::Jax => wire::DistributedFramework::JAX,
    });
    asked.num_workers = of.workers;
    asked.min_replicas = of.workers_min;
    asked.max_replicas = of.workers_max;
    asked.slots_per_worker = of.slots;
    asked.clean_pod_policy = of.clean;
}

fn serves(of: &Serving, asked: &mut wire::WorkloadSpec) {
    let Serving { port, autoscaling, configuration } = of.clone();
    asked.serving_port = port;
    asked.autoscaling = autoscaling;
    asked.serving_configuration = configuration;
}
