//! A page of a workload in a browser: a real process behind a real server, a ticket from the
//! command line, a restart of both.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::sandbox::{Sandbox, free_port, wait_until};

/// A test whose workload runs the same program with the same name, and gets its port.
const TEST: &str = "browser::a_page_is_opened_by_a_ticket_and_survives_what_happens";

/// Server that the workload runs: it echoes the request head, or all bytes after an upgrade.
fn pages(port: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port")));
    for stream in listener.expect("its port").incoming().flatten() {
        std::thread::spawn(move || {
            let (mut reader, mut writer) = (BufReader::new(&stream), &stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            if head.to_lowercase().contains("upgrade: echo") {
                let over =
                    "101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
                let _gone = write!(writer, "HTTP/1.1 {over}");
                return std::io::copy(&mut reader, &mut writer).map(drop);
            }
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len())
        });
    }
}

/// Response of a host of the server.
fn ask(sandbox: &Sandbox, host: &str, path: &str, headers: &str) -> String {
    let mut answer = String::new();
    let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, sandbox.port())).and_then(|mut stream| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        stream.write_all(format!("{head}{headers}\r\n").as_bytes())?;
        stream.read_to_string(&mut answer)
    });
    if asked.is_err() { String::new() } else { answer }
}

/// Host of an opened address, and the cookie header that a browser sends after using its ticket.
fn opened(sandbox: &Sandbox) -> (String, String) {
    let printed = sandbox.shell("runai workspace open lab --print").text;
    let (host, path) =
        printed.trim().strip_prefix("http://").expect(&printed).split_once('/').expect(&printed);
    let entered = ask(sandbox, host, &format!("/{path}"), "");
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).expect(&entered);
    (host.to_owned(), format!("Cookie: own=1; {cookie}\r\n"))
}

#[test]
fn a_page_is_opened_by_a_ticket_and_survives_what_happens() {
    if let Ok(port) = std::env::var("PAGES_PORT") {
        return pages(&port);
    }
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    sandbox.shell("elastane project create team-a && runai config project team-a");
    let port = free_port();
    let program = std::env::current_exe().expect("this program");
    let submit = format!(
        "runai workspace submit lab -i ubuntu -e PAGES_PORT={port} \
         --external-url container={port},authusers=$(id -un) --command -- {} --exact {TEST}",
        program.display()
    );
    let submitted = sandbox.shell(&submit);
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    let answers = |sandbox: &Sandbox, (host, cookie): &(String, String), what: &str| {
        let mut last = String::new();
        let done = wait_until(|| {
            last = ask(sandbox, host, "/a?b", cookie);
            last.contains(what)
        });
        assert!(done, "{what}: {last}");
        last
    };
    let visit = opened(&sandbox);
    let page = answers(&sandbox, &visit, "GET /a?b HTTP/1.1").to_lowercase();
    assert!(page.contains("cookie: own=1\r\n") && !page.contains("elastane_visit"), "{page}");
    assert!(ask(&sandbox, &visit.0, "/", "").starts_with("HTTP/1.1 401"));
    opens_a_browser(&sandbox);
    goes_over(&sandbox, &visit);

    sandbox.shell("runai suspend lab");
    answers(&sandbox, &visit, "HTTP/1.1 503");
    sandbox.shell("runai resume lab");
    answers(&sandbox, &visit, "HTTP/1.1 200");

    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    answers(&sandbox, &visit, "HTTP/1.1 401");
    answers(&sandbox, &opened(&sandbox), "HTTP/1.1 200");
}

/// The placeholders of published command lines are replaced by the base path, and every address
/// leads there.
#[test]
fn a_notebook_is_opened_at_its_base_path() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    sandbox.shell("elastane project create team-a && runai config project team-a");
    let (port, program) = (free_port(), std::env::current_exe().expect("this program"));
    let submitted = sandbox.shell(&format!(
        "runai workspace submit nb -i ubuntu -e PAGES_PORT={port} --external-url container={port} \
         --command -- bash -c 'echo \"$0\"; exec {} --exact {TEST}' \
         '--NotebookApp.base_url=/${{RUNAI_PROJECT}}/${{RUNAI_JOB_NAME}}'",
        program.display()
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    sandbox.await_text("runai logs nb 2>&1", "--NotebookApp.base_url=/team-a/nb\n");
    let host = format!("nb--team-a--{port}.localhost:{}", sandbox.port());
    let page = format!("http://{host}/team-a/nb/");
    for lists in ["runai list jobs -o wide", "runai describe job nb", "runai workspace describe nb"]
    {
        let text = sandbox.shell(lists).text;
        assert!(text.contains(&page), "{lists}: {text}");
    }
    let printed = sandbox.shell("runai open nb --print").text;
    let ticket = printed.trim().strip_prefix(&page).expect(&printed);
    assert!(ticket.starts_with("?elastane_ticket="), "{printed}");
    let entered = ask(&sandbox, &host, &format!("/team-a/nb/{ticket}"), "").to_lowercase();
    assert!(entered.starts_with("http/1.1 303"), "{entered}");
    assert!(entered.contains(&format!("location: {page}\r\n")), "{entered}");
}

/// The printed address is the one that the browser gets.
fn opens_a_browser(sandbox: &Sandbox) {
    sandbox.shell(
        "printf '#!/bin/sh\\necho \"$1\" > .got; mv .got got\\n' > browser; chmod +x browser",
    );
    let printed = sandbox.shell("BROWSER=./browser runai open lab").text;
    let got = || sandbox.shell("cat got").text == printed;
    assert!(wait_until(got), "{printed}");
    let none = sandbox.shell("BROWSER= runai open lab").text;
    assert!(none.contains("No browser opens here"), "{none}");
}

/// A connection that speaks another protocol carries bytes both ways.
fn goes_over(sandbox: &Sandbox, (host, cookie): &(String, String)) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, sandbox.port())).expect("a server");
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n{cookie}\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut answer = String::new();
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    while !answer.ends_with("\r\n\r\n") && reader.read_line(&mut answer).unwrap_or(0) > 0 {}
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    stream.write_all(b"hello").expect("it listens");
    let mut back = [0; 5];
    reader.read_exact(&mut back).expect("it answers");
    assert_eq!(&back, b"hello");
}
