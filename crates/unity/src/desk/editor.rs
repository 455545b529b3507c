//! One editor, connected or expected back.

use std::collections::BTreeMap;
use std::sync::Arc;

use raincheck_core::ids::LaneId;
use raincheck_core::task::WaitReason;
use raincheck_core::time::Timestamp;
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::{Has, grace_of};
use crate::backend::{Ask, Introduction};
use crate::settings::Settings;
use crate::specs;
use crate::wire::EditorState;
use crate::wire::inbound::Command;

/// A connection to an editor.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) serial: u64,
    pub(crate) asks: mpsc::Sender<Ask>,
}

impl Link {
    pub(crate) fn leave(&self, code: u16, words: &'static str) {
        // One whose asks are full does not read, and is closed for that.
        let _ = self.asks.try_send(Ask::Leave(code, words));
    }
}

/// An editor.
#[derive(Debug)]
pub(crate) struct Editor {
    pub(crate) lane: LaneId,
    pub(crate) backend: &'static str,
    pub(crate) instance: Arc<str>,
    pub(crate) name: Arc<str>,
    /// The path of its project, as it spells it.
    pub(crate) project_path: Arc<str>,
    pub(crate) unity_version: Arc<str>,
    pub(crate) plugin_version: Arc<str>,
    pub(crate) pid: Option<u64>,
    pub(crate) state: EditorState,
    pub(crate) focused: Option<bool>,
    pub(crate) lag_ms: Option<f64>,
    pub(crate) dialog: Option<String>,
    pub(crate) commands: Arc<BTreeMap<String, Command>>,
    pub(crate) link: Option<Link>,
    /// When it went.
    gone: Option<Instant>,
    pub(crate) has_quit: bool,
    /// Whether it says which calls it has when it comes back.
    pub(crate) reports_calls: bool,
    /// Those that it had when it came.
    pub(crate) had: Has,
    /// It was sent a call that it did not say it has in time, and has said nothing since.
    pub(crate) is_mute: bool,
    /// When the last call was made that may change something, and the last compile.
    last_change: Option<Timestamp>,
    last_compile: Option<Timestamp>,
    /// Its main thread, which one call has at a time.
    pub(crate) turn: Arc<Semaphore>,
}

/// How an editor is named to callers.
#[derive(Debug, Serialize)]
pub(crate) struct Named {
    pub(crate) instance: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) project_path: Arc<str>,
}

impl Named {
    pub(crate) fn words(&self) -> String {
        format!("`{}` (instance `{}`)", self.name, self.instance)
    }
}

impl Editor {
    pub(crate) fn new(lane: LaneId, link: Link, introduction: Introduction) -> Self {
        let Introduction {
            backend,
            instance,
            name,
            unity_version,
            plugin_version,
            pid,
            state,
            commands,
            has,
            project_path,
            running: _,
        } = introduction;
        Self {
            lane,
            backend,
            instance: instance.into(),
            name: name.into(),
            project_path: project_path.into(),
            unity_version: unity_version.into(),
            plugin_version: plugin_version.into(),
            pid,
            state,
            focused: None,
            lag_ms: None,
            dialog: None,
            commands: Arc::new(commands),
            link: Some(link),
            gone: None,
            has_quit: false,
            reports_calls: has.is_some(),
            had: Has::new(),
            is_mute: false,
            last_change: None,
            last_compile: None,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Takes a new connection, and returns the one that it takes the place of.
    pub(crate) fn come_back(&mut self, link: Link, introduction: Introduction) -> Option<Link> {
        let older = self.link.take();
        let fresh = Self::new(self.lane.clone(), link, introduction);
        let (last_change, last_compile) = (self.last_change, self.last_compile);
        *self = Self { last_change, last_compile, turn: Arc::clone(&self.turn), ..fresh };
        older
    }

    /// Takes down that a call was made that may change what others find.
    pub(crate) fn changes(&mut self, tool: &str, at: Timestamp) {
        let last = match tool {
            specs::REFRESH_AND_COMPILE => &mut self.last_compile,
            _ => &mut self.last_change,
        };
        *last = (*last).max(Some(at));
    }

    /// When the last call was made that may change what a tool finds. A compile changes nothing for another
    /// compile.
    pub(crate) fn last_change(&self, tool: &str) -> Option<Timestamp> {
        match tool {
            specs::REFRESH_AND_COMPILE => self.last_change,
            _ => self.last_change.max(self.last_compile),
        }
    }

    pub(crate) fn is_linked_by(&self, serial: u64) -> bool {
        self.link.as_ref().is_some_and(|link| link.serial == serial)
    }

    pub(crate) fn go(&mut self, now: Instant) {
        self.link = None;
        self.gone = Some(now);
    }

    /// Returns until when it is expected back; `None` while it is connected.
    pub(crate) fn back_by_for_calls(&self, settings: &Settings) -> Option<Instant> {
        self.gone.map(|gone| gone + grace_of(settings, self.state.is_compiling()))
    }

    /// Returns when it is forgotten if it does not come back. One that quit is not waited for, but what it
    /// has of calls is.
    pub(crate) fn back_by(&self, settings: &Settings) -> Option<Instant> {
        self.back_by_for_calls(settings)
    }

    /// Returns why its calls wait; `None` when it takes them.
    pub(crate) fn hold(&self) -> Option<WaitReason> {
        let state = || self.state.waits_because().map(WaitReason::new);
        self.away().or_else(state).or_else(|| self.is_mute.then(|| WaitReason::new("busy")))
    }

    /// Returns why it cannot be asked anything at all.
    pub(crate) fn away(&self) -> Option<WaitReason> {
        const DISCONNECTED: WaitReason = WaitReason::new("disconnected");
        if self.link.is_some() {
            return None;
        }
        let reason =
            self.state.waits_because().filter(|_| self.state.is_compiling() && !self.has_quit);
        Some(reason.map_or(DISCONNECTED, WaitReason::new))
    }

    pub(crate) fn named(&self) -> Named {
        Named {
            instance: Arc::clone(&self.instance),
            name: Arc::clone(&self.name),
            project_path: Arc::clone(&self.project_path),
        }
    }
}
