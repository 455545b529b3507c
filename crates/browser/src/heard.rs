//! What is noted of the callers of commands, and looked up in the store where their tabs hang on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Cursor, Filter};
use raincheck_runtime::{Call, Told};

use crate::arguments::Arguments;
use crate::bridge::Browser;
use crate::choices::{Caller, Choice};
use crate::order;
use crate::tools::caller_of;

/// How many commands are looked through in one step.
const STEP: u32 = 200;

impl Browser {
    /// Notes who gives a command, which tab is its caller's `own`, and which one it names: that is the caller's
    /// from now on, unless nothing comes of it.
    pub(crate) fn note(
        &self,
        call: &Call,
        own: Option<Choice>,
        (what, arguments): (&str, &Arguments),
    ) {
        let caller = caller_of(call);
        let mut choices = self.choices();
        choices.note_call(call.id, &caller, own);
        if let Some(tab) = arguments.whole("tab_id").filter(|_| order::works_in_a_tab(what)) {
            let browser = arguments.text("browser_id").map(Arc::from);
            choices.name(&caller, call.id, Choice::Tab(tab, browser));
        }
        choices.hear(caller, self.clock().now().awake);
    }

    /// Returns what is known of a caller's tab, once it is known what became of the commands that named one: they
    /// may have ended in line. What the store does not know may be about to be submitted, or to be refused there;
    /// the tab that it names is not that of what is given meanwhile.
    pub(crate) async fn own_of(&self, caller: &Caller) -> Option<Choice> {
        let mut unknown = Vec::new();
        while let Some((engine, id)) = self.engine().ok().zip(self.in_doubt(caller, &unknown)) {
            match engine.tell(id, None, None).await {
                Ok(Told::Ended(record)) if record.started_at.is_some() => {
                    self.choices().confirm(caller, id);
                }
                Ok(Told::Ended(_)) => self.choices().refuse(caller, id),
                Ok(Told::Unknown) => unknown.push(id),
                Ok(Told::Counted(_) | Told::Stale(_)) | Err(_) => break,
            }
        }
        self.choices().without(caller, &unknown).cloned()
    }

    /// Returns the command that a caller's tab hangs on, where no browser has it.
    fn in_doubt(&self, caller: &Caller, unknown: &[TaskId]) -> Option<TaskId> {
        let id = self.choices().in_doubt(caller, unknown)?;
        (!self.outbox().is_under_way(id)).then_some(id)
    }

    /// Forgets whose the commands are that have ended, once there are many.
    pub(crate) async fn forget_ended_calls(&self) {
        let crowd = self.choices().crowd();
        let Some((owners, until)) = crowd else { return };
        match self.live_of(owners).await {
            Ok(live) => self.choices().keep(&live, until),
            Err(error) => tracing::warn!(%error, "whose the commands are that ended is kept"),
        }
    }

    async fn live_of(&self, owners: BTreeSet<Scope>) -> Result<BTreeSet<TaskId>, Error> {
        let engine = self.engine()?;
        let states = State::ALL.iter().copied().filter(|state| !state.is_terminal()).collect();
        let filter = Filter { states, ..Filter::default() };
        let mut live = BTreeSet::new();
        for owner in owners {
            let mut before = None;
            loop {
                let page = engine.list(&owner, &filter, before, STEP).await?;
                before = page.items.last().map(|record| Cursor(record.seq));
                live.extend(page.items.iter().map(|record| record.id()));
                if !page.has_more {
                    break;
                }
            }
        }
        Ok(live)
    }
}
