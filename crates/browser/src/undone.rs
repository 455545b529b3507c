//! Which ends say that nothing was done in a tab.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::task::Outcome;
use serde::Deserialize;

/// What a failure says of its cause.
#[derive(Deserialize)]
struct Told {
    reason: Option<String>,
}

/// Tells whether a command was kept out of its tab: by the user or what the page is, or since it was stopped
/// before. The extension knows the same ones.
pub(crate) fn is_turned_away(outcome: &Outcome) -> bool {
    let Outcome::Failed(error) = outcome else { return false };
    let told = || error.details.as_ref()?.read::<Told>().ok();
    let is_paused = || told().is_some_and(|told| told.reason.as_deref() == Some("paused"));
    let is_kept_out = matches!(error.kind, Kind::UrlBlocked | Kind::Cancelled) || is_paused();
    is_kept_out && is_undone(outcome)
}

/// Tells whether a command that its browser says no tab of did nothing at all.
pub(crate) fn is_undone(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Succeeded(_) => false,
        Outcome::Failed(error) => error.guarantee() == Some(Guarantee::NotExecuted),
        Outcome::Cancelled => true,
    }
}
