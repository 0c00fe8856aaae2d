//! Assets and templates in the stream of changes. Owns: which kinds there are, each as its list
//! shows it.

use std::sync::Arc;

use access::{Backend, DocumentView, DocumentViewKind, Family as _, Item};
use api_types::{
    AccessKeySpec, ChangeKind, Compute, ConfigMapAssetSpec, DockerRegistrySpec,
    EnvironmentAssetSpec, GenericSecretSpec, GitAssetSpec, HostPathSpec, NfsAssetSpec,
    NgcApiKeySpec, PasswordSpec, PvcAssetSpec, S3AssetSpec, SecretAssetSpec,
};
use auth::Resource;
use http_kit::ApiError;
use view::{Object, View};

use crate::data::each_data_source;
use crate::templates::{Template, shown as shown_template};
use crate::{AssetSpec, Stored, shown};

/// Documents of this crate in the stream of changes.
#[must_use]
pub fn documents() -> Vec<DocumentViewKind> {
    let templates = DocumentViewKind {
        stored: Template::KIND,
        kind: ChangeKind::Template,
        resource: Resource::Templates,
        is_part: false,
        shown: template,
    };
    macro_rules! sources {
        ($($spec:ident)+) => { [$(of::<$spec>()),+] };
    }
    let others = [
        of::<Compute>(),
        of::<EnvironmentAssetSpec>(),
        of::<AccessKeySpec>(),
        of::<DockerRegistrySpec>(),
        of::<GenericSecretSpec>(),
        of::<NgcApiKeySpec>(),
        of::<PasswordSpec>(),
        templates,
    ];
    others.into_iter().chain(each_data_source!(sources)).collect()
}

fn of<S: AssetSpec>() -> DocumentViewKind {
    DocumentViewKind {
        stored: S::STORED,
        kind: ChangeKind::Asset,
        resource: S::RESOURCE,
        is_part: false,
        shown: asset::<S>,
    }
}

fn asset<S: AssetSpec>(
    backend: &Backend,
    view: &View,
    object: &Arc<Object>,
) -> Result<Option<DocumentView>, ApiError> {
    let item = Item::<Stored<S>>::of(object)?;
    DocumentView::new(&object.id, &shown(backend, view, item, None)).map(Some)
}

fn template(
    backend: &Backend,
    _: &View,
    object: &Arc<Object>,
) -> Result<Option<DocumentView>, ApiError> {
    let item = Item::<Template>::of(object)?;
    DocumentView::new(&object.id, &shown_template(backend, &item)).map(Some)
}
