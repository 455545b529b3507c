//! CoplayDev's package, which says little.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_testkit::editor::Socket;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::time::{sleep, timeout};

use crate::world::{OWN, SECOND, World, late};

async fn plugin(world: &World) -> Socket<DuplexStream> {
    let mut socket = world.coplay().await;
    let welcome = socket.hear().await.expect("a welcome");
    assert_eq!((&welcome["type"], &welcome["keepAliveInterval"]), (&json!("welcome"), &json!(5)));
    let register = json!({ "type": "register", "project_name": "Own", "project_hash": "h", "project_path": OWN });
    socket.say(register).await;
    assert_eq!(socket.hear().await.expect("registered")["type"], "registered");
    socket.say(json!({ "type": "register_tools", "tools": [] })).await;
    socket
}

async fn call(socket: &mut Socket<DuplexStream>) -> Value {
    socket.hear_of("execute").await.expect("a call")
}

fn done(call: &Value, data: impl Into<Value>) -> Value {
    let data: Value = data.into();
    let result = json!({ "success": true, "message": "done", "data": data });
    json!({ "type": "command_result", "id": call["id"], "result": { "status": "success", "result": result } })
}

#[tokio::test(start_paused = true)]
async fn one_call_is_in_flight_and_its_result_is_the_call_s() {
    // [UNITY-13] [QUEUE-1]
    let world = World::new();
    let mut socket = plugin(&world).await;
    let (first, second) = (world.menu("Kit/A").await, world.menu("Kit/B").await);
    let console = world.submit("read_console", json!({})).await.id();
    let one = call(&mut socket).await;
    let waits = timeout(SECOND, socket.hear_of("execute")).await;
    assert!(waits.is_err(), "{waits:?}");
    assert_eq!(world.state(second).await, State::Queued);
    socket.say(done(&one, json!(1))).await;
    assert_eq!(world.result(first).await["data"], 1);
    for _ in 0..2 {
        let next = call(&mut socket).await;
        socket.say(done(&next, json!(2))).await;
    }
    assert_eq!(world.result(second).await["data"], 2);
    assert_eq!(world.result(console).await["data"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_package_is_an_error_of_the_call() {
    // [UNITY-13]
    let world = World::new();
    let mut socket = plugin(&world).await;
    let id = world.menu("Kit/A").await;
    let one = call(&mut socket).await;
    let error = json!({ "status": "error", "error": "no such menu" });
    socket.say(json!({ "type": "command_result", "id": one["id"], "result": error })).await;
    let error = world.failure(id).await;
    assert_eq!(error.kind, Kind::ToolFailed);
    assert_eq!(error.quoted.expect("quoted").text.as_ref(), "no such menu");
}

#[tokio::test(start_paused = true)]
async fn what_was_written_when_the_connection_is_lost_is_never_sent_again() {
    // [UNITY-13] [LEASE-3]
    let world = World::new();
    let mut socket = plugin(&world).await;
    let (lost, waits) = (world.menu("Kit/A").await, world.menu("Kit/B").await);
    let one = call(&mut socket).await;
    drop(socket);
    let error = world.failure(lost).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
    sleep(SECOND).await;
    let mut socket = plugin(&world).await;
    let next = call(&mut socket).await;
    assert_eq!(next["params"]["menu_path"], "Kit/B");
    socket.say(done(&one, json!("late"))).await;
    socket.say(done(&next, json!(2))).await;
    assert_eq!(world.result(waits).await["data"], 2);
    sleep(SECOND).await;
    assert!(late(&world.view(lost).await).is_some(), "[LEASE-7]");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_it_that_is_cancelled_runs_on() {
    // [UNITY-13] [CANCEL-3]
    let world = World::new();
    let mut socket = plugin(&world).await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let one = call(&mut socket).await;
    world.until(id, State::Running).await;
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    for _ in 0..4 {
        sleep(5 * SECOND).await;
        socket.say(json!({ "type": "pong", "session_id": "s" })).await;
    }
    assert_eq!(world.state(id).await, State::CancelRequested);
    socket.say(done(&one, json!("passed"))).await;
    assert_eq!(world.result(id).await["data"], "passed");
}
