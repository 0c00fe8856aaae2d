//! Runs the commands of the reference pages: the blocks marked `sh` in a shell, and each `json`
//! block as the body of the last `POST` named before it. Does not know about: the content of a
//! page.

use std::fs;

use crate::sandbox::Sandbox;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
const PAGES: [&str; 5] = [
    "reference/api",
    "reference/distributed",
    "reference/inference",
    "reference/usage",
    "guides/simulate",
];
/// Blocks that contain this are for another machine.
const ELSEWHERE: &str = "gpu-box";
/// Script that ends at the first refused request, and prints the reason.
const SHELL: &str = r#"set -e
TOKEN=$(elastane token)
curl() { command curl -sS --fail-with-body "$@"; echo; }
"#;

/// The blocks of a page as shell commands.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut said = String::new();
    for (at, part) in page.split("\n```").enumerate() {
        let block = part.split_once('\n').filter(|_| at % 2 == 1);
        match block {
            Some(("sh", block)) => found.push(block.to_owned()),
            Some(("json", body)) => {
                let path = said.rsplit("`POST ").next().and_then(|rest| rest.split('`').next());
                let to = format!("http://127.0.0.1:7070{}", path.unwrap_or_default());
                let as_whom = r#"-H "Authorization: Bearer $TOKEN""#;
                found.push(format!("curl {as_whom} {to} --json @- <<'END'\n{body}\nEND"));
            }
            _ => said.push_str(part),
        }
    }
    found.retain(|block| !block.contains(ELSEWHERE));
    found
}

#[test]
fn what_the_pages_print_is_accepted() {
    let mut sandbox = Sandbox::new();
    if sandbox.shell("command -v curl").code != Some(0) {
        return skip::skipped("curl is not installed");
    }
    sandbox.start_server("elastane up --nodes 2x2x16GiB");
    let url = format!("http://127.0.0.1:{}", sandbox.port());
    let begin = format!(
        "mkdir -p .local/state; ln -s $ELASTANE_STATE_DIR .local/state/elastane
         ln -s {DOCS}/../examples .; elastane project create team-a --gpu-quota 2"
    );
    assert_eq!(sandbox.shell(&begin).code, Some(0));
    let line = format!("{SHELL} curl -H \"Authorization: Bearer $TOKEN\" {url}/api/v1/clusters");
    let answer = sandbox.shell(&line).text;
    let cluster = answer.split("\"uuid\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let cluster = format!("\"{}\"", cluster.unwrap_or_else(|| panic!("{answer}")));
    for page in PAGES {
        let text = fs::read_to_string(format!("{DOCS}/{page}.md")).expect("a page");
        let blocks = commands(&text);
        assert!(!blocks.is_empty(), "{page}");
        for block in blocks {
            let line = block.replace("http://127.0.0.1:7070", &url).replace("\"…\"", &cluster);
            let output = sandbox.shell(&format!("{SHELL}{line}"));
            assert_eq!(output.code, Some(0), "{page}.md:\n{block}\n{}", output.text);
        }
    }
}
