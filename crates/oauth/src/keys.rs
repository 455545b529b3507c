//! The keys of an issuer, fetched when they are needed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::Uri;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fetch;

/// Fetches the keys; in words what stood in the way.
type Source =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<Jwk>, String>> + Send>> + Send + Sync>;

/// How old keys may be before they are fetched again.
const FRESH: Duration = Duration::from_secs(600);

/// How old keys may be when the issuer cannot be reached.
const BELIEVED: Duration = Duration::from_secs(24 * 3600);

/// The pause after a fetch, whatever came of it.
const PAUSE: Duration = Duration::from_secs(30);

/// How long a token waits for fresher keys where there are some that are believed.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many keys are tried for a token that names none.
const MAX_TRIED: usize = 8;

/// What time it is: wall time, so that what a sleeping machine missed counts.
type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// The keys of one issuer. Cloning shares them.
#[derive(Clone)]
pub(crate) struct KeySet(Arc<Inner>);

struct Inner {
    source: Source,
    clock: Clock,
    state: Mutex<State>,
    /// The fetch under way. It holds this value until it has ended: four documents of ten seconds at most.
    fetching: Mutex<JoinSet<()>>,
    /// Changes when a fetch has ended.
    rounds: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    keys: Arc<[Jwk]>,
    /// When the keys came; `None` before the first.
    came: Option<SystemTime>,
    /// When the last fetch ended.
    tried: Option<SystemTime>,
    is_fetching: bool,
}

/// There are no keys that could be believed: nothing can be said about a token.
#[derive(Debug)]
pub(crate) struct NoKeys;

impl KeySet {
    pub(crate) fn new(issuer: String, keys_url: Option<Uri>) -> Self {
        let of = Arc::new((issuer, keys_url));
        let source = move || -> Pin<Box<dyn Future<Output = _> + Send>> {
            let of = Arc::clone(&of);
            Box::pin(async move { fetch::keys(&of.0, of.1.as_ref()).await })
        };
        #[expect(clippy::disallowed_methods, reason = "validity of tokens is of this clock too")]
        let clock = || SystemTime::now();
        Self::with(Box::new(source), Box::new(clock))
    }

    fn with(source: Source, clock: Clock) -> Self {
        let (state, rounds) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { source, clock, state, fetching: Mutex::default(), rounds }))
    }

    /// Returns the keys that may have signed a token: the one that it names, or those of its kind.
    ///
    /// # Errors
    /// When there are no keys, or only such that are too old.
    pub(crate) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, NoKeys> {
        let age = |limit| self.lock().is_within(limit, self.now());
        if !age(BELIEVED) {
            self.refresh().await;
        } else if !age(FRESH) {
            // An issuer that hangs holds up nobody whose key is known; the fetch goes on.
            let _ = timeout(PATIENCE, self.refresh()).await;
        }
        let found = self.known(kid, algorithm)?;
        if !found.is_empty() {
            return Ok(found);
        }
        // The issuer may have a new one.
        self.refresh().await;
        self.known(kid, algorithm)
    }

    fn known(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Vec<DecodingKey>, NoKeys> {
        let now = self.now();
        let keys = {
            let state = self.lock();
            if !state.is_within(BELIEVED, now) {
                return Err(NoKeys);
            }
            Arc::clone(&state.keys)
        };
        let fits = |key: &&Jwk| {
            let common = &key.common;
            let is_named = kid.is_none_or(|kid| common.key_id.as_deref() == Some(kid));
            let signs =
                common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
            let wants = common.key_algorithm.as_ref().map(ToString::to_string);
            is_named && signs && wants.is_none_or(|it| it.parse() == Ok(algorithm))
        };
        let usable = keys.iter().filter(fits).filter_map(|key| DecodingKey::from_jwk(key).ok());
        Ok(usable.filter(|key| key.family() == algorithm.family()).take(MAX_TRIED).collect())
    }

    /// Fetches the keys, unless that was done a moment ago; waits for whoever does it already. A fetch
    /// goes on when who waits for it goes away.
    async fn refresh(&self) {
        let mut rounds = {
            let mut state = self.lock();
            let is_pause = state.tried.is_some_and(|tried| is_younger(tried, PAUSE, self.now()));
            if !state.is_fetching && is_pause {
                return;
            }
            let rounds = self.0.rounds.subscribe();
            if !state.is_fetching {
                state.is_fetching = true;
                let mut fetching = self.0.fetching.lock().unwrap_or_else(PoisonError::into_inner);
                while fetching.try_join_next().is_some() {}
                fetching.spawn(Fetching(self.clone()).run());
            }
            rounds
        };
        // The sender is a part of this value.
        let _ = rounds.changed().await;
    }

    fn now(&self) -> SystemTime {
        (self.0.clock)()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One fetch. Who waits for it is woken also when its runtime ends.
struct Fetching(KeySet);

impl Fetching {
    async fn run(self) {
        let set = &self.0;
        match (set.0.source)().await {
            Ok(keys) => {
                let now = set.now();
                let mut state = set.lock();
                (state.keys, state.came) = (keys.into(), Some(now));
            }
            Err(words) => {
                tracing::warn!(%words, "the keys of the issuer of tokens could not be fetched");
            }
        }
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        let now = self.0.now();
        {
            let mut state = self.0.lock();
            (state.is_fetching, state.tried) = (false, Some(now));
        }
        self.0.0.rounds.send_modify(|n| *n = n.wrapping_add(1));
    }
}

impl State {
    fn is_within(&self, age: Duration, now: SystemTime) -> bool {
        self.came.is_some_and(|came| is_younger(came, age, now))
    }
}

/// Tells whether something happened less than so long ago. What is in the future, by a clock that was put
/// back, happened long ago.
fn is_younger(then: SystemTime, age: Duration, now: SystemTime) -> bool {
    now.duration_since(then).is_ok_and(|since| since < age)
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use serde_json::{from_value, json};

    use super::*;

    /// The key of an issuer that never answers.
    const HANGS: &str = "hangs";

    /// An issuer that counts, with a clock that is set by hand.
    struct World {
        set: KeySet,
        seconds: Arc<AtomicU64>,
        n_fetches: Arc<AtomicU32>,
        kid: Arc<Mutex<Option<&'static str>>>,
    }

    impl World {
        fn new() -> Self {
            let (seconds, n_fetches) =
                (Arc::new(AtomicU64::new(1_000_000)), Arc::<AtomicU32>::default());
            let kid = Arc::new(Mutex::new(Some("a")));
            let (time, count, published) = (seconds.clone(), n_fetches.clone(), kid.clone());
            let source = move || -> Pin<Box<dyn Future<Output = _> + Send>> {
                count.fetch_add(1, Ordering::SeqCst);
                let kid = *published.lock().expect("a key");
                if kid == Some(HANGS) {
                    return Box::pin(std::future::pending());
                }
                let key = |kid| json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": kid});
                let keys = kid.map(|kid| vec![from_value(key(kid)).expect("a key")]);
                Box::pin(async move { keys.ok_or_else(|| "broken".to_owned()) })
            };
            let clock =
                move || SystemTime::UNIX_EPOCH + Duration::from_secs(time.load(Ordering::SeqCst));
            let set = KeySet::with(Box::new(source), Box::new(clock));
            Self { set, seconds, n_fetches, kid }
        }

        /// Returns how many keys fit; `None` when there are none that could be believed.
        async fn find(&self, kid: &str) -> Option<usize> {
            self.set.find(Some(kid), Algorithm::EdDSA).await.ok().map(|keys| keys.len())
        }

        fn pass(&self, seconds: u64) {
            self.seconds.fetch_add(seconds, Ordering::SeqCst);
        }

        fn publish(&self, kid: Option<&'static str>) {
            *self.kid.lock().expect("a key") = kid;
        }

        fn n_fetches(&self) -> u32 {
            self.n_fetches.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn a_new_key_is_found_after_the_pause_and_an_old_one_is_gone_with_the_next_fetch() {
        // [HTTP-9]
        let world = World::new();
        assert_eq!((world.find("a").await, world.n_fetches()), (Some(1), 1));
        world.publish(Some("b"));
        assert_eq!(
            (world.find("b").await, world.n_fetches()),
            (Some(0), 1),
            "not twice in a moment"
        );
        world.pass(30);
        assert_eq!((world.find("b").await, world.n_fetches()), (Some(1), 2));
        assert_eq!((world.find("a").await, world.n_fetches()), (Some(0), 2), "withdrawn");
        world.pass(599);
        assert_eq!((world.find("b").await, world.n_fetches()), (Some(1), 2), "still fresh");
        world.publish(Some("c"));
        world.pass(1);
        assert_eq!((world.find("b").await, world.n_fetches()), (Some(0), 3), "ten minutes at most");
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_hangs_holds_up_no_token_whose_key_is_known() {
        // [HTTP-9]
        let world = World::new();
        assert_eq!(world.find("a").await, Some(1));
        world.publish(Some(HANGS));
        world.pass(600);
        let found = timeout(2 * PATIENCE, world.find("a")).await;
        assert_eq!((found.expect("in time"), world.n_fetches()), (Some(1), 2));
    }

    #[tokio::test]
    async fn keys_of_an_issuer_that_is_away_are_believed_for_a_day() {
        // [HTTP-9]
        let world = World::new();
        assert_eq!(world.find("a").await, Some(1));
        world.publish(None);
        world.pass(3600);
        assert_eq!((world.find("a").await, world.n_fetches()), (Some(1), 2));
        assert_eq!((world.find("a").await, world.n_fetches()), (Some(1), 2), "it is left in peace");
        world.pass(23 * 3600);
        assert_eq!((world.find("a").await, world.n_fetches()), (None, 3));
        world.publish(Some("a"));
        world.pass(30);
        assert_eq!(world.find("a").await, Some(1));
        world.seconds.store(5, Ordering::SeqCst);
        assert_eq!(
            (world.find("a").await, world.n_fetches()),
            (Some(1), 5),
            "a clock that was put back"
        );
    }
}
