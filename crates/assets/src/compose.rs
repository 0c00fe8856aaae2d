//! The composition of a creation from all its sources: the request's own values first, then those
//! of the assets it names, then the template's, then those of the assets the template names.

use access::{Backend, Family, Item, scopes};
use api_types::{
    AssetIds, Compute, ConfigMapAssetSpec, CreationRequest, EnvironmentAssetSpec,
    EnvironmentVariable, EnvironmentVariableSecret, GitAssetSpec, HostPathSpec, NfsAssetSpec,
    PvcAssetSpec, S3AssetSpec, SecretAssetSpec, Security, Storage, WorkloadSpec,
};
use http_kit::ApiError;
use spec::WorkloadKind;
use view::{Object, Scope};

use super::data::DataSource as _;
use super::{AssetSpec, Stored, connections, restricts};
use crate::data::each_data_source;
use crate::templates::{self, Template, Values};
use crate::usage::{DATA_SOURCES, key};

/// Fills missing values of a creation. Returns the objects that values were taken from.
pub fn compose(
    state: &Backend,
    kind: WorkloadKind,
    request: &mut CreationRequest,
) -> Result<Vec<String>, ApiError> {
    let own = request.spec.take().unwrap_or_default();
    let template = request.template_id.take();
    if template.is_none() && own.assets.is_none() {
        request.spec = Some(own);
        return Ok(Vec::new());
    }
    let project = Scope::Project(access::project_id("projectId", &request.project_id)?);
    let mut from =
        Sources { state, kind, near: scopes::around(project, &state.control.view()), uses: vec![] };
    let (own, chosen) = split(own);
    let preset = from.template(template.as_deref())?;
    let (spec, mut presets) = split(preset.spec);
    // An asset that the request names replaces the template's.
    presets.environment.take_if(|_| chosen.environment.is_some());
    presets.compute.take_if(|_| chosen.compute.is_some());
    let own = Values {
        spec: own.over(from.assets("spec.assets", chosen)?),
        master_spec_same_as_worker: request.master_spec_same_as_worker,
        master: request.master_spec.take(),
    };
    let spec = spec.over(from.assets("templateId: spec.assets", presets)?);
    let all = own.over(Values { spec, ..preset });
    request.spec = Some(all.spec);
    request.master_spec = all.master;
    request.master_spec_same_as_worker = all.master_spec_same_as_worker;
    Ok(from.uses)
}

/// The values of the data sources that a policy of a scope imposes, and the objects they are from.
pub fn imposed(
    state: &Backend,
    kind: WorkloadKind,
    scope: Scope,
    field: &str,
    ids: Vec<String>,
) -> Result<(WorkloadSpec, Vec<String>), ApiError> {
    let view = state.control.view();
    let is_there = |id: &&String| key(&view, scope, DATA_SOURCES, id).is_some();
    if let Some(missing) = ids.iter().find(|id| !is_there(id)) {
        return Err(ApiError::no_such(&format!("{field}: asset"), missing));
    }
    let mut from = Sources { state, kind, near: scopes::around(scope, &view), uses: vec![] };
    let storage = from.storage(field, ids)?;
    Ok((WorkloadSpec { storage, ..WorkloadSpec::default() }, from.uses))
}

/// The values of a specification, and the assets it names.
fn split(mut spec: WorkloadSpec) -> (WorkloadSpec, AssetIds) {
    let assets = spec.assets.take().unwrap_or_default();
    (spec, assets)
}

/// Sources of values.
struct Sources<'a> {
    state: &'a Backend,
    kind: WorkloadKind,
    /// The scopes whose objects the workload can use.
    near: Vec<Scope>,
    uses: Vec<String>,
}

impl Sources<'_> {
    /// An object that the workload can use. An object in another scope counts as missing.
    fn find<F: Family>(&mut self, field: &str, id: &str) -> Result<Item<F>, ApiError> {
        let found = self.state.one::<F>(id).ok();
        let found = found.filter(|item| self.near.contains(&item.object.scope));
        let missing = || {
            let why = format!("{} {} was not found", F::KIND, units::shown(id));
            ApiError::new(axum::http::StatusCode::NOT_FOUND, format!("{field}: {why}"))
        };
        let item = found.ok_or_else(missing)?;
        self.uses.push(item.object.key());
        Ok(item)
    }

    /// The values of a template.
    fn template(&mut self, id: Option<&str>) -> Result<Values, ApiError> {
        let Some(id) = id else { return Ok(Values::default()) };
        let item: Item<Template> = self.find("templateId", id)?;
        let wanted = templates::type_of(self.kind);
        if item.body.workload_type != wanted {
            let (name, own) = (&item.object.name, item.body.workload_type);
            let why = format!("`{name}` is a template of type {own:?}, not {wanted:?}");
            return Err(ApiError::field("templateId", why));
        }
        let values = item.body.values();
        let values = values.map_err(|error| ApiError::field("templateId", error.message()))?;
        self.supported("templateId", &item.object, &values.spec)?;
        if let Some(master) = &values.master {
            self.supported("templateId: master", &item.object, master)?;
        }
        Ok(values)
    }

    /// The values of the assets that something names.
    fn assets(&mut self, at: &str, ids: AssetIds) -> Result<WorkloadSpec, ApiError> {
        let mut values = WorkloadSpec::default();
        let sources = ids.datasources.unwrap_or_default().into_iter().map(|one| one.id);
        values.storage = self.storage(&format!("{at}.datasources"), sources.collect())?;
        if let Some(id) = ids.environment {
            let field = format!("{at}.environment");
            let item: Item<Stored<EnvironmentAssetSpec>> = self.usable(&field, &id)?;
            let environment = environment(self.kind, item.body.spec);
            self.supported(&field, &item.object, &environment)?;
            values = environment.over(values);
        }
        if let Some(id) = ids.compute {
            let field = format!("{at}.compute");
            let item: Item<Stored<Compute>> = self.usable(&field, &id)?;
            let compute = WorkloadSpec { compute: Some(item.body.spec), ..WorkloadSpec::default() };
            self.supported(&field, &item.object, &compute)?;
            values = compute.over(values);
        }
        Ok(values)
    }

    /// Storage of these data sources.
    fn storage(&mut self, field: &str, ids: Vec<String>) -> Result<Option<Storage>, ApiError> {
        let mut storage = Storage::default();
        for (n, id) in ids.iter().enumerate() {
            self.data_source(&format!("{field}[{n}]"), id, &mut storage)?;
        }
        Ok(Some(storage).filter(|storage| *storage != Storage::default()))
    }

    fn data_source(&mut self, field: &str, id: &str, to: &mut Storage) -> Result<(), ApiError> {
        let is = |kind| self.state.control.view().objects.get(kind, id).is_some();
        macro_rules! put {
            ($($spec:ident)+) => {$(
                if is($spec::STORED) {
                    let item: Item<Stored<$spec>> = self.usable(field, id)?;
                    item.body.spec.put(item.object.name.clone(), to);
                    return Ok(());
                }
            )+};
        }
        each_data_source!(put);
        // Gives the error of a missing data source.
        self.usable::<SecretAssetSpec>(field, id).map(|_| ())
    }

    /// An asset that workloads of this kind may use.
    fn usable<S: AssetSpec>(&mut self, field: &str, id: &str) -> Result<Item<Stored<S>>, ApiError> {
        let item: Item<Stored<S>> = self.find(field, id)?;
        let Some(types) = restricts(item.body.supports.as_ref()) else { return Ok(item) };
        let may = match self.kind {
            WorkloadKind::Training => types.training,
            WorkloadKind::Workspace => types.workspace,
            WorkloadKind::Inference => types.inference,
            WorkloadKind::Distributed => types.distributed,
        };
        if may {
            return Ok(item);
        }
        let kinds = convert::kind_plural(self.kind);
        Err(ApiError::field(field, format!("`{}` is not for {kinds}", item.object.name)))
    }

    /// Refuses values that this server does not act on, by where they come from.
    fn supported(
        &self,
        field: &str,
        object: &Object,
        values: &WorkloadSpec,
    ) -> Result<(), ApiError> {
        match values.all_not_yet().first() {
            Some(later) => {
                let what = format!("{later}, which `{}` sets,", object.name);
                Err(ApiError::value_not_yet(field, what))
            }
            None => Ok(()),
        }
    }
}

/// An environment as values of a workload. Values that are false or empty are left out.
fn environment(kind: WorkloadKind, asset: EnvironmentAssetSpec) -> WorkloadSpec {
    let variables = asset.environment_variables.map(|all| {
        let one = |variable: api_types::EnvironmentVariableOfAsset| EnvironmentVariable {
            name: variable.name,
            value: variable.value,
            description: variable.description,
            exclude: variable.exclude,
            secret: variable
                .credential
                .map(|of| EnvironmentVariableSecret { name: of.asset_id, key: of.key }),
            config_map: variable.config_map,
            pod_field_ref: variable.pod_field_ref,
            ..EnvironmentVariable::default()
        };
        all.into_iter().map(one).collect()
    });
    // Flags that are false are left out; only rights can be taken away.
    let yes = |flag: Option<bool>| flag.filter(|flag| *flag);
    let security = Security {
        run_as_uid: asset.run_as_uid,
        run_as_gid: asset.run_as_gid,
        supplemental_groups: asset.supplemental_groups,
        uid_gid_source: asset.uid_gid_source,
        allow_privilege_escalation: asset.allow_privilege_escalation,
        capabilities: asset.capabilities,
        host_ipc: yes(asset.host_ipc),
        host_network: yes(asset.host_network),
        read_only_root_filesystem: yes(asset.read_only_root_filesystem),
        run_as_non_root: yes(asset.run_as_non_root),
        seccomp_profile_type: asset.seccomp_profile_type,
        privileged: None,
    };
    WorkloadSpec {
        image: asset.image,
        command: asset.command,
        args: asset.args,
        environment_variables: variables,
        working_dir: asset.working_dir,
        image_pull_policy: asset.image_pull_policy,
        probes: asset.probes,
        create_home_dir: yes(asset.create_home_dir),
        stdin: yes(asset.stdin),
        tty: yes(asset.tty),
        security: Some(security).filter(|all| *all != Security::default()),
        ..connections::values(kind, asset.connections.unwrap_or_default())
    }
}
