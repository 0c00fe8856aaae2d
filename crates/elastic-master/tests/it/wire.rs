//! A connection that can be cut. Owns: passing bytes on, and dropping all connections at once.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A way to an address, as a network is.
pub(crate) struct Wire {
    address: SocketAddr,
    is_whole: watch::Sender<bool>,
}

impl Wire {
    pub(crate) fn to(address: &str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let own = listener.local_addr().expect("an address");
        let listener = TcpListener::from_std(listener).expect("a socket");
        let (sender, is_whole) = watch::channel(true);
        let address = address.to_owned();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass(near, address.clone(), is_whole.clone()));
            }
        });
        Self { address: own, is_whole: sender }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Drops what is connected, and what connects.
    pub(crate) fn cut(&self) {
        self.is_whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.is_whole.send_replace(true);
    }
}

async fn pass(mut near: TcpStream, address: String, mut is_whole: watch::Receiver<bool>) {
    if !*is_whole.borrow() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(address).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = is_whole.wait_for(|is_whole| !is_whole) => {}
    }
}
