//! Stands in for `zembutsu/docker-sample-nginx`. Owns: a page with the name of its pod.

use std::convert::Infallible;

use super::{Env, pod_name, port, print_line, web};

/// Port of the image.
const PORT: u16 = 80;

pub(super) fn run(env: Env<'_>) -> Result<Infallible, String> {
    let port = port(env, PORT)?;
    let listener = web::listen(port)?;
    print_line(&format!("Simulated: a page in place of this image, at http://127.0.0.1:{port}/"))?;
    let pod = pod_name(env);
    let page = format!(
        "<!doctype html>\n<title>{pod}</title>\n<h1>Host: {pod}</h1>\n\
         <p>Simulated: this page stands in for zembutsu/docker-sample-nginx, since no container runs here.</p>\n"
    );
    web::serve(&listener, move || web::Answer { kind: "text/html", body: page.clone() })
}
