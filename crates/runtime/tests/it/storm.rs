use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_runtime::{Functions, Submission};

use crate::world::{LONG, World, options, request, spec, text};

const CALLERS: usize = 16;
const CALLS: usize = 100;

/// Real threads and real time: callers submit, cancel and wait all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_task_of_a_storm_ends_once_and_its_waiter_is_told() {
    // [STATE-5] [QUEUE-6] [CALL-4]
    let running = Arc::new(AtomicUsize::new(0));
    let peak = Arc::new(AtomicUsize::new(0));
    let (now, most) = (Arc::clone(&running), Arc::clone(&peak));
    let mut storm = spec("storm");
    storm.lane = LaneId::from("storm");
    let tools = Functions::new().with(storm, move |_, context| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            if context.cancellation_token().is_cancelled() {
                Outcome::Cancelled
            } else {
                text("calm")
            }
        }
    });
    let lane = lane::Config::new(3, 10_000);
    let world = Arc::new(World::with(options(tools).with_lane("storm", lane)));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let world = Arc::clone(&world);
        callers.spawn(async move {
            for call in 0..CALLS {
                let submission = world.handle.submit(request("storm")).await.expect("accepted");
                let Submission::Task(accepted) = submission else { panic!("a task") };
                let id = accepted.record.id();
                if (caller + call) % 3 == 0 {
                    world.cancel(id).await;
                }
                let view = world.handle.wait_end(&Scope::local(), id, LONG).await.expect("a task");
                assert!(matches!(view.record.state, State::Succeeded | State::Cancelled));
            }
        });
    }
    let all = tokio::time::timeout(Duration::from_secs(60), callers.join_all());
    assert!(all.await.is_ok(), "a task was lost or its waiter was not told");
    assert!((1..=3).contains(&peak.load(Ordering::SeqCst)));
    // The driver of the last task frees its place right after the waiter is told.
    assert_eq!(running.load(Ordering::SeqCst), 0);
}
