//! `elastane keys`: the keys that credentials are encrypted with.

use std::io::Write as _;
use std::path::PathBuf;

use super::args::Keys;
use super::{config, up};
use cli_kit::exit::{Error, chain};

pub(super) fn run(state_dir: Option<PathBuf>, verb: Keys) -> Result<(), Error> {
    let Keys::Rotate { place } = verb;
    let config = config::resolve(state_dir.as_deref(), place.typed, &super::env)
        .map_err(|error| Error::Usage(error.to_string()))?;
    let file = up::vault_file(&config, &config.settings.state_dir);
    if !file.exists() {
        let why = format!("there are no keys in {}; `elastane up` makes them", file.display());
        return Err(Error::Failed(why));
    }
    let number = auth::Vault::rotate(&file).map_err(|error| Error::Failed(chain(&error)))?;
    writeln!(
        std::io::stdout(),
        "key {number} was added to {file}; restart the server to encrypt everything with it. Keep \
         the older keys as long as you keep older backups",
        file = file.display()
    )?;
    Ok(())
}
