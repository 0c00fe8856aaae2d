//! Lists: paging, sorting, searching and filtering, in one way for every family.
//!
//! Owns: the query language. Does not know what is listed; a family defines its fields.

use std::borrow::Cow;
use std::cmp::Reverse;

use api_types::{CountResponse, PAGE_ITEMS_DEFAULT, Time};
use axum::Json;
use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use units::Instant;

use super::error::ApiError;
use super::nearest::nearest;
use super::parameters::PARAMETERS;
use super::row::{Row, Scalar, Type};
use crate::openapi::{Description, Input};

/// Most conditions in one filter.
const CONDITIONS_MAX: usize = 10;

impl<S: Sync> FromRequestParts<S> for ListQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(&parameters(&parts.uri)?)
    }
}

/// Names and values of the query of an address.
pub fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, ApiError> {
    let Query(pairs) = Query::try_from_uri(uri)
        .map_err(|why| ApiError::bad(format!("the query cannot be read: {why}")))?;
    Ok(pairs)
}

/// The parameters of a list request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    offset: u64,
    limit: u64,
    sort_by: Option<String>,
    descending: bool,
    search: Option<String>,
    conditions: Vec<Condition>,
    /// True if the list is of deleted rows, instead of living ones.
    pub deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    field: String,
    operator: Operator,
    operand: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    AtMost,
    AtLeast,
    Contains,
    ContainsNot,
    StartsWith,
    EndsWith,
}

const OPERATORS: [(&str, Operator); 8] = [
    ("==", Operator::Is),
    ("!=", Operator::IsNot),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=@", Operator::Contains),
    ("!@", Operator::ContainsNot),
    ("=^", Operator::StartsWith),
    ("=$", Operator::EndsWith),
];

impl Input for ListQuery {
    fn describe(to: &mut Description) {
        Self::describe_some(to, |_| true);
    }
}

impl ListQuery {
    /// Adds those parameters to a description that `wanted` selects by name.
    pub fn describe_some(to: &mut Description, wanted: impl Fn(&str) -> bool) {
        for (name, allowed, about) in PARAMETERS.into_iter().filter(|(name, ..)| wanted(name)) {
            to.parameter_of(name, allowed.schema(), about);
        }
    }

    /// Reads the parameters.
    pub fn parse(pairs: &[(String, String)]) -> Result<Self, ApiError> {
        let mut query = Self { limit: PAGE_ITEMS_DEFAULT, ..Self::default() };
        for (name, value) in pairs {
            let known = PARAMETERS.iter().find(|(known, ..)| known == name);
            let Some((_, allowed, _)) = known else {
                return Err(unknown_word("parameter", name, &PARAMETERS.map(|row| row.0)));
            };
            allowed.check(name, value)?;
            match name.as_str() {
                // Checked above.
                "offset" => query.offset = value.parse().unwrap_or_default(),
                "limit" => query.limit = value.parse().unwrap_or(PAGE_ITEMS_DEFAULT),
                "sortBy" => query.sort_by = Some(value.clone()),
                "sortOrder" => query.descending = value == "desc",
                "search" => query.search = Some(value.to_lowercase()).filter(|s| !s.is_empty()),
                "filterBy" => query.conditions.extend(conditions(value)?),
                "deleted" => query.deleted = value == "true",
                _ => {}
            }
        }
        if query.conditions.len() > CONDITIONS_MAX {
            let allowed = format!("more than {CONDITIONS_MAX} conditions; use fewer");
            return Err(ApiError::field("filterBy", allowed));
        }
        Ok(query)
    }

    /// Its conditions: the field, `true` if the operator is equality, and the operand.
    pub fn conditions(&self) -> impl Iterator<Item = (&str, bool, &str)> {
        self.conditions
            .iter()
            .map(|one| (one.field.as_str(), one.operator == Operator::Is, one.operand.as_str()))
    }

    /// Removes the conditions on a text field that has this value in every row, and the order by it.
    /// Returns true if they hold.
    ///
    /// # Errors
    /// An operand that is not allowed.
    pub fn settle<T: Row<L>, L>(&mut self, field: &str, value: &str) -> Result<bool, ApiError> {
        self.sort_by = self.sort_by.take().filter(|by| by != field);
        let of_field = |one: &Condition| one.field == field;
        let tests = self.conditions.iter().filter(|one| of_field(one)).map(Condition::test::<T, L>);
        let tests: Vec<Test> = tests.collect::<Result<_, _>>()?;
        self.conditions.retain(|one| !of_field(one));
        Ok(tests.iter().all(|test| test.holds(&Scalar::text(value))))
    }

    /// True if condition number `number` holds for a row, or there is none of that number.
    pub fn holds<T: Row<L>, L>(
        &self,
        number: usize,
        row: &T,
        now: Instant,
    ) -> Result<bool, ApiError> {
        let test = self.conditions.get(number).map(|one| one.test::<T, L>()).transpose()?;
        Ok(test.is_none_or(|test| test.holds(&row.field(test.field, now))))
    }

    /// True if a text is searched for.
    pub const fn searches(&self) -> bool {
        self.search.is_some()
    }

    /// The rows that match up to the end of the page, and one more if there is one, in order; `own`
    /// is as for [`Self::page_of`].
    pub fn up_to_page<'a, T: Row<L> + 'a, L, K: Ord>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
        own: impl Fn(&'a T) -> K,
    ) -> Result<Vec<&'a T>, ApiError> {
        let end = self.offset.saturating_add(self.limit).saturating_add(1);
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        let mut rows = self.ordered(self.found(rows, now)?, end, now, own);
        rows.truncate(end);
        Ok(rows)
    }

    /// True if the query selects all rows, in their own order.
    pub const fn is_plain(&self) -> bool {
        self.sort_by.is_none() && self.search.is_none() && self.conditions.is_empty()
    }

    /// Offset and length of the page, and `true` if the newest rows come first.
    pub const fn window(&self) -> (u64, u64, bool) {
        (self.offset, self.limit, self.descending)
    }

    /// The rows that match, sorted as the query wants them, else in the order in which they come.
    pub fn matching<'a, T: Row<L> + 'a, L>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
    ) -> Result<Vec<&'a T>, ApiError> {
        Ok(self.ordered(self.found(rows, now)?, usize::MAX, now, |_| ()))
    }

    /// The page of many rows, which come in no order: `own` is what they have, and what those have
    /// that are alike in the requested order. Only what the page needs is put in order.
    pub fn page_of<'a, T: Row<L> + 'a, L, K: Ord>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
        own: impl Fn(&'a T) -> K,
    ) -> Result<(Vec<&'a T>, Option<u64>), ApiError> {
        let end = usize::try_from(self.offset.saturating_add(self.limit)).unwrap_or(usize::MAX);
        Ok(self.page(self.ordered(self.found(rows, now)?, end, now, own)))
    }

    /// Field that the rows are sorted by, `None` for their own order, and `true` if it descends.
    pub fn order(&self) -> (Option<&str>, bool) {
        (self.sort_by.as_deref(), self.sort_by.is_some() && self.descending)
    }

    /// The page of rows that are sorted already, as the query wants them. Reads only up to the end
    /// of the page.
    pub fn page_in_order<'a, T: Row<L> + 'a, L>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
    ) -> Result<(Vec<&'a T>, Option<u64>), ApiError> {
        let length = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let rows = self.wanted(rows, now)?.skip(skip).take(length.saturating_add(1));
        Ok(self.page_at_once(rows.collect()))
    }

    fn found<'a, T: Row<L> + 'a, L>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
    ) -> Result<Vec<&'a T>, ApiError> {
        Ok(self.wanted(rows, now)?.collect())
    }

    /// The rows that match.
    fn wanted<'a, T: Row<L> + 'a, L>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
    ) -> Result<impl Iterator<Item = &'a T>, ApiError> {
        let tests =
            self.conditions.iter().map(|c| c.test::<T, L>()).collect::<Result<Vec<_>, _>>()?;
        if let Some(field) = &self.sort_by {
            type_of::<T, L>("sortBy", field)?;
        }
        let wanted = move |row: &&'a T| {
            tests.iter().all(|test| test.holds(&row.field(test.field, now)))
                && self.search.as_ref().is_none_or(|text| has(*row, text, now))
        };
        Ok(rows.filter(wanted))
    }

    /// The first `end` in order, then the others.
    fn ordered<'a, T: Row<L>, L, K: Ord>(
        &self,
        rows: Vec<&'a T>,
        end: usize,
        now: Instant,
        own: impl Fn(&'a T) -> K,
    ) -> Vec<&'a T> {
        match self.sort_by.as_deref() {
            Some(by) if self.descending => {
                first(rows, end, |row| (Reverse(row.field(by, now)), own(row)))
            }
            Some(by) => first(rows, end, |row| (row.field(by, now), own(row))),
            None => first(rows, end, own),
        }
    }

    /// Number of rows that match.
    pub fn count<'a, T: Row<L> + 'a, L>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        now: Instant,
    ) -> Result<Json<CountResponse>, ApiError> {
        Ok(Json(CountResponse { count: self.found(rows, now)?.len() as u64 }))
    }

    /// The page, from rows that start with it, and the offset of the next one if there is one.
    pub fn page_at_once<T>(&self, mut rows: Vec<T>) -> (Vec<T>, Option<u64>) {
        let length = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = rows.len() > length;
        rows.truncate(length);
        (rows, more.then(|| self.offset.saturating_add(self.limit)))
    }

    /// The page that the query selects, and the offset of the next one if there is one.
    pub fn page<T>(&self, rows: Vec<T>) -> (Vec<T>, Option<u64>) {
        let total = rows.len() as u64;
        let end = self.offset.saturating_add(self.limit);
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let page = rows.into_iter().skip(skip).take(take).collect();
        (page, (end < total).then_some(end))
    }
}

/// The first `end` rows by their keys, in order, then the others. Rows with equal keys keep their
/// order.
fn first<'a, T, K: Ord>(rows: Vec<&'a T>, end: usize, key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let keys = rows.into_iter().enumerate().map(|(place, row)| (key(row), place, row));
    let mut keys: Vec<_> = keys.collect();
    let order =
        |one: &(K, usize, &T), other: &(K, usize, &T)| (&one.0, one.1).cmp(&(&other.0, other.1));
    if end < keys.len() {
        keys.select_nth_unstable_by(end, order);
    }
    let end = end.min(keys.len());
    keys[..end].sort_unstable_by(order);
    keys.into_iter().map(|(.., row)| row).collect()
}

fn has<T: Row<L>, L>(row: &T, text: &str, now: Instant) -> bool {
    T::SEARCHED.iter().any(|field| match row.field(field, now) {
        Scalar::Text(value) => value.to_lowercase().contains(text),
        Scalar::Texts(values) => values.iter().any(|one| one.to_lowercase().contains(text)),
        _ => false,
    })
}

/// The value of a parameter that is true or false.
pub fn flag(name: &str, value: &str) -> Result<bool, ApiError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(ApiError::field(name, format!("`{value}` is not allowed; write true or false"))),
    }
}

/// A word that is not known, and those that are.
pub fn unknown_word(what: &str, word: &str, known: &[&str]) -> ApiError {
    let hint = nearest(word, known.iter().copied())
        .map(|near| format!("did you mean `{near}`? "))
        .unwrap_or_default();
    ApiError::bad(format!("unknown {what} `{word}`; {hint}allowed are {}", known.join(", ")))
}

fn type_of<T: Row<L>, L>(parameter: &str, field: &str) -> Result<(&'static str, Type), ApiError> {
    T::FIELDS.iter().copied().find(|(name, _)| *name == field).ok_or_else(|| {
        let known: Vec<&str> = T::FIELDS.iter().map(|(name, _)| *name).collect();
        ApiError::field(parameter, unknown_word("field", field, &known).why)
    })
}

fn conditions(text: &str) -> Result<Vec<Condition>, ApiError> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let end =
                part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
            let (field, rest) = part.split_at(end);
            let known = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign));
            let (sign, operator) = known.filter(|_| !field.is_empty()).ok_or_else(|| {
                let signs: Vec<&str> = OPERATORS.iter().map(|(sign, _)| *sign).collect();
                let allowed = signs.join(" ");
                let why = format!(
                    "`{part}` is not a condition; write field, operator, value, \
                                   such as name==a1; operators are {allowed}"
                );
                ApiError::field("filterBy", why)
            })?;
            let operand = rest[sign.len()..].to_owned();
            Ok(Condition { field: field.to_owned(), operator: *operator, operand })
        })
        .collect()
}

/// A condition whose operand has the type of its field.
struct Test {
    field: &'static str,
    operator: Operator,
    operand: Scalar<'static>,
}

impl Condition {
    fn test<T: Row<L>, L>(&self) -> Result<Test, ApiError> {
        let (field, kind) = type_of::<T, L>("filterBy", &self.field)?;
        let wrong = |what: &str| {
            ApiError::field("filterBy", format!("`{}` for {field} is not {what}", self.operand))
        };
        let text_only = matches!(
            self.operator,
            Operator::Contains | Operator::ContainsNot | Operator::StartsWith | Operator::EndsWith
        );
        if text_only && kind != Type::Text {
            let why = format!("{field} is not text; use == != <= or >= with it");
            return Err(ApiError::field("filterBy", why));
        }
        let operand = match kind {
            Type::Text => Scalar::Text(Cow::Owned(self.operand.clone())),
            Type::Number => units::parse_cpu_millis(&self.operand)
                .map(Scalar::Number)
                .map_err(|_| wrong("a number such as 0.5 or 2"))?,
            Type::Time => date(&self.operand)
                .map(|at| Scalar::Time(at.0))
                .ok_or_else(|| wrong("a time such as 2026-01-31 or 2026-01-31T12:00:00Z"))?,
            Type::Flag => match self.operand.as_str() {
                "true" => Scalar::Flag(true),
                "false" => Scalar::Flag(false),
                _ => return Err(wrong("true or false")),
            },
        };
        Ok(Test { field, operator: self.operator, operand })
    }
}

/// A day or a moment.
pub fn date(text: &str) -> Option<Instant> {
    let midnight = format!("{text}T00:00:00Z");
    let at: Time = text.parse().or_else(|_| midnight.parse()).ok()?;
    Some(at.0)
}

impl Test {
    fn holds(&self, value: &Scalar<'_>) -> bool {
        use Operator::{ContainsNot, IsNot};
        match value {
            Scalar::Texts(values) => {
                let mut each = values.iter().map(|one| self.holds_for(&Scalar::text(one.as_ref())));
                match self.operator {
                    IsNot | ContainsNot => each.all(|holds| holds),
                    _ => each.any(|holds| holds),
                }
            }
            value => self.holds_for(value),
        }
    }

    /// True if a text is the operand, or one of the alternatives in it.
    fn is_operand(&self, value: &Scalar<'_>) -> bool {
        let one_of = |value: &str, operand: &str| operand.split('|').any(|one| one == value);
        match (value, &self.operand) {
            (Scalar::Text(value), Scalar::Text(operand)) => {
                value == operand || one_of(value, operand)
            }
            (value, operand) => value == operand,
        }
    }

    fn holds_for(&self, value: &Scalar<'_>) -> bool {
        let text = |test: fn(&str, &str) -> bool| match (value, &self.operand) {
            (Scalar::Text(value), Scalar::Text(operand)) => test(value, operand),
            _ => false,
        };
        let absent = *value == Scalar::Absent;
        match self.operator {
            Operator::Is => self.is_operand(value),
            Operator::IsNot => !self.is_operand(value),
            Operator::AtMost => !absent && *value <= self.operand,
            Operator::AtLeast => !absent && *value >= self.operand,
            Operator::Contains => text(|value, part| value.contains(part)),
            Operator::ContainsNot => !text(|value, part| value.contains(part)),
            Operator::StartsWith => text(|value, part| value.starts_with(part)),
            Operator::EndsWith => text(|value, part| value.ends_with(part)),
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
