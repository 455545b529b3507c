//! The bridge as a tool set: where each call goes, and what it asks of the browser.

use std::sync::Arc;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::retry;
use raincheck_core::task::{Limits, Outcome};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Call, Executor, Route, TaskPlan, ToolSet};
use serde_json::json;

use crate::actions::{Entry, Place, TO, WHERE, WHERE_TO};
use crate::arguments::{Arguments, Field};
use crate::bridge::{Browser, blocking};
use crate::checks::{self, Bounds};
use crate::choices::{Caller, Choice};
use crate::configure::{Limits as ToldLimits, set_limits};
use crate::lanes;
use crate::order::{Named, named};
use crate::rings::Shelf;
use crate::saving;
use crate::specs;
use crate::told;
use crate::typed::Typed;
use crate::views;

#[async_trait]
impl ToolSet for Browser {
    fn specs(&self) -> Vec<ToolSpec> {
        specs::all(&self.settings())
    }

    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        lanes::fixed(self.settings().queue_limit)
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let Named { chooser, entries, also, .. } = named(call.tool.as_str())?;
        let arguments = Arguments::read(&call.inputs)?;
        let entry = arguments.choice(chooser, entries, |entry| entry.name, also)?;
        let has_output = ![specs::CONFIGURE, specs::END].contains(&call.tool.as_str());
        let beside = match (entry.place, has_output) {
            (Place::Here, true) => TO,
            (Place::Here, false) if entry.name != "default_tab" => &[],
            (_, false) => WHERE,
            (Place::Tab | Place::Control, true) => WHERE_TO,
        };
        let arguments = self.checked(arguments, (chooser, entry), beside).await?;
        let own = match entry.place {
            // What is answered from memory asks no store.
            Place::Here if entry.name != "default_tab" => None,
            Place::Here | Place::Control | Place::Tab => self.own_of(&caller_of(call)).await,
        };
        let lane = match entry.place {
            Place::Here => {
                let answer = self.answer(entry.name, &arguments, call)?;
                return self.remembered(entry.name, &arguments, answer).await.map(Route::Answer);
            }
            Place::Control => LaneId::from(lanes::CONTROL),
            Place::Tab => {
                let browser = arguments.text("browser_id");
                let own = || own.as_ref().filter(|own| own.is_in(browser))?.tab();
                lanes::of_tab(browser, arguments.whole("tab_id").or_else(own))
            }
        };
        self.check_owner().await?;
        self.ensure_lane(&lane).await?;
        self.forget_ended_calls().await;
        let mut plan = self.placement(lane);
        plan.inputs = self.apart(call, entry.name).await?;
        // Last: what is noted becomes a task, or is forgotten.
        self.note(call, own, (entry.name, &arguments));
        Ok(Route::Task(Box::new(plan)))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }

    async fn leftovers(&self) -> Vec<TaskId> {
        // A submit of what is young may be under way.
        let all = self.typed().all(self.now()).into_iter();
        all.filter(|(_, is_old)| *is_old).map(|(id, _)| id).collect()
    }

    async fn forget(&self, ids: &[TaskId]) {
        self.choices().forget(ids);
        for id in ids.iter().filter(|id| self.typed().has(**id)) {
            self.forget_what_was_typed(*id).await;
        }
    }
}

impl Browser {
    fn placement(&self, lane: LaneId) -> TaskPlan {
        let settings = self.settings();
        let limits = Limits {
            ready: settings.accept,
            ready_is_accept: true,
            queue_timeout: settings.queue_timeout,
            accept: settings.accept,
            run_timeout: Some(settings.run_timeout),
            run_margin: settings.run_margin,
            grace: settings.grace,
            retention: settings.result_ttl,
            ..Limits::default()
        };
        TaskPlan { lane, waiting: None, limits, retry: retry::Policy::default(), inputs: None }
    }

    /// Checks arguments, on another thread where that looks at the disk.
    async fn checked(
        &self,
        arguments: Arguments,
        (chooser, entry): (&'static str, &'static Entry),
        also: &'static [Field],
    ) -> Result<Arguments, Error> {
        let own_port = self.port();
        let (files_dir, shows) = {
            let settings = self.settings();
            (settings.files_dir.clone(), settings.shows)
        };
        let looks = checks::looks_at_files(&arguments);
        let check = move || {
            let bounds = Bounds { own_port, files_dir: files_dir.as_deref(), shows };
            bounds.check(&arguments, (chooser, entry), also).map(|()| arguments)
        };
        if looks { blocking(check).await? } else { check() }
    }

    /// Holds what a command types beside the store. Returns the inputs without it, where it types anything.
    async fn apart(&self, call: &Call, what: &'static str) -> Result<Option<Json>, Error> {
        if !Typed::concerns(what) {
            return Ok(None);
        }
        let (bridge, id, inputs) = (self.clone(), call.id, call.inputs.clone());
        let kept = blocking(move || bridge.typed().take(bridge.now(), id, what, &inputs)).await?;
        self.typed_moved();
        Ok(kept)
    }

    /// Puts an answer from memory into a file, where one is named.
    async fn remembered(
        &self,
        what: &'static str,
        arguments: &Arguments,
        answer: Outcome,
    ) -> Result<Outcome, Error> {
        let Some(name) = arguments.text("save_to").map(str::to_owned) else { return Ok(answer) };
        let root = self.settings().files_dir.clone();
        blocking(move || saving::remembered(root.as_deref(), (what, &name), &answer)).await?
    }

    /// Answers from memory [QUEUE-4].
    fn answer(&self, what: &str, arguments: &Arguments, call: &Call) -> Result<Outcome, Error> {
        if let Some(shelf) = Shelf::of_view(what) {
            return views::events(self, shelf, arguments);
        }
        match what {
            "health" => views::health(self),
            "default_tab" => {
                let tab = arguments.whole("tab_id");
                let named = arguments.text("browser_id").map(Arc::from);
                let choice = match (tab, named) {
                    (None, _) => Choice::Front,
                    (Some(tab), None) => Choice::Tab(tab, self.tabs().browser_of(tab)?),
                    (Some(tab), named) => Choice::Tab(tab, named),
                };
                let caller = caller_of(call);
                let mut choices = self.choices();
                choices.note_call(call.id, &caller, None);
                choices.choose(&caller, call.id, choice);
                // It becomes no task.
                choices.forget(&[call.id]);
                drop(choices);
                told::told(&json!({ "default_tab": tab }))
            }
            "limits" => {
                let mut settings = self.settings();
                set_limits(&mut settings, arguments)?;
                told::told(&json!({ "limits": ToldLimits::of(&settings) }))
            }
            "clear" => {
                let target = arguments.text("target").unwrap_or_default();
                self.rings().clear(Shelf::of_view(target));
                told::told(&json!({ "cleared": target }))
            }
            _ => Err(Error::new(Kind::InvalidParams, format!("nothing is known of `{what}`"))),
        }
    }
}

pub(crate) fn caller_of(call: &Call) -> Caller {
    Caller::new(&call.scope, Some(call.connection.as_deref().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::actions::{ACTIONS, SETTINGS, VIEWS};
    use crate::settings::Settings;
    use raincheck_loopback::keeper::Owner;

    #[test]
    fn a_command_has_three_seconds_to_be_accepted_with_a_browser_and_without() {
        // [TIME-4, BROWSER-6]
        let bridge = Browser::new(Settings::default());
        let limits = bridge.placement(LaneId::from(lanes::DEFAULT)).limits;
        assert_eq!((limits.accept, limits.ready), (Duration::from_secs(3), Duration::from_secs(3)));
        assert_eq!(limits.run_timeout, Some(Duration::from_secs(10)));
        let specs = bridge.specs();
        assert_eq!(specs[0].wait, Duration::from_secs(2));
    }

    #[test]
    fn a_tab_runs_one_command_and_lets_32_wait_and_what_is_no_tab_s_goes_past() {
        // [BROWSER-5]
        let bridge = Browser::new(Settings::default());
        let of = |name: &str| {
            let lanes = bridge.lanes();
            let (_, config) = lanes.iter().find(|(lane, _)| lane.as_str() == name).expect(name);
            (config.concurrency, config.queue_limit)
        };
        assert_eq!(of(lanes::DEFAULT), (1, 32));
        let past = |entry: &&Entry| entry.place == Place::Control;
        let all = ACTIONS.iter().chain(VIEWS).chain(SETTINGS);
        let names: Vec<&str> = all.filter(past).map(|entry| entry.name).collect();
        let known = [
            "tab_new",
            "tab_close",
            "tab_select",
            "record_stop",
            "dialog",
            "tabs",
            "downloads",
            "request",
            "recording",
            "dialog_policy",
            "engine",
            "webmcp",
        ];
        assert_eq!(names, known);
        assert!(of(lanes::CONTROL).0 > 1);
    }

    #[tokio::test]
    async fn while_another_server_owns_the_browser_commands_are_refused_with_its_process() {
        // [BROWSER-18]
        let bridge = Browser::new(Settings::default());
        assert_eq!(bridge.check_owner().await, Ok(()));
        bridge.set_owner(Owner::Other(Some(4711)));
        let error = bridge.check_owner().await.expect_err("owned");
        assert_eq!(error.kind, Kind::PeerNotReady);
        let details = error.details.expect("details");
        assert_eq!(details.get(), r#"{"pid":4711,"reason":"owned_elsewhere"}"#);
        bridge.set_owner(Owner::Ours);
        assert_eq!(bridge.check_owner().await, Ok(()));
    }
}
