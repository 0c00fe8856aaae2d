//! The size limit of a run's output: the oldest part is freed, and readers continue.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::bench::{Bench, OUTPUT_BYTES_MAX};
use engine::{LogRange, RunKey, RunSpec};
use engine_conformance::Fixture;

/// Prints pieces of 600,000 bytes, one for each file `1`, `2`, … that it finds in its folder.
const PIECES: &str = "n=0; while [ ! -e stop ]; do if [ -e $((n+1)) ]; then n=$((n+1)); \
                      yes piece$n | head -c 599999; echo; else sleep 0.02; fi; done; echo over";
const PIECE_BYTES: u64 = 600_000;

struct Printing {
    bench: Bench,
    key: RunKey,
}

impl Printing {
    async fn new() -> Self {
        let bench = Bench::new();
        let spec: RunSpec = bench.script(PIECES);
        let key = spec.key;
        bench.engine().start(spec).await.expect("started");
        Self { bench, key }
    }

    fn say(&self, word: &str) {
        let work = self.bench.run_dir(self.key).join("../../pods").join(self.key.pod.to_string());
        std::fs::write(work.join("work").join(word), "").expect("its folder");
    }

    fn log(&self) -> PathBuf {
        self.bench.run_dir(self.key).join("output.log")
    }

    /// Waits until this much was printed, and at most the limit and a block are on disk.
    async fn holds(&self, bytes: u64) {
        loop {
            let log = std::fs::metadata(self.log());
            let kept = OUTPUT_BYTES_MAX + (128 << 10);
            if log.is_ok_and(|log| log.len() >= bytes && log.blocks() * 512 <= kept) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    async fn read(&self, range: LogRange) -> std::io::Result<String> {
        let mut chunks = self.bench.engine().logs(self.key, range).await.expect("known");
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            bytes.extend(chunk?);
        }
        Ok(String::from_utf8(bytes).expect("text, and no hole in it"))
    }
}

#[tokio::test]
async fn who_follows_sees_every_byte_though_the_oldest_are_given_back() {
    let run = Printing::new().await;
    let range = LogRange { follow: true, ..LogRange::default() };
    let mut chunks = run.bench.engine().logs(run.key, range).await.expect("known");
    let mut seen = Vec::new();
    for piece in 1..=5 {
        run.say(&piece.to_string());
        while (seen.len() as u64) < piece * PIECE_BYTES {
            seen.extend(chunks.recv().await.expect("more").expect("readable"));
        }
    }
    run.holds(5 * PIECE_BYTES).await;
    run.say("stop");
    while let Some(chunk) = chunks.recv().await {
        seen.extend(chunk.expect("readable"));
    }
    let text = String::from_utf8(seen).expect("text");
    assert!(text.starts_with("piece1\npiece1\n") && text.ends_with("\nover\n"));
    assert_eq!(text.len() as u64, 5 * PIECE_BYTES + 5);
}

#[tokio::test]
async fn who_comes_later_finds_the_newest_by_its_number() {
    let run = Printing::new().await;
    (1..=4).for_each(|piece| run.say(&piece.to_string()));
    run.holds(4 * PIECE_BYTES).await;
    let all = run.read(LogRange::default()).await.expect("readable");
    assert!(all.len() as u64 <= OUTPUT_BYTES_MAX + (128 << 10) && all.contains("\npiece4\n"));
    let before = run.bench.engine().bytes_before(run.key, &LogRange::default()).await;
    assert_eq!(before.expect("known"), Some(4 * PIECE_BYTES - all.len() as u64));
    let range = LogRange { tail_lines: Some(1_000_000), ..LogRange::default() };
    assert_eq!(run.read(range).await.expect("readable"), all, "there are no more lines");
    let range = LogRange { from_byte: Some(7), ..LogRange::default() };
    assert_eq!(run.read(range).await.expect("readable"), all, "what is gone is gone");
    run.say("stop");
}

#[tokio::test]
async fn who_reads_too_slowly_is_told() {
    let run = Printing::new().await;
    run.say("1");
    let range = LogRange { follow: true, ..LogRange::default() };
    let mut chunks = run.bench.engine().logs(run.key, range).await.expect("known");
    chunks.recv().await.expect("one").expect("readable");
    (2..=6).for_each(|piece| run.say(&piece.to_string()));
    run.holds(6 * PIECE_BYTES).await;
    let lost = loop {
        match chunks.recv().await.expect("an end that is not an end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(lost.to_string().contains("part of it is not kept any more"), "{lost}");
    run.say("stop");
}
