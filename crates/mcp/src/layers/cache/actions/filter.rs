//! `filter`: what a jq filter makes of an entry; what is large becomes an entry of its own.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use raincheck_cache::{
    BodyKey, BodyKind, Cache, Filter, FilterFailure, Filters, Limits, Millis, New, Outputs, Pinned,
    scan,
};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::scope::Scope;

use crate::answer::Answer;
use crate::surface::Desk;

use super::super::home::Home;
use super::super::request::Request;
use super::super::stub::{OVERHEAD, Stub};
use super::super::words::{self, Done, fence, fenced, raw, whose};
use super::super::{entry, refusals};
use super::Bounds;

/// What a filter made.
#[derive(Serialize)]
struct Made<'a> {
    outputs: &'a RawValue,
}

/// How much it made.
#[derive(Serialize)]
struct Counted {
    count: usize,
}

/// Runs the filter of a call.
pub(super) async fn answer(
    home: &Arc<Home>,
    desk: Desk,
    request: Request,
    scope: Scope,
    bounds: Bounds,
) -> Result<Answer, Error> {
    let engine = desk.engine().clone();
    home.run(&engine, move |cache, filters, now| {
        let filter = Filter::parse(request.filter.as_deref().unwrap_or_default());
        let filter = filter.map_err(|invalid| refusals::filter(&invalid))?;
        let source = entry::open(cache, now, scope.as_str(), entry::id(&request.id)?)?;
        let whose = whose(source.metadata().mark.as_deref());
        let run = Run { desk: &desk, cache, filters, now, source: &source, whose };
        let made = run.outputs(&filter).map(|outputs| safe(whose, outputs)).and_then(|outputs| {
            if outputs.bytes.len() + outputs.count + OVERHEAD <= bounds.limit {
                return Ok(run.small(outputs));
            }
            if !request.caches_filtered {
                return Err(too_large(outputs.bytes.len()));
            }
            run.large(outputs, &request, scope.as_str(), bounds)
        });
        made.map(|answer| words::of(whose, answer))
    })
    .await
}

/// Makes what a page said act on nobody before it is measured: it grows by that.
fn safe(whose: &'static str, outputs: Outputs) -> Outputs {
    match String::from_utf8(outputs.bytes) {
        Ok(text) => Outputs { bytes: words::safe(whose, text).into_bytes(), ..outputs },
        Err(error) => Outputs { bytes: error.into_bytes(), ..outputs },
    }
}

/// One run of a filter.
struct Run<'a> {
    desk: &'a Desk,
    cache: &'a Cache,
    filters: &'a Filters,
    now: Millis,
    source: &'a Pinned,
    whose: &'static str,
}

impl Run<'_> {
    fn outputs(&self, filter: &Filter) -> Result<Outputs, Error> {
        let metadata = self.source.metadata();
        let key = BodyKey { id: metadata.id.as_u128(), revision: metadata.revision.into() };
        let made = self.filters.run(filter, &self.source.view(), key, &Limits::default());
        made.map_err(|failure: FilterFailure| refusals::run(&failure))
    }

    fn small(&self, outputs: Outputs) -> Answer {
        let counted = Counted { count: outputs.count };
        let outputs = raw(outputs.into_array());
        fence(self.desk, |mark| {
            let data = fenced(mark, self.whose, counted, Made { outputs: &outputs });
            Answer::json(&Done { success: true, message: None, data })
        })
    }

    /// Stores what was made, and answers with its handle.
    fn large(
        &self,
        outputs: Outputs,
        request: &Request,
        scope: &str,
        bounds: Bounds,
    ) -> Result<Answer, Error> {
        let count = outputs.count;
        let body = if count == 1 { outputs.bytes } else { outputs.into_array() };
        let metadata = self.source.metadata();
        let index = scan(&body).ok();
        let mut new = New::answer(&*metadata.tool, &*metadata.params, body, BodyKind::Json);
        new.index = index;
        new.parent = Some(metadata.id);
        new.jq_filter = request.filter.clone();
        // The source may be gone by now.
        (new.is_sensitive, new.mark) =
            (metadata.is_sensitive, metadata.mark.as_deref().map(str::to_owned));
        let stored = self.cache.insert(self.now, scope, new);
        let stored = stored.map_err(|error| {
            refusals::store(&error)
                .with_guarantee(Guarantee::NotExecuted)
                .with_hint("have the filter make less, such as with limit or a path")
        })?;
        let stub = Stub::of(&stored.entry, bounds.limit)?;
        Ok(stub.filtered(self.desk, self.whose, count, &metadata.id, bounds.limit))
    }
}

fn too_large(bytes: usize) -> Error {
    let message = format!("the filter made {bytes} bytes, too many for one answer");
    Error::new(Kind::TooLarge, message)
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("leave cache_filtered_result out to get a handle, or have the filter make less")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_said_is_escaped_before_it_is_measured() {
        // [CACHE-3] [SEC-10]
        let made = || Outputs { count: 1, bytes: "\"a\u{202e}b\"".into() };
        assert_eq!(safe(whose(Some("the page")), made()).bytes, br#""a\u202eb""#);
        assert_eq!(safe(whose(None), made()), made(), "what a tool said stays as it is");
    }
}
