//! Refusals of a master and its servers, and their messages.

use elastic_master::JobConfig;
use elastic_proto::v1::optimizer::Rule;
use elastic_proto::v1::parameter_server_client::ParameterServerClient;
use elastic_proto::v1::{
    BadRecord, GetTaskRequest, InitModelRequest, JobPhase, Optimizer, PullOutcome, PullRequest,
    PushGradientsRequest, ReportTaskRequest, Sgd, StatusRequest, TaskOutcome, Variable,
    WatchRequest,
};
use elastic_proto::{Credentials, PROTOCOL, tensor};
use tokio::sync::watch;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};

use crate::cluster::{Cluster, TOKEN, bare, client, job};
use crate::trainings::worker;
use crate::worker::{Ended, Habits, Server, Signal, Worker, channel, until};

async fn register(cluster: &Cluster) -> Worker {
    register_as(cluster, "worker-0").await
}

async fn register_as(cluster: &Cluster, pod: &str) -> Worker {
    let (_sender, signal) = watch::channel(Signal::Go);
    let address = cluster.address();
    let at = (address.as_str(), cluster.credentials());
    Worker::register(at, pod, (100, Habits::default()), signal).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_the_token_or_of_another_version_gets_nothing() {
    let cluster = Cluster::start(JobConfig { parameter_servers: 0, ..job(100) });
    cluster.status().await;
    let mut stranger = bare(&cluster.address());
    let refused = stranger.status(StatusRequest {}).await.expect_err("no token");
    assert_eq!(refused.code(), Code::Unauthenticated);
    let mut request = Request::new(StatusRequest {});
    let metadata = request.metadata_mut();
    metadata.insert("authorization", MetadataValue::from_static("Bearer a-token-of-this-job"));
    metadata.insert("elastane-protocol", MetadataValue::from(PROTOCOL + 1));
    let refused = stranger.status(request).await.expect_err("another version");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("use a wheel and a program of the same release"));
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_encrypt_talk_to_none_without_the_certificate_of_their_job() {
    let cluster = Cluster::encrypted(job(100));
    cluster.status().await;
    let others = tempfile::tempdir().expect("a folder");
    let token = others.path().join("token");
    std::fs::write(&token, crate::cluster::encrypted_token()).expect("written");
    let of_another_job = Credentials::read(&token).expect("a token");
    let plain = Credentials::new(TOKEN).expect("a token");
    for credentials in [of_another_job, plain] {
        let mut stranger = client(&cluster.address(), &credentials);
        let refused = stranger.status(StatusRequest {}).await.expect_err("no connection");
        // The refusal comes from the connection, not from a master that has read the token.
        let codes = [Code::Unavailable, Code::Unknown, Code::Internal, Code::Cancelled];
        assert!(codes.contains(&refused.code()), "{refused:?}");
    }
    let (one, _keep) = worker(&cluster, "worker-0", 100, Habits::default());
    assert_eq!(one.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!((status.phase(), status.records), (JobPhase::Succeeded, 100));
}

/// A server that waits for a model.
async fn server(cluster: &Cluster, worker: &Worker) -> Server {
    loop {
        let request = WatchRequest { worker_id: worker.id, ..Default::default() };
        let reply = worker.master.clone().watch(request).await.expect("there").into_inner();
        if let Some(address) = reply.parameter_servers.first() {
            let sign = cluster.credentials().sign();
            let channel = channel(address, &cluster.credentials());
            return ParameterServerClient::with_interceptor(channel, sign);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tensors_that_cannot_be_are_refused_by_name() {
    let cluster = Cluster::start(job(100));
    let worker = register(&cluster).await;
    let server = server(&cluster, &worker).await;
    let init = |value| InitModelRequest {
        worker_id: worker.id,
        model_generation: 1,
        trainable: vec![Variable { name: "w".into(), value: Some(value) }],
        state: Vec::new(),
        optimizer: Some(Optimizer { learning_rate: 0.1, rule: Some(Rule::Sgd(Sgd::default())) }),
        ..Default::default()
    };
    let call = |init: InitModelRequest| {
        let server = server.clone();
        until(move || {
            let (mut server, init) = (server.clone(), init.clone());
            async move { server.init_model(init).await }
        })
    };
    let mut short = tensor(&[2], &[0.0; 2]);
    short.shape = vec![3];
    let refused = call(init(short)).await.expect_err("malformed");
    assert!(refused.message().contains("w: DTYPE_FLOAT32 of shape [3] has 12 bytes"), "{refused}");
    let large = tensor(&[1 << 19], &vec![0.0; 1 << 19]);
    let refused = call(init(large)).await.expect_err("larger than a message");
    assert_eq!(refused.code(), Code::OutOfRange);
    call(init(tensor(&[2], &[0.0; 2]))).await.expect("a model");
    let push = |name: &str, length: u64, generation| PushGradientsRequest {
        worker_id: worker.id,
        model_generation: generation,
        sequence: 1,
        gradients: vec![Variable {
            name: name.into(),
            value: Some(tensor(&[length], &vec![0.0; usize::try_from(length).expect("small")])),
        }],
        ..Default::default()
    };
    let call = |push: PushGradientsRequest| {
        let mut server = server.clone();
        async move { server.push_gradients(push).await.map_err(|status| status.message().to_owned()) }
    };
    let refused = call(push("v", 2, 1)).await.expect_err("not in the model");
    assert_eq!(refused, "v is not in the model; it has w on this server");
    let refused = call(push("w", 5, 1)).await.expect_err("another shape");
    assert_eq!(refused, "w has shape [2] in the model and [5] in the message");
    let refused = call(push("w", 2, 9)).await.expect_err("another life");
    assert!(refused.contains("model generation 9 is not the present one, 1"), "{refused}");
    call(push("w", 2, 1)).await.expect("accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_a_gradient_leaves_its_place_in_the_next_update_to_others() {
    let cluster = Cluster::start(JobConfig { grads_to_wait: 1, ..job(100) });
    let (one, other) = (register(&cluster).await, register_as(&cluster, "worker-1").await);
    let server = server(&cluster, &one).await;
    let init = InitModelRequest {
        worker_id: one.id,
        model_generation: 1,
        trainable: vec![Variable { name: "w".into(), value: Some(tensor(&[2], &[0.0; 2])) }],
        optimizer: Some(Optimizer { learning_rate: 0.1, rule: Some(Rule::Sgd(Sgd::default())) }),
        ..Default::default()
    };
    until(|| {
        let (mut server, init) = (server.clone(), init.clone());
        async move { server.init_model(init).await }
    })
    .await
    .expect("a model");
    let pull = |worker_id, for_training, wait_ms| {
        let mut server = server.clone();
        let pull = PullRequest { worker_id, for_training, wait_ms, ..Default::default() };
        async move { server.pull(pull).await.expect("answered").into_inner().outcome() }
    };
    assert_eq!(pull(one.id, true, 0).await, PullOutcome::Ready);
    assert_eq!(pull(other.id, true, 0).await, PullOutcome::Wait);
    let waits = tokio::spawn(pull(other.id, true, 10_000));
    assert_eq!(pull(one.id, false, 0).await, PullOutcome::Ready);
    assert_eq!(waits.await.expect("ends"), PullOutcome::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_counted_and_the_one_too_many_is_named() {
    let mut config = JobConfig { parameter_servers: 0, ..job(100) };
    config.limits.bad_records_max = 1;
    let cluster = Cluster::start(config);
    let worker = register(&cluster).await;
    let mut master = worker.master.clone();
    let get = GetTaskRequest { worker_id: worker.id, holding: Vec::new(), wait_ms: 1000 };
    let task = master.get_task(get.clone()).await.expect("asked").into_inner().task.expect("one");
    let again = master.get_task(get).await.expect("asked").into_inner().task.expect("one");
    assert_eq!(task.task_id, again.task_id, "a reply that was lost comes again");
    let report = |positions: &[u64]| ReportTaskRequest {
        worker_id: worker.id,
        task_id: task.task_id,
        outcome: TaskOutcome::Progress.into(),
        finished_records: 5,
        bad_records: positions
            .iter()
            .map(|position| BadRecord { position: *position, message: "digits: cut short".into() })
            .collect(),
        ..Default::default()
    };
    let refused = master.report_task(report(&[99])).await.expect_err("of another task");
    assert!(refused.message().contains("record 99 is not in task 1 (records 0 to 20"), "{refused}");
    assert!(master.report_task(report(&[3, 3])).await.expect("counted").into_inner().held);
    assert_eq!(cluster.status().await.bad_records, 1);
    master.report_task(report(&[4])).await.expect("counted");
    let status = client(&cluster.address(), &cluster.credentials()).status(StatusRequest {}).await;
    let message = status.expect("there").into_inner().message;
    let expected = "2 records cannot be read, and 1 are allowed; the last is 4: digits: cut short";
    assert_eq!(message, expected);
}
