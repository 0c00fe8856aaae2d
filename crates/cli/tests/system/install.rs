//! The researcher's program, installed from a server by the line that the server gives out.

use crate::sandbox::Sandbox;

#[test]
fn the_installer_leaves_a_program_that_works() {
    let mut sandbox = Sandbox::new();
    if sandbox.shell("command -v curl").code != Some(0) {
        return skip::skipped("curl is not installed");
    }
    sandbox.start_server("elastane up --gpus 1x16GiB");
    let of = format!("http://127.0.0.1:{}/api/v1/cli-exposer/installer/linux", sandbox.port());
    let installed = sandbox.shell(&format!("sh -c \"$(curl -fsS {of}/commands)\""));
    assert_eq!(installed.code, Some(0), "{}", installed.text);
    assert!(installed.text.contains("home/.local/bin/runai"), "{}", installed.text);
    let works = sandbox.shell("$HOME/.local/bin/runai list -A");
    assert_eq!(works.code, Some(0), "{}", works.text);
    let left = sandbox.shell("ls -A $HOME/.local/bin");
    assert_eq!(left.text.trim(), "runai", "nothing else is left behind");

    let elsewhere = sandbox.shell(&format!("curl -fsS {of} | RUNAI_SERVER=http://127.0.0.1:1 sh"));
    assert_eq!(elsewhere.code, Some(1));
    assert!(elsewhere.text.contains("could not be downloaded"), "{}", elsewhere.text);
    assert_eq!(sandbox.shell("ls -A $HOME/.local/bin").text.trim(), "runai");
}
