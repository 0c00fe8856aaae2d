//! Stands in for the servers of the inference quickstarts. Owns: how long an answer takes. One
//! replica answers one request after the other, as a model on one GPU does, so that more replicas
//! answer more.

use std::convert::Infallible;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::{Env, pod_name, port, print_line, web};

/// The default port of the image of the first generation.
const PORT: u16 = 8888;
/// Duration of one response.
const ANSWER: Duration = Duration::from_millis(100);

pub(super) fn run(env: Env<'_>) -> Result<Infallible, String> {
    let port = port(env, PORT)?;
    let listener = web::listen(port)?;
    print_line(&format!("Simulated: a server without a model, at http://127.0.0.1:{port}/"))?;
    let pod = pod_name(env);
    let answered = Mutex::new(0_u64);
    web::serve(&listener, move || {
        // A thread cannot fail while it holds this.
        let mut answered = answered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        thread::sleep(ANSWER);
        *answered += 1;
        let body = format!("{{\"simulated\":true,\"pod\":\"{pod}\",\"answered\":{answered}}}\n");
        web::Answer { kind: "application/json", body }
    })
}
