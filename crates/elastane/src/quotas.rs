//! Quotas by node pool. Owns: that the effects of a change on them are shown before it is made,
//! that a quota below the allocation of a project requires `--yes`, and how a quota is printed.
//! Does not know about: the flags of shares.

use std::io::Write;

use api_types::{Nodepool, QuotaChange, QuotaEffects, Resources, ResourcesNodePool, ShareRequest};
use cli_kit::exit::Error;
use cli_kit::message::Plain;
use cli_kit::suggest;
use client::Client;

use super::share::{Share, given};

/// Refusal of a change after which a project has a smaller quota than it holds.
const SMALLER: &str =
    "not changed: quotas would be smaller than what is held; add --yes to change it";

/// Prints the effects of a change of node pools; refuses it if a quota would be below the
/// allocation of its project, without `--yes`.
pub(super) async fn show_effects(
    client: &Client,
    change: &QuotaChange,
    yes: bool,
) -> Result<(), Error> {
    let effects = client.quota_effects(change).await?;
    print(&effects)?;
    agreed(&effects, yes, SMALLER)
}

/// Prints the effects of draining a node; refuses it if work would wait or be stopped for other
/// work, without `--yes`.
pub(super) async fn show_drain(
    client: &Client,
    change: &QuotaChange,
    yes: bool,
) -> Result<(), Error> {
    let effects = client.quota_effects(change).await?;
    print(&effects)?;
    agreed(&effects, yes, "not drained: work would be stopped; add --yes to drain the node")
}

fn print(effects: &QuotaEffects) -> Result<(), Error> {
    let mut out = Plain(std::io::stdout());
    for line in &effects.lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Effects of new shares, printed only if a quota would be below the allocation of its project.
pub(super) async fn check_shares(
    client: &Client,
    change: &QuotaChange,
    yes: bool,
) -> Result<(), Error> {
    let effects = client.quota_effects(change).await?;
    if effects.needs_force {
        print(&effects)?;
    }
    agreed(&effects, yes, SMALLER)
}

/// Refuses a change for this reason if it needs `--yes` and does not have it.
fn agreed(effects: &QuotaEffects, yes: bool, refusal: &str) -> Result<(), Error> {
    match effects.needs_force && !yes {
        true => Err(Error::Failed(refusal.to_owned())),
        false => Ok(()),
    }
}

/// The given shares in the named node pool; `None` if none are given.
pub(super) async fn request(client: &Client, share: &Share) -> Result<Option<ShareRequest>, Error> {
    let asked = given(share);
    let Some(name) = &share.node_pool else { return Ok(asked) };
    let Some(asked) = asked else {
        let why =
            "--node-pool says where a quota or a limit counts: give one, such as --gpu-quota 2";
        return Err(Error::Usage(why.to_owned()));
    };
    let pool = pool_named(client, name).await?;
    let node_pool = Some(ResourcesNodePool { id: pool.id, name: Some(pool.name) });
    Ok(Some(ShareRequest { node_pool, ..asked }))
}

/// The GPU quota in the named node pool, or in `default`; with several pools, with the name of the
/// pool and the sum of all.
pub(super) fn gpu_quota(
    resources: &[Resources],
    pool: Option<&str>,
    sum: api_types::Millis,
) -> String {
    let of = match pool {
        None => resources.first(),
        Some(name) => resources.iter().find(|one| one.node_pool.name.as_deref() == Some(name)),
    };
    let Some(of) = of.filter(|_| resources.len() > 1) else { return sum.to_string() };
    let quota = of.gpu.deserved.as_ref().map_or_else(String::new, ToString::to_string);
    let name = of.node_pool.name.as_deref().unwrap_or(&of.node_pool.id);
    format!("{quota} in node pool {name} ({sum} in all)")
}

/// The node pool of this name.
pub(super) async fn pool_named(client: &Client, name: &str) -> Result<Nodepool, Error> {
    let mut pools = client.node_pools().await?;
    let found = pools.iter().position(|pool| pool.name == name);
    found.map(|at| pools.swap_remove(at)).ok_or_else(|| {
        let names = pools.iter().map(|pool| pool.name.as_str());
        let hint = suggest::hint_or(name, names, "`elastane node-pool list` lists them");
        let name = units::shown(name);
        Error::NotFound(format!("node pool {name} was not found{hint}"))
    })
}
