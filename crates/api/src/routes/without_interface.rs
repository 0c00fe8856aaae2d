//! In place of the web interface, where the server is built without it: a page at the root.

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use http_kit::Html;
use units::markup;

use super::download;
use crate::ApiState;

/// There is no web interface that could have one.
pub(crate) const DIGEST: &str = "";

/// The page for a person, at the root.
pub(super) fn at(
    server: &ApiState,
    headers: &HeaderMap,
    (path, by_person): (&str, bool),
) -> Option<Response> {
    let shown = path == "/" && by_person;
    shown.then(|| download::own_url(server, headers).map(|url| page(&url)).into_response())
}

/// Page with a short description of the server and the next steps. It contains nothing that needs a
/// token.
fn page(url: &str) -> Html {
    let url = markup(url);
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Elastane</title><style>\
         body{{font:1rem/1.5 system-ui,sans-serif;max-width:45rem;margin:4rem auto;padding:0 1rem}}\
         pre{{background:#8881;padding:.8rem;overflow-x:auto}}</style>\
         <h1>Elastane</h1>\
         <p>This is an Elastane server: it shares the GPUs of a cluster between projects. \
         It was built without its web interface; work with it from a terminal.\
         <h2>Install the command line and log in</h2>\
         <pre>curl -fsSL {url}/api/v1/cli-exposer/installer/linux | sh\n\
         export RUNAI_CP_URL={url}\n\
         runai login user</pre>\
         <p>On the machine of the server no login is needed: run <code>elastane status</code>.\
         <h2>Run something</h2>\
         <pre>runai list projects\n\
         runai config project team-a\n\
         runai submit train1 -i gcr.io/run-ai-demo/quickstart -g 1\n\
         runai list</pre>\
         <h2>Write a program</h2>\
         <p>The REST API is described in <a href=/elastane/v1/docs>/elastane/v1/docs</a>, and for \
         programs in <a href=/elastane/v1/openapi.json>/elastane/v1/openapi.json</a>."
    );
    Html(page.into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_says_what_to_do() {
        let page = super::page("http://<b>").0;
        assert!(page.contains("export RUNAI_CP_URL=http://&lt;b&gt;"), "{page}");
        assert!(page.contains("runai login user") && !page.contains("<script"), "{page}");
    }
}
