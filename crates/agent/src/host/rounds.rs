// SPDX-License-Identifier: Apache-2.0
//! A thread that does the same work for each of a changing set of items, again and again.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

enum Change<T> {
    Insert(String, T),
    Remove(String),
    Interval(Duration),
}

/// How long a thread without items sleeps, unless one comes.
const LONG: Duration = Duration::from_secs(3600);

/// The thread. Items come and go by messages, so it never waits for a lock. It ends when this is
/// dropped.
pub struct Rounds<T> {
    changes: Option<Sender<Change<T>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Rounds<T> {
    /// Does `work` for each item once in each `interval`, and without an item for one that was removed. A
    /// round that takes longer is followed by the next after an interval.
    pub fn start(
        interval: Duration,
        mut work: impl FnMut(&str, Option<&T>) + Send + 'static,
    ) -> Rounds<T> {
        Rounds::start_paced(interval, move |name, item| {
            work(name, item);
            None
        })
    }

    /// The same; `work` may return that the item is to have its next turn, and so have all others, before
    /// the interval is over. Without items the thread sleeps.
    pub fn start_paced(
        interval: Duration,
        work: impl FnMut(&str, Option<&T>) -> Option<Duration> + Send + 'static,
    ) -> Rounds<T> {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || repeat(&receiver, interval, work));
        Rounds {
            changes: Some(sender),
            thread: Some(thread),
        }
    }

    /// Adds an item, or replaces the one with this name.
    pub fn insert(&self, name: &str, item: T) {
        self.send(Change::Insert(name.to_owned(), item));
    }

    /// Removes an item, if it is there.
    pub fn remove(&self, name: &str) {
        self.send(Change::Remove(name.to_owned()));
    }

    /// Changes the interval.
    pub fn set_interval(&self, interval: Duration) {
        self.send(Change::Interval(interval));
    }

    fn send(&self, change: Change<T>) {
        // It fails only if the thread has panicked, which ends the program.
        if let Some(changes) = &self.changes {
            let _ = changes.send(change);
        }
    }
}

impl<T> Drop for Rounds<T> {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn repeat<T>(
    changes: &Receiver<Change<T>>,
    mut interval: Duration,
    mut work: impl FnMut(&str, Option<&T>) -> Option<Duration>,
) {
    let mut items = BTreeMap::new();
    let mut next = Instant::now();
    loop {
        match changes.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Change::Insert(name, item)) => {
                if items.is_empty() {
                    next = Instant::now();
                }
                items.insert(name, item);
            }
            Ok(Change::Remove(name)) => {
                items.remove(&name);
                work(&name, None);
            }
            Ok(Change::Interval(changed)) => {
                interval = changed;
                next = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {
                let turns = items
                    .iter()
                    .filter_map(|(name, item)| work(name, Some(item)));
                let sooner = turns.min().map_or(interval, |pause| pause.min(interval));
                next = Instant::now() + if items.is_empty() { LONG } else { sooner };
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_linux::testkit::until;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn each_item_has_its_turn_until_it_is_removed() {
        let (sender, removed) = channel();
        let work = move |name: &str, turns: Option<&Arc<AtomicU32>>| match turns {
            Some(turns) => drop(turns.fetch_add(1, Ordering::Relaxed)),
            None => sender.send(name.to_owned()).unwrap(),
        };
        let rounds = Rounds::start(Duration::from_millis(1), work);
        let [one, other] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let turns = |item: &Arc<AtomicU32>| item.load(Ordering::Relaxed);
        rounds.insert("one", one.clone());
        rounds.insert("other", other.clone());
        until("both are served", || turns(&one) > 2 && turns(&other) > 2);
        rounds.remove("one");
        until("its item is dropped", || Arc::strong_count(&one) == 1);
        let before = (turns(&one), turns(&other));
        until("the other is served", || turns(&other) > before.1 + 2);
        assert_eq!(turns(&one), before.0);
        assert_eq!(removed.try_iter().collect::<Vec<_>>(), ["one"]);
        drop(rounds);
        assert_eq!(Arc::strong_count(&other), 1, "the thread has ended");
    }

    #[test]
    fn an_interval_takes_effect_at_once() {
        let turns = Arc::new(AtomicU32::new(0));
        let work = |_: &str, turns: Option<&Arc<AtomicU32>>| {
            turns.map(|turns| turns.fetch_add(1, Ordering::Relaxed));
        };
        let rounds = Rounds::start(Duration::from_secs(3600), work);
        rounds.insert("one", turns.clone());
        rounds.set_interval(Duration::from_millis(1));
        until("it has several turns", || turns.load(Ordering::Relaxed) > 2);
    }
}
