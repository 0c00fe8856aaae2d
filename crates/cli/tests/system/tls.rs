//! An encrypted server: from this machine, from another one, and across a new certificate.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::sandbox::{Sandbox, wait_until};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

/// Writes `ca.pem`, and with it signed `cert.pem` and `key.pem`, into the home of the sandbox.
fn issue(sandbox: &Sandbox) {
    let ca = authority();
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &ca).expect("a certificate");
    write(sandbox, &ca.pem(), &certificate.pem(), &key.serialize_pem());
}

fn write(sandbox: &Sandbox, ca: &str, certificate: &str, key: &str) {
    for (file, text) in [("ca.pem", ca), ("cert.pem", certificate), ("key.pem", key)] {
        fs::write(sandbox.state_dir().with_file_name("home").join(file), text).expect("written");
    }
}

#[test]
fn an_encrypted_server_is_used_from_here_and_from_elsewhere() {
    let sandbox = Sandbox::new();
    issue(&sandbox);
    let port = sandbox.port();
    for (flags, why) in [
        ("--tls-cert cert.pem", "needs its key"),
        ("--tls-cert cert.pem --tls-key ca.pem", "ca.pem as the key"),
    ] {
        let output = sandbox.shell(&format!("elastane up --listen 127.0.0.1:{port} {flags}"));
        assert!(output.code != Some(0) && output.text.contains(why), "{}", output.text);
    }
    let line = "exec elastane up --gpus 2x16GiB --tls-cert cert.pem --tls-key key.pem";
    let server = sandbox.begin(&format!("{line} --listen 127.0.0.1:{port} > server.txt 2>&1"));
    // On this machine no certificate is needed: the kernel gives the owner of the server.
    let here = || sandbox.shell("elastane status");
    assert!(wait_until(|| here().code == Some(0)), "{}", here().text);
    assert!(here().text.contains(&format!("https://127.0.0.1:{port}")), "{}", here().text);

    let token = sandbox.shell("elastane token").text.trim().to_owned();
    let elsewhere = |more: &str| {
        let own = format!("ELASTANE_STATE_DIR=/none RUNAI_TOKEN={token}");
        let url = format!("RUNAI_CP_URL=https://localhost:{port}");
        sandbox.shell(&format!("{own} {url} {more} runai list nodes"))
    };
    let stranger = elsewhere("");
    assert!(stranger.code != Some(0) && stranger.text.contains("is not trusted"), "{stranger:?}");
    assert!(stranger.text.contains("ELASTANE_CA"), "{}", stranger.text);
    let wrong = elsewhere("ELASTANE_CA=none.pem");
    assert!(wrong.text.contains("cannot use none.pem"), "{}", wrong.text);
    let known = elsewhere("ELASTANE_CA=ca.pem");
    assert_eq!(known.code, Some(0), "{}", known.text);

    let look_again = || {
        sandbox.shell("kill -HUP $(sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p' \"$ELASTANE_STATE_DIR\"/server.json)")
    };
    issue(&sandbox);
    look_again();
    let renewed = || elsewhere("ELASTANE_CA=ca.pem").code == Some(0);
    assert!(wait_until(renewed), "{}", elsewhere("ELASTANE_CA=ca.pem").text);

    // A certificate as `openssl req -x509` makes by default.
    let own = authority();
    write(&sandbox, &own.pem(), &own.pem(), &own.key().serialize_pem());
    look_again();
    let told = || elsewhere("ELASTANE_CA=ca.pem").text.contains("CA:FALSE");
    assert!(wait_until(told), "{}", elsewhere("ELASTANE_CA=ca.pem").text);
    assert_eq!(sandbox.shell("elastane down").code, Some(0));
    crate::sandbox::finish(server);
}
