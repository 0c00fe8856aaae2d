//! Meaning of shares in requests, and that a shown share has the same meaning.

use serde_json::json;

use super::*;

fn asked(resources: &serde_json::Value) -> Result<Share, ApiError> {
    let body = json!({"resources": resources}).to_string();
    let request: api_types::ProjectUpdateRequest = http_kit::parse_json(body.as_bytes())?;
    Ok(some_shares(&request.resources)?[POOL_DEFAULT_ID].made_to(Share::USUAL))
}

#[test]
fn what_is_left_out_has_a_default() {
    assert_eq!(asked(&json!([{}])).unwrap(), Share::USUAL);
    let share = asked(&json!([{"gpu": {"deserved": 2}}])).unwrap();
    assert_eq!(share, Share { gpu_quota_millis: 2000, ..Share::USUAL });
}

#[test]
fn every_number_is_read_exactly() {
    let share = asked(&json!([{
        "nodePool": {"id": "1", "name": "default"},
        "gpu": {"deserved": 1.5, "limit": 4, "overQuotaWeight": 3},
        "cpu": {"deserved": 4000, "limit": -1, "overQuotaWeight": 3},
        "memory": {"deserved": 1.5, "limit": null, "units": "GB"},
    }]))
    .unwrap();
    let want = Share {
        gpu_quota_millis: 1500,
        gpu_limit_millis: Some(4000),
        over_quota_weight: 3,
        cpu_quota_millis: Some(4000),
        memory_quota_bytes: Some(1_500_000_000),
        cpu_weight: Some(3),
        ..Share::USUAL
    };
    assert_eq!(share, want);
}

#[test]
fn what_is_read_back_can_be_written_back() {
    for share in [
        Share::USUAL,
        Share {
            gpu_quota_millis: 500,
            gpu_limit_millis: Some(1500),
            over_quota_weight: 0,
            cpu_quota_millis: Some(2500),
            memory_quota_bytes: Some(64 << 20),
            cpu_limit_millis: Some(5000),
            memory_limit_bytes: Some(1_500_000_000),
            cpu_weight: Some(1),
            memory_weight: Some(9),
            rank: Rank::VeryHigh,
            ..Share::USUAL
        },
        Share { memory_quota_bytes: Some(1_500_000_000), ..Share::USUAL },
    ] {
        let in_pool = |share| PoolShare {
            id: "7".into(),
            name: "fast".into(),
            share,
            usual: Share::USUAL,
            projects_gpu_quota_millis: 0,
            status: QueueStatus::default(),
        };
        let shown = resources(&in_pool(share));
        let text = serde_json::to_string(&[&shown]).unwrap();
        let requests: Vec<ShareRequest> = serde_json::from_str(&text).unwrap();
        let other = Share { gpu_quota_millis: 9, cpu_quota_millis: Some(9), ..Share::USUAL };
        let changes = shares(&requests).unwrap();
        assert_eq!(resources(&in_pool(changes["7"].made_to(other))), shown, "{text}");
    }
}

#[test]
fn senseless_shares_are_refused_by_name() {
    for (resources, want) in [
        (json!([]), "resources: has no entry; send one at least"),
        (json!([{}, {}]), "resources[1].nodePool: node pool `1` is there twice"),
        (
            json!([{"nodePool": {"id": "9"}}, {"nodePool": {"id": "9"}}]),
            "resources[1].nodePool: node pool `9` is there twice",
        ),
        (
            json!([{}, {"nodePool": {"id": "9"}, "gpu": {"limit": -2}}]),
            "resources[1].gpu.limit: `-2`",
        ),
        (json!([{"gpu": {"deserved": -1}}]), "resources[0].gpu.deserved: `-1` is negative"),
        (json!([{"gpu": {"deserved": -2}}]), "resources[0].gpu.deserved: `-2` is negative"),
        (json!([{"gpu": {"deserved": 0.0001}}]), "resources[0].gpu.deserved: `0.0001` is too fine"),
        (json!([{"gpu": {"limit": "2"}}]), "resources[0].gpu.limit: a number is needed, not \"2\""),
        (
            json!([{"gpu": {"overQuotaWeight": 0.5}}]),
            "resources[0].gpu.overQuotaWeight: `0.5` is not",
        ),
        (json!([{"cpu": {"limit": -5}}]), "resources[0].cpu.limit: `-5` is negative"),
        (json!([{"memory": {"deserved": 5}}]), "resources[0].memory: `units` is missing"),
        (
            json!([{"memory": {"units": "MiB"}}]),
            "resources[0].memory.units: `MiB` is not allowed; write",
        ),
        (json!([{"gpus": {}}]), "resources[0].gpus: unknown field `gpus`; did you mean `gpu`?"),
        (
            json!([{"priority": "Best"}]),
            "resources[0].priority: `Best` is not allowed; VeryLow, Low",
        ),
        (
            json!([{"priority": "Low", "rank": "High"}]),
            "resources[0].priority: `Low` is another than that of `rank`",
        ),
        (json!([{"rank": "Best"}]), "resources[0].rank: `Best` is not allowed; write"),
    ] {
        let got = asked(&resources).unwrap_err().message();
        assert!(got.starts_with(want), "{resources}\n got: {got}\nwant: {want}");
    }
}

#[test]
fn a_rank_has_an_old_name_and_a_new_one() {
    for (resources, want) in [
        (json!([{}]), Rank::MediumLow),
        (json!([{"rank": "High"}]), Rank::High),
        (json!([{"priority": "VeryLow"}]), Rank::VeryLow),
        (json!([{"priority": "Normal"}]), Rank::MediumLow),
        (json!([{"priority": "Normal", "rank": "MediumLow"}]), Rank::MediumLow),
    ] {
        assert_eq!(asked(&resources).unwrap().rank, want, "{resources}");
    }
}
