//! The log of the server. Owns: a line which cannot be written is counted and dropped; a logging
//! thread never waits for a reader. Does not know about: the contents of the log.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The most lines that wait for a reader; further ones are dropped.
const LINES_MAX: usize = 4096;
/// The longest that the end of the server waits for a reader.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

static LOST: AtomicU64 = AtomicU64::new(0);

/// The lines of this process's log that were dropped.
pub(crate) fn lines_lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

enum Message {
    Line(Vec<u8>),
    /// Is answered when all before it is written.
    End(SyncSender<()>),
}

/// The way of lines to the thread that writes them. A write takes one whole line and never fails.
#[derive(Clone)]
pub struct Log {
    lines: SyncSender<Message>,
    lost: &'static AtomicU64,
}

impl Log {
    /// Starts the thread.
    ///
    /// # Errors
    /// There can be no more threads.
    #[expect(clippy::disallowed_methods, reason = "a failed write is counted")]
    pub fn to_stderr() -> io::Result<Self> {
        Self::counted_in(&LOST, io::stderr())
    }

    fn counted_in(
        lost: &'static AtomicU64,
        writer: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, written) = sync_channel(LINES_MAX);
        let thread = thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write(writer, &written, lost))?;
        Ok(Self { lines, lost })
    }

    /// Waits until all lines are written, for a second at most.
    pub fn finish(&self) {
        let (ended, end) = sync_channel(1);
        if self.lines.try_send(Message::End(ended)).is_ok() {
            // Lines that a reader has not taken by then are lost with the process.
            let _written = end.recv_timeout(FAREWELL_MAX);
        }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Message::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(mut writer: impl Write, lines: &Receiver<Message>, lost: &AtomicU64) {
    let mut told = 0;
    let mut why = None;
    for message in lines {
        let line = match message {
            Message::Line(line) => line,
            Message::End(ended) => {
                let _gone = ended.send(());
                continue;
            }
        };
        // A part of the line before may have been written.
        let begun = if why.is_some() { writer.write_all(b"\n") } else { Ok(()) };
        if let Err(error) = begun.and_then(|()| writer.write_all(&line)) {
            lost.fetch_add(1, Ordering::Relaxed);
            why = Some(error.to_string());
            continue;
        }
        let so_far = lost.load(Ordering::Relaxed);
        if so_far > told {
            let why = why.take().unwrap_or_else(|| "nobody read them".to_owned());
            tracing::warn!("{} lines of this log could not be written: {why}", so_far - told);
            told = so_far;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A disk with room for this number of bytes.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().expect("the disk");
            let some = bytes.len().min(disk.0);
            if some == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.0 -= some;
            disk.1.extend(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_a_full_disk_has_no_room_for_are_counted_and_the_next_begins_afresh() {
        static LOST: AtomicU64 = AtomicU64::new(0);
        let disk = Disk::default();
        disk.0.lock().expect("the disk").0 = 10;
        let mut log = Log::counted_in(&LOST, disk.clone()).expect("a thread");
        for line in ["first\n", "second\n", "third\n"] {
            log.write_all(line.as_bytes()).expect("never fails");
        }
        log.finish();
        assert_eq!(LOST.load(Ordering::Relaxed), 2);
        disk.0.lock().expect("the disk").0 = 1000;
        log.write_all(b"fourth\n").expect("never fails");
        log.finish();
        assert_eq!(disk.0.lock().expect("the disk").1, b"first\nseco\nfourth\n");
    }

    #[test]
    fn nobody_waits_for_a_reader_that_never_reads() {
        static LOST: AtomicU64 = AtomicU64::new(0);
        let (_reader, writer) = io::pipe().expect("a pipe");
        let mut log = Log::counted_in(&LOST, writer).expect("a thread");
        for _ in 0..2 * LINES_MAX {
            log.write_all(&[b'-'; 100]).expect("never fails");
        }
        log.finish();
        assert!(LOST.load(Ordering::Relaxed) > 0);
    }
}
