//! The description of an operation from the types of its handler. Owns: how extractors become
//! parameters and bodies, and results become responses. Does not know which routes there are.
//!
//! A description is derived from the signature of the function that serves the request, so the two
//! cannot diverge.

use std::convert::Infallible;
use std::future::Future;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Uri};
use axum::response::sse::Sse;
use axum::{Extension, Json};
use utoipa::ToSchema;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};

use crate::answer::{
    Accepted, Attachment, Binary, Created, Done, Html, JsonText, NoContent, Noticed, PlainText,
    Switched, Written,
};
use crate::body::Body;
use crate::error::ApiError;
use crate::row::Row;

/// Description of an operation.
#[derive(Default)]
pub struct Description {
    /// Parameters of the query.
    pub query: Vec<Parameter>,
    /// The body it takes.
    pub body: Option<RequestBody>,
    /// Status and answer when all goes well.
    pub success: (u16, Response),
    /// Schemas that are referred to, by name.
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

impl Description {
    /// Adds a parameter of the query.
    pub fn parameter(&mut self, name: &str, kind: Type, about: &str) {
        self.parameter_of(name, Object::with_type(kind), about);
    }

    /// Adds a parameter of the query of which more than the type is known.
    pub fn parameter_of(&mut self, name: &str, schema: Object, about: &str) {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
        let parameter = parameter.required(Required::False).description(Some(about));
        self.query.push(parameter.schema(Some(schema)).build());
    }

    /// Adds a time of the query, which has to be given.
    pub fn time(&mut self, name: &str, about: &str) {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        let schema = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        self.parameter_of(name, schema.build(), about);
        self.require();
    }

    /// Adds a parameter that is one of these words, and has to be given.
    pub fn word(&mut self, name: &str, words: impl Iterator<Item = &'static str>, about: &str) {
        self.parameter_of(name, words_schema(words), about);
        self.require();
    }

    /// Adds a parameter that is some of these words, separated by commas.
    pub fn words(
        &mut self,
        name: &str,
        words: impl Iterator<Item = &'static str>,
        required: bool,
        about: &str,
    ) {
        let schema = ArrayBuilder::new().items(words_schema(words)).min_items(Some(1));
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
        let parameter = parameter.required(Required::False).description(Some(about));
        let parameter = parameter.style(Some(ParameterStyle::Form)).explode(Some(false));
        self.query.push(parameter.schema(Some(schema)).build());
        if required {
            self.require();
        }
    }

    /// Adds a parameter of the query that has to be given.
    pub fn required(&mut self, name: &str, kind: Type, about: &str) {
        self.parameter(name, kind, about);
        self.require();
    }

    /// Adds a parameter that is given once for each item, and at least once.
    pub fn several(&mut self, name: &str, kind: Type, about: &str) {
        let schema = ArrayBuilder::new().items(Object::with_type(kind)).min_items(Some(1));
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
        let parameter = parameter.required(Required::True).description(Some(about));
        let parameter = parameter.style(Some(ParameterStyle::Form)).explode(Some(true));
        self.query.push(parameter.schema(Some(schema)).build());
    }

    /// The parameter that was added last has to be given.
    fn require(&mut self) {
        if let Some(last) = self.query.last_mut() {
            last.required = Required::True;
        }
    }

    /// Adds the fields that `sortBy` and `filterBy` take, where they are parameters.
    pub(crate) fn rows<T: Row<L>, L>(&mut self) {
        let names: Vec<&str> = T::FIELDS.iter().map(|(name, _)| *name).collect();
        for parameter in &mut self.query {
            let schema = match parameter.name.as_str() {
                "sortBy" => words_schema(names.iter().copied()),
                "filterBy" => {
                    let text = ObjectBuilder::new().schema_type(Type::String);
                    text.pattern(Some(filter_pattern(&names))).build()
                }
                _ => continue,
            };
            parameter.schema = Some(schema.into());
        }
    }

    /// A reference to a type, whose schema is added.
    pub(crate) fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        T::schemas(&mut self.schemas);
        if T::name() == "Vec" {
            // A list has no name of its own.
            return T::schema();
        }
        self.schemas.push((T::name().into_owned(), T::schema()));
        RefOr::Ref(Ref::from_schema_name(T::name()))
    }

    /// Answers this, when all goes well.
    pub fn answers<T: ToSchema>(&mut self, status: u16, about: &str) {
        let content = ContentBuilder::new().schema(Some(self.refer::<T>())).build();
        let response = ResponseBuilder::new().description(about);
        self.success = (status, response.content("application/json", content).build());
    }

    /// Answers server-sent events; each has these fields.
    pub fn answers_events(&mut self) {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let event = ["id", "event", "data"].into_iter();
        let event = event.fold(ObjectBuilder::new(), |event, name| event.property(name, text()));
        self.answers_as("text/event-stream", "Server-sent events, without end", event);
    }

    fn answers_text(&mut self, media_type: &str, about: &str) {
        self.answers_as(media_type, about, ObjectBuilder::new().schema_type(Type::String));
    }

    fn answers_as(&mut self, media_type: &str, about: &str, schema: ObjectBuilder) {
        let content = ContentBuilder::new().schema(Some(schema)).build();
        self.success =
            (200, ResponseBuilder::new().description(about).content(media_type, content).build());
    }
}

fn words_schema(words: impl Iterator<Item = &'static str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// Pattern of a filter by these fields: conditions, separated by commas.
fn filter_pattern(fields: &[&str]) -> String {
    let operators = "(==|!=|<=|>=|=@|!@|=\\^|=\\$)";
    let condition = format!("({}){operators}[^,]*", fields.join("|"));
    format!("^(,*{condition}(,+{condition})*)?,*$")
}

/// An argument of a handler.
pub trait Input {
    /// Adds its part to the description of the operation.
    fn describe(_: &mut Description) {}
}

/// A result of a handler.
pub trait Output {
    /// Adds its part to the description of the operation.
    fn describe(to: &mut Description);
}

/// A handler that can be described; `A` are its arguments.
pub trait Described<A> {
    /// Adds its signature to the description.
    fn describe(to: &mut Description);
}

impl<S> Input for State<S> {}
impl<T> Input for Extension<T> {}
// The names of its parameters are in the path itself.
impl<T> Input for Path<T> {}
impl Input for HeaderMap {}
impl Input for Uri {}
impl Input for Request {}

impl<T: ToSchema, const BYTES_MAX: usize> Input for Body<T, BYTES_MAX> {
    fn describe(to: &mut Description) {
        let content = ContentBuilder::new().schema(Some(to.refer::<T>())).build();
        let body = RequestBodyBuilder::new().required(Some(Required::True));
        to.body = Some(body.content("application/json", content).build());
    }
}

impl<T: ToSchema> Output for Json<T> {
    fn describe(to: &mut Description) {
        to.answers::<T>(200, "Done");
    }
}

impl<T: ToSchema> Output for Written<T> {
    fn describe(to: &mut Description) {
        to.answers::<T>(200, "Done");
    }
}

impl<T: ToSchema> Output for Created<T> {
    fn describe(to: &mut Description) {
        to.answers::<T>(201, "Created");
    }
}

impl<T: ToSchema> Output for Accepted<T> {
    fn describe(to: &mut Description) {
        to.answers::<T>(202, "Accepted; it is done in the background");
    }
}

impl<T: ToSchema> Output for Noticed<T> {
    fn describe(to: &mut Description) {
        to.answers::<T>(202, "Accepted; it is done in the background");
    }
}

impl Output for Done {
    fn describe(to: &mut Description) {
        to.success = (200, ResponseBuilder::new().description("Done").build());
    }
}

impl Output for NoContent {
    fn describe(to: &mut Description) {
        to.success = (204, ResponseBuilder::new().description("Done").build());
    }
}

impl Output for PlainText {
    fn describe(to: &mut Description) {
        to.answers_text("text/plain", "The text, as it comes");
    }
}

impl<T: Output> Output for (HeaderMap, T) {
    fn describe(to: &mut Description) {
        T::describe(to);
    }
}

impl Output for Switched {
    fn describe(to: &mut Description) {
        let about = "The connection is a WebSocket from now on";
        to.success = (101, ResponseBuilder::new().description(about).build());
    }
}

impl Output for Binary {
    fn describe(to: &mut Description) {
        to.answers_text("application/octet-stream", "A program");
    }
}

impl Output for Attachment {
    fn describe(to: &mut Description) {
        to.answers_text("text/csv", "A file");
    }
}

impl Output for Html {
    fn describe(to: &mut Description) {
        to.answers_text("text/html", "A page");
    }
}

impl Output for JsonText {
    fn describe(to: &mut Description) {
        let schema = ObjectBuilder::new().schema_type(Type::Object);
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new().description("Done");
        to.success = (200, response.content("application/json", content).build());
    }
}

impl<S> Output for Sse<S> {
    fn describe(to: &mut Description) {
        to.answers_events();
    }
}

impl<T: Output> Output for Result<T, ApiError> {
    fn describe(to: &mut Description) {
        T::describe(to);
    }
}

impl<T: Output> Output for Result<T, Infallible> {
    fn describe(to: &mut Description) {
        T::describe(to);
    }
}

macro_rules! described {
    ($($input:ident)*) => {
        impl<F, Fut, R, $($input),*> Described<($($input,)*)> for F
        where
            F: Fn($($input),*) -> Fut,
            Fut: Future<Output = R>,
            R: Output,
            $($input: Input,)*
        {
            fn describe(to: &mut Description) {
                $($input::describe(to);)*
                R::describe(to);
            }
        }
    };
}

described!();
described!(A);
described!(A B);
described!(A B C);
described!(A B C D);
described!(A B C D E);
described!(A B C D E G);
