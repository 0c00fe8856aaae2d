//! The side of the server. Owns: one socket for each run, one request after another on each, and
//! what the scheduler gets to know of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{CheckpointNews, Observation, Observations, RunEvent, RunKey};
use rustix::process::{getgid, getuid};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

pub use crate::file::Storage;
use crate::file::{self, Stamp};
use crate::meeting::Meeting;
use crate::progress::{NOTE_EVERY, Now, Progress};
use crate::protocol::{Meet, REQUEST_BYTES_MAX, Reply, Request, World};
use crate::socket::{self, Opens};

/// Time limit for a request to arrive and for its answer to leave. The server reads no other
/// request of the run meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// [`PATIENCE`] for a process of another run.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_millis(100);
/// The pause after each request: a run that reports without end costs little.
const PAUSE: Duration = Duration::from_millis(20);

/// True for the process ids of a run.
pub type IsOwn = Box<dyn Fn(i32) -> bool + Send + Sync>;

/// Processes that may report for a run.
pub enum Owner {
    /// Processes of the run.
    Processes {
        /// Their user and group; `None` for those of the server.
        account: Option<(u32, u32)>,
        /// Membership of the run: other runs may have the account too.
        is_own: IsOwn,
    },
    /// Everyone who can reach the folder: a container, into which it is mounted.
    Container,
}

impl Owner {
    fn may_report(&self, peer: &UCred) -> bool {
        match self {
            Self::Processes { account, is_own } => {
                let uid = account.map_or_else(|| getuid().as_raw(), |(uid, _)| uid);
                peer.uid() == uid && peer.pid().is_some_and(is_own)
            }
            Self::Container => true,
        }
    }

    /// Owner of the socket; `None` if every account may connect.
    fn account(&self) -> Option<(u32, u32)> {
        match self {
            Self::Processes { account, .. } => {
                Some(account.unwrap_or_else(|| (getuid().as_raw(), getgid().as_raw())))
            }
            Self::Container => None,
        }
    }
}

/// The channels of all runs of an engine. Dropping it closes them.
pub struct Channels {
    observations: Arc<Observations>,
    open: Mutex<BTreeMap<RunKey, Channel>>,
    meetings: Arc<Meetings>,
}

/// Where the pods of each workload meet.
struct Meetings {
    /// The moment from which time is counted.
    start: Instant,
    all: Mutex<BTreeMap<Uuid, Meeting>>,
}

impl Meetings {
    fn now(&self) -> units::Instant {
        units::Instant(millis(self.start.elapsed()))
    }
}

impl std::fmt::Debug for Channels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channels").finish_non_exhaustive()
    }
}

struct Channel {
    run: Arc<Run>,
    task: JoinHandle<()>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// State of the channel of a run.
struct Run {
    key: RunKey,
    owner: Owner,
    storage: Storage,
    /// Start of the channel's time.
    start: Instant,
    progress: Mutex<Progress>,
    /// Limits the checks to one file at a time: one on a file system that does not answer blocks a
    /// thread.
    looks: Arc<Semaphore>,
    /// Number of checkpoints so far.
    saved: watch::Sender<u64>,
    observations: Arc<Observations>,
    /// Workload of the run's gang; `None` without a gang.
    gang: Option<Uuid>,
    meetings: Arc<Meetings>,
    /// Last report of whether it has met the others.
    meets: Mutex<Option<bool>>,
}

impl Channels {
    /// Channels of an engine that reports to the listener of `observations`.
    #[must_use]
    pub fn new(observations: Arc<Observations>) -> Self {
        let meetings = Meetings { start: Instant::now(), all: Mutex::default() };
        Self { observations, open: Mutex::default(), meetings: Arc::new(meetings) }
    }

    /// Opens the channel of a run in this folder. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open(
        &self,
        key: RunKey,
        folder: &Path,
        (owner, storage): (Owner, Storage),
        opens: Opens,
    ) -> io::Result<()> {
        let listener = UnixListener::from_std(socket::listen(folder, owner.account())?)?;
        let begins = opens != Opens::Again;
        let gang = socket::gang(folder, opens)?;
        let start = Instant::now();
        let began = Now { passed: Duration::ZERO, wall_ms: wall_ms() };
        let progress = if begins { Progress::new(began) } else { Progress::default() };
        let run = Arc::new(Run {
            key,
            owner,
            storage,
            start,
            progress: Mutex::new(progress),
            looks: Arc::new(Semaphore::new(1)),
            saved: watch::Sender::new(0),
            observations: Arc::clone(&self.observations),
            gang,
            meetings: Arc::clone(&self.meetings),
            meets: Mutex::default(),
        });
        if let Some(gang) = gang {
            let now = self.meetings.now();
            lock(&self.meetings.all).entry(gang).or_default().open(key, begins, now);
        }
        let task = tokio::spawn(serve(listener, Arc::clone(&run)));
        lock(&self.open).insert(key, Channel { run, task });
        Ok(())
    }

    /// The server is about to stop a run: the others do not wait for its restart.
    pub fn stops(&self, key: RunKey) {
        let gang = lock(&self.open).get(&key).and_then(|channel| channel.run.gang);
        let mut all = lock(&self.meetings.all);
        if let Some(meeting) = gang.and_then(|gang| all.get_mut(&gang)) {
            meeting.stop(key);
        }
    }

    /// Closes the channel of a run that has ended.
    pub fn close(&self, key: RunKey) {
        // Dropped outside the lock.
        let closed = lock(&self.open).remove(&key);
        if let Some(gang) = closed.and_then(|channel| channel.run.gang) {
            let (mut all, now) = (lock(&self.meetings.all), self.meetings.now());
            if all.get_mut(&gang).is_some_and(|meeting| meeting.close(key, now)) {
                all.remove(&gang);
            }
        }
    }

    /// Waits for the next checkpoint of a run, if it asks whether one is wanted, or has announced
    /// one within `most`, and no longer than that.
    pub async fn await_checkpoint(&self, key: RunKey, most: Duration) {
        let Some(run) = lock(&self.open).get(&key).map(|channel| Arc::clone(&channel.run)) else {
            return;
        };
        let is_first = run.saved.receiver_count() == 0;
        let mut saved = run.saved.subscribe();
        let before = *saved.borrow_and_update();
        let Some(wait) = lock(&run.progress).wait(most, run.now()) else { return };
        // Each pod of a gang has a caller here that waits; one announcement is enough.
        if is_first {
            run.report_checkpoint(CheckpointNews::Awaited { within_ms: millis(wait) });
        }
        // The run may end and its channel be closed meanwhile: `run` keeps its state alive.
        let comes = saved.wait_for(|now| *now != before);
        let ends = async {
            while lock(&self.open).contains_key(&key) {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let wait = tokio::time::sleep(wait);
        tokio::select! {
            _ = comes => {}
            () = ends => {}
            () = wait => {}
        }
    }
}

impl Run {
    fn now(&self) -> Now {
        Now { passed: self.start.elapsed(), wall_ms: wall_ms() }
    }

    fn report_checkpoint(&self, news: CheckpointNews) {
        self.observations.report(Observation::new(self.key, RunEvent::Checkpoint(news)));
    }

    /// Tells the scheduler, if it is time to.
    fn note(&self) {
        let noted = lock(&self.progress).note(self.now());
        if let Some(ago) = noted {
            self.report_checkpoint(CheckpointNews::Saved { ago_ms: millis(ago) });
        }
    }

    /// Has the run meet the others of its workload.
    fn meet(&self, request: &Meet) -> Result<World, String> {
        let alone = || {
            "this run works together with no other: submit a distributed training, or use \
             --rdzv_backend c10d"
                .to_owned()
        };
        let gang = self.gang.ok_or_else(alone)?;
        let mut all = lock(&self.meetings.all);
        let meeting = all.get_mut(&gang).ok_or_else(alone)?;
        let world = meeting.meet(self.key, request, self.meetings.now())?;
        drop(all);
        self.note_meeting(request, &world);
        Ok(world)
    }

    /// Reports to the scheduler whether the others can go on without any one pod.
    fn note_meeting(&self, request: &Meet, world: &World) {
        let ends = request.done || request.leaves || world.over;
        let meets = request.of.is_some() || world.store.is_some();
        if (ends || meets) && lock(&self.meets).replace(!ends) != Some(!ends) {
            self.observations.report(Observation::new(self.key, RunEvent::Meets(!ends)));
        }
    }

    /// Returns for how long a checkpoint is waited for, if the run asks.
    fn take(&self, request: &Request, stamp: Option<Stamp>) -> Result<Option<Duration>, String> {
        let now = self.now();
        let mut progress = lock(&self.progress);
        if let (Some(saved), Some(stamp)) = (request.checkpoint, stamp) {
            progress.save(stamp, saved.step, now)?;
        }
        if let Some(seconds) = request.next_in_s {
            let within = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            progress.announce(within, now);
        }
        Ok(if request.asks { progress.ask(now) } else { None })
    }
}

/// Hears one request after another, and looks now and then whether the newest checkpoint is still
/// there.
async fn serve(listener: UnixListener, run: Arc<Run>) {
    let mut newest: Option<Newest> = None;
    // Whatever is reported meanwhile.
    let mut next_look = Instant::now() + NOTE_EVERY;
    loop {
        let is_idle = newest.is_none() && !lock(&run.progress).has_unnoted();
        tokio::select! {
            connected = listener.accept() => match connected {
                Ok((stream, _)) => {
                    let heard = tokio::time::timeout(PATIENCE, hear(stream, &run)).await;
                    match heard {
                        Ok(Ok(Some(file))) => newest = Some(Newest { file: Arc::new(file), misses: 0 }),
                        Ok(Ok(None)) => {}
                        Ok(Err(error)) => tracing::debug!(run = %run.key, %error, "a report broke off"),
                        Err(_) => tracing::debug!(run = %run.key, "a report took too long"),
                    }
                }
                // Descriptors are short; it passes.
                Err(error) => tracing::debug!(run = %run.key, %error, "a report was not heard"),
            },
            () = tokio::time::sleep_until(next_look), if !is_idle => {
                next_look = Instant::now() + NOTE_EVERY;
                if let Some(kept) = newest.take() {
                    newest = kept.look(&run.looks).await;
                    if newest.is_none() {
                        lock(&run.progress).lose();
                        run.report_checkpoint(CheckpointNews::Gone);
                    }
                }
            }
        }
        run.note();
        tokio::time::sleep(PAUSE).await;
    }
}

/// The newest checkpoint.
struct Newest {
    file: Arc<File>,
    /// How often in a row it was not there: one that is replaced is not for a moment.
    misses: u32,
}

impl Newest {
    /// `None` if the file is gone.
    async fn look(mut self, looks: &Arc<Semaphore>) -> Option<Self> {
        let Ok(look) = Arc::clone(looks).try_acquire_owned() else { return Some(self) };
        let file = Arc::clone(&self.file);
        let gone = tokio::task::spawn_blocking(move || {
            let _look = look;
            file::has_vanished(&file)
        });
        // It may be on a file system that does not answer.
        let gone = tokio::time::timeout(PATIENCE, gone).await;
        self.misses = if matches!(gone, Ok(Ok(true))) { self.misses + 1 } else { 0 };
        (self.misses < 2).then_some(self)
    }
}

/// Hears one request and answers it. Returns the file if it is a new checkpoint.
async fn hear(mut stream: UnixStream, run: &Run) -> io::Result<Option<File>> {
    let answer = if run.owner.may_report(&stream.peer_cred()?) {
        let (line, files) = receive(&stream).await?;
        take(run, &line, files).await
    } else {
        // Read all the same: a connection that is closed before gets no answer.
        let _unread = tokio::time::timeout(PATIENCE_WITH_OTHERS, receive(&stream)).await;
        Err("this channel is another run's".to_owned())
    };
    let (file, reply) = match answer {
        Ok(taken) => taken,
        Err(why) => (None, Reply { why: Some(why), ..Reply::default() }),
    };
    if file.is_some() {
        run.saved.send_modify(|count| *count += 1);
    }
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    // The checkpoint counts, whether the answer arrives or not.
    if let Err(error) = stream.write_all(&line).await {
        tracing::debug!(run = %run.key, %error, "an answer did not arrive");
    }
    Ok(file)
}

async fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut line, mut files) = (Vec::new(), Vec::new());
    let mut buffer = [0; REQUEST_BYTES_MAX];
    // Each piece may bring more files, of which the server has no more than of anything else.
    while line.len() < REQUEST_BYTES_MAX && files.len() <= 1 && !line.contains(&b'\n') {
        let part = stream.async_io(Interest::READABLE, || socket::receive(stream, &mut buffer));
        let (bytes, more) = part.await?;
        files.extend(more);
        if bytes == 0 {
            break;
        }
        line.extend_from_slice(&buffer[..bytes]);
    }
    Ok((line, files))
}

/// The file of a new checkpoint, and the answer.
type Taken = (Option<File>, Reply);

async fn take(run: &Run, line: &[u8], files: Vec<OwnedFd>) -> Result<Taken, String> {
    let request = Request::read(line)?;
    let world = request.meet.as_ref().map(|meet| run.meet(meet)).transpose()?;
    let reply = |wanted: Option<Duration>| {
        let save_within_s = wanted.map(|within| within.as_secs_f64());
        Reply { ok: true, save_within_s, world, ..Reply::default() }
    };
    if request.checkpoint.is_none() {
        return run.take(&request, None).map(|wanted| (None, reply(wanted)));
    }
    let [file] = <[OwnedFd; 1]>::try_from(files)
        .map_err(|files| format!("{} open files came with the message, not one", files.len()))?;
    let (file, storage) = (File::from(file), run.storage);
    let look = Arc::clone(&run.looks).try_acquire_owned();
    let look = look.map_err(|_| "a file that was reported before does not answer".to_owned())?;
    let verified = tokio::task::spawn_blocking(move || {
        let _look = look;
        let stamp = file::verify(&file, storage)?;
        Ok::<_, String>((file, stamp))
    });
    let (file, stamp) = verified.await.map_err(|error| error.to_string())??;
    let wanted = run.take(&request, Some(stamp))?;
    Ok((Some(file), reply(wanted)))
}

fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// No code panics inside a change while it holds one of these locks.
fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
