//! `open`: a port of a workload in the browser of this machine.

use std::io::Write;

use super::context::Context;
use cli_kit::browser::{has_display, opens};
use cli_kit::exit::Error;
use cli_kit::message::print_note;
use dialects::intent::Target;

/// Prints the address, and opens it unless it is only to be printed.
pub(super) async fn run(
    of: &Target,
    url: Option<&str>,
    print: bool,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    let address = context.client.ticket(&workload.id, url).await?.url;
    writeln!(out, "{address}")?;
    out.flush()?;
    let done = print || (has_display() && opens(&address));
    if !done {
        print_note(
            "No browser opens here; open the address in one. A ticket in it is good for a minute",
        );
    }
    Ok(())
}
