//! Finding an entry, and a value in it.

use std::sync::Arc;

use raincheck_cache::{BodyKind, Cache, Millis, Node, Pinned, Pointer, parse_id};
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use uuid::Uuid;

use crate::caller::Caller;
use crate::surface::Desk;

use super::home::Home;
use super::take::{self, Reference};
use super::{miss, refusals};

/// Reads a handle; whatever is none is nobody's.
pub(super) fn id(text: &str) -> Result<Uuid, Error> {
    parse_id(text).ok_or_else(miss::unknown)
}

/// Finds an entry of a scope and counts the read.
pub(super) fn open(cache: &Cache, now: Millis, scope: &str, id: Uuid) -> Result<Pinned, Error> {
    cache.get(now, scope, id).map_err(|gone| miss::error(&gone))
}

/// Reads a pointer; an absent one is the whole.
pub(super) fn pointer(text: Option<&str>) -> Result<Option<Pointer>, Error> {
    let Some(text) = text else { return Ok(None) };
    Pointer::parse(text).map(Some).map_err(|invalid| {
        Error::new(Kind::InvalidParams, format!("`path` is {invalid}"))
            .with_hint("write a JSON Pointer such as /items/3, or leave it out")
    })
}

/// Puts what the cache holds into the arguments of a call [CACHE-6].
pub(super) async fn take(
    home: &Arc<Home>,
    desk: &Desk,
    arguments: Json,
    who: &Caller,
) -> Result<Json, Error> {
    let (scope, luggage) = (who.scope().clone(), who.luggage());
    home.work(desk.engine(), move |cache, now| {
        let references = take::references(&arguments)?;
        if references.is_empty() {
            return Ok(arguments);
        }
        take::replaced(&arguments, &references, |one, room| {
            let stored = Stored::of(cache, now, scope.as_str(), one)?;
            // Before it is read: what is too much takes no memory.
            if stored.node.bytes() > room {
                return Err(take::too_large(&one.place));
            }
            luggage.bring(stored.node.bytes())?;
            let text = stored.json()?;
            luggage.bring(text.len().saturating_sub(stored.node.bytes()))?;
            Ok(text)
        })
    })
    .await
}

/// The value that a reference names.
struct Stored {
    entry: Pinned,
    node: Node,
}

impl Stored {
    fn of(cache: &Cache, now: Millis, scope: &str, one: &Reference) -> Result<Self, Error> {
        let entry = open(cache, now, scope, id(&one.id)?)?;
        let path = pointer(Some(&one.path))?.unwrap_or_default();
        let node = entry.view().resolve(&path).map_err(|error| refusals::not_found(&error))?;
        Ok(Self { entry, node })
    }

    /// Reads it, as JSON.
    fn json(&self) -> Result<String, Error> {
        let view = self.entry.view();
        let text = view.raw(self.node).map_err(|error| refusals::unreadable(&error))?;
        let text = String::from_utf8_lossy(&text);
        match self.entry.metadata().kind {
            BodyKind::Json => Ok(text.into_owned()),
            BodyKind::Text => serde_json::to_string(&text)
                .map_err(|error| Error::new(Kind::InvalidResponse, error.to_string())),
        }
    }
}
