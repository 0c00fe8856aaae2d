//! Tables against a model of one number at a time, which knows nothing of servers.

use std::collections::BTreeMap;

use elastic_proto::v1::optimizer::Rule;
use elastic_proto::v1::row_initializer::Distribution;
use elastic_proto::v1::{
    Adagrad, Adam, EmbeddingTable, InitModelRequest, Normal, Optimizer, PushGradientsRequest,
    RowInitializer, Rows, Sgd, Uniform,
};
use proptest::prelude::*;

use super::*;
use crate::model::{Gradients, Model};

const RATE: f32 = 0.1;

fn info(name: &str, dim: u32, distribution: Distribution) -> EmbeddingTable {
    let initializer = Some(RowInitializer { seed: 7, distribution: Some(distribution) });
    EmbeddingTable { name: name.into(), dim, initializer }
}

fn uniform() -> Distribution {
    Distribution::Uniform(Uniform { low: -0.5, high: 0.5 })
}

fn adam(amsgrad: bool) -> Rule {
    Rule::Adam(Adam { beta_1: 0.9, beta_2: 0.99, epsilon: 1e-3, amsgrad })
}

fn rules() -> impl Strategy<Value = Rule> {
    let adagrad = Adagrad { epsilon: 1e-3, initial_accumulator: 0.1 };
    prop_oneof![
        Just(Rule::Sgd(Sgd { momentum: 0.0, nesterov: false })),
        Just(Rule::Sgd(Sgd { momentum: 0.5, nesterov: false })),
        Just(Rule::Sgd(Sgd { momentum: 0.5, nesterov: true })),
        Just(adam(false)),
        Just(adam(true)),
        Just(Rule::Adagrad(adagrad)),
    ]
}

/// All servers of a model.
fn begin(rule: Rule, tables: &[EmbeddingTable], servers: u32) -> Vec<Model> {
    let init = InitModelRequest {
        optimizer: Some(Optimizer { learning_rate: RATE, rule: Some(rule) }),
        tables: tables.to_vec(),
        ..InitModelRequest::default()
    };
    (0..servers).map(|index| Model::begin(&init, (index, servers)).expect("a model")).collect()
}

fn rows(table: &str, dim: u32, of: &BTreeMap<u64, Vec<f32>>) -> Rows {
    Rows {
        table: table.into(),
        dim,
        ids: of.keys().flat_map(|id| id.to_le_bytes()).collect(),
        values: of.values().flatten().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

fn gradients(rows: Vec<Rows>) -> Result<Gradients, ModelError> {
    Gradients::read(&PushGradientsRequest { rows, ..PushGradientsRequest::default() })
}

/// A push, divided among servers as a worker does.
fn push(servers: &[Model], table: &str, dim: u32, of: &BTreeMap<u64, Vec<f32>>) -> Vec<Gradients> {
    let count = servers.len() as u64;
    let part = |(index, server): (u64, &Model)| {
        let own = of.iter().filter(|(id, _)| *id % count == index);
        let own = own.map(|(id, row)| (*id, row.clone())).collect();
        let gradients = gradients(vec![rows(table, dim, &own)]).expect("gradients");
        server.check(&gradients).expect("of this server");
        gradients
    };
    (0..).zip(servers).map(part).collect()
}

fn read(servers: &[Model], table: &str, id: u64) -> Vec<f32> {
    let own = usize::try_from(id % servers.len() as u64).expect("small");
    floats(&servers[own].table(table).expect("a table").values(&[id]))
}

/// Loads the checkpoints of these servers into `count` servers.
fn reload(servers: &[Model], count: u32) -> Vec<Model> {
    let bodies = || servers.iter().map(Model::body).collect();
    (0..count).map(|index| Model::of_bodies(bodies(), (index, count)).expect("a model")).collect()
}

/// A number and what the optimizer keeps of it, in twice the precision.
#[derive(Debug, Clone, Copy)]
struct Cell {
    value: f64,
    first: f64,
    second: f64,
    largest: f64,
}

impl Cell {
    fn new(value: f32, rule: &Rule) -> Self {
        let second = match rule {
            Rule::Adagrad(adagrad) => adagrad.initial_accumulator.into(),
            _ => 0.0,
        };
        Self { value: value.into(), first: 0.0, second, largest: 0.0 }
    }

    fn step(&mut self, rule: &Rule, steps: i32, g: f64) {
        let rate = f64::from(RATE);
        match rule {
            Rule::Sgd(sgd) => {
                let momentum = f64::from(sgd.momentum);
                self.first = momentum * self.first + g;
                let by = if sgd.nesterov { g + momentum * self.first } else { self.first };
                self.value -= rate * by;
            }
            Rule::Adam(adam) => {
                let (b1, b2) = (f64::from(adam.beta_1), f64::from(adam.beta_2));
                self.first = b1 * self.first + (1.0 - b1) * g;
                self.second = b2 * self.second + (1.0 - b2) * g * g;
                self.largest = self.largest.max(self.second);
                let by = if adam.amsgrad { self.largest } else { self.second };
                let rate = rate * (1.0 - b2.powi(steps)).sqrt() / (1.0 - b1.powi(steps));
                self.value -= rate * self.first / (by.sqrt() + f64::from(adam.epsilon));
            }
            Rule::Adagrad(adagrad) => {
                self.second += g * g;
                self.value -= rate * g / (self.second.sqrt() + f64::from(adagrad.epsilon));
            }
        }
    }
}

/// An operation on a model.
#[derive(Debug, Clone)]
enum Event {
    /// An update of the gradients of some workers.
    Update(Vec<BTreeMap<u64, Vec<f32>>>),
    /// The model is loaded from its checkpoint by this number of servers.
    Reload(u32),
}

fn ids() -> impl Strategy<Value = u64> {
    prop_oneof![0..12_u64, Just(u64::MAX), Just(1 << 63), Just(u64::MAX / 3)]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let row = proptest::collection::vec(-2.0..2.0_f32, 3);
    let push = proptest::collection::btree_map(ids(), row, 0..6);
    let update = proptest::collection::vec(push, 1..4).prop_map(Event::Update);
    let event = prop_oneof![4 => update, 1 => (1..6_u32).prop_map(Event::Reload)];
    proptest::collection::vec(event, 0..14)
}

proptest! {
    #[test]
    fn rows_are_what_their_gradients_make_of_them_on_any_servers(
        rule in rules(), events in events(), servers in 1..5_u32,
    ) {
        let tables = [info("a", 3, uniform()), info("b", 3, uniform())];
        let fresh = begin(rule, &tables, 1);
        let mut servers = begin(rule, &tables, servers);
        let mut cells: BTreeMap<u64, Vec<Cell>> = BTreeMap::new();
        let mut steps = 0;
        for event in events {
            let pushes = match event {
                Event::Reload(count) => {
                    servers = reload(&servers, count);
                    continue;
                }
                Event::Update(pushes) => pushes,
            };
            steps += 1;
            let mut sums: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for (id, row) in pushes.iter().flatten() {
                let sum = sums.entry(*id).or_insert_with(|| vec![0.0; 3]);
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
            }
            for (id, sum) in sums {
                let start = || {
                    let row = read(&fresh, "a", id);
                    row.iter().map(|value| Cell::new(*value, &rule)).collect()
                };
                let row = cells.entry(id).or_insert_with(start);
                row.iter_mut().zip(sum).for_each(|(cell, g)| cell.step(&rule, steps, g));
            }
            let parts: Vec<_> = pushes.iter().map(|of| push(&servers, "a", 3, of)).collect();
            for (index, server) in servers.iter_mut().enumerate() {
                let own: Vec<_> = parts.iter().map(|part| part[index].clone()).collect();
                server.update(&own, RATE, (0, 1));
            }
        }
        let stored: u64 = servers.iter().map(|server| server.rows().0).sum();
        prop_assert_eq!(stored, cells.len() as u64);
        for (id, row) in &cells {
            for (found, cell) in read(&servers, "a", *id).iter().zip(row) {
                prop_assert!((f64::from(*found) - cell.value).abs() < 1e-3, "{id}: {found} {cell:?}");
            }
        }
        // A row without gradients, of this table or of another, has its initial numbers, and a pull
        // stores nothing.
        for id in (0..12).filter(|id| !cells.contains_key(id)) {
            prop_assert_eq!(read(&servers, "a", id), read(&fresh, "a", id));
        }
        prop_assert_eq!(read(&servers, "b", 3), read(&fresh, "b", 3));
    }
}

#[test]
fn a_row_begins_with_numbers_that_its_table_and_id_say() {
    let rule = Rule::Sgd(Sgd::default());
    let normal = Distribution::Normal(Normal { mean: 1.0, deviation: 2.0 });
    let tables = [
        info("a", 4, uniform()),
        info("b", 4, uniform()),
        info("n", 4, normal),
        info("c", 4, Distribution::Constant(0.25)),
    ];
    let (one, three) = (begin(rule, &tables, 1), begin(rule, &tables, 3));
    // These numbers never change: a training continues with them after an update of the program.
    assert_eq!(read(&one, "a", 0), [0.437_719_02, 0.306_424_26, -0.102_469_01, 0.262_772_3]);
    let mut all = Vec::new();
    for id in (0..500).chain([u64::MAX, 1 << 63]) {
        assert_eq!(read(&one, "a", id), read(&three, "a", id));
        assert_ne!(read(&one, "a", id), read(&one, "b", id));
        assert_eq!(read(&one, "c", id), [0.25; 4]);
        let (uniform, normal) = (read(&one, "a", id), read(&one, "n", id));
        assert!(uniform.iter().all(|value| (-0.5..0.5).contains(value)), "{uniform:?}");
        all.extend(uniform.into_iter().zip(normal));
    }
    let count = all.len() as f64;
    let mean = |of: &dyn Fn(&(f32, f32)) -> f64| all.iter().map(of).sum::<f64>() / count;
    assert!(mean(&|(u, _)| f64::from(*u)).abs() < 0.02);
    assert!((mean(&|(u, _)| f64::from(*u).powi(2)) - 1.0 / 12.0).abs() < 0.01);
    assert!((mean(&|(_, n)| f64::from(*n)) - 1.0).abs() < 0.15);
    assert!((mean(&|(_, n)| (f64::from(*n) - 1.0).powi(2)) - 4.0).abs() < 0.5);
    assert_eq!(one[0].rows(), (0, 0), "asking stores nothing");
}

fn text<T: std::fmt::Debug>(refused: Result<T, ModelError>) -> String {
    refused.expect_err("refused").to_string()
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_the_table() {
    let rule = adam(true);
    let of = |infos: &[EmbeddingTable]| {
        let init = InitModelRequest {
            optimizer: Some(Optimizer { learning_rate: RATE, rule: Some(rule) }),
            tables: infos.to_vec(),
            ..InitModelRequest::default()
        };
        text(Model::begin(&init, (0, 2)))
    };
    let bare = EmbeddingTable { initializer: None, ..info("t", 2, uniform()) };
    let nan = Distribution::Constant(f32::NAN);
    for (infos, said) in [
        (vec![info("", 2, uniform())], "name is empty"),
        (vec![info("t", 0, uniform())], "\"t\": dim 0; it is 1 to 65536"),
        (vec![info("t", 65_537, uniform())], "dim 65537"),
        (vec![bare], "\"t\": initializer is missing"),
        (vec![info("t", 2, nan)], "its initializer has NaN"),
        (vec![info("t", 2, uniform()), info("t", 3, uniform())], "t comes twice"),
    ] {
        let found = of(&infos);
        assert!(found.contains(said), "{found}");
    }
    let model = begin(rule, &[info("t", 2, uniform())], 2).remove(0);
    let check = |rows: Rows| match gradients(vec![rows]) {
        Ok(gradients) => text(model.check(&gradients)),
        refused => text(refused),
    };
    let row = |ids: &[u64], values: &[f32]| Rows {
        table: "t".into(),
        dim: 2,
        ids: ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
        values: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    };
    let good = row(&[2, 4], &[1.0; 4]);
    for (rows, said) in [
        (Rows { table: "u".into(), ..good.clone() }, "\"u\" is not in the model; it has t"),
        (Rows { dim: 4, ..row(&[2], &[1.0; 4]) }, "rows of 2 numbers in the model and of 4"),
        (Rows { dim: 0, ..good.clone() }, "2 rows of 0 numbers came with 16 bytes"),
        (Rows { ids: good.ids.slice(1..), ..good.clone() }, "ids have 15 bytes; they are 8"),
        (row(&[2, 4], &[1.0; 3]), "2 rows of 2 numbers came with 12 bytes"),
        (row(&[4, 2], &[1.0; 4]), "id 2 comes after 4; each comes once, rising"),
        (row(&[4, 4], &[1.0; 4]), "id 4 comes after 4"),
        (row(&[2, 4], &[1.0, 1.0, f32::NAN, 1.0]), "the gradient of row 4 has NaN"),
        (row(&[2, 5], &[1.0; 4]), "row 5 belongs to parameter server 1; this is 0 of 2"),
    ] {
        let found = check(rows);
        assert!(found.contains(said), "{found}");
    }
    assert!(text(gradients(vec![good.clone(), good])).contains("t comes twice"));
}

#[test]
fn saved_tables_that_disagree_or_are_cut_are_refused() {
    let rule = adam(false);
    let mut servers = begin(rule, &[info("t", 2, uniform())], 2);
    let row = BTreeMap::from([(2, vec![1.0; 2]), (3, vec![1.0; 2])]);
    for (server, gradients) in servers.clone().iter().zip(push(&servers, "t", 2, &row)) {
        let index = usize::try_from(server.place().0).expect("small");
        servers[index].update(&[gradients], RATE, (0, 1));
    }
    let bodies: Vec<_> = servers.iter().map(Model::body).collect();
    let load = |change: &dyn Fn(&mut SavedTable)| {
        let mut bodies = bodies.clone();
        change(&mut bodies[1].tables[0]);
        Model::of_bodies(bodies, (0, 1))
    };
    assert_eq!(load(&|_| {}).expect("whole").rows(), (2, 2 * 2 * 4 * 3));
    let refused = |change: &dyn Fn(&mut SavedTable)| text(load(change));
    assert!(refused(&|t| drop(t.slots.pop())).contains("t: 1 slots; its optimizer has 2"));
    assert!(refused(&|t| t.values = t.values.slice(4..)).contains("came with 4 bytes"));
    assert!(refused(&|t| t.slots[1] = Bytes::new()).contains("came with 0 bytes"));
    assert!(refused(&|t| t.info = Some(info("t", 3, uniform()))).contains("in two ways"));
    assert!(refused(&|t| t.info = None).contains("have no description"));
    assert!(refused(&|t| t.ids = 2_u64.to_le_bytes().to_vec().into()).contains("each comes once"));
}

/// The numbers of rows of a table in a version.
fn read_in(model: &Model, ids: &[u64], version: u64) -> Vec<f32> {
    floats(&model.table("t").expect("a table").values_in(ids, version))
}

#[test]
fn rows_are_read_as_they_were_in_each_version_that_is_kept_and_in_no_other() {
    let (sgd, ids) = (Rule::Sgd(Sgd { momentum: 0.0, nesterov: false }), [1, 2, 3]);
    let mut servers = begin(sgd, &[info("t", 1, uniform())], 1);
    let mut were = vec![read_in(&servers[0], &ids, 0)];
    // Version 1 is read throughout; each update changes one row.
    for (was, keeps_from) in [(0, 0), (1, 1), (2, 1), (3, 1)] {
        let row = BTreeMap::from([(ids[usize::try_from(was % 3).expect("few")], vec![1.0])]);
        let gradients = push(&servers, "t", 1, &row).remove(0);
        servers[0].update(&[gradients], RATE, (was, keeps_from));
        were.push(read_in(&servers[0], &ids, was + 1));
    }
    for version in 1..=4 {
        assert!(servers[0].table("t").expect("a table").has(version, 4), "version {version}");
        let found = read_in(&servers[0], &ids, version);
        assert_eq!(found, were[usize::try_from(version).expect("few")], "version {version}");
    }
    let table = |servers: &[Model]| servers[0].table("t").expect("a table").clone();
    assert!(!table(&servers).has(0, 4) && !table(&servers).has(5, 4));
    // No worker reads version 1 any more: the present one is left.
    let nothing = push(&servers, "t", 1, &BTreeMap::new()).remove(0);
    servers[0].update(&[nothing], RATE, (4, 5));
    assert!(!table(&servers).has(4, 5) && table(&servers).has(5, 5));
}
