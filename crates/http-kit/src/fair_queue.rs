//! Turns at work of which only so much is done at a time. Owns: that a key with many requests waits
//! behind its own, not before others. Does not know what the work is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// Most waiting callers, and most of one key.
const WAITING_MAX: usize = 2048;
const WAITING_OF_KEY_MAX: usize = 256;

/// Work of one kind, `slots` at a time. Keys take turns in a circle; those that wait by the same
/// key are served in their order.
pub struct FairQueue {
    queue: Mutex<Queue>,
}

struct Queue {
    free_slots: usize,
    /// Waiting callers by key; no entry is empty.
    waiting: BTreeMap<String, VecDeque<oneshot::Sender<Permit>>>,
    /// The keys of `waiting`, the next one first.
    order: VecDeque<String>,
    count: usize,
}

/// The right to work until it is dropped.
pub struct Permit(Option<Arc<FairQueue>>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(lane) = self.0.take() {
            lane.pass_on();
        }
    }
}

impl FairQueue {
    /// A queue at whose head this many work at a time.
    #[must_use]
    pub fn new(slots: usize) -> Arc<Self> {
        let (waiting, order) = (BTreeMap::new(), VecDeque::new());
        let queue = Queue { free_slots: slots, waiting, order, count: 0 };
        Arc::new(Self { queue: Mutex::new(queue) })
    }

    /// The next turn for a key; `None` if it takes longer than this, or too many wait.
    pub async fn turn(self: &Arc<Self>, key: &str, longest: Duration) -> Option<Permit> {
        let comes = {
            let mut queue = self.queue();
            if queue.free_slots > 0 {
                queue.free_slots -= 1;
                return Some(Permit(Some(self.clone())));
            }
            queue.wait(key)?
        };
        tokio::time::timeout(longest, comes).await.ok()?.ok()
    }

    /// Gives a slot to the next who waits.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue();
                let next = queue.next();
                if next.is_none() {
                    queue.free_slots += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(Permit(Some(self.clone()))) {
                Ok(()) => return,
                // The caller has stopped waiting.
                Err(mut unwanted) => drop(unwanted.0.take()),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn wait(&mut self, key: &str) -> Option<oneshot::Receiver<Permit>> {
        let of_key = |queue: &Self| queue.waiting.get(key).map_or(0, VecDeque::len);
        if self.count >= WAITING_MAX || of_key(self) >= WAITING_OF_KEY_MAX {
            self.forget_gone();
        }
        if of_key(self) >= WAITING_OF_KEY_MAX {
            return None;
        }
        if self.count >= WAITING_MAX {
            // The key of which most wait gives way, so one that floods keeps out its own only.
            let longest = self.waiting.iter().max_by_key(|(_, all)| all.len());
            let (longest, _) = longest.filter(|(_, all)| all.len() > of_key(self) + 1)?;
            let longest = longest.clone();
            self.waiting.get_mut(&longest)?.pop_back();
            self.count -= 1;
        }
        let (send, receive) = oneshot::channel();
        if !self.waiting.contains_key(key) {
            self.order.push_back(key.to_owned());
        }
        self.waiting.entry(key.to_owned()).or_default().push_back(send);
        self.count += 1;
        Some(receive)
    }

    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let key = self.order.pop_front()?;
        let all = self.waiting.get_mut(&key)?;
        let next = all.pop_front();
        self.count -= 1;
        if all.is_empty() {
            self.waiting.remove(&key);
        } else {
            self.order.push_back(key);
        }
        next
    }

    fn forget_gone(&mut self) {
        self.waiting.values_mut().for_each(|all| all.retain(|one| !one.is_closed()));
        self.waiting.retain(|_, all| !all.is_empty());
        self.order.retain(|key| self.waiting.contains_key(key));
        self.count = self.waiting.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// Starts to wait for a turn, and does so before this returns.
    async fn waits(lane: &Arc<FairQueue>, key: &str) -> tokio::task::JoinHandle<Option<Permit>> {
        let (lane, key) = (lane.clone(), key.to_owned());
        let task = tokio::spawn(async move { lane.turn(&key, LONG).await });
        tokio::task::yield_now().await;
        task
    }

    #[tokio::test]
    async fn a_flood_by_one_key_does_not_come_before_another() {
        let lane = FairQueue::new(1);
        let held = lane.turn("flood", LONG).await.unwrap();
        let mut flood = Vec::new();
        for _ in 0..1000 {
            flood.push(waits(&lane, "flood").await);
        }
        let good = waits(&lane, "good").await;
        drop(held);
        let first = flood.remove(0).await.unwrap().unwrap();
        drop(first);
        assert!(good.await.unwrap().is_some(), "second of all, behind one of the flood");
        let refused = flood.iter().filter(|task| task.is_finished()).count();
        assert!(refused >= 1000 - 1 - WAITING_OF_KEY_MAX, "and the flood is bounded: {refused}");
    }

    #[tokio::test]
    async fn many_keys_that_fill_the_lane_do_not_keep_out_another() {
        let lane = FairQueue::new(1);
        let held = lane.turn("x", LONG).await.unwrap();
        let mut floods = Vec::new();
        for n in 0..3000 {
            floods.push(waits(&lane, &format!("flood-{}", n % 16)).await);
        }
        let good = waits(&lane, "good").await;
        assert_eq!(lane.queue().count, WAITING_MAX);
        drop(held);
        for flood in floods.drain(..16) {
            drop(flood.await.unwrap().unwrap());
        }
        assert!(good.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_turn_that_is_not_waited_for_any_more_goes_to_the_next() {
        let lane = FairQueue::new(1);
        let held = lane.turn("a", LONG).await.unwrap();
        let gone = waits(&lane, "b").await;
        let next = waits(&lane, "c").await;
        gone.abort();
        assert!(gone.await.is_err());
        drop(held);
        drop(next.await.unwrap().unwrap());
        let brief = lane.turn("d", Duration::ZERO).await.expect("the slot is free again");
        assert!(lane.turn("d", Duration::ZERO).await.is_none());
        drop(brief);
        assert_eq!(lane.queue().free_slots, 1);
    }
}
