//! `elastane explain`: the state of a pod of Kubernetes. Does not know about: the sentences
//! (`runai`).

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;

use api_types::ChangeKind;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::output::{One, OutputOptions, show};
use dialects::intent::KubernetesPodName;

/// `elastane explain`.
#[derive(Debug, Subcommand)]
pub(crate) enum Explain {
    /// Explain why a pod of Kubernetes waits, and what would let it start
    Pod {
        /// Its namespace and its name there
        #[arg(value_name = "NAMESPACE/NAME")]
        name: KubernetesPodName,
        /// Form of the output.
        #[command(flatten)]
        one: One,
    },
}

pub(super) async fn run(state_dir: PathBuf, what: Explain) -> Result<(), Error> {
    let Explain::Pod { name, one } = what;
    let found = client::find(None, None, Some(&state_dir), None)?;
    let how = OutputOptions::from(one);
    let look =
        async |out: &mut dyn Write| runai::explain_pod(&name, &how, &found.client, out).await;
    let pulse = ChangeWait::watch(&found.client, &[ChangeKind::Workload], None).with_unseen();
    show(&how, &mut std::io::stdout(), Some(pulse), look).await
}
