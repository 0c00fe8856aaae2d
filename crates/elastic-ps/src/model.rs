//! The part of a model that a server has. Owns: its variables and tables, and what a set of
//! gradients makes of them. Does not know about: versions, or which gradients count.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use elastic_proto::v1::{
    CheckpointBody, DType, EmbeddingTable, InitModelRequest, Optimizer, PushGradientsRequest,
    SavedTable, Tensor, TrainedVariable, Variable,
};
use elastic_proto::{floats, server_of, tensor};

pub(crate) use crate::model_error::ModelError;
use crate::optimizer;
pub(crate) use crate::place::Place;
use crate::table::{RowGradients, Table};

#[derive(Debug, Clone)]
struct Parameter {
    shape: Vec<u64>,
    values: Vec<f32>,
    slots: Vec<Vec<f32>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    optimizer: Optimizer,
    /// Updates so far.
    steps: u64,
    /// Records of the job whose gradients are in it.
    records: u64,
    trainable: BTreeMap<String, Parameter>,
    state: BTreeMap<String, Tensor>,
    tables: BTreeMap<String, Table>,
    place: Place,
}

/// Gradients and state that a worker pushes after a step.
#[derive(Debug, Clone)]
pub(crate) struct Gradients {
    trainable: BTreeMap<String, (Vec<u64>, Vec<f32>)>,
    state: BTreeMap<String, Tensor>,
    rows: BTreeMap<String, RowGradients>,
    records: u64,
    /// 0: that of the optimizer.
    pub rate: f32,
}

impl Gradients {
    pub(crate) fn read(push: &PushGradientsRequest) -> Result<Self, ModelError> {
        let mut trainable = BTreeMap::new();
        for variable in &push.gradients {
            let (values, shape) = variable.floats()?;
            if trainable.insert(variable.name.clone(), (shape.to_vec(), values)).is_some() {
                return Err(ModelError::Twice { name: variable.name.clone() });
            }
        }
        let rate = push.learning_rate;
        if !rate.is_finite() || rate < 0.0 {
            return Err(ModelError::Rate(rate));
        }
        let mut rows = BTreeMap::new();
        for of_table in &push.rows {
            let name = of_table.table.clone();
            if rows.insert(name.clone(), RowGradients::read(of_table)?).is_some() {
                return Err(ModelError::Twice { name });
            }
        }
        Ok(Self { trainable, state: tensors(&push.state)?, rows, records: push.records, rate })
    }
}

impl Model {
    /// Model from the values of its first worker.
    pub(crate) fn begin(init: &InitModelRequest, place: Place) -> Result<Self, ModelError> {
        let optimizer = init.optimizer.ok_or(ModelError::NoOptimizer)?;
        optimizer::check(&optimizer)?;
        let mut trainable = BTreeMap::new();
        for variable in &init.trainable {
            is_here(&variable.name, place)?;
            let (values, shape) = variable.floats()?;
            let slots = optimizer::slots(&optimizer, values.len());
            let parameter = Parameter { shape: shape.to_vec(), values, slots };
            if trainable.insert(variable.name.clone(), parameter).is_some() {
                return Err(ModelError::Twice { name: variable.name.clone() });
            }
        }
        let state = tensors(&init.state)?;
        state.keys().try_for_each(|name| is_here(name, place))?;
        let mut model = Self {
            optimizer,
            steps: 0,
            records: 0,
            trainable,
            state,
            tables: BTreeMap::new(),
            place,
        };
        for info in &init.tables {
            if model.tables.contains_key(&info.name) {
                return Err(ModelError::Twice { name: info.name.clone() });
            }
            model.table_of(info)?;
        }
        Ok(model)
    }

    /// The table of this description, which is added if there is none of its name.
    fn table_of(&mut self, info: &EmbeddingTable) -> Result<&mut Table, ModelError> {
        let table = match self.tables.entry(info.name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(none) => none.insert(Table::new(info.clone(), &self.optimizer)?),
        };
        if table.info() != info {
            let what = "it is described in two ways".to_owned();
            return Err(ModelError::Table { table: info.name.clone(), what });
        }
        Ok(table)
    }

    pub(crate) fn table(&self, name: &str) -> Result<&Table, ModelError> {
        let unknown = || {
            let known = match self.tables.is_empty() {
                true => "none".to_owned(),
                false => self.tables.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
            };
            ModelError::NoTable { table: name.to_owned(), known }
        };
        self.tables.get(name).ok_or_else(unknown)
    }

    /// Rows that are stored, and the bytes of their numbers.
    pub(crate) fn rows(&self) -> (u64, u64) {
        let rows = self.tables.values().map(|table| table.len() as u64).sum();
        (rows, self.tables.values().map(Table::bytes).sum())
    }

    pub(crate) fn has_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn parameters(&self) -> u64 {
        let variables = self.trainable.values().map(|parameter| parameter.values.len() as u64);
        variables.sum::<u64>() + self.tables.values().map(Table::parameters).sum::<u64>()
    }

    /// Records of the job whose gradients are in it.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The model for another job than the one that trained it: none of the new job's records are in
    /// it.
    pub(crate) fn without_records(self) -> Self {
        Self { records: 0, ..self }
    }

    pub(crate) fn learning_rate(&self) -> f32 {
        self.optimizer.learning_rate
    }

    /// Checks that gradients match this model.
    pub(crate) fn check(&self, gradients: &Gradients) -> Result<(), ModelError> {
        for (name, (found, _)) in &gradients.trainable {
            let parameter = self.trainable.get(name).ok_or_else(|| self.unknown(name))?;
            same_shape(name, &parameter.shape, found)?;
        }
        for (name, value) in &gradients.state {
            let known = self.state.get(name).ok_or_else(|| self.unknown(name))?;
            same_shape(name, &known.shape, &value.shape)?;
        }
        for (name, rows) in &gradients.rows {
            self.table(name)?.check(rows, self.place)?;
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> ModelError {
        let known = self.trainable.keys().chain(self.state.keys());
        let known = known.map(String::as_str).collect::<Vec<_>>().join(", ");
        ModelError::Unknown { name: name.to_owned(), known }
    }

    /// Makes an update of these, which [`Self::check`] has let pass: of gradients the mean, of
    /// floating-point state the mean, of other state the last, of rows of tables the sum.
    ///
    /// `was` is the version that it makes a new one of, and `keeps_from` the oldest version whose
    /// rows stay readable.
    pub(crate) fn update(
        &mut self,
        pushes: &[Gradients],
        rate: f32,
        (was, keeps_from): (u64, u64),
    ) {
        self.steps += 1;
        self.records += pushes.iter().map(|push| push.records).sum::<u64>();
        let rate = optimizer::rate(&self.optimizer, (self.steps, rate));
        let part = 1.0 / count_of(pushes.len());
        for (name, parameter) in &mut self.trainable {
            let all = pushes.iter().filter_map(|push| push.trainable.get(name));
            let Some(mean) = mean(all.map(|(_, values)| values), part) else { continue };
            let Parameter { values, slots, .. } = parameter;
            optimizer::update(&self.optimizer, rate, (values, slots), &mean);
        }
        for (name, table) in &mut self.tables {
            let all: Vec<_> = pushes.iter().filter_map(|push| push.rows.get(name)).collect();
            table.keep(&all, (was, keeps_from));
            table.update(&self.optimizer, rate, &all);
        }
        for (name, value) in &mut self.state {
            let all: Vec<_> = pushes.iter().filter_map(|push| push.state.get(name)).collect();
            let Some(last) = all.last() else { continue };
            *value = (*last).clone();
            if last.dtype == i32::from(DType::DtypeFloat32) && all.len() > 1 {
                let values: Vec<_> = all.iter().map(|tensor| floats(&tensor.content)).collect();
                if let Some(mean) = mean(values.iter(), 1.0 / count_of(values.len())) {
                    *value = tensor(&last.shape, &mean);
                }
            }
        }
    }

    /// All variables, for workers: trainable ones, and state.
    pub(crate) fn variables(&self) -> (Vec<Variable>, Vec<Variable>) {
        let trainable = self.trainable.iter().map(|(name, parameter)| {
            let value = Some(tensor(&parameter.shape, &parameter.values));
            Variable { name: name.clone(), value }
        });
        (trainable.collect(), variables(&self.state))
    }

    pub(crate) fn body(&self) -> CheckpointBody {
        let trainable = self.trainable.iter().map(|(name, parameter)| {
            let of = |values: &Vec<f32>| tensor(&parameter.shape, values);
            let slots = parameter.slots.iter().map(of).collect();
            TrainedVariable { name: name.clone(), value: Some(of(&parameter.values)), slots }
        });
        CheckpointBody {
            optimizer: Some(self.optimizer),
            steps: self.steps,
            records: self.records,
            trainable: trainable.collect(),
            state: variables(&self.state),
            tables: self.tables.values().map(Table::save).collect(),
        }
    }

    /// The model of this place, from the parts of a checkpoint.
    pub(crate) fn of_bodies(bodies: Vec<CheckpointBody>, place: Place) -> Result<Self, ModelError> {
        let optimizer = bodies.iter().find_map(|body| body.optimizer);
        let optimizer = optimizer.ok_or(ModelError::NoOptimizer)?;
        optimizer::check(&optimizer)?;
        let steps = bodies.iter().map(|body| body.steps).max().unwrap_or_default();
        let records = bodies.iter().map(|body| body.records).max().unwrap_or_default();
        let (trainable, state, tables) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut model = Self { optimizer, steps, records, trainable, state, tables, place };
        let here = |name: &str| is_here(name, place).is_ok();
        for body in bodies {
            for TrainedVariable { name, value, slots } in body.trainable {
                if here(&name) {
                    let parameter = parameter(&optimizer, (&name, value, slots))?;
                    model.trainable.insert(name, parameter);
                }
            }
            let state = tensors(&body.state)?.into_iter().filter(|(name, _)| here(name));
            model.state.extend(state);
            for saved in &body.tables {
                let info = saved.info.as_ref().ok_or_else(|| no_info(saved))?;
                model.table_of(info)?.restore(saved, place)?;
            }
        }
        Ok(model)
    }
}

fn no_info(saved: &SavedTable) -> ModelError {
    let what = format!("{} bytes of ids have no description", saved.ids.len());
    ModelError::Table { table: String::new(), what }
}

fn parameter(
    optimizer: &Optimizer,
    (name, value, slots): (&str, Option<Tensor>, Vec<Tensor>),
) -> Result<Parameter, ModelError> {
    let read = |value| {
        let variable = Variable { name: name.to_owned(), value };
        let (values, shape) = variable.floats()?;
        Ok::<_, ModelError>((values, shape.to_vec()))
    };
    let (values, shape) = read(value)?;
    let expected = optimizer::slots(optimizer, 0).len();
    if slots.len() != expected {
        let found = slots.len();
        return Err(ModelError::Slots { name: name.to_owned(), found, expected });
    }
    let slot = |slot| {
        let (values, found) = read(Some(slot))?;
        same_shape(name, &shape, &found)?;
        Ok::<_, ModelError>(values)
    };
    let slots = slots.into_iter().map(slot).collect::<Result<_, _>>()?;
    Ok(Parameter { shape, values, slots })
}

fn same_shape(name: &str, shape: &[u64], found: &[u64]) -> Result<(), ModelError> {
    let (name, differs) = (name.to_owned(), shape != found);
    let error = || ModelError::Shape { name, shape: shape.to_vec(), found: found.to_vec() };
    if differs { Err(error()) } else { Ok(()) }
}

fn is_here(name: &str, (index, servers): Place) -> Result<(), ModelError> {
    let right = server_of(name, servers);
    let name = name.to_owned();
    if right == index { Ok(()) } else { Err(ModelError::Elsewhere { name, right, index, servers }) }
}

fn tensors(variables: &[Variable]) -> Result<BTreeMap<String, Tensor>, ModelError> {
    let mut all = BTreeMap::new();
    for variable in variables {
        let (_, value) = variable.checked()?;
        if all.insert(variable.name.clone(), value.clone()).is_some() {
            return Err(ModelError::Twice { name: variable.name.clone() });
        }
    }
    Ok(all)
}

fn variables(tensors: &BTreeMap<String, Tensor>) -> Vec<Variable> {
    let variable = |(name, value): (&String, &Tensor)| Variable {
        name: name.clone(),
        value: Some(value.clone()),
    };
    tensors.iter().map(variable).collect()
}

/// The sum of these times `part`; nothing if there are none.
fn mean<'a>(mut all: impl Iterator<Item = &'a Vec<f32>>, part: f32) -> Option<Vec<f32>> {
    let mut sum = all.next()?.clone();
    for values in all {
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    if part != 1.0 {
        sum.iter_mut().for_each(|value| *value *= part);
    }
    Some(sum)
}

#[expect(clippy::cast_precision_loss, reason = "gradients of one update are few")]
fn count_of(count: usize) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::Sgd;
    use elastic_proto::v1::optimizer::Rule;

    use super::*;

    const MEAN: &str = "norm/moving_mean";
    const COUNT: &str = "norm/count";

    fn variable(name: &str, values: &[f32]) -> Variable {
        Variable { name: name.to_owned(), value: Some(tensor(&[values.len() as u64], values)) }
    }

    fn count(number: i64) -> Variable {
        let content = number.to_le_bytes().to_vec().into();
        let value = Tensor { dtype: DType::DtypeInt64.into(), shape: Vec::new(), content };
        Variable { name: COUNT.to_owned(), value: Some(value) }
    }

    /// A model with what normalisation of batches keeps beside its weights.
    fn model() -> Model {
        let rule = Some(Rule::Sgd(Sgd { momentum: 0.0, nesterov: false }));
        let init = InitModelRequest {
            trainable: vec![variable("weights", &[1.0])],
            state: vec![variable(MEAN, &[0.0, 0.0]), count(0)],
            optimizer: Some(Optimizer { learning_rate: 0.5, rule }),
            ..InitModelRequest::default()
        };
        Model::begin(&init, (0, 1)).expect("a model")
    }

    fn push(state: Vec<Variable>) -> Gradients {
        let gradients = vec![variable("weights", &[1.0])];
        let push = PushGradientsRequest { gradients, state, ..PushGradientsRequest::default() };
        Gradients::read(&push).expect("gradients")
    }

    fn state(model: &Model) -> (Vec<f32>, i64) {
        let read = |name: &str| model.state.get(name).expect(name).content.clone();
        let number = read(COUNT).as_ref().try_into().map(i64::from_le_bytes);
        (floats(&read(MEAN)), number.expect("eight bytes"))
    }

    #[test]
    fn state_of_an_update_is_the_mean_of_its_pushes_and_a_count_is_that_of_the_last() {
        let mut model = model();
        let pushes = [(&[1.0, 2.0], 7), (&[3.0, 6.0], 9)]
            .map(|(mean, number)| push(vec![variable(MEAN, mean), count(number)]));
        pushes.iter().for_each(|push| model.check(push).expect("of this model"));
        model.update(&pushes, 0.5, (0, 1));
        assert_eq!(state(&model), (vec![2.0, 4.0], 9));
        // A push without state, as of a model that is evaluated, changes nothing; nor does its
        // order.
        model.update(&[push(vec![variable(MEAN, &[5.0, 5.0])]), push(Vec::new())], 0.5, (1, 2));
        assert_eq!(state(&model), (vec![5.0, 5.0], 9));
    }

    #[test]
    fn state_is_in_what_workers_pull_and_in_a_checkpoint() {
        let mut model = model();
        model.update(&[push(vec![variable(MEAN, &[1.0, 2.0]), count(3)])], 0.5, (2, 3));
        let (_, pulled) = model.variables();
        assert_eq!(pulled.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), [COUNT, MEAN]);
        let again = Model::of_bodies(vec![model.body()], (0, 1)).expect("a model");
        assert_eq!(state(&again), (vec![1.0, 2.0], 3));
    }

    #[test]
    fn state_that_is_not_of_the_model_is_refused() {
        let model = model();
        let unknown =
            model.check(&push(vec![variable("norm/other", &[1.0])])).expect_err("refused");
        assert!(unknown.to_string().contains("norm/other is not in the model"), "{unknown}");
        let shape = model.check(&push(vec![variable(MEAN, &[1.0])])).expect_err("refused");
        assert!(shape.to_string().contains("has shape [2] in the model and [1]"), "{shape}");
    }
}
