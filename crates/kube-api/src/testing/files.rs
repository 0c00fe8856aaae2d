//! Files of a cluster for tests. Owns: its certificates, its users, and their kubeconfig. Does not
//! know about: the servers.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

pub(super) const AUTHORITY: &str = "ca.crt";
pub(super) const CERTIFICATE: &str = "server.crt";
pub(super) const KEY: &str = "server.key";
pub(super) const KUBECONFIG: &str = "kubeconfig";
/// Keys of tokens of service accounts.
pub(super) const ACCOUNTS_KEY: &str = "accounts.key";
pub(super) const ACCOUNTS_PUBLIC_KEY: &str = "accounts.pub";
pub(super) const TOKENS: &str = "tokens.csv";

/// User with a token who may do everything.
pub const ADMIN: &str = "admin";
/// User with a certificate who may do everything.
pub const ADMIN_BY_CERTIFICATE: &str = "admin-by-certificate";
/// User with a token to whom no role gives anything.
pub const READER: &str = "reader";

/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// Writes those that are missing, and the kubeconfig for a port.
pub(super) fn write(dir: &Path, port: u16) {
    if !dir.join(AUTHORITY).exists() {
        certificates(dir);
        let tokens = format!("{ADMIN}-token,{ADMIN},1,{MASTERS}\n{READER}-token,{READER},2\n");
        fs::write(dir.join(TOKENS), tokens).unwrap();
    }
    let context = |user: &str| {
        format!("- name: {user}\n  context: {{cluster: test, user: {user}, namespace: default}}\n")
    };
    let contexts: String = [ADMIN, ADMIN_BY_CERTIFICATE, READER].map(context).concat();
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {ADMIN}\ncontexts:\n{contexts}\
         clusters:\n- name: test\n  cluster:\n    server: https://127.0.0.1:{port}\n    \
         certificate-authority: {AUTHORITY}\nusers:\n\
         - name: {ADMIN}\n  user: {{token: {ADMIN}-token}}\n\
         - name: {READER}\n  user: {{token: {READER}-token}}\n\
         - name: {ADMIN_BY_CERTIFICATE}\n  user:\n    client-certificate: client.crt\n    \
         client-key: client.key\n"
    );
    fs::write(dir.join(KUBECONFIG), kubeconfig).unwrap();
}

fn certificates(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(dir.join(AUTHORITY), authority.pem()).unwrap();

    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let params = CertificateParams::new(names).unwrap();
    let key = KeyPair::generate().unwrap();
    fs::write(dir.join(CERTIFICATE), params.signed_by(&key, &authority).unwrap().pem()).unwrap();
    fs::write(dir.join(KEY), key.serialize_pem()).unwrap();

    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, ADMIN_BY_CERTIFICATE);
    params.distinguished_name.push(DnType::OrganizationName, MASTERS);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    fs::write(dir.join("client.crt"), params.signed_by(&key, &authority).unwrap().pem()).unwrap();
    fs::write(dir.join("client.key"), key.serialize_pem()).unwrap();

    let accounts = KeyPair::generate().unwrap();
    fs::write(dir.join(ACCOUNTS_KEY), accounts.serialize_pem()).unwrap();
    fs::write(dir.join(ACCOUNTS_PUBLIC_KEY), accounts.public_key_pem()).unwrap();
}
