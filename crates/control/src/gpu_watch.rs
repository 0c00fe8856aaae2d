//! Looking at GPUs every few seconds. Owns: how often, and when what is seen is believed. Refuses to know:
//! what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use engine::{Engine, GpuHealth, Stranger};
use tokio::sync::watch;
use units::Instant;

use crate::metrics::{Metrics, Verb};
use crate::time::Line;
use orchestrator::view::View;
use orchestrator::{Trouble, Troubles};
use spec::NodeSpec;

/// Time between two looks.
const LOOK_EVERY_MS: u64 = 5_000;
/// A driver that cannot tell in this time hangs, and nobody else is to hang with it.
pub(crate) const ANSWER_WAIT_MS: u64 = 20_000;

/// Looks at the real GPUs of this machine, and tells what is the matter with them.
pub(crate) struct Watch {
    engine: Arc<dyn Engine>,
    line: Arc<Line>,
    judge: Judge,
    told: watch::Sender<Troubles>,
    /// When it looks next.
    next: Instant,
    metrics: Metrics,
}

impl Watch {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        line: Arc<Line>,
        told: watch::Sender<Troubles>,
        metrics: Metrics,
    ) -> Self {
        let next = line.now();
        Self { engine, line, judge: Judge::default(), told, next, metrics }
    }

    /// One look at the GPUs of these nodes. What was known stays as it is where the driver does not
    /// answer.
    pub(crate) async fn look(&mut self, nodes: impl Iterator<Item = &NodeSpec>) {
        self.next = self.line.now().plus_ms(LOOK_EVERY_MS);
        let real = nodes.filter(|node| !node.simulated).flat_map(|node| &node.gpus);
        let (mut uuids, mut lost) = (Vec::new(), BTreeMap::new());
        for gpu in real {
            match gpu.fault.clone() {
                None => uuids.push(gpu.uuid.clone()),
                Some(why) => drop(lost.insert(gpu.uuid.clone(), Trouble::Lost(why))),
            }
        }
        if uuids.is_empty() {
            self.tell(lost);
            return;
        }
        let look = self.engine.gpu_health(uuids);
        let look = self.metrics.engine(Verb::GpuHealth, look);
        let Some(seen) = self.line.within(ANSWER_WAIT_MS, look).await else {
            self.metrics.engine_failed(Verb::GpuHealth);
            tracing::warn!("the driver does not answer; the GPUs are taken for as they were");
            self.tell_more(lost);
            return;
        };
        match seen {
            Ok(Some(seen)) => {
                let mut fresh = self.judge.judge(seen);
                fresh.extend(lost);
                self.tell(fresh);
            }
            Ok(None) => self.tell_more(lost),
            Err(error) => {
                tracing::warn!(%error, "it is not known how the GPUs are");
                self.tell_more(lost);
            }
        }
    }

    fn tell(&self, fresh: BTreeMap<String, Trouble>) {
        let fresh = Arc::new(fresh);
        self.told.send_if_modified(|told| {
            let news = !alike(told, &fresh);
            *told = fresh;
            news
        });
    }

    /// Tells of GPUs that did not work when their nodes were seen, where no more is known of the others.
    fn tell_more(&self, lost: BTreeMap<String, Trouble>) {
        let mut all = BTreeMap::clone(&self.told.borrow());
        all.extend(lost);
        self.tell(all);
    }

    /// Never ends by itself. Looks at the GPUs of the nodes that are shown.
    pub(crate) async fn run(mut self, view: impl Fn() -> Arc<View>) -> Infallible {
        loop {
            self.line.sleep_until(self.next).await;
            let view = view();
            self.look(view.nodes.iter().map(|node| &*node.spec)).await;
        }
    }
}

/// Whether two looks mean the same for who may use which GPU. How much memory a stranger has changes
/// all the time, and is not worth a decision.
fn alike(before: &BTreeMap<String, Trouble>, now: &BTreeMap<String, Trouble>) -> bool {
    let same = |(one, other): (&Trouble, &Trouble)| match (one, other) {
        (Trouble::Taken(one), Trouble::Taken(other)) => one.keys().eq(other.keys()),
        (one, other) => one == other,
    };
    before.keys().eq(now.keys()) && before.values().zip(now.values()).all(same)
}

/// What is made of looks. A stranger has to be seen twice, since processes take a moment to end; but not
/// at the first look, after which work is placed. Who is not known to be gone is there.
#[derive(Default)]
struct Judge {
    /// Of each GPU the strangers that were seen last, and of those the ones that are believed.
    strangers: BTreeMap<String, (BTreeSet<u32>, BTreeMap<u32, Stranger>)>,
}

impl Judge {
    fn judge(&mut self, seen: BTreeMap<String, GpuHealth>) -> BTreeMap<String, Trouble> {
        let mut troubles = BTreeMap::new();
        for (uuid, GpuHealth { fault, strangers }) in seen {
            if let Some(mut strangers) = strangers {
                let now = strangers.keys().copied().collect();
                if let Some((before, _)) = self.strangers.get(&uuid) {
                    strangers.retain(|pid, _| before.contains(pid));
                }
                self.strangers.insert(uuid.clone(), (now, strangers));
            }
            let believed = self.strangers.get(&uuid).map(|(_, believed)| believed.clone());
            let taken = believed.filter(|strangers| !strangers.is_empty()).map(Trouble::Taken);
            if let Some(trouble) = fault.map(Trouble::Lost).or(taken) {
                troubles.insert(uuid, trouble);
            }
        }
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault, and strangers, as far as they are known.
    type Seen<'a> = (Option<&'a str>, Option<&'a [u32]>);

    fn gpu((fault, pids): Seen<'_>) -> BTreeMap<String, GpuHealth> {
        let stranger =
            Stranger { name: "python".into(), user: "eve".into(), memory_bytes: 1 << 30 };
        let all = |pids: &[u32]| pids.iter().map(|pid| (*pid, stranger.clone())).collect();
        let strangers = pids.map(all);
        [("GPU-1".to_owned(), GpuHealth { fault: fault.map(str::to_owned), strangers })].into()
    }

    #[test]
    fn who_holds_a_gpu_is_news_and_not_how_much_of_it() {
        let taken = |pid: u32, memory_bytes: u64| {
            let stranger = Stranger { name: "a".into(), user: "eve".into(), memory_bytes };
            Trouble::Taken([(pid, stranger)].into())
        };
        let on = |gpu: &str, trouble: Trouble| BTreeMap::from([(gpu.to_owned(), trouble)]);
        let before = on("GPU-1", taken(7, 1));
        assert!(alike(&before, &on("GPU-1", taken(7, 2))));
        for other in [
            on("GPU-1", taken(8, 1)),
            on("GPU-2", taken(7, 1)),
            on("GPU-1", Trouble::Lost("gone".into())),
            BTreeMap::new(),
        ] {
            assert!(!alike(&before, &other), "{other:?}");
        }
    }

    /// What is told after each look.
    fn told(looks: &[Seen<'_>]) -> Vec<String> {
        let mut judge = Judge::default();
        let text = |seen: &Seen<'_>| {
            let told = judge.judge(gpu(*seen));
            told.get("GPU-1").map(ToString::to_string).unwrap_or_default()
        };
        looks.iter().map(text).collect()
    }

    #[test]
    fn a_stranger_is_believed_when_it_was_seen_twice_or_at_the_start() {
        let looks = [&[][..], &[7], &[7], &[8], &[]].map(|pids| (None, Some(pids)));
        assert_eq!(told(&looks), ["", "", &taken(7), "", ""], "another one is another");
        let looks = [&[7][..], &[]].map(|pids| (None, Some(pids)));
        assert_eq!(told(&looks), [taken(7), String::new()]);
    }

    fn taken(pid: u32) -> String {
        format!("used by strangers: python of eve (process {pid}, 1GiB)")
    }

    #[test]
    fn who_is_not_known_to_be_gone_is_there() {
        let looks = [Some(&[7][..]), None, Some(&[7]), None, Some(&[])].map(|pids| (None, pids));
        assert_eq!(told(&looks), [&taken(7), &taken(7), &taken(7), &taken(7), ""]);
        let looks = [Some(&[][..]), Some(&[7]), None, Some(&[7])].map(|pids| (None, pids));
        assert_eq!(told(&looks), ["", "", "", &taken(7)], "no look is no second one");
        assert_eq!(told(&[(None, None), (None, Some(&[7]))]), ["", &taken(7)]);
    }

    #[test]
    fn a_loss_is_believed_at_once_and_matters_more_than_strangers() {
        let looks: &[Seen<'_>] =
            &[(None, Some(&[])), (Some("off the bus"), Some(&[7])), (None, Some(&[7]))];
        assert_eq!(told(looks), ["", "lost: off the bus", &taken(7)]);
    }
}
