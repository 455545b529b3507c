//! The response cache: an answer that is too large to send becomes a handle [CALL-6].
//!
//! `finish` stores what is too large and answers with a `stub`: the handle, an outline and the first page.
//! The tool `fetch_cached_response` (`request`, `actions`) and the resources read entries; `take` puts what
//! is stored into the arguments of other calls; `warm` makes calls ahead. Everything that works with
//! entries goes through `home`, off the threads that answer.

mod actions;
mod entry;
mod finish;
mod home;
mod limits;
mod miss;
mod options;
mod refusals;
mod request;
mod resources;
mod stub;
mod take;
mod warm;
mod words;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_runtime::Handle;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::surface::{Answered, Call, Desk, Layer, Method, Shown};

use self::home::Home;
use self::limits::{KEPT_BY_CLIENT, MOST_BY_CLIENT};
use self::request::{DEFINITION, NAME};

pub use self::limits::{ClientLimits, THRESHOLD_CHARS};
pub use self::options::{CacheOptions, Warming};

/// Keeps answers that are too large to send. Cloning shares the cache.
#[derive(Clone, Debug)]
pub struct CacheLayer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: Arc<Home>,
    /// Told when a client means to stay.
    started: Notify,
    /// Who speaks in the answers that are cached ahead.
    speaker: OnceLock<&'static str>,
}

impl CacheLayer {
    /// Makes a cache that is opened when it is first needed.
    #[must_use]
    pub fn new(options: CacheOptions) -> Self {
        Self(Arc::new(Inner {
            home: Arc::new(Home::new(options)),
            started: Notify::new(),
            speaker: OnceLock::new(),
        }))
    }

    /// Ends entries at their time, compresses those that nobody reads and makes the calls that are made
    /// ahead, until `stop` fires.
    ///
    /// # Cancel safety
    /// Safe: an entry past its time is gone whether this runs or not.
    pub async fn run(self, engine: &Handle, stop: CancellationToken) {
        let work = async {
            self.0.started.notified().await;
            tokio::join!(self.0.home.tick(engine), warm::run(&self, engine));
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// Opens the cache now, and returns what keeps it out of its folder, if something does. It may take
    /// a while: call it where that is allowed.
    pub fn open(&self, engine: &Handle) -> Option<String> {
        self.home().complaint(engine)
    }

    /// Names who speaks in the answers that are cached ahead.
    fn speaker(&self) -> &'static str {
        self.0.speaker.get().copied().unwrap_or(words::TOOL)
    }

    fn home(&self) -> &Arc<Home> {
        &self.0.home
    }

    /// Returns how large an answer to a call may be, in characters.
    fn limit(&self, who: &Caller) -> usize {
        self.home().options.limits.chars(who.client())
    }
}

#[async_trait]
impl Layer for CacheLayer {
    fn start(&self, _desk: &Desk, whose: &'static str) {
        // Set once: a server starts once.
        let _ = self.0.speaker.set(whose);
        self.0.started.notify_one();
    }

    fn practices(&self) -> String {
        PRACTICES.to_owned()
    }

    /// Some clients keep an answer in a file above a size of their own, unless the tool is listed with
    /// another.
    fn meta(&self, tool: &Shown) -> Option<Json> {
        let threshold = self.home().options.limits.threshold();
        let chars = match tool.name == NAME {
            true => MOST_BY_CLIENT,
            false if threshold > KEPT_BY_CLIENT => threshold.min(MOST_BY_CLIENT),
            false => return None,
        };
        Json::parse(format!(r#"{{"anthropic/maxResultSizeChars":{chars}}}"#)).ok()
    }

    fn has_resources(&self) -> bool {
        true
    }

    fn tools(&self) -> Vec<Shown> {
        vec![DEFINITION.shown(NAME)]
    }

    async fn call(&self, desk: &Desk, call: Call, who: &mut Caller) -> Result<Answer, Refused> {
        actions::answer(self, desk, &call.arguments, who).await.map_err(Refused::read)
    }

    async fn take(&self, desk: &Desk, arguments: Json, who: &Caller) -> Result<Json, Error> {
        if !take::may_refer(&arguments) {
            return Ok(arguments);
        }
        entry::take(self.home(), desk, arguments, who).await
    }

    async fn finish(&self, desk: &Desk, answer: Answer, of: Answered<'_>, who: &Caller) -> Answer {
        let limit = self.limit(who);
        if !finish::is_oversize(&answer, limit) {
            return answer;
        }
        finish::replace(self, desk, answer, of, who, limit).await
    }

    async fn method(
        &self,
        desk: &Desk,
        method: &Method,
        who: &mut Caller,
    ) -> Option<Result<Json, Error>> {
        resources::answer(self, desk, method, who).await
    }
}

/// What a model is told about handles, in under 300 bytes.
const PRACTICES: &str = "\
A large answer comes as cached: true with a cache_id, its outline and a first page: no error, nothing is lost.
Narrow it with fetch_cached_response: outline, then filter (jq) or search; page through it only when you need all.";

#[cfg(test)]
mod tests {
    use raincheck_core::store::Durability;

    use super::*;
    use crate::surface::Surface as _;
    use crate::surfaces::canonical::Canonical;

    #[test]
    fn the_instructions_fit_where_clients_cut_them_with_those_of_the_cache() {
        let all = Canonical.practices(Durability::Full) + "\n\n" + PRACTICES;
        assert!(all.len() < 2048, "{} bytes", all.len());
        assert!(PRACTICES.contains("jq") && PRACTICES.contains(NAME));
    }
}
