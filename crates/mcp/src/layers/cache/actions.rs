//! `fetch_cached_response`: each action reads one entry, or the list of them.

mod about;
mod explore;
mod filter;
mod get;
mod page;

use raincheck_cache::Pinned;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};

use crate::answer::Answer;
use crate::caller::Caller;
use crate::surface::Desk;

use super::request::{Action, Request};
use super::words::{self, whose};
use super::{CacheLayer, entry, stub};

/// What an action on one entry works with.
struct Reading<'a> {
    desk: &'a Desk,
    entry: &'a Pinned,
    request: &'a Request,
    bounds: Bounds,
    /// Who speaks in the entry.
    whose: &'static str,
}

/// How large an answer may be.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// In characters, whatever is asked for.
    limit: usize,
    /// The size of a page that is asked for without one, in bytes.
    page: usize,
    /// The largest page, in bytes.
    most: usize,
}

/// Answers a call.
///
/// # Errors
/// What the surface puts into words; what an entry says about it is quoted.
pub(super) async fn answer(
    layer: &CacheLayer,
    desk: &Desk,
    arguments: &Json,
    who: &Caller,
) -> Result<Answer, Error> {
    let request = Request::read(arguments)?;
    let limit = layer.limit(who);
    let most = layer.home().options.limits.page_bytes(who.client());
    if let Some(bytes) = request.page_bytes.filter(|bytes| *bytes > most) {
        return Err(would_be_cut("`page_size_kb` is", bytes, most));
    }
    let page = stub::page_bytes(limit);
    let bounds = Bounds { limit, page, most: most.max(page) };
    let (scope, owned) = (who.scope().clone(), desk.clone());
    if request.action == Action::Filter {
        // It may take its whole time; who waits for it takes no place from those who read.
        let filtered = filter::answer(layer.home(), owned, request, scope, bounds).await;
        who.leave().await?;
        return filtered;
    }
    who.leave().await?;
    layer
        .home()
        .work(desk.engine(), move |cache, now| {
            let scope = scope.as_str();
            if request.action == Action::List {
                return Ok(about::list(cache, now, scope, bounds.limit));
            }
            let id = entry::id(&request.id)?;
            if request.action == Action::Delete {
                return about::delete(cache, now, scope, id);
            }
            if request.action == Action::Info {
                return about::info(cache, now, scope, id, bounds);
            }
            let entry = entry::open(cache, now, scope, id)?;
            let whose = whose(entry.metadata().mark.as_deref());
            let reading = Reading { desk: &owned, entry: &entry, request: &request, bounds, whose };
            reading.answer()
        })
        .await
}

impl Reading<'_> {
    /// Returns the size of the answer, in bytes.
    fn bytes(&self) -> usize {
        self.request.page_bytes.unwrap_or(self.bounds.page)
    }

    fn answer(&self) -> Result<Answer, Error> {
        let answer = match self.request.action {
            Action::Get => get::answer(self),
            Action::Page => page::answer(self),
            Action::Outline => explore::outline(self),
            Action::Search => explore::search(self),
            Action::Sample => explore::sample(self),
            Action::Filter | Action::Info | Action::List | Action::Delete => {
                Err(Error::new(Kind::InvalidParams, "this action reads no entry"))
            }
        };
        answer.map(|answer| words::of(self.whose, answer))
    }
}

/// Refuses a page that the client would cut.
fn would_be_cut(what: &str, bytes: usize, most: usize) -> Error {
    let (asked, most) = (bytes >> 10, most >> 10);
    let message =
        format!("{what} {asked} KiB, and answers above {most} KiB are cut by this client");
    Error::new(Kind::InvalidParams, message).with_hint(format!(
        "ask for a page_size_kb of at most {most}, narrow it with filter, or raise max_chars of this \
         client in the configuration"
    ))
}
