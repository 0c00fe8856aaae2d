//! One-time links from the command line: each logs a browser in, once.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use crate::sandbox::Sandbox;

/// The status, the head and the body of an answer to a browser at the address of the server.
fn ask(port: u16, (method, path): (&str, &str), headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a server");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n\
         {body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let code = answer.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    (code.expect(&answer), answer)
}

/// The session that a link starts: its answer, and the headers of a browser.
fn opened(port: u16, link: &str) -> (u16, String, String) {
    let (place, once) = link.split_once("/login#once=").expect(link);
    assert_eq!(place, format!("http://127.0.0.1:{port}"));
    let body = format!("{{\"once\": \"{once}\"}}");
    let (code, answer) = ask(port, ("POST", "/elastane/v1/session"), "", &body);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).unwrap_or_default();
    let page = answer.split("\"pageSecret\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let page = page.unwrap_or_default();
    let headers = format!("Cookie: {cookie}\r\nX-Elastane-Page: {page}\r\n");
    (code, answer, headers)
}

#[test]
fn links_of_the_command_line_log_browsers_in() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    let port = sandbox.port();
    let said = sandbox.server_text();
    let printed = said.lines().find_map(|line| line.trim().strip_prefix("Browser    "));
    let printed = printed.expect(&said).to_owned();
    let (code, answer, own) = opened(port, &printed);
    assert_eq!(code, 201, "{answer}");
    assert!(answer.contains("\"kind\":\"local\""), "{answer}");
    assert_eq!(ask(port, ("GET", "/api/v1/workloads"), &own, "").0, 200);
    assert_eq!(ask(port, ("GET", "/api/v1/workloads"), "", "").0, 401);
    let (code, answer, _) = opened(port, &printed);
    assert!(code == 401 && answer.contains("this link was used already, at "), "{answer}");

    let printed = sandbox.shell("elastane ui --print").text;
    assert_eq!(opened(port, printed.trim()).0, 201, "{printed}");
    // A browser that records the address that it opens.
    let program = sandbox.home().join("browser");
    let script = "#!/bin/sh\nprintf %s \"$1\" > \"$HOME/seen.tmp\" && mv ~/seen.tmp ~/seen\n";
    std::fs::write(&program, script).expect("a program");
    let open = format!("chmod +x {0} && BROWSER={0} elastane ui", program.display());
    let printed = sandbox.shell(&open).text;
    let seen = sandbox.home().join("seen");
    assert!(crate::sandbox::wait_until(|| Path::exists(&seen)), "{printed}");
    assert_eq!(std::fs::read_to_string(&seen).expect("what was opened"), printed.trim());

    let made = sandbox.shell("elastane user create ann@example.org --link").text;
    assert!(made.starts_with("user ann@example.org created; this link is good once, until "));
    assert!(made.contains("leads to this machine only"), "{made}");
    let link = made.lines().find(|line| line.contains("/login#once=")).expect(&made);
    let (code, answer, ann) = opened(port, link);
    assert_eq!(code, 201, "{answer}");
    assert!(answer.contains("\"mustChangePassword\":true"), "{answer}");
    let change = ("POST", "/api/v1/me/password");
    let (code, answer) = ask(port, change, &ann, "{\"newPassword\": \"correct horse\"}");
    assert_eq!(code, 200, "{answer}");
    let login = "{\"username\": \"ann@example.org\", \"password\": \"correct horse\"}";
    assert_eq!(ask(port, ("POST", "/elastane/v1/session"), "", login).0, 201);
    let both = sandbox.shell("elastane user create bob@example.org --link --keep-password");
    assert_ne!(both.code, Some(0), "{}", both.text);

    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    assert_eq!(ask(port, ("GET", "/api/v1/workloads"), &own, "").0, 401, "it ended with the start");
}
