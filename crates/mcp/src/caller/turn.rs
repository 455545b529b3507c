//! Calls of one connection begin in the order of their lines [CALL-7].

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The turns of one connection. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<Line>>);

/// Who has not had their turn yet, and whom to wake when it comes.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, Option<Waker>>,
}

impl Turns {
    /// Takes the last place in the line.
    pub(crate) fn take(&self) -> Turn {
        let mut line = self.line();
        let place = line.next;
        line.next += 1;
        line.waiting.insert(place, None);
        drop(line);
        Turn { turns: self.clone(), place }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call's place in the line. It lasts until it is passed on, or dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    place: u64,
}

impl Turn {
    /// Waits until everybody before has passed their turn on; at once when this one was passed on.
    ///
    /// # Cancel safety
    /// Safe: the place is kept.
    pub(crate) async fn comes(&self) {
        poll_fn(|context| {
            let mut line = self.turns.line();
            let is_first = line.waiting.keys().next().is_none_or(|first| *first >= self.place);
            match line.waiting.get_mut(&self.place).filter(|_| !is_first) {
                Some(waker) => {
                    *waker = Some(context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Lets the next one go on.
    pub(crate) fn pass_on(&self) {
        let mut line = self.turns.line();
        line.waiting.remove(&self.place);
        let first = line.waiting.first_entry().and_then(|mut first| first.get_mut().take());
        drop(line);
        if let Some(waker) = first {
            waker.wake();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pass_on();
    }
}

/// Passes a turn on when it is dropped.
#[derive(Debug)]
pub(crate) struct PassOn(pub(super) Option<Arc<Turn>>);

impl Drop for PassOn {
    fn drop(&mut self) {
        if let Some(turn) = &self.0 {
            turn.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    async fn is_ready(turn: &Turn) -> bool {
        let comes = pin!(turn.comes());
        tokio::select! { biased; () = comes => true, () = std::future::ready(()) => false }
    }

    #[tokio::test]
    async fn turns_come_in_order_and_those_that_were_passed_on_hold_nobody_up() {
        // [CALL-7]
        let turns = Turns::default();
        let (one, two, three) = (turns.take(), turns.take(), turns.take());
        assert!(is_ready(&one).await && !is_ready(&two).await && !is_ready(&three).await);
        two.pass_on();
        assert!(!is_ready(&three).await, "the first has not passed its turn on");
        let waiting = async {
            three.comes().await;
            true
        };
        let (has_come, ()) = tokio::join!(waiting, async { drop(one) });
        assert!(has_come && is_ready(&three).await && is_ready(&two).await);
    }
}
