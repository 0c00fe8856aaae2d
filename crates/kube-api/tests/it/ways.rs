//! Ways to a real API server: logins, authorities, a proxy, one connection for all.

#![expect(clippy::unwrap_used, reason = "a proxy that goes wrong ends the test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kube_api::testing::{ADMIN_BY_CERTIFICATE, Cluster, Namespace};
use kube_api::types::{Node, Pod, Resource as _};
use kube_api::{Client, Config, Error, Query, WatchSettings};
use tokio::task::JoinSet;

use crate::reads::synced;

/// Tunnels to any requested address, and counts.
struct Proxy {
    port: u16,
    tunnels: Arc<AtomicU32>,
}

impl Proxy {
    fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let tunnels = Arc::new(AtomicU32::new(0));
        let counted = tunnels.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || tunnel(client.unwrap()));
            }
        });
        Self { port, tunnels }
    }
}

fn tunnel(mut client: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let server = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
    let mut server = TcpStream::connect(server).unwrap();
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
    let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    // Either end may close at any time.
    std::thread::spawn(move || std::io::copy(&mut up, &mut server).ok());
    std::io::copy(&mut down, &mut client).ok();
}

/// The settings of the administrator with changes of the kubeconfig.
fn changed(cluster: &Cluster, name: &str, change: impl FnOnce(String) -> String) -> Config {
    let original = cluster.kubeconfig();
    let path = original.with_file_name(name);
    fs::write(&path, change(fs::read_to_string(&original).unwrap())).unwrap();
    Config::find(Some(&path), None, &|_| None).unwrap()
}

#[tokio::test]
async fn watches_and_requests_share_one_connection_through_a_proxy() {
    let Some(cluster) = Cluster::shared() else { return };
    let proxy = Proxy::new();
    let config = changed(&cluster, "proxied", |text| {
        let url = format!("    proxy-url: http://127.0.0.1:{}\n    server:", proxy.port);
        text.replace("    server:", &url)
    });
    let client = Client::new(config, 1);
    let default = client.get::<Namespace>("", "default").await.unwrap();
    assert_eq!(default.meta().name, "default");

    let query = || Query { fields: "metadata.name=none".to_owned(), ..Query::default() };
    let mut nodes = client.watch::<Node>(query(), WatchSettings::default());
    let mut pods = client.watch::<Pod>(query(), WatchSettings::default());
    assert!(synced(&mut nodes).await.is_empty() && synced(&mut pods).await.is_empty());
    let mut asking = JoinSet::new();
    for _ in 0..100 {
        let client = client.clone();
        asking.spawn(async move { client.get::<Namespace>("", "default").await.unwrap() });
    }
    tokio::select! {
        _ = nodes.next() => panic!("there is no such node"),
        _ = pods.next() => panic!("there is no such pod"),
        done = asking.join_all() => assert_eq!(done.len(), 100),
    }
    assert_eq!(proxy.tunnels.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_certificate_is_a_login_too() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = Client::new(cluster.config(ADMIN_BY_CERTIFICATE), 1);
    let default = client.get::<Namespace>("", "default").await.unwrap();
    assert_eq!(default.meta().name, "default");
}

#[tokio::test]
async fn a_pod_asks_as_its_service_account() {
    let Some(cluster) = Cluster::shared() else { return };
    let (folder, env) = cluster.service_account("of-a-pod").await;
    let config = Config::of_pod(&folder, &|name| env.get(name).cloned()).unwrap().unwrap();
    let client = Client::new(config, 1);
    assert_eq!(client.namespace(), "default");
    let Err(Error::Forbidden { call, message }) = client.list::<Pod>(&Query::default()).await
    else {
        panic!("no role allows it")
    };
    assert_eq!(call.to_string(), "list pods");
    assert!(message.contains("system:serviceaccount:default:of-a-pod"), "{message}");
}

#[tokio::test]
async fn a_server_with_a_certificate_of_another_authority_is_not_believed() {
    let Some(cluster) = Cluster::shared() else { return };
    let config = changed(&cluster, "mistrusted", |text| {
        text.replace("certificate-authority: ca.crt", "certificate-authority: client.crt")
    });
    let error = Client::new(config, 1).version().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");

    let config = changed(&cluster, "misnamed", |text| {
        text.replace("    server:", "    tls-server-name: other.example\n    server:")
    });
    let error = Client::new(config, 1).version().await.unwrap_err();
    assert!(
        error.to_string().contains("certificate not valid for name \"other.example\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_wrong_token_is_named_as_such() {
    let Some(cluster) = Cluster::shared() else { return };
    let config = changed(&cluster, "unknown", |text| text.replace("admin-token", "wrong"));
    let error = Client::new(config, 1).list::<Node>(&Query::default()).await.unwrap_err();
    assert_eq!(error.reason(), Some(&kube_api::Reason::Unauthorized), "{error}");
}
