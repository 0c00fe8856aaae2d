//! The newest release that has used a database: what refuses a newer one names it, so that people
//! know what to start.

use crate::connection::Connection;
use crate::fault::Result;
use crate::statement::Statement;
use crate::write::meta;

/// The row of `meta` that has it.
const KEY: &str = "release";
/// This release.
const OWN: &str = env!("CARGO_PKG_VERSION");

/// Notes this release, unless a later one has been here.
pub(crate) async fn note(db: &mut Connection<'_>) -> Result<()> {
    match read(db).await? {
        Some(noted) if order(&noted) >= order(OWN) => Ok(()),
        _ => db.write(meta("note the release", KEY, OWN.to_owned())).await,
    }
}

/// The release that was noted; none in a database of before there was a note.
pub(crate) async fn read(db: &mut Connection<'_>) -> Result<Option<String>> {
    let rows =
        Statement::new("read the release", "SELECT value FROM meta WHERE key = $1").text(KEY);
    let rows = db.read(rows).await?;
    Ok(rows.first().map(|row| row.text("value")).transpose()?.flatten())
}

/// Numbers of a release; the text after them does not count.
fn order(release: &str) -> Vec<u64> {
    let number = |part: &str| {
        let digits = part.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    release.split('.').take(3).map(number).collect()
}

/// Name of the program to start, for messages.
pub(crate) fn name(noted: Option<&str>) -> String {
    match noted {
        Some(release) if order(release) > order(OWN) => {
            format!("elastane {release} or a later version")
        }
        _ => "the newer version of elastane that wrote it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert!(order("0.10.0") > order("0.9.3") && order("1.0.0-rc1") == order("1.0.0"));
        assert_eq!(name(Some("999.1.0")), "elastane 999.1.0 or a later version");
        assert_eq!(name(Some(OWN)), name(None));
    }
}
