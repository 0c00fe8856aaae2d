//! The thread that writes. Owns: that the dispatcher never waits: messages beyond the queue are
//! dropped, the recording notes the gap, and continues from a new base.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use orchestrator::{Input, Moment};
use serde::Serialize as _;
use tokio::sync::Notify;
use units::Instant;

use crate::line::{Base, Batch, Head, RELEASE, SegmentLine, Sum, VERSION, write};
use crate::outcome::BatchOutcome;
use crate::ring::Ring;
use crate::secrets::Secrets;

/// Batches that may wait to be written.
const WAITING_MAX: usize = 1024;
/// Time in which the messages that follow the first are collected before they are written: waking
/// the thread for each batch costs the dispatcher more than all the rest of the recording.
const GATHER: Duration = Duration::from_millis(10);

/// A batch that the dispatcher processed.
#[derive(Debug)]
pub struct Taken {
    /// Time of the batch; `None` for the first batch of a state.
    pub moment: Option<Moment>,
    /// Inputs of the batch.
    pub inputs: Vec<Input>,
    /// Time when a decision was requested after the batch; `None` if none was requested.
    pub asked_at: Option<Instant>,
    /// The outcome, or the reason why the batch failed and had no effect.
    pub came: Result<BatchOutcome, String>,
}

enum Message {
    /// A state was built; `true` if batches are missing before it.
    Begin(Box<Base>, bool),
    Taken(Box<Taken>),
}

/// Minimum bytes of a workload in a base: a small training took 1.2 kB when measured.
const WORKLOAD_BYTES_MIN: u64 = 1024;

/// State that the thread shares with the dispatcher.
#[derive(Debug, Default)]
struct Progress {
    waiting: AtomicUsize,
    /// The segment is long enough to begin the next.
    is_full: AtomicBool,
    /// Recording has ended until the next start of the server.
    is_off: AtomicBool,
    /// A message was dropped: batches are of no use before a new base.
    has_gap: AtomicBool,
    /// Wakes the dispatcher when a base became due: it may have no other event.
    base_due: Notify,
}

impl Progress {
    fn end(&self, why: &str) {
        if !self.is_off.swap(true, Ordering::Relaxed) {
            tracing::warn!("recording is off until the next start of the server: {why}");
        }
    }
}

fn too_large(needs: u64, max: u64) -> String {
    format!(
        "the state alone takes {needs} bytes or more, and recording_max is {max}; set it higher"
    )
}

/// The dispatcher's handle of the thread that writes. When it is dropped, the thread writes the
/// messages it has received, and ends.
#[derive(Debug, Default)]
pub struct Writer {
    to: Option<SyncSender<Message>>,
    bytes_max: u64,
    thread: Option<JoinHandle<()>>,
    progress: Arc<Progress>,
}

impl Writer {
    /// Starts a thread that writes into `dir`, and keeps at most `bytes_max` bytes there.
    ///
    /// # Errors
    /// The folder or the thread cannot be created.
    pub fn start(dir: &Path, bytes_max: u64) -> io::Result<Self> {
        let (to, from) = sync_channel(WAITING_MAX);
        let progress = Arc::<Progress>::default();
        let thread = Thread {
            ring: Ring::open(dir, bytes_max)?,
            bytes_max,
            secrets: Secrets::new(),
            progress: progress.clone(),
            sum: Sum::NONE,
            base_bytes: 0,
            is_writing: false,
        };
        let name = "recording".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || thread.run(&from))?;
        Ok(Self { to: Some(to), bytes_max, thread: Some(thread), progress })
    }

    /// `true` if the recording goes on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.to.is_some() && !self.progress.is_off.load(Ordering::Relaxed)
    }

    /// `true` if batches are recorded: the recording goes on, and no message was dropped since the
    /// last base.
    #[must_use]
    pub fn takes_batches(&self) -> bool {
        self.is_on() && !self.progress.has_gap.load(Ordering::Relaxed)
    }

    /// `true` if the recording needs a new base, or profits from one, for a state of `workloads`
    /// workloads. The call is cheap. Where there is no room for such a base, the recording ends
    /// instead: building it would stop the server for seconds.
    #[must_use]
    pub fn wants_base(&self, workloads: usize) -> bool {
        let is_idle = || self.progress.waiting.load(Ordering::Relaxed) == 0;
        let has_gap = self.progress.has_gap.load(Ordering::Relaxed);
        let wants = self.progress.is_full.load(Ordering::Relaxed) || has_gap && is_idle();
        if !wants || !self.is_on() {
            return false;
        }
        let (needs, max) = (workloads as u64 * WORKLOAD_BYTES_MIN, self.bytes_max);
        if needs > max {
            self.progress.end(&too_large(needs, max));
        }
        needs <= max
    }

    /// Returns when [`wants_base`](Self::wants_base) may have become true.
    pub async fn base_due(&self) {
        self.progress.base_due.notified().await;
    }

    /// Begins a segment for a state that was built.
    pub fn begin(&mut self, base: Box<Base>) {
        let after_gap = self.progress.has_gap.swap(false, Ordering::Relaxed);
        self.progress.is_full.store(false, Ordering::Relaxed);
        self.send(Message::Begin(base, after_gap));
    }

    /// Records a batch.
    pub fn take(&mut self, taken: Taken) {
        if self.takes_batches() {
            self.send(Message::Taken(Box::new(taken)));
        }
    }

    fn send(&mut self, message: Message) {
        let Some(to) = self.to.as_ref().filter(|_| self.is_on()) else { return };
        self.progress.waiting.fetch_add(1, Ordering::Relaxed);
        if to.try_send(message).is_err() {
            self.progress.waiting.fetch_sub(1, Ordering::Relaxed);
            self.progress.has_gap.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.to.take());
        if let Some(thread) = self.thread.take() {
            // The thread logged its own panic.
            let _ = thread.join();
        }
    }
}

struct Thread {
    ring: Ring,
    bytes_max: u64,
    secrets: Secrets,
    progress: Arc<Progress>,
    sum: Sum,
    base_bytes: u64,
    /// A segment has begun, and nothing of it is missing.
    is_writing: bool,
}

impl Thread {
    fn run(mut self, from: &Receiver<Message>) {
        while let Ok(first) = from.recv() {
            std::iter::once(first).chain(from.try_iter()).for_each(|message| self.take(message));
            std::thread::sleep(GATHER);
        }
    }

    fn take(&mut self, message: Message) {
        if let Err(error) = self.write(message) {
            self.is_writing = false;
            self.progress.end(&format!("it cannot be written: {error}"));
        }
        let is_idle = self.progress.waiting.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_idle && self.progress.has_gap.load(Ordering::Relaxed) {
            self.progress.base_due.notify_one();
        }
    }

    fn write(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Begin(base, after_gap) => self.begin(*base, after_gap),
            Message::Taken(taken) => self.batch(*taken),
        }
    }

    fn begin(&mut self, mut base: Base, after_gap: bool) -> io::Result<()> {
        if self.base_bytes > 0 && (after_gap || !self.is_writing) {
            let text = self.line(&SegmentLine::Gap)?;
            self.ring.add(&text)?;
        }
        self.secrets.snapshot(&mut base.snapshot);
        self.sum = Sum::NONE;
        let head = Head { version: VERSION, release: RELEASE.to_owned() };
        let mut text = self.line(&SegmentLine::Recording(head))?;
        text.push_str(&self.line(&SegmentLine::Base(Box::new(base)))?);
        self.base_bytes = text.len() as u64;
        if self.base_bytes > self.bytes_max {
            self.is_writing = false;
            self.progress.end(&too_large(self.base_bytes, self.bytes_max));
            return Ok(());
        }
        self.ring.begin()?;
        self.is_writing = true;
        self.add(&text)
    }

    fn batch(&mut self, taken: Taken) -> io::Result<()> {
        if !self.is_writing {
            return Ok(());
        }
        let Taken { moment, inputs, asked_at, came } = taken;
        let mut decision = None;
        let input = |mut input: Input| {
            self.secrets.input(&mut input);
            match input {
                Input::Decided(decided) => {
                    decision = Some(decided);
                    None
                }
                other => Some(other),
            }
        };
        let inputs = inputs.into_iter().map(input).collect();
        let (came, failed) = match came {
            Ok(came) => (Some(BatchOutcome { decision, ..came }.words(Some(&self.secrets))), None),
            Err(why) => (None, Some(why)),
        };
        let (came, sum) = came.map(|words| (words.lines, words.sum)).unwrap_or_default();
        let batch = Batch { moment, inputs, asked_at, came, sum, failed };
        let text = self.line(&SegmentLine::Batch(Box::new(batch)))?;
        self.add(&text)
    }

    fn add(&mut self, text: &str) -> io::Result<()> {
        self.is_writing = self.ring.add(text)?;
        let bytes = self.ring.newest_bytes();
        // A quarter of the ring, so that dropping the oldest segment leaves most of it; more where
        // bases are large, so that the ring does not consist mostly of bases.
        let enough = (self.bytes_max / 4).max(self.base_bytes.saturating_mul(4));
        if !self.is_writing || bytes > enough.min(self.bytes_max / 2) && bytes > self.base_bytes * 2
        {
            self.progress.is_full.store(true, Ordering::Relaxed);
            self.progress.base_due.notify_one();
        }
        Ok(())
    }

    fn line(&mut self, line: &SegmentLine) -> io::Result<String> {
        let mut json = Vec::new();
        line.serialize(&mut serde_json::Serializer::new(&mut json))?;
        let json = String::from_utf8(json).map_err(io::Error::other)?;
        let json = self.secrets.without_logins(json);
        let mut text = String::with_capacity(json.len() + 64);
        write(&json, &mut self.sum, &mut text);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use orchestrator::{HandedOver, Settled};
    use records::{ClockRow, ClusterRow, Snapshot};
    use uuid::Uuid;
    use view::GpuFaults;

    use super::*;
    use crate::{Played, Replay};

    /// A base of an empty cluster.
    fn base() -> Box<Base> {
        let at = Moment { now: Instant(1), clock: Instant(1), seed: Uuid::nil() };
        Box::new(Base {
            snapshot: Snapshot::empty(ClusterRow { uuid: Uuid::nil(), created_at: Instant(0) }),
            nodes: orchestrator::NodeList::default(),
            gpus: GpuFaults::default(),
            usage: None,
            settled: Settled { clock: ClockRow { boot: Uuid::nil(), ahead_ms: 0 }, step: None, at },
            handed_over: HandedOver::default(),
            settings: orchestrator::Settings::default(),
        })
    }

    fn batch() -> Taken {
        Taken {
            moment: None,
            inputs: Vec::new(),
            asked_at: None,
            came: Ok(BatchOutcome::default()),
        }
    }

    #[test]
    fn what_the_disk_does_not_keep_up_with_is_left_out_until_there_is_a_new_base() {
        let (to, from) = sync_channel(2);
        let mut writer = Writer::default();
        writer.to = Some(to);
        writer.begin(base());
        writer.take(batch());
        assert!(writer.takes_batches() && !writer.wants_base(0));
        writer.take(batch());
        assert!(!writer.takes_batches(), "the dispatcher does not wait for the thread");
        assert!(!writer.wants_base(0), "not while it has so much to write");
        let written = from.try_iter().count();
        writer.progress.waiting.fetch_sub(written, Ordering::Relaxed);
        assert!(written == 2 && writer.wants_base(0));
        writer.begin(base());
        assert!(matches!(from.try_recv(), Ok(Message::Begin(_, true))), "it says what is missing");
        assert!(writer.takes_batches());
    }

    #[test]
    fn a_state_without_room_ends_the_recording_before_it_is_built() {
        let (to, _from) = sync_channel(2);
        let mut writer = Writer::default();
        (writer.to, writer.bytes_max) = (Some(to), 100 << 10);
        writer.progress.is_full.store(true, Ordering::Relaxed);
        assert!(writer.wants_base(100) && writer.is_on());
        assert!(!writer.wants_base(101) && !writer.is_on());
        assert!(!writer.wants_base(100), "it is off until the next start");
    }

    #[test]
    fn where_something_is_missing_a_recording_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(dir.path(), 1 << 20).unwrap();
        writer.begin(base());
        writer.progress.has_gap.store(true, Ordering::Relaxed);
        writer.begin(base());
        drop(writer);
        let mut file = Vec::new();
        crate::save(dir.path(), &mut file).unwrap();
        let mut replay = Replay::new(&*file);
        let mut told = Vec::new();
        while let Some(played) = replay.play().unwrap() {
            told.push(match played {
                Played::Segment(_) => "segment",
                Played::Built => "built",
                Played::Gap => "gap",
                Played::Batch(_) | Played::CutOff => "other",
            });
        }
        assert_eq!(told, ["segment", "built", "gap", "segment", "built"]);
    }
}
