//! Stands in for the clients of the inference quickstarts. Owns: their flags, and the report of the
//! answers. The requests are real, and so are the times.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::{print_line, web};

/// Time between two lines.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Wait after a request that failed.
const AGAIN: Duration = Duration::from_millis(200);
/// Most requests at a time.
const PROCESSES_MAX: u32 = 1024;

/// Server to send requests to, and how many at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    host: String,
    port: u16,
    path: String,
    processes: u32,
}

impl Options {
    /// Reads the flags of either client; what only a real model needs is left aside.
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self { host: String::new(), port: 8888, path: "/".into(), processes: 1 };
        let mut words = args.iter().map(String::as_str).skip_while(|word| *word == "perf_analyzer");
        while let Some(word) = words.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word, None),
            };
            let value = inline.or_else(|| words.next()).ok_or(format!("{flag} needs a value"))?;
            match flag {
                "--hostname" => value.clone_into(&mut options.host),
                "--port" => options.port = number(flag, value, u16::MAX.into())?,
                "--path" => value.clone_into(&mut options.path),
                "--processes" | "--concurrency-range" => {
                    options.processes = number(flag, value, PROCESSES_MAX)?;
                }
                "-u" | "--url" => options.reach(value)?,
                "-m" | "-p" | "--request-rate-range" => {}
                _ => {
                    let known = "--hostname, --port, --path, -u and --processes";
                    return Err(format!("unknown argument `{word}`; there are {known}"));
                }
            }
        }
        match options.host.as_str() {
            "" => Err("say whom to ask, with --hostname HOST --port PORT or -u URL".to_owned()),
            _ => Ok(options),
        }
    }

    /// Reads `http://HOST:PORT/PATH`, of which only the host is needed.
    fn reach(&mut self, url: &str) -> Result<(), String> {
        let place = url.strip_prefix("http://").unwrap_or(url);
        if place.contains("://") {
            return Err(format!("-u `{url}`: only http:// is spoken"));
        }
        let (place, path) = place.split_once('/').unwrap_or((place, ""));
        let (host, port) = place.rsplit_once(':').unwrap_or((place, "8000"));
        self.port = number("-u", port, u16::MAX.into())?;
        (self.host, self.path) = (host.to_owned(), format!("/{path}"));
        Ok(())
    }
}

fn number<T: TryFrom<u32>>(flag: &str, text: &str, most: u32) -> Result<T, String> {
    let valid = text.parse().ok().filter(|number| (1..=most).contains(number));
    valid
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("{flag} must be a whole number from 1 to {most}, not `{text}`"))
}

/// The outcome of a request: how long it took and which replica answered, or why none did.
type Outcome = Result<(Duration, String), String>;

/// Sends requests for ever, and prints their results each second.
pub(super) fn run(options: &Options) -> Result<Infallible, String> {
    let Options { host, port, path, processes } = options;
    print_line(&format!("Simulated: asking http://{host}:{port}{path}, {processes} at a time"))?;
    let (sender, outcomes) = mpsc::channel();
    for _ in 0..*processes {
        let (options, sender) = (options.clone(), sender.clone());
        let spawned = thread::Builder::new().spawn(move || ask(&options, &sender));
        spawned.map_err(|error| format!("cannot ask {processes} at a time: {error}"))?;
    }
    loop {
        let since = Instant::now();
        thread::sleep(TELL_EVERY);
        let all: Vec<Outcome> = outcomes.try_iter().collect();
        print_line(&summary_line(&all, since.elapsed()))?;
    }
}

/// Sends requests until the reader is gone.
fn ask(options: &Options, outcomes: &Sender<Outcome>) {
    loop {
        let since = Instant::now();
        let answer = web::get(&options.host, options.port, &options.path);
        let failed = answer.is_err();
        if outcomes.send(answer.map(|body| (since.elapsed(), pod(&body)))).is_err() {
            return;
        }
        if failed {
            thread::sleep(AGAIN);
        }
    }
}

/// Pod that answered, from the body of the server that belongs to this client.
fn pod(body: &str) -> String {
    let after = body.split_once("\"pod\":\"").map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default().to_owned()
}

fn summary_line(all: &[Outcome], within: Duration) -> String {
    let well: Vec<_> = all.iter().flatten().collect();
    let pods: BTreeSet<&str> = well.iter().map(|(_, pod)| pod.as_str()).collect();
    let took: Duration = well.iter().map(|(took, _)| *took).sum();
    let per_second = well.len() as f64 / within.as_secs_f64();
    let mean_ms = took.as_secs_f64() * 1000.0 / well.len().max(1) as f64;
    let mut line = format!(
        "{per_second:.1} answers per second, {mean_ms:.0} ms each, replicas {}",
        pods.len()
    );
    if let Some(why) = all.iter().find_map(|one| one.as_ref().err()) {
        line += &format!(", failed {}: {why}", all.len() - well.len());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<(String, u16, String, u32), String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Options { host, port, path, processes } = Options::parse(&args)?;
        Ok((host, port, path, processes))
    }

    #[test]
    fn both_published_forms_are_read() {
        let asked = |host: &str, port, path: &str, processes| {
            Ok((host.to_owned(), port, path.to_owned(), processes))
        };
        let first = "--hostname 10.0.0.7 --port 32717 --processes 2";
        assert_eq!(options(first), asked("10.0.0.7", 32717, "/", 2));
        let second =
            "perf_analyzer -m inception_graphdef -p 3600000 -u http://b--a.localhost:7070/v2";
        assert_eq!(options(second), asked("b--a.localhost", 7070, "/v2", 1));
        assert_eq!(options("-u 10.0.0.7"), asked("10.0.0.7", 8000, "/", 1));
    }

    #[test]
    fn a_bad_command_line_says_what_is_allowed() {
        for (line, said) in [
            ("", "with --hostname HOST --port PORT or -u URL"),
            ("--hostname h --port 0", "--port must be a whole number from 1 to 65535, not `0`"),
            ("--hostname h --processes many", "from 1 to 1024, not `many`"),
            ("--hostname", "--hostname needs a value"),
            ("--host h", "unknown argument `--host`"),
            ("-u https://h", "only http:// is spoken"),
        ] {
            let why = options(line).expect_err(line);
            assert!(why.contains(said), "{line}: {why}");
        }
    }

    #[test]
    fn what_is_told_is_what_was_answered() {
        let took = |pod: &str| Ok((Duration::from_millis(100), pod.to_owned()));
        let all = [took("a"), took("b"), took("a"), Err("HTTP/1.1 503".to_owned())];
        let line = "1.5 answers per second, 100 ms each, replicas 2, failed 1: HTTP/1.1 503";
        assert_eq!(summary_line(&all, Duration::from_secs(2)), line);
        assert_eq!(pod("{\"pod\":\"svc.1-0\",\"answered\":1}"), "svc.1-0");
    }
}
