//! Rows of embedding tables that a parameter server gives and takes. Owns: these lines of the
//! output. Does not know about: how a server is started.

use std::path::Path;
use std::time::Instant;

use elastic_proto::v1::row_initializer::Distribution;
use elastic_proto::v1::{
    EmbeddingTable, InitModelRequest, PullRowsRequest, PushGradientsRequest, RowInitializer, Rows,
    ServerStatusRequest, Uniform,
};

const DIMS: [u32; 2] = [16, 64];
/// Ids of a minibatch that differ.
const ROWS: u64 = 8_192;
/// Ids of the table.
const IDS: u64 = 1_000_000;
const COUNT: u64 = 200;

/// The ids of a minibatch, anywhere in the table, rising.
fn ids(minibatch: u64) -> Vec<u64> {
    let id = |n: u64| (minibatch * ROWS + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) % IDS;
    let mut ids: Vec<u64> = (0..ROWS).map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

pub(crate) async fn run(folder: &Path) {
    for dim in DIMS {
        measure(&folder.join(dim.to_string()), dim).await;
    }
}

async fn measure(folder: &Path, dim: u32) {
    let (mut server, worker_id) = crate::server(folder).await;
    let uniform = Distribution::Uniform(Uniform { low: -0.05, high: 0.05 });
    let initializer = Some(RowInitializer { seed: 0, distribution: Some(uniform) });
    let init = InitModelRequest {
        worker_id,
        model_generation: 1,
        optimizer: Some(crate::adam()),
        tables: vec![EmbeddingTable { name: "t".into(), dim, initializer }],
        ..Default::default()
    };
    while server.init_model(init.clone()).await.is_err() {}
    let (mut pushed, begin) = (0, Instant::now());
    for sequence in 1..=COUNT {
        let ids = ids(sequence);
        pushed += ids.len();
        let values = vec![0.01_f32.to_le_bytes(); ids.len() * dim as usize].concat();
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let rows = vec![Rows { table: "t".into(), dim, ids: ids.into(), values: values.into() }];
        let push = PushGradientsRequest {
            worker_id,
            model_generation: 1,
            sequence,
            rows,
            ..Default::default()
        };
        server.push_gradients(push).await.expect("accepted");
    }
    report("pushed", pushed, dim, begin);
    let (mut pulled, begin) = (0, Instant::now());
    for minibatch in 1..=COUNT {
        let ids = ids(minibatch);
        pulled += ids.len();
        let pull = PullRowsRequest {
            worker_id,
            model_generation: 1,
            table: "t".into(),
            ids: ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
            ..Default::default()
        };
        server.pull_rows(pull).await.expect("rows");
    }
    report("pulled", pulled, dim, begin);
    let status = server.server_status(ServerStatusRequest {}).await.expect("a status").into_inner();
    let of = format!("rows of {dim} numbers stored, Adam, {} rows", status.rows);
    #[expect(clippy::cast_precision_loss, reason = "small")]
    crate::line(&of, status.row_bytes as f64 / 1e6, "MB");
}

fn report(what: &str, rows: usize, dim: u32, begin: Instant) {
    let of = format!("rows of {dim} numbers {what}, Adam, {ROWS} at once");
    #[expect(clippy::cast_precision_loss, reason = "small")]
    crate::line(&of, rows as f64 / begin.elapsed().as_secs_f64(), "/s");
}
