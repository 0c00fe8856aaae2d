//! Output of a run, as every engine must return it: its end, times of lines, and earlier runs.

use std::time::Duration;

use units::Instant;

use crate::{ALL, Fixture, Stage};
use engine::{LogRange, RunKey, RunSpec};

/// A tail is a number of lines from the end; stderr is part of the output, in order.
pub async fn tells_the_last_lines(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    // Where each stream is read for itself the next line comes when the one before is there.
    let orders = fixture.orders_streams();
    let pause = |file: &str| match orders {
        true => String::new(),
        false => format!("until [ -e {file} ]; do sleep 0.02; done;"),
    };
    let [b, c, d] = ["b", "c", "d"].map(pause);
    let script = format!("echo a; {b} echo b >&2; {c} echo c; {d} echo d >&2");
    let key = stage.start(fixture.script(&script)).await;
    for (line, next) in [("a\n", "b"), ("b\n", "c"), ("c\n", "d")] {
        if !orders {
            stage.wait_for_output(key, line).await;
            stage.touches(key, next).await;
        }
    }
    stage.exit(key).await;
    assert_eq!(stage.output(key, ALL).await, "a\nb\nc\nd\n");
    let range = LogRange { tail_lines: Some(2), ..ALL };
    assert_eq!(stage.output(key, range.clone()).await, "c\nd\n");
    if let Some(before) = stage.engine.bytes_before(key, &range).await.expect("known") {
        let range = LogRange { from_byte: Some(before + 1), ..range };
        assert_eq!(stage.output(key, range).await, "\nd\n", "where somebody was cut off");
    }
    let range = LogRange { tail_lines: Some(3), follow: true, ..ALL };
    assert_eq!(stage.output(key, range).await, "b\nc\nd\n", "following an ended run ends");
    let range = LogRange { from_byte: Some(8), follow: true, ..ALL };
    assert_eq!(stage.output(key, range).await, "", "all was read");
}

/// Logs can be read from a time on, with the time of each line.
pub async fn tells_when_lines_were_written(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "echo a; until [ -e go ]; do sleep 0.02; done; printf 'b\nc'";
    let key = stage.start(fixture.script(script)).await;
    stage.running(key).await;
    stage.wait_for_output(key, "a\n").await;
    // That it was written is noted a little later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let since_epoch = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
    let later = |ms| u64::try_from(since_epoch.as_millis()).ok().map(|now| Instant(now + ms));
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.touches(key, "go").await;
    stage.exit(key).await;
    let since = |since| LogRange { since, ..ALL };
    assert_eq!(stage.output(key, since(later(0))).await, "b\nc");
    assert_eq!(stage.output(key, since(Some(Instant(0)))).await, "a\nb\nc");
    assert_eq!(stage.output(key, since(later(3_600_000))).await, "");
    let both = LogRange { tail_lines: Some(1), ..since(later(0)) };
    assert_eq!(stage.output(key, both).await, "c");
    let stamped = LogRange { timestamps: true, ..ALL };
    let lines = stage.output(key, stamped.clone()).await;
    let pairs: Vec<_> = lines.lines().filter_map(|line| line.split_once(' ')).collect();
    let [(of_a, "a"), (of_b, "b"), (of_c, "c")] = pairs[..] else { panic!("{lines}") };
    assert!(of_a < of_b && of_b <= of_c && of_a.contains('T') && of_a.ends_with('Z'), "{lines}");
    let within = LogRange { from_byte: Some(1), ..stamped };
    assert_eq!(stage.output(key, within).await, format!("\n{of_b} b\n{of_c} c"));
}

/// The output of a run can be read during the next run of its pod, also by the next server.
pub async fn keeps_the_output_of_earlier_runs(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let first = stage.start(fixture.script("echo first; exit 3")).await;
    stage.exit(first).await;
    let second = RunKey { generation: 2, ..first };
    let script = fixture.script("echo second; exec sleep 600");
    stage.start(RunSpec { key: second, ..script }).await;
    stage.wait_for_output(second, "second\n").await;
    assert_eq!(stage.output(first, ALL).await, "first\n");
    drop(stage);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    assert_eq!(stage.output(first, ALL).await, "first\n");
    assert_eq!(stage.output(second, ALL).await, "second\n");
    stage.stop(second, 0).await;
    stage.exit(second).await;
}

/// Following ends after the last byte of a run that ended meanwhile.
pub async fn follows_the_output_to_its_end(fixture: &mut dyn Fixture) {
    let stage = Stage::new(fixture);
    let script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; sleep 0.2; \
                  printf last";
    let key = stage.start(fixture.script(script)).await;
    let text = stage.output(key, LogRange { follow: true, ..ALL }).await;
    assert!(text.starts_with("line 0\n") && text.ends_with("line 1999\nlast"), "{}", text.len());
    assert_eq!(text.lines().count(), 2001);
}
