//! Settings: several kubeconfigs, service accounts, and what is refused.

use std::fs;

use super::*;

const ONE: &str = "
current-context: dev
contexts:
- name: dev
  context: {cluster: one, user: ann, namespace: team}
clusters:
- name: one
  cluster:
    server: https://one.example:6443
    certificate-authority: pki/ca.crt
    certificate-authority-data: null
users:
- name: ann
  user: {token: secret-of-ann}
";

const TWO: &str = "
current-context: prod
contexts:
- name: prod
  context: {cluster: two, user: ann}
- name: dev
  context: {cluster: two, user: bob}
clusters:
- name: two
  cluster:
    server: https://[::1]/base/
    certificate-authority-data: aGVs bG8=
    tls-server-name: two.example
    proxy-url: socks5://proxy.example:1080
users:
- name: ann
  user: {token: other}
- name: bob
  user: {tokenFile: /t/bob, token: x, client-certificate: bob.crt, client-key: /k/bob.key}
";

fn files(texts: &[&str]) -> (tempfile::TempDir, Result<Kubeconfig, ConfigError>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> =
        (0..texts.len()).map(|number| folder.path().join(format!("c{number}"))).collect();
    paths.iter().zip(texts).for_each(|(path, text)| fs::write(path, text).unwrap());
    let list = std::env::join_paths(&paths).unwrap().into_string().unwrap();
    let list = format!("/none:{list}");
    let env = |name: &str| (name == "KUBECONFIG").then(|| list.clone());
    (folder, Kubeconfig::find(&env))
}

#[test]
fn of_several_files_the_first_entry_of_a_name_counts() {
    let (folder, found) = files(&[ONE, TWO]);
    let found = found.unwrap();
    let config = found.config(None).unwrap();
    assert_eq!(config.server().to_string(), "https://one.example:6443/");
    assert_eq!(config.namespace(), "team");
    assert_eq!(config.authority, Some(Source::File(folder.path().join("pki/ca.crt"))));
    assert!(config.user.token == Some(TokenSource::Inline("secret-of-ann".to_owned())));
    assert!(!format!("{config:?}").contains("secret-of-ann"));

    let config = found.config(Some("prod")).unwrap();
    assert_eq!((config.namespace(), config.server().path()), ("default", "/base/"));
    assert_eq!(config.authority, Some(Source::Inline(b"hello".to_vec())));
    assert_eq!(config.server_name.as_deref(), Some("two.example"));
    assert_eq!(config.proxy.unwrap().scheme_str(), Some("socks5"));
    assert!(config.user.token == Some(TokenSource::Inline("secret-of-ann".to_owned())));

    let config = files(&[TWO]).1.unwrap().config(Some("dev")).unwrap();
    assert!(config.user.token == Some(TokenSource::File("/t/bob".into())));
    let Some((Source::File(certificate), Source::File(key))) = config.user.certificate else {
        panic!("no certificate")
    };
    assert!(certificate.is_absolute() && certificate.ends_with("bob.crt"));
    assert_eq!(key, Path::new("/k/bob.key"));
}

#[test]
fn a_kubeconfig_that_cannot_be_used_says_which_field_and_what_is_allowed() {
    let of = |cluster: &str, user: &str| {
        format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{{cluster}}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}]\n"
        )
    };
    let server = "server: https://x";
    for (text, why) in [
        (String::new(), "the kubeconfig has no contexts; name another file with --kubeconfig"),
        ("contexts: [{name: a}, {name: b}]".to_owned(), "--context: a, b"),
        ("current-context: b\ncontexts: [{name: a}]".to_owned(), "no context b; it has a"),
        ("contexts: 7".to_owned(), "failed to read "),
        (of("server: x", ""), "server of cluster a: `x` is no address that begins with https://"),
        (of("server: ftp://x", ""), "`ftp://x` is no address"),
        (of("server: https://x, proxy-url: https://p", ""), "begins with http://, socks5://"),
        (of("server: https://x, insecure-skip-tls-verify: true", ""), "certificate-authority-data"),
        (of("server: https://x, certificate-authority-data: '?'", ""), "is no base64"),
        (of(server, "as: root"), "as of user a: is not supported"),
        (of(server, "username: u, password: p"), "give a token or a certificate"),
        (of(server, "auth-provider: {name: gcp}"), "use an `exec` plug-in"),
        (of(server, "client-certificate: c"), "client-key of user a: is missing"),
        (of(server, "exec: {apiVersion: v1, command: x}"), "`v1` is not client.authentication"),
        (
            of(
                server,
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, \
                interactiveMode: Always}",
            ),
            "`Always` needs a terminal",
        ),
    ] {
        let (_folder, found) = files(&[&text]);
        let error = found.and_then(|found| found.config(None)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}\nfor {text}");
    }
    let error = Kubeconfig::find(&|_| None).unwrap_err();
    assert_eq!(error, ConfigError::Absent);
}

#[test]
fn a_pod_finds_its_service_account() {
    let folder = tempfile::tempdir().unwrap();
    let env = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some("fd00::1".to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
        _ => None,
    };
    assert!(Config::of_pod(folder.path(), &env).unwrap().is_none(), "no token");
    fs::write(folder.path().join("token"), "t").unwrap();
    fs::write(folder.path().join("namespace"), "elastane").unwrap();
    assert!(Config::of_pod(folder.path(), &|_| None).unwrap().is_none(), "no pod");
    let config = Config::of_pod(folder.path(), &env).unwrap().unwrap();
    assert_eq!(config.server().to_string(), "https://[fd00::1]:443/");
    assert_eq!(config.namespace(), "elastane");
    assert!(config.user.token == Some(TokenSource::File(folder.path().join("token"))));
}
