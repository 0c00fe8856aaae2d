//! Policies: rules and defaults for the workloads submitted in a scope. Owns: how policies of
//! nested scopes combine. The nearest default counts; the rules of all of them must be kept, so
//! that none loosens one further out. Does not know assets: its caller gives the values that one
//! imposes.

mod fields;
mod items;
mod merge;
mod part;
mod routes;
mod rule;
mod rules;

use api_types::{
    CreationRequest, PolicyBody, PolicyMeta, PolicyV2, WorkloadSpec, asks_for_something,
};
use serde::{Deserialize, Serialize};
use spec::WorkloadKind;
use view::{Object, Scope};

use access::{Backend, Family, Ids, Item, scopes};
use convert::{self, wire};
use fields::PolicyTarget;
use http_kit::ApiError;
use part::PolicySection;
use rules::CheckedSpec;

use merge::merge;
pub use routes::routes;

/// The values of the data sources that a policy of a scope imposes, and the objects they are from.
pub type Imposed = fn(
    &Backend,
    WorkloadKind,
    Scope,
    field: &str,
    ids: Vec<String>,
) -> Result<(WorkloadSpec, Vec<String>), ApiError>;

/// State that policies are read with.
pub struct Context {
    backend: Backend,
    imposed: Imposed,
}

impl Context {
    /// Context with the function that gives the values an asset imposes.
    #[must_use]
    pub const fn new(backend: Backend, imposed: Imposed) -> Self {
        Self { backend, imposed }
    }
}

impl std::ops::Deref for Context {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}

/// A policy as it is kept; its object's name is the type of workloads it is for. Its content is
/// kept as it was given, in the published form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) body: PolicyBody,
    /// The assets that it imposes, `<kind>/<id>`.
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

impl Family for Policy {
    const KIND: &'static str = "policy";
}

/// The type of workloads of a kind, as policies are named.
pub(crate) const fn type_word(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Training => "training",
        WorkloadKind::Workspace => "workspace",
        WorkloadKind::Distributed => "distributed",
        WorkloadKind::Inference => "inference",
    }
}

/// The policies for a kind of workloads that hold in a scope, the nearest first.
pub struct Policies {
    kind: WorkloadKind,
    held: Vec<ScopedPolicy>,
}

/// The policy of one scope.
struct ScopedPolicy {
    scope: Scope,
    /// Owner of the policy, for people.
    by: String,
    parts: Vec<PolicySection>,
}

impl ScopedPolicy {
    /// A fault that is this policy's.
    fn named(&self, error: ApiError) -> ApiError {
        ApiError { why: format!("{} {}", error.why, self.by), ..error }
    }
}

impl Policies {
    /// The current policies around a scope.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn around(state: &Context, kind: WorkloadKind, scope: Scope) -> Result<Self, ApiError> {
        let near = scopes::around(scope, &state.control.view());
        let place = |object: &Object| near.iter().position(|outer| *outer == object.scope);
        let mut all = state.control.view().objects.all(Policy::KIND);
        all.retain(|object| object.name == type_word(kind) && place(object).is_some());
        all.sort_by_key(|object| place(object));
        let held = |object| {
            let Item { object, body } = Item::<Policy>::of(object)?;
            let whose = scopes::word(scopes::kind_of(object.scope));
            let by = format!("(policy `{}` of the {whose})", body.name);
            let mut held = ScopedPolicy { scope: object.scope, by, parts: Vec::new() };
            let parts = PolicySection::all(state, kind, object.scope, &body.body);
            held.parts = parts.map_err(|error| held.named(error))?;
            Ok(held)
        };
        Ok(Self { kind, held: all.iter().map(held).collect::<Result<_, ApiError>>()? })
    }

    /// Fills what a submission leaves out. Answers the objects that values were taken from.
    pub fn fill(&self, request: &mut CreationRequest) -> Result<Vec<String>, ApiError> {
        let mut defaults = self.all(0, |part| &part.defaults);
        let imposed = self.all(0, |part| &part.imposed);
        let same = request.master_spec_same_as_worker;
        if let ([_, defaults], [_, imposed]) = (&mut defaults[..], &imposed[..]) {
            let nothing = WorkloadSpec::default();
            if same == Some(true) {
                *defaults = nothing.clone();
            }
            // The master is like the workers unless set otherwise.
            let differs = *defaults != nothing || *imposed != nothing;
            if differs && same != Some(false) && request.master_spec.is_none() {
                request.master_spec = Some(nothing);
                request.master_spec_same_as_worker = None;
            }
        }
        let specs = [Some(request.spec.get_or_insert_default()), request.master_spec.as_mut()];
        let mut uses = Vec::new();
        let each = specs.into_iter().zip(defaults.into_iter().zip(imposed)).enumerate();
        for (n, (spec, (defaults, imposed))) in each {
            let Some(spec) = spec else { continue };
            *spec = imposed.over(std::mem::take(spec).over(defaults));
            self.complete(n, spec)?;
            uses.extend(self.held.iter().flat_map(|held| held.parts[n].assets.clone()));
        }
        Ok(uses)
    }

    fn complete(&self, part: usize, spec: &mut WorkloadSpec) -> Result<(), ApiError> {
        let complete = |held: &ScopedPolicy| {
            held.parts[part].complete(spec).map_err(|error| held.named(error))
        };
        self.held.iter().try_for_each(complete)
    }

    /// Refuses a submission that breaks a rule.
    pub fn check(&self, request: &CreationRequest) -> Result<(), ApiError> {
        refuse(self.broken_by(request, PolicyTarget::Master.spec())?)
    }

    /// Refuses a submission that breaks a rule, and names its master by the part that the user
    /// knows, such as `parameterServers`.
    pub fn check_as(&self, request: &CreationRequest, master: &str) -> Result<(), ApiError> {
        refuse(self.broken_by(request, master)?)
    }

    /// Refuses a change of a workload that breaks a rule that the workload did not break before.
    pub fn check_change(
        &self,
        before: &CreationRequest,
        after: &CreationRequest,
    ) -> Result<(), ApiError> {
        let master = PolicyTarget::Master.spec();
        let mut broken = self.broken_by(after, master)?;
        if !broken.is_empty() {
            let known = self.broken_by(before, master)?;
            broken.retain(|why| !known.contains(why));
        }
        refuse(broken)
    }

    /// The rules that a submission breaks, each with its field and what is allowed.
    fn broken_by(
        &self,
        request: &CreationRequest,
        of_master: &str,
    ) -> Result<Vec<String>, ApiError> {
        let as_worker = request.master_spec_same_as_worker != Some(false);
        let master = request.master_spec.as_ref().or(request.spec.as_ref().filter(|_| as_worker));
        let mut broken = Vec::new();
        for (from, held) in self.held.iter().enumerate() {
            let alone = self.alone(from)?;
            for (n, part) in held.parts.iter().enumerate() {
                let Some(said) = [request.spec.as_ref(), master][n] else { continue };
                let taken = |spec: &WorkloadSpec| wire(&convert::as_taken(self.kind, spec.clone()));
                let judged = CheckedSpec {
                    said: wire(said),
                    means: taken(said),
                    left_alone: taken(&alone[n]),
                    not_all: false,
                };
                let at = match part.who {
                    PolicyTarget::Master => of_master,
                    other => other.spec(),
                };
                let all = part.rules.broken_by(&judged).into_iter();
                broken.extend(all.map(|why| format!("{at}.{why} {}", held.by)));
            }
        }
        Ok(broken)
    }

    /// Specification of an empty submission under the policies from this one outward.
    fn alone(&self, from: usize) -> Result<Vec<WorkloadSpec>, ApiError> {
        let imposed = self.all(from, |part| &part.imposed).into_iter();
        let both = imposed.zip(self.all(from, |part| &part.defaults)).enumerate();
        let mut both = both.map(|(n, (imposed, defaults))| {
            let mut spec = imposed.over(defaults);
            self.complete(n, &mut spec).map(|()| spec)
        });
        let (spec, master_spec) = (both.next().transpose()?, both.next().transpose()?);
        let mut request = CreationRequest { spec, master_spec, ..CreationRequest::default() };
        convert::fill_master(&mut request)?;
        Ok(request.spec.into_iter().chain(request.master_spec).collect())
    }

    /// Values of each part, from the policies from this one outward.
    fn all(
        &self,
        from: usize,
        values: impl Fn(&PolicySection) -> &WorkloadSpec,
    ) -> Vec<WorkloadSpec> {
        let of = |n: usize| {
            let all = self.held[from..].iter().map(|held| values(&held.parts[n]).clone());
            all.fold(WorkloadSpec::default(), WorkloadSpec::over)
        };
        (0..PolicyTarget::of(self.kind).len()).map(of).collect()
    }
}

fn refuse(broken: Vec<String>) -> Result<(), ApiError> {
    if broken.is_empty() { Ok(()) } else { Err(ApiError::bad(broken.join("; "))) }
}

/// Refuses a policy of a scope that can never be right, or whose defaults those further out do not
/// allow: every submission would fail. Answers the assets it imposes.
pub(crate) fn check(
    state: &Context,
    kind: WorkloadKind,
    scope: Scope,
    body: &PolicyBody,
) -> Result<Vec<String>, ApiError> {
    if asks_for_something(&body.status) {
        return Err(ApiError::field("policy.status", "is the server's to say; leave it out"));
    }
    let parts = PolicySection::all(state, kind, scope, body)?;
    let mut broken = Vec::new();
    for part in &parts {
        part.check(kind)?;
        broken.extend(part.broken_by(part, &part.values()?)?);
    }
    let around = Policies::around(state, kind, scope)?;
    for (from, held) in around.held.iter().enumerate().filter(|(_, held)| held.scope != scope) {
        for ((part, outer), alone) in parts.iter().zip(&held.parts).zip(around.alone(from)?) {
            let all = outer.broken_by(part, &alone)?.into_iter();
            broken.extend(all.map(|why| format!("{why} {}", held.by)));
        }
    }
    refuse(broken)?;
    Ok(parts.into_iter().flat_map(|part| part.assets).collect())
}

/// A policy as it is shown.
pub(crate) fn shown(state: &Backend, item: &Item<Policy>) -> PolicyV2 {
    PolicyV2 { meta: Some(meta(state, item)), policy: item.body.body.clone() }
}

/// Description of a policy beside its content.
pub(crate) fn meta(state: &Backend, item: &Item<Policy>) -> PolicyMeta {
    let (object, body) = (&item.object, &item.body);
    let ids = Ids::of(object.scope, state);
    PolicyMeta {
        id: object.id.clone(),
        name: body.name.clone(),
        workload_type: object.name.clone(),
        scope: scopes::kind_of(object.scope),
        cluster_id: ids.cluster,
        department_id: ids.department,
        project_id: ids.project,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_by: object.updated_by.clone(),
        updated_at: object.updated_at.into(),
    }
}
