//! Logins at a certified OpenID Connect provider, with the built programs on both sides of the
//! login.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::{Failed, passes, step};
use crate::sandbox::{Sandbox, free_port, wait_until};

/// The provider, at the tested version.
const PACKAGE: &str = "oidc-provider@9.13.3";

/// The provider's library, or why there is none.
pub(crate) fn library() -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oidc-provider");
    let library = dir.join("node_modules/oidc-provider/lib/index.js");
    let done = dir.join("installed");
    if fs::read_to_string(&done).is_ok_and(|package| package == PACKAGE) {
        return Ok(library);
    }
    step("node", Command::new("node").arg("--version"))?;
    let install =
        ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
    step("npm", Command::new("npm").args(install).arg(&dir).arg(PACKAGE))?;
    fs::write(done, PACKAGE).map_err(|error| error.to_string())?;
    Ok(library)
}

/// A server and its provider.
struct Scene {
    sandbox: Sandbox,
    issuer_port: u16,
    provider: Child,
    start: String,
}

impl Scene {
    fn new(library: &Path, algorithm: &str) -> Result<Self, Failed> {
        let mut sandbox = Sandbox::new();
        let issuer_port = free_port();
        let home = sandbox.state_dir().with_file_name("home");
        fs::write(home.join("secret"), "a secret: with/more+than&letters\n")?;
        let script = |name: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/clients").join(name)
        };
        let browser = format!("#!/bin/sh\nexec node {} \"$1\"\n", script("browser.mjs").display());
        fs::write(home.join("browser"), browser)?;
        fs::set_permissions(home.join("browser"), fs::Permissions::from_mode(0o755))?;
        let start = format!(
            "exec node {} {} {issuer_port} {algorithm} {} > provider.log",
            script("provider.mjs").display(),
            library.display(),
            sandbox.port()
        );
        let provider = sandbox.begin(&start);
        sandbox.start_server(&format!(
            "elastane up --gpus 4x16GiB --oidc-issuer http://127.0.0.1:{issuer_port} \
             --oidc-client-id elastane --oidc-client-secret-file secret \
             --oidc-scopes 'openid email groups' --oidc-create-users"
        ));
        let scene = Self { sandbox, issuer_port, provider, start };
        scene.wait_for_provider();
        Ok(scene)
    }

    fn wait_for_provider(&self) {
        let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.issuer_port)).is_ok();
        assert!(wait_until(answers), "the provider did not start");
    }

    /// Runs a command of an administrator, on the server's machine.
    fn here(&self, line: &str) -> Result<(), Failed> {
        passes(&self.sandbox, line)
    }

    /// The output of a command on another machine that knows only the server's address.
    fn elsewhere(&self, line: &str) -> Result<String, Failed> {
        let output = self.shell(line);
        if output.0 == Some(0) { Ok(output.1) } else { Err(Failed::from(output.1)) }
    }

    /// The output of a refused command on another machine.
    fn refused(&self, line: &str) -> Result<String, Failed> {
        let output = self.shell(line);
        if output.0 == Some(0) { Err(Failed::from(output.1)) } else { Ok(output.1) }
    }

    fn shell(&self, line: &str) -> (Option<i32>, String) {
        let url = format!("http://127.0.0.1:{}", self.sandbox.port());
        let own = "ELASTANE_STATE_DIR=/none BROWSER=./browser LOGIN_AS=ann";
        let output = self.sandbox.shell(&format!("export {own} RUNAI_CP_URL={url}\n{line}"));
        (output.code, output.text)
    }

    fn stop_provider(&mut self) -> Result<(), Failed> {
        // `timeout` passes the signal on to what it watches.
        let pid = self.provider.id().to_string();
        step("kill", Command::new("kill").arg(pid)).map_err(Failed::from)?;
        self.provider.wait()?;
        let gone = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.issuer_port)).is_err();
        assert!(wait_until(gone), "the provider goes on");
        Ok(())
    }
}

fn says(text: &str, what: &str) -> Result<(), Failed> {
    if text.contains(what) { Ok(()) } else { Err(format!("no `{what}` in\n{text}").into()) }
}

/// A browser login, the roles of its group, a key rotation, and the logout.
pub(crate) fn walk(library: &Path, algorithm: &str) -> Result<(), Failed> {
    let mut scene = Scene::new(library, algorithm)?;
    scene.here("elastane project create team-a --gpu-quota 2")?;
    let give = "elastane access-rule create --role 'L1 researcher' --group ml --project team-a";
    scene.here(give)?;
    says(&scene.elsewhere("runai login")?, "Logged in successfully")?;
    let own = scene.elsewhere("runai whoami && stat -c %a .runai/authentication.json")?;
    for part in ["User: ann@example.org", "Logged in by: browser", "600"] {
        says(&own, part)?;
    }
    scene.elsewhere("runai submit one -i ubuntu -g 1 -p team-a")?;
    // The address of the server is given only once.
    scene.elsewhere("unset RUNAI_CP_URL; runai list -p team-a")?;
    scene.stop_provider()?;
    scene.provider = scene.sandbox.begin(&scene.start);
    scene.wait_for_provider();
    says(&scene.elsewhere("runai login sso && runai whoami")?, "ann@example.org")?;
    scene.here("elastane user list | grep -q 'ann@example.org  *login provider  *ml'")?;
    let token = "$(sed -n 's/.*accessToken\": \"\\(.*\\)\".*/\\1/p' .runai/authentication.json | base64 -d)";
    let out = format!("T={token}; runai logout && RUNAI_TOKEN=$T runai whoami");
    says(&scene.refused(&out)?, "Logged out successfully")?;
    says(&scene.refused("runai whoami")?, "runai login")
}

/// A provider does not sign with a shared key.
pub(crate) fn shared_key(library: &Path) -> Result<(), Failed> {
    let scene = Scene::new(library, "HS256")?;
    says(&scene.refused("runai login")?, "signed with `HS256`; have the provider sign with RS256")?;
    scene.here("! elastane user list | grep -q ann")
}

/// A login whose code the user copies.
pub(crate) fn elsewhere(library: &Path) -> Result<(), Failed> {
    let scene = Scene::new(library, "RS256")?;
    let text = scene.elsewhere(
        "mkfifo in; runai login remote-browser < in > out & exec 3> in\n\
         until grep -q http out; do sleep 0.05; done\n\
         ./browser \"$(grep -o 'http[^ ]*' out)\" | sed -n 's/.*<pre>\\(.*\\)<\\/pre>.*/\\1/p' >&3\n\
         wait $!; runai whoami",
    )?;
    says(&text, "Logged in by: remote-browser")?;
    says(&scene.refused("echo nonsense | runai login remote-browser")?, "refuses this login")
}

/// The provider is gone: the error says so, and passwords keep working; an initial password is
/// changed on the way.
pub(crate) fn provider_down(library: &Path) -> Result<(), Failed> {
    let mut scene = Scene::new(library, "RS256")?;
    scene.stop_provider()?;
    says(&scene.refused("runai login")?, "does not answer (Connection refused")?;
    let given = scene.sandbox.shell("elastane user create bob@example.org | tail -1").text;
    let given = given.trim();
    let login = "runai login user -u bob@example.org";
    scene.refused(&format!("{login} -p wrong"))?;
    let text =
        scene.elsewhere(&format!("printf '{given}\\nbetter horse\\n' | {login}; runai whoami"))?;
    says(&text, "Logged in by: user")?;
    scene.elsewhere(&format!("{login} -p 'better horse'"))?;
    // Only one of several concurrent commands renews the expiring token.
    let old =
        "sed -i 's/accessToken\": \"[^\"]*/accessToken\": \"eC54Lng/' .runai/authentication.json";
    let many = "for n in 1 2 3 4 5; do runai whoami || touch failed & done; wait; ! test -e failed";
    scene.elsewhere(&format!("{old}; {many}"))?;
    let made =
        scene.sandbox.shell("elastane service-account create ci | sed -n 's/^secret *//p'").text;
    let login = format!("runai login application --name ci --secret {}; runai whoami", made.trim());
    says(&scene.elsewhere(&login)?, "User: ci")
}
