//! Objects at a server of a test. Signatures are judged elsewhere, by a program of others.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use buckets::Store;

/// Names in a page of a list.
const PAGE: usize = 2;

/// Objects of a server, and the responses that it gives before it serves requests.
#[derive(Default)]
struct Has {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    first: Mutex<Vec<&'static str>>,
}

impl Has {
    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        while head.last().is_none_or(|line: &String| line != "\r\n") {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            head.push(line.to_lowercase());
        }
        let header = |name: &str| {
            head.iter().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let length = header("content-length:").map_or(0, |text| text.parse().expect("a length"));
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut words = head[0].split_whitespace();
        let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
        let first = self.first.lock().expect("open").pop();
        let (status, content) = match first {
            Some(status) => (status, Vec::new()),
            None => self.reply(method, target, header("range:"), body),
        };
        let mut stream = reader.into_inner();
        let length = content.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )?;
        stream.write_all(&content)
    }

    fn reply(
        &self,
        method: &str,
        target: &str,
        range: Option<String>,
        body: Vec<u8>,
    ) -> (&'static str, Vec<u8>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        assert!(query.contains("x-amz-signature"), "{target}");
        let Some(key) = path.strip_prefix("/b/") else {
            let code = "<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>";
            return ("404 No", code.into());
        };
        let mut objects = self.objects.lock().expect("open");
        match (method, key) {
            ("get", "") => ("200 OK", page(&objects, query)),
            ("get", key) => match objects.get(key) {
                Some(content) => ("200 OK", within(content, range)),
                None => ("404 No", "<Error><Code>NoSuchKey</Code></Error>".into()),
            },
            ("put", key) => {
                objects.insert(key.to_owned(), body);
                ("200 OK", Vec::new())
            }
            _ => {
                objects.remove(key);
                ("204 Gone", Vec::new())
            }
        }
    }
}

fn within(content: &[u8], range: Option<String>) -> Vec<u8> {
    let last = range.and_then(|text| text.strip_prefix("bytes=0-")?.parse::<usize>().ok());
    content[..last.map_or(content.len(), |last| content.len().min(last + 1))].to_vec()
}

fn page(objects: &BTreeMap<String, Vec<u8>>, query: &str) -> Vec<u8> {
    let field = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(own, _)| *own == name).map_or("", |(_, value)| value).replace("%2f", "/")
    };
    let prefix = field("prefix");
    let inner = |key: &String| key.strip_prefix(&prefix).map(str::to_owned);
    let mut names: Vec<_> = objects.keys().filter_map(inner).collect();
    for name in &mut names {
        if let Some((folder, _)) = name.clone().split_once('/') {
            *name = format!("{folder}/");
        }
    }
    names.dedup();
    let before = field("continuation-token").parse().unwrap_or(0);
    let one = |name: &String| match name.ends_with('/') {
        true => format!("<CommonPrefixes><Prefix>{prefix}{name}</Prefix></CommonPrefixes>"),
        false => format!("<Contents><Key>{prefix}{name}</Key></Contents>"),
    };
    let all: String = names.iter().skip(before).take(PAGE).map(one).collect();
    let next = before + PAGE;
    let next = match names.len() > next {
        true => format!("<NextContinuationToken>{next}</NextContinuationToken>"),
        false => String::new(),
    };
    let kind = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
    format!("<ListBucketResult {kind}>{next}{all}</ListBucketResult>").into()
}

/// A server, and the way to one of its buckets.
fn store(name: &str) -> (Store, Arc<Has>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let has = Arc::new(Has::default());
    let own = Arc::clone(&has);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            own.answer(stream).expect("answered");
        }
    });
    let store = Store::of(name, |variable| match variable {
        "AWS_ENDPOINT_URL" => Some(address.clone()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("key".to_owned()),
        _ => None,
    });
    (store.expect("a way"), has)
}

#[tokio::test]
async fn an_object_is_written_read_listed_and_removed() {
    let (store, _) = store("b");
    assert_eq!(store.get("job/version-1/a", None).await.expect("answered"), None);
    for version in 1..=5 {
        store.put(&format!("job/version-{version}/a"), b"content".into()).await.expect("written");
    }
    store.put("job/other", b"x".into()).await.expect("written");
    let whole = store.get("job/version-1/a", None).await.expect("answered").expect("there");
    let start = store.get("job/version-1/a", Some(3)).await.expect("answered").expect("there");
    assert_eq!((&*whole, &*start), (&b"content"[..], &b"con"[..]));
    let mut names = store.names("job/").await.expect("a list");
    names.sort();
    assert_eq!(names, ["other", "version-1", "version-2", "version-3", "version-4", "version-5"]);
    assert_eq!(store.names("job/version-2/").await.expect("a list"), ["a"]);
    for _ in 0..2 {
        store.remove("job/version-2/a").await.expect("it is gone");
    }
    assert!(store.names("job/version-2/").await.expect("a list").is_empty());
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_and_one_that_stays_so_is_told() {
    let (store, has) = store("b");
    has.first.lock().expect("open").extend(["503 Busy"; 2]);
    store.put("a", b"x".into()).await.expect("written");
    assert_eq!(has.objects.lock().expect("open")["a"], b"x");
    has.first.lock().expect("open").extend(["503 Busy"; 4]);
    let why = store.get("a", None).await.expect_err("busy").to_string();
    assert!(why.contains("503"), "{why}");
    has.first.lock().expect("open").push("403 No");
    assert!(store.remove("a").await.expect_err("refused").to_string().contains("403"));
    assert!(has.objects.lock().expect("open").contains_key("a"));
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_an_error() {
    let (store, _) = store("none");
    for why in [
        store.put("a", b"x".into()).await.expect_err("none"),
        store.get("a", None).await.map(drop).expect_err("none"),
        store.names("").await.map(drop).expect_err("none"),
    ] {
        assert!(why.to_string().contains("NoSuchBucket"), "{why}");
    }
}
