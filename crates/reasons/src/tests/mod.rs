//! Every reason, cause, obstacle and advice in one place, for review. A change of wording is a
//! change of `texts.txt`.

use expect_test::{ExpectFile, expect_file};
use model::{Effect, GpuRequest, MigProfile, MigRequest, Taint};
use testkit::{assert_plain, texts};
use units::{Idx, Instant, Kind, Resources};

use crate::diagnosis::{
    Advice, Change, Failing, Means, NodeClass, Obstacle, Outcome, Raise, Refusals, Search, Standing,
};
use crate::{
    Cause, Code, CommonGpus, Lost, NoDomain, Pending, Protection, QueueNumbers, Strategy,
    WorkloadRef,
};

const NOW: Instant = Instant(0);
const LATER: Instant = Instant(600_000);
const GIB: u64 = 1 << 30;

fn queue(name: &str) -> QueueNumbers {
    let name = name.to_owned();
    let (quota, fair_share, is_claim) = (2000, 2500, false);
    QueueNumbers { name, kind: Kind::Gpu, allocated: 3000, lent: 0, quota, fair_share, is_claim }
}

fn with_lent(name: &str) -> QueueNumbers {
    QueueNumbers { lent: 1000, ..queue(name) }
}

pub(crate) fn workload(name: &str) -> WorkloadRef {
    let (id, queue) = (Idx::new(0), "team-b".to_owned());
    WorkloadRef { id, name: name.to_owned(), revision_of: None, queue }
}

fn mig() -> MigRequest {
    let profile: MigProfile = "1g.10gb".parse().unwrap();
    MigRequest::new([(profile, 2)]).unwrap()
}

fn domain(best: &str, part: &str, bound: bool) -> Pending {
    Pending::NoTopologyDomain(NoDomain {
        topology: "net".to_owned(),
        level: "rack".to_owned(),
        part: part.to_owned(),
        domains: 3,
        best: best.to_owned(),
        room: 2,
        pods: 4,
        bound,
    })
}

fn larger(request: GpuRequest, gpus_max: usize, largest: Resources, nodes: usize) -> Pending {
    let demand = Resources { gpu_millis: 0, cpu_millis: 9000, memory_bytes: 64 * GIB };
    Pending::LargerThanAnyNode { request, demand, gpus_max, part_max: None, largest, nodes }
}

/// Reasons of capacity: larger than any node, and shortages at the moment.
fn pending_of_room() -> Vec<Pending> {
    use Pending as P;
    let largest = Resources { gpu_millis: 0, cpu_millis: 8000, memory_bytes: 32 * GIB };
    let share = |devices| P::NoGpuShareFree { devices, millis: 500, free_millis_max: 250 };
    let gpus =
        |free_total| P::NotEnoughGpus { gpus: 2, nodes: 3, free_on_one_node_max: 1, free_total };
    let gang = |pods_min, pods| P::GangIncomplete { pods_min, pods, fitting: 3, near: None };
    let near = |key: &str| P::GangIncomplete {
        pods_min: 4,
        pods: 4,
        fitting: 2,
        near: Some(key.to_owned()),
    };
    let in_use = |request| P::NoInstanceForPart { request, instances: 5, large: 2, nodes: 1 };
    let too_large = |request| match larger(request, 0, largest, 1) {
        P::LargerThanAnyNode { request, demand, gpus_max, largest, nodes, .. } => {
            let part_max = Some((500, 39 * GIB));
            P::LargerThanAnyNode { request, demand, gpus_max, part_max, largest, nodes }
        }
        other => other,
    };
    vec![
        larger(GpuRequest::Whole(1), 0, Resources::ZERO, 0),
        larger(GpuRequest::Memory { devices: 1, bytes: 40 * GIB }, 0, largest, 2),
        larger(GpuRequest::Mig(mig()), 0, Resources::ZERO, 2),
        larger(GpuRequest::Whole(8), 4, largest, 2),
        larger(GpuRequest::Whole(1), 4, largest, 2),
        gpus(0),
        gpus(2),
        share(1),
        share(2),
        P::NoMigInstanceFree { request: mig(), nodes: 3, with: 2 },
        in_use(GpuRequest::Whole(1)),
        in_use(GpuRequest::Share { devices: 1, millis: 500 }),
        in_use(GpuRequest::Memory { devices: 1, bytes: 30 * GIB }),
        too_large(GpuRequest::Whole(2)),
        too_large(GpuRequest::Share { devices: 2, millis: 500 }),
        too_large(GpuRequest::Memory { devices: 2, bytes: 30 * GIB }),
        P::NotEnoughCpu { cpu_millis: 4000, free_millis_max: 1500 },
        P::NotEnoughMemory { memory_bytes: 64 * GIB, free_bytes_max: 16 * GIB },
        gang(4, 3),
        gang(1, 2),
        gang(4, 4),
        near("rack"),
        near(model::HOST_LABEL),
        P::NodesRuledOut { nodes: 9, cordoned: 1, selector: 2, affinity: 1, taint: 2, pool: 3 },
        P::KeptAwayByPods { nodes: 6, affinity: 1, anti_affinity: 2, repelled: 3 },
        domain("", "", false),
        domain("rack-1", "workers", true),
        domain("rack-1", "", false),
        P::GpusOutOfService { gpus: 4, out: 1, first: ("node-1".to_owned(), 3) },
        P::GpusOutOfService { gpus: 4, out: 2, first: ("node-1".to_owned(), 0) },
    ]
}

fn common(queues: &[&str], others: usize, nodes: usize) -> Pending {
    let queues = queues.iter().map(|&name| name.to_owned()).collect();
    let common = CommonGpus { queues, others, gpu_millis: 4000, node: "node-1".to_owned(), nodes };
    let common = Some(Box::new(common));
    Pending::NotEntitledToMore { queue: queue("team-a"), requested: 2000, common }
}

fn not_counted(left_out: u64, fitting: u32) -> Pending {
    let (queue, kind, requested) = ("team-a".to_owned(), Kind::Gpu, 8000);
    Pending::NotCounted { queue, kind, left_out, requested, fitting, sets: 1, pods: 2 }
}

const fn protected(by: Protection) -> Pending {
    Pending::Protected { kind: Kind::Gpu, requested: 1000, by }
}

/// Reasons of entitlement, and reasons that only take time.
fn pending_of_rights() -> Vec<Pending> {
    use Pending as P;
    let (name, holder) = ("team-a".to_owned(), workload("first"));
    let behind = |gpu_millis, starts_in_ms: Option<u64>| P::BehindReservation {
        holder: holder.clone(),
        since: NOW,
        gpu_millis,
        starts_at: starts_in_ms.map(|ms| LATER.plus_ms(ms)),
    };
    vec![
        P::OverLimit {
            queue: name.clone(),
            kind: Kind::Memory,
            limit: 64 * GIB,
            allocated: 48 * GIB,
            requested: 32 * GIB,
        },
        P::NonPreemptibleOverQuota {
            queue: name,
            kind: Kind::Gpu,
            quota: 2000,
            allocated: 1500,
            requested: 1000,
        },
        P::NotEntitledToMore { queue: queue("team-a"), requested: 2000, common: None },
        common(&["team-a"], 0, 1),
        common(&["team-a", "team-b", "team-c"], 0, 2),
        common(&["team-a", "team-b", "team-c"], 1, 3),
        common(&["team-a", "team-b", "team-c"], 7, 3),
        not_counted(8000, 0),
        not_counted(8000, 1),
        not_counted(2000, 1),
        not_counted(8000, 2),
        not_counted(2000, 2),
        protected(Protection::Delay { delay_ms: 90_000 }),
        protected(Protection::OwnWork { queue: queue("team-a"), priority: 50 }),
        protected(Protection::NotPreemptible { held: 2000 }),
        protected(Protection::WithinShare { holder: queue("team-b") }),
        protected(Protection::WithinShare { holder: with_lent("team-b") }),
        protected(Protection::Above { queue: queue("dept-a") }),
        protected(Protection::RunTime { held: 2000 }),
        protected(Protection::NoWay { held: 2000 }),
        P::InPools {
            first: Box::new(P::NotEntitledToMore {
                queue: queue("team-a in pool a100"),
                requested: 2000,
                common: None,
            }),
            others: 3,
        },
        P::WaitingForRelease { node: "node-1".to_owned(), holders: Vec::new() },
        P::WaitingForRelease { node: "node-1".to_owned(), holders: vec!["team-b/b1".to_owned()] },
        P::Gated { gated: 2, pods: 4 },
        P::BackingOff { until: NOW },
        behind(4000, Some(90_000)),
        behind(0, None),
        P::SearchCutShort { trials: 20_000 },
    ]
}

fn causes() -> Vec<Cause> {
    let (by, none) = (workload("first"), Lost { unsaved_ms: 0, checkpointed: false });
    let reclaimed = |strategy, lost| Cause::Reclaimed {
        strategy,
        beneficiary: by.clone(),
        requested: 2000,
        loser: queue("team-a"),
        winner: queue("team-b"),
        lost,
    };
    let preempted = |beneficiary_priority| Cause::Preempted {
        beneficiary: by.clone(),
        priority: 50,
        beneficiary_priority,
        lost: none,
    };
    let resized = |beneficiary| Cause::Resized { gpus_before: 4, gpus_after: 2, beneficiary };
    vec![
        reclaimed(Strategy::QuotaGuaranteed, Lost { unsaved_ms: 600_000, checkpointed: true }),
        reclaimed(Strategy::FairShareMaintained, Lost { unsaved_ms: 9_000_000, ..none }),
        preempted(100),
        preempted(50),
        Cause::Consolidated { beneficiary: by.clone(), lost: none },
        resized(Some(by.clone())),
        resized(None),
        Cause::GrownBack { gpus_before: 2, gpus_after: 4 },
        Cause::StaleGang { pods_min: 4, pods: 3 },
        Cause::Drained { node: "node-1".to_owned() },
    ]
}

fn changes() -> Vec<Change> {
    use Change as C;
    let raise = |kind, to| Raise {
        queue: "team-a".to_owned(),
        unit: "team-a".to_owned(),
        pool: None,
        is_project: true,
        id: Idx::new(0),
        kind,
        from: 2000,
        to,
    };
    let taint = |value: &str| Taint {
        key: "dedicated".to_owned(),
        value: value.to_owned(),
        effect: Effect::NoSchedule,
    };
    vec![
        C::Gpus { gpus: 2 },
        C::Share { millis: 250 },
        C::GpuMemory { bytes: 8 * GIB },
        C::PartOfGpu { bytes: 10 * GIB },
        C::Pods { set: 0, role: String::new(), pods: 3 },
        C::Pods { set: 1, role: "worker".to_owned(), pods: 1 },
        C::Cpu { millis: 1500 },
        C::Memory { bytes: 16 * GIB },
        C::Elastic,
        C::Preemptible,
        C::Priority { class: "medium-low", priority: 65 },
        C::WithoutSelector { key: "zone".to_owned() },
        C::Ungate,
        C::Label { node: "node-1".to_owned(), key: "zone".to_owned(), value: "a".to_owned() },
        C::WithoutAffinity { demands: "zone in (a, b)".to_owned() },
        C::WithoutPodAffinity,
        C::NodePool { from: vec!["t4".to_owned(), "a100".to_owned()], to: "default".to_owned() },
        C::Tolerate { taint: taint("ml") },
        C::Tolerate { taint: taint("") },
        C::Wait { until: NOW.plus_ms(125_000) },
        C::End { workload: workload("b1") },
        C::Quota(vec![raise(Kind::Gpu, 4000), raise(Kind::Cpu, 8000)]),
        C::Limit(vec![raise(Kind::Gpu, 4000)]),
        C::Uncordon { node: "node-1".to_owned() },
        C::Untaint { node: "node-1".to_owned(), taint: taint("ml") },
        C::Nodes { like: "node-1".to_owned(), count: 1 },
        C::Nodes { like: "node-1".to_owned(), count: 2 },
    ]
}

fn standings() -> [Standing; 10] {
    [
        Standing::MayGive,
        Standing::NotPreemptible,
        Standing::AsImportant { priority: 50 },
        Standing::GuaranteedUntil(NOW.plus_ms(3_660_000)),
        Standing::WithinItsShare,
        Standing::TurnUntil(NOW.plus_ms(1_800_000)),
        Standing::KeepsQuota,
        Standing::LessImportantFirst,
        Standing::NotEntitled,
        Standing::OtherRevision,
    ]
}

fn outcomes() -> Vec<Outcome> {
    use Outcome as O;
    let refusals = Refusals {
        not_preemptible: 1,
        as_important: 2,
        guaranteed: 3,
        guaranteed_until: Some(NOW.plus_ms(60_000)),
        within_share: 4,
        in_turn: 5,
        keep_quota: 6,
        less_important_first: 7,
    };
    let free = |free| O::FreeTooLittle { kind: Kind::Gpu, requested: 2000, free };
    let enough = |pods, refusals| O::NotEnough {
        givers: 2,
        freed_gpu_millis: 2000,
        placeable: 1,
        pods,
        refusals,
    };
    vec![
        O::Patient { until: NOW.plus_ms(30_000) },
        O::NotCounted,
        O::Refused(Box::new(Pending::SearchCutShort { trials: 1 })),
        O::NotEntitled { queue: queue("team-a"), requested: 2000 },
        O::OnlyPreemptible,
        free(0),
        free(1000),
        O::NothingInTheWay,
        O::NowhereToMove,
        O::MovesMax { moves: 40, moves_max: 32 },
        O::NoVictim(refusals),
        O::NoVictim(Refusals::default()),
        enough(1, refusals),
        enough(4, Refusals::default()),
        O::Unfair { queue: queue("team-a") },
        O::NotFound,
        O::NotFoundInSets { givers: 3, sets_max: 1024 },
    ]
}

fn obstacles() -> Vec<Obstacle> {
    use Obstacle as O;
    vec![
        O::Cordoned,
        O::Selector,
        O::Affinity,
        O::Pool,
        O::Taint,
        O::PodAffinity,
        O::PodAntiAffinity,
        O::Repelled,
        O::Gpus,
        O::MigInstances,
        O::GpuMemory,
        O::Cpu,
        O::Memory,
        O::InService,
        O::FreeGpus,
        O::FreeMigInstances,
        O::FreeShare,
        O::FreeCpu,
        O::FreeMemory,
        O::Pods,
        O::Other,
    ]
}

fn of_obstacle(obstacle: &Obstacle) -> String {
    let closest = "node-1".to_owned();
    let (obstacle, needed, most) = (*obstacle, 4000, 2000);
    let class = |nodes, all| NodeClass {
        classes: 1,
        nodes: all,
        like: closest.clone(),
        gpus: 0,
        mig: Vec::new(),
        parts: Vec::new(),
        gpu_memory_bytes: 0,
        capacity: Resources { gpu_millis: 0, cpu_millis: 8000, memory_bytes: 32 * GIB },
        labels: Vec::new(),
        taints: Vec::new(),
        room: all - nodes,
        failing: vec![Failing { obstacle, nodes, needed, most, closest: closest.clone() }],
    };
    [class(1, 1), class(2, 3), class(3, 3)].map(|class| class.text(1)).join("\n")
}

#[test]
fn every_reason_and_every_cause() {
    let coded = |code: Code, text: String| format!("{} {}: {text}", code.code, code.name);
    let pending = [pending_of_room(), pending_of_rights()].concat();
    let pending = texts!(
        Pending {
            LargerThanAnyNode,
            NotEnoughGpus,
            NoGpuShareFree,
            NoMigInstanceFree,
            NoInstanceForPart,
            NotEnoughCpu,
            NotEnoughMemory,
            GangIncomplete,
            NodesRuledOut,
            KeptAwayByPods,
            NoTopologyDomain,
            GpusOutOfService,
            OverLimit,
            NonPreemptibleOverQuota,
            NotEntitledToMore,
            NotCounted,
            Protected,
            InPools,
            WaitingForRelease,
            Gated,
            BackingOff,
            BehindReservation,
            SearchCutShort,
        },
        pending,
        |one: &Pending| coded(one.code(), one.as_of(LATER).to_string()),
    );
    let causes = texts!(
        Cause { Reclaimed, Preempted, Consolidated, Resized, GrownBack, StaleGang, Drained },
        causes(),
        |one: &Cause| coded(one.code(), one.to_string()),
    );
    expect_all(&[pending, causes], &expect_file!["texts/reasons.txt"]);
}

fn expect_all(tables: &[String], expected: &ExpectFile) {
    let all = tables.join("\n");
    expected.assert_eq(&all);
    assert_plain(&all);
}

#[test]
fn every_outcome_of_a_search() {
    let search = |means: Means, outcome: &Outcome| {
        let search = Search { means, outcome: outcome.clone() };
        format!("{} {}", search.code().code, search.text(NOW))
    };
    let means = [Means::Consolidate, Means::Reclaim, Means::Preempt];
    let means = texts!(Means { Consolidate, Reclaim, Preempt }, means, |one: &Means| {
        search(*one, &Outcome::NotFound)
    });
    let outcomes = texts!(
        Outcome {
            Patient,
            NotCounted,
            Refused,
            NotEntitled,
            OnlyPreemptible,
            FreeTooLittle,
            NothingInTheWay,
            NowhereToMove,
            MovesMax,
            NoVictim,
            NotEnough,
            Unfair,
            NotFound,
            NotFoundInSets,
        },
        outcomes(),
        |one: &Outcome| search(Means::Reclaim, one),
    );
    expect_all(&[means, outcomes], &expect_file!["texts/searches.txt"]);
}

fn of_change(change: &Change) -> String {
    Advice { workload: workload("train"), change: change.clone(), disturbs: 0 }.text(NOW)
}

fn standing_texts() -> String {
    texts!(
        Standing {
            MayGive,
            NotPreemptible,
            AsImportant,
            GuaranteedUntil,
            WithinItsShare,
            TurnUntil,
            KeepsQuota,
            LessImportantFirst,
            NotEntitled,
            OtherRevision,
        },
        standings(),
        |one: &Standing| one.text(NOW),
    )
}

#[test]
fn every_advice_and_every_obstacle() {
    let changes = texts!(
        Change {
            Gpus,
            Share,
            GpuMemory,
            PartOfGpu,
            Pods,
            Cpu,
            Memory,
            Elastic,
            Preemptible,
            Priority,
            WithoutSelector,
            WithoutAffinity,
            WithoutPodAffinity,
            NodePool,
            Tolerate,
            Ungate,
            Wait,
            End,
            Quota,
            Limit,
            Uncordon,
            Untaint,
            Label,
            Nodes,
        },
        changes(),
        of_change,
    );
    let obstacles = texts!(
        Obstacle {
            Cordoned,
            Selector,
            Affinity,
            Pool,
            Taint,
            PodAffinity,
            PodAntiAffinity,
            Repelled,
            Gpus,
            MigInstances,
            GpuMemory,
            Cpu,
            Memory,
            InService,
            FreeGpus,
            FreeMigInstances,
            FreeShare,
            FreeCpu,
            FreeMemory,
            Pods,
            Other,
        },
        obstacles(),
        of_obstacle,
    );
    expect_all(&[changes, standing_texts(), obstacles], &expect_file!["texts/diagnosis.txt"]);
}

#[test]
fn another_revision_of_an_inference_is_replaced_and_not_deleted() {
    let named = |name: &str, revision_of: Option<&str>| WorkloadRef {
        revision_of: revision_of.map(str::to_owned),
        ..workload(name)
    };
    let advice = |waiting: (&str, Option<&str>), other: (&str, Option<&str>)| {
        let change = Change::End { workload: named(other.0, other.1) };
        let advice = Advice { workload: named(waiting.0, waiting.1), change, disturbs: 0 };
        (advice.text(NOW), advice.commands())
    };
    let replace = "runai inference update svc -p team-b --recreate";
    let (text, commands) = advice(("svc.2", Some("svc")), ("svc.1", Some("svc")));
    assert!(
        text.starts_with("that team-b/svc.1, another revision of the same inference"),
        "{text}"
    );
    assert_eq!(commands, [replace]);
    // Names of pods of Kubernetes have dots.
    let (pod, other_pod) = (("team-a.a2", None), ("team-a.a1", None));
    let of_svc = ("svc.2", Some("svc"));
    let others = [(of_svc, ("other.1", Some("other"))), (of_svc, ("b", None)), (pod, other_pod)];
    for (waiting, other) in others {
        let (text, commands) = advice(waiting, other);
        assert_eq!(text, format!("that team-b/{} ends", other.0));
        let name = other.1.unwrap_or(other.0);
        assert_eq!(commands, [format!("runai delete {name} -p team-b")]);
    }
}
