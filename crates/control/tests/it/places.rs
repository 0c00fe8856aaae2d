//! Where pods may go, as far as a workload says.

use model::{Effect, MigRequest, Operator, Requirement, Toleration};
use spec::{Colocation, GpuRequest, Place};
use view::Phase;

use crate::world::{World, distributed, nodes, training, with};

fn near(required: bool) -> Place {
    let near = Colocation { key: "kubernetes.io/hostname".to_owned(), required };
    Place { colocation: Some(near), ..Place::default() }
}

#[tokio::test]
async fn pods_that_must_be_together_wait_for_a_node_with_room_for_all() {
    let w = World::new(nodes(2, 2), &[4]).await;
    let mut spec = distributed("d", 2);
    spec.sets_mut().for_each(|set| set.pod.place = near(true));
    w.submit(1, spec.clone()).await;
    w.becomes("d Pending 0/3").await;
    w.delete("d").await;
    w.becomes("").await;
    spec.sets_mut().for_each(|set| set.pod.place = near(false));
    w.submit(1, spec).await;
    w.becomes("d Running 3/3").await;
    w.delete("d").await;
    w.becomes("").await;
    let mut spec = distributed("d", 1);
    spec.sets_mut().for_each(|set| set.pod.place = near(true));
    w.submit(1, spec).await;
    let d = w.phase("d", Phase::Running).await;
    assert_eq!(d.pods[0].node_name, d.pods[1].node_name);
}

#[tokio::test]
async fn every_node_has_its_name_as_a_label() {
    let w = World::new(nodes(2, 2), &[4]).await;
    let host = |operator: fn(Vec<String>) -> Operator| {
        let key = "kubernetes.io/hostname".to_owned();
        let term = vec![Requirement { key, operator: operator(vec!["node-2".to_owned()]) }];
        move |pod: &mut spec::PodSpec| pod.place.affinity = vec![term]
    };
    w.submit(1, with(training("there", 1), host(Operator::In))).await;
    w.submit(1, with(training("elsewhere", 1), host(Operator::NotIn))).await;
    w.becomes("there Running 1/1\nelsewhere Running 1/1").await;
    let node = |name| w.get(name).unwrap().pods[0].node_name.clone();
    let nodes = [node("there"), node("elsewhere")];
    assert_eq!(nodes, ["node-2", "node-1"].map(|name| Some(name.to_owned())));
}

#[tokio::test]
async fn a_label_that_no_node_has_is_waited_for_and_everything_said_survives() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    let key = || "rack".to_owned();
    let operators = [
        Operator::In(vec!["a".to_owned()]),
        Operator::NotIn(vec!["b".to_owned()]),
        Operator::Exists,
        Operator::Gt(3),
        Operator::Lt(9),
    ];
    let term = operators.map(|operator| Requirement { key: key(), operator });
    let none = Requirement { key: key(), operator: Operator::DoesNotExist };
    let toleration = Toleration { key: Some(key()), value: None, effect: Some(Effect::NoExecute) };
    let place =
        Place { affinity: vec![term.to_vec()], tolerations: vec![toleration], ..near(false) };
    let spec = with(training("t", 1), |pod| pod.place = place);
    w.submit(1, spec.clone()).await;
    w.becomes("t Pending 0/1").await;
    let other = Place { affinity: vec![vec![none]], ..Place::default() };
    w.submit(1, with(training("u", 1), |pod| pod.place = other)).await;
    w.becomes("t Pending 0/1\nu Running 1/1").await;
    w.restart().await;
    w.becomes("t Pending 0/1\nu Running 1/1").await;
    assert_eq!(*w.get("t").unwrap().spec, spec);
}

#[tokio::test]
async fn mig_instances_are_waited_for_where_no_gpu_is_divided() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    let instances = MigRequest::new([("1g.10gb".parse().unwrap(), 2)]).unwrap();
    let spec = with(training("t", 0), |pod| pod.gpu = GpuRequest::Mig(instances));
    w.submit(1, spec.clone()).await;
    w.phase("t", Phase::Pending).await;
    assert_eq!(w.why("t")[0].code, "P101");
    w.restart().await;
    assert_eq!(*w.get("t").unwrap().spec, spec);
}
