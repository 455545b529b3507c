//! A store in front of another one: what a layer does not change goes through.

use std::time::Duration;

use super::*;

/// Writes [`StoreLayer`] and its [`TaskStore`] from one list of methods.
macro_rules! layer {
    ($(async fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        /// A [`TaskStore`] in front of another one.
        ///
        /// Every method goes to [`inner`](Self::inner) unless the layer has its own. That includes the
        /// methods for which [`TaskStore`] has a default: a layer that changes what
        /// [`find`](Self::find) shows has its own [`status`](Self::status), [`record`](Self::record) and
        /// [`events`](Self::events), too.
        ///
        /// ```
        /// use async_trait::async_trait;
        /// use raincheck_core::store::{Error, MemoryStore, StoreLayer, TaskStore};
        /// use raincheck_core::time::Timestamp;
        /// use raincheck_core::ids::TaskId;
        ///
        /// /// Keeps every tombstone.
        /// struct Hoarder(MemoryStore);
        ///
        /// #[async_trait]
        /// impl StoreLayer for Hoarder {
        ///     fn inner(&self) -> &dyn TaskStore {
        ///         &self.0
        ///     }
        ///
        ///     async fn sweep(&self, _: Timestamp, _: u32) -> Result<Vec<TaskId>, Error> {
        ///         Ok(Vec::new())
        ///     }
        /// }
        ///
        /// fn is_a_store(_: impl TaskStore) {}
        /// is_a_store(Hoarder(MemoryStore::default()));
        /// ```
        #[async_trait]
        pub trait StoreLayer: Send + Sync + 'static {
            /// Returns the store behind it.
            fn inner(&self) -> &dyn TaskStore;

            /// Is [`TaskStore::capabilities`].
            fn capabilities(&self) -> Capabilities {
                self.inner().capabilities()
            }

            /// Is [`TaskStore::mac_key`].
            fn mac_key(&self) -> Option<MacKey> {
                self.inner().mac_key()
            }

            /// Is [`TaskStore::barrier`].
            fn barrier(&self) -> Receipt {
                self.inner().barrier()
            }

            $(
                #[doc = concat!("Is [`TaskStore::", stringify!($name), "`].")]
                async fn $name(&self, $($argument: $type),*) -> $result {
                    self.inner().$name($($argument),*).await
                }
            )+
        }

        #[async_trait]
        impl<L: StoreLayer> TaskStore for L {
            fn capabilities(&self) -> Capabilities {
                StoreLayer::capabilities(self)
            }

            fn mac_key(&self) -> Option<MacKey> {
                StoreLayer::mac_key(self)
            }

            fn barrier(&self) -> Receipt {
                StoreLayer::barrier(self)
            }

            $(
                async fn $name(&self, $($argument: $type),*) -> $result {
                    StoreLayer::$name(self, $($argument),*).await
                }
            )+
        }
    };
}

layer! {
    async fn open(
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>
    ) -> Result<Vec<Claimed>, Error>;
    async fn set_lane(lane: LaneId, config: lane::Config) -> Result<(), Error>;
    async fn remove_lane(lane: &LaneId) -> Result<bool, Error>;
    async fn submit(
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error>;
    async fn claim(now: Timestamp, claim: Claim) -> Result<Write<Vec<Claimed>>, Error>;
    async fn update(
        now: Timestamp,
        batch: Vec<Update>,
        then: Option<Claim>
    ) -> Result<Write<(Vec<UpdateResult>, Vec<Claimed>)>, Error>;
    async fn heartbeat(
        now: Timestamp,
        beats: Vec<Heartbeat>
    ) -> Result<Vec<HeartbeatReply>, Error>;
    async fn release(now: Timestamp, slots: Vec<(TaskId, Fence)>) -> Result<Write<()>, Error>;
    async fn hold(
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>
    ) -> Result<Write<u32>, Error>;
    async fn fire(now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error>;
    async fn extend_deadlines(now: Timestamp, by: Duration) -> Result<Write<u32>, Error>;
    async fn find(scope: &Scope, id: TaskId) -> Result<Found, Error>;
    async fn status(scope: &Scope, id: TaskId) -> Result<Option<TaskStatus>, Error>;
    async fn record(scope: &Scope, id: TaskId) -> Result<Option<TaskRecord>, Error>;
    async fn unknown(ids: Vec<TaskId>) -> Result<Vec<TaskId>, Error>;
    async fn artifact(id: &ArtifactId) -> Result<Option<(TaskId, Artifact)>, Error>;
    async fn events(scope: &Scope, id: TaskId) -> Result<Option<Vec<TaskEvent>>, Error>;
    async fn position(id: TaskId) -> Result<Option<u32>, Error>;
    async fn list(
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32
    ) -> Result<Page<TaskRecord>, Error>;
    async fn lanes() -> Result<Vec<LaneView>, Error>;
    async fn sweep(now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error>;
}
