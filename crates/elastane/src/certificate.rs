//! The certificate while the server runs: reloaded when its files are replaced, or on SIGHUP, if
//! that does not end the server.

use std::time::Duration;

use control::{Clock as _, SystemClock};

use super::config::Config;
use super::signals::{hangup, has_terminal, received};
use cli_kit::exit::{Error, chain};

/// Interval of checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The initial certificate; `None` without TLS.
pub(super) fn open(config: &Config) -> Result<Option<http_kit::Tls>, Error> {
    let Some((certificate, key)) = &config.tls else { return Ok(None) };
    let tls = http_kit::Tls::open(certificate, key);
    tls.map(Some).map_err(|error| Error::Failed(chain(&error)))
}

/// Reloads the certificate when its files change, until the server ends.
pub(super) fn follow(tls: http_kit::Tls) -> Result<(), Error> {
    let mut hangup = hangup(!has_terminal())?;
    warn(&tls);
    tokio::spawn(async move {
        loop {
            let taken = tokio::select! {
                () = received(&mut hangup) => tls.reload().map(|()| true),
                () = tokio::time::sleep(CHECK_INTERVAL) => tls.reload_if_changed(),
            };
            match taken {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!("reloaded the certificate");
                    warn(&tls);
                }
                Err(error) => {
                    tracing::error!("the certificate stays as it was: {}", chain(&error));
                }
            }
        }
    });
    Ok(())
}

fn warn(tls: &http_kit::Tls) {
    for text in tls.warnings(SystemClock.now()) {
        tracing::warn!("{text}");
    }
}
