//! `elastane ui`: the web interface in a local browser.

use std::io::Write as _;
use std::path::Path;

use api_types::LinkRequest;
use cli_kit::browser::{has_display, opens};
use cli_kit::exit::Error;
use cli_kit::message::print_note;

/// Prints a login link, and opens it unless `print` is true.
pub(super) async fn run(state_dir: &Path, print: bool) -> Result<(), Error> {
    let client = client::find(None, None, Some(state_dir), None)?.client;
    let link = client.login_link(&LinkRequest::default()).await?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", link.url)?;
    out.flush()?;
    let opened = !print && has_display() && opens(&link.url);
    if !print && !opened {
        print_note(
            "No browser opens here; open the address in one. It logs in once, within ten minutes",
        );
    }
    Ok(())
}
