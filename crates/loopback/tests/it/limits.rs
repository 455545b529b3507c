//! Limits of time, size and number [SEC-6].

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use raincheck_loopback::{Limits, Policy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, advance, sleep};

use crate::harness::{PORT, exchange, options, receive, start, start_of, start_with};

fn few(connections: usize) -> Limits {
    Limits { connections, ..Limits::default() }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_dribbles_in_is_cut_off_after_five_seconds() {
    let rig = start();
    let begin = Instant::now();
    let mut io = rig.dial();
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost:{PORT}\r\nX-Slow: ");
    for byte in request.bytes().chain(std::iter::repeat(b'a')) {
        if io.write_u8(byte).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(900)).await;
    }
    let elapsed = begin.elapsed();
    assert!((5..7).contains(&elapsed.as_secs()), "[SEC-6] {elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    let rig = start();
    let begin = Instant::now();
    assert!(exchange(rig.dial(), b"").await.is_none());
    assert_eq!(begin.elapsed().as_secs(), 5, "[SEC-6]");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_dribbles_in_is_answered_408_after_ten_seconds() {
    let rig = start();
    let head = format!(
        "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n",
        rig.bearer()
    );
    let begin = Instant::now();
    let (mut from, mut to) = tokio::io::split(rig.dial());
    let dribble = async {
        to.write_all(head.as_bytes()).await.expect("written");
        loop {
            sleep(Duration::from_millis(700)).await;
            to.write_u8(b'[').await.ok();
        }
    };
    let reply = tokio::select! {
        () = dribble => None,
        reply = receive(&mut from) => reply,
    };
    assert_eq!(reply.expect("a reply").status, 408, "[SEC-6]");
    assert_eq!(begin.elapsed().as_secs(), 10, "[SEC-6]");
    assert_eq!(rig.n_handled(), 0);
}

#[tokio::test(start_paused = true)]
async fn bodies_over_the_cap_of_all_wait_for_those_before_them() {
    let rig = start_with(Limits { bodies: 1000, ..Limits::default() });
    let head = |length: usize| {
        format!(
            "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            rig.bearer()
        )
    };
    let mut slow = rig.dial();
    slow.write_all(head(900).as_bytes()).await.expect("written");
    sleep(Duration::from_secs(1)).await;
    let begin = Instant::now();
    let small = rig.send((head(100) + &"1".repeat(100)).as_bytes()).await.expect("a reply");
    assert_eq!((small.status, begin.elapsed().as_secs()), (200, 0), "[HTTP-7] there is room");
    let large = rig.send((head(101) + &"1".repeat(101)).as_bytes()).await.expect("a reply");
    assert_eq!((large.status, begin.elapsed().as_secs()), (200, 9), "[HTTP-7] it waited");
    assert_eq!(receive(&mut slow).await.expect("a reply").status, 408);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_reaches_no_handler() {
    let rig = start();
    let mut io = rig.dial();
    let request = format!(
        "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n[1,",
        rig.bearer()
    );
    io.write_all(request.as_bytes()).await.expect("written");
    io.shutdown().await.expect("shut");
    let mut rest = Vec::new();
    io.read_to_end(&mut rest).await.ok();
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
    assert_eq!(rig.n_handled(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_chunked_body_without_end_is_refused_at_the_cap() {
    let rig = start();
    let head = format!(
        "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        rig.bearer()
    );
    let chunk = format!("200\r\n{}\r\n", "x".repeat(512));
    let begin = Instant::now();
    let reply = rig.send((head + &chunk.repeat(1000)).as_bytes()).await.expect("a reply");
    assert_eq!(reply.status, 413, "[SEC-6]");
    assert!(reply.text().contains(r#""max_bytes":1024"#), "{}", reply.text());
    assert_eq!(begin.elapsed(), Duration::ZERO, "the rest is not waited for");
    assert_eq!(rig.n_handled(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_over_the_cap_is_told_so_at_once_and_the_next_is_served_when_one_ends() {
    let rig = start_with(few(3));
    let mut idle: Vec<_> = (0..3).map(|_| rig.dial()).collect();
    let reply = exchange(rig.dial(), b"").await.expect("a reply");
    assert_eq!(reply.status, 503, "[SEC-6]");
    assert_eq!(reply.header("retry-after"), Some("1"), "[SEC-6]");
    drop(idle.pop());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(rig.get("/pending-queries").await, 200);
}

#[tokio::test(start_paused = true)]
async fn two_hundred_slow_peers_do_not_slow_down_a_normal_one() {
    let rig = start();
    let slow: Vec<_> = (0..200).map(|_| rig.dial()).collect();
    let begin = Instant::now();
    assert_eq!(rig.get("/pending-queries").await, 200);
    assert_eq!(begin.elapsed(), Duration::ZERO, "[SEC-6]");
    drop(slow);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_upgraded_keeps_its_place_until_it_ends() {
    let rig = start_with(few(1));
    let mut io = rig.dial();
    let request = format!(
        "GET /unity HTTP/1.1\r\nHost: localhost:{PORT}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    io.write_all(request.as_bytes()).await.expect("written");
    assert_eq!(receive(&mut io).await.expect("a reply").status, 101);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(exchange(rig.dial(), b"").await.expect("a reply").status, 503, "[SEC-6]");
    drop(io);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(rig.get("/open").await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_its_answer_is_dropped() {
    let rig = start_with(few(1));
    let mut io = rig.dial();
    let request = format!("GET /large HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\r\n", rig.bearer());
    io.write_all(request.as_bytes()).await.expect("written");
    sleep(Duration::from_secs(29)).await;
    assert_eq!(exchange(rig.dial(), b"").await.expect("a reply").status, 503, "it has time");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(rig.get("/open").await, 200, "[SEC-6]");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_held_back_outlives_the_timers_of_requests() {
    let rig = start();
    let held = rig.get("/hold");
    let later = async {
        sleep(Duration::from_secs(60)).await;
        rig.release.notify_one();
    };
    assert_eq!(tokio::join!(held, later).0, 200);
}

/// A body cap above the one that the router's library has by itself.
const LARGE: usize = 3 << 20;

#[tokio::test(start_paused = true)]
async fn a_body_of_any_length_up_to_the_cap_reaches_its_handler() {
    // [SEC-6]
    let take = Router::new().route("/take", post(async |body: Bytes| body.len().to_string()));
    let policy = Policy { max_body: LARGE, ..Policy::default() };
    let rig = start_of(options().serving(take, policy));
    for (length, status) in [(LARGE - 1, 200), (LARGE, 200), (LARGE + 1, 413)] {
        let head = format!(
            "POST /take HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}Content-Type: application/json\r\n",
            rig.bearer()
        );
        let body = "x".repeat(length);
        let whole = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        let chunked =
            format!("{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n");
        for request in [whole, chunked] {
            let reply = rig.send(request.as_bytes()).await.expect("a reply");
            assert_eq!(reply.status, status, "{length}");
            assert!(status != 200 || reply.text() == length.to_string(), "{}", reply.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn heads_and_targets_up_to_their_caps_are_served() {
    // [SEC-6]
    let rig = start();
    let Limits { max_head, max_headers, max_target, .. } = Limits::default();
    let own = [
        ("Host", format!("localhost:{PORT}")),
        ("Authorization", rig.bearer()[15..].trim_end().to_owned()),
    ];
    let own_length: usize = own.iter().map(|(name, value)| name.len() + value.len()).sum();
    let own: String = own.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    for (more, status) in [(0, 200), (1, 431)] {
        let filler = "x".repeat(max_head - own_length - "X-Long".len() + more);
        let request = format!("GET /pending-queries HTTP/1.1\r\n{own}X-Long: {filler}\r\n\r\n");
        assert_eq!(rig.send(request.as_bytes()).await.expect("a reply").status, status, "bytes");
        let lines: String = (2..max_headers + more).map(|n| format!("X-{n}: 1\r\n")).collect();
        let request = format!("GET /pending-queries HTTP/1.1\r\n{own}{lines}\r\n");
        let reply = rig.send(request.as_bytes()).await.expect("a reply");
        assert_eq!(reply.status, status, "lines");
        assert!(status == 200 || reply.text().contains("invalid_request"), "{}", reply.text());
        let status = if status == 200 { 200 } else { 414 };
        let path = "/pending-queries?x=";
        let target = format!("{path}{}", "x".repeat(max_target - path.len() + more));
        assert_eq!(rig.get(&target).await, status, "target");
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_connections_as_the_cap_says_are_served() {
    // [SEC-6]
    let rig = start();
    let mut idle: Vec<_> = (1..Limits::default().connections).map(|_| rig.dial()).collect();
    assert_eq!(rig.get("/pending-queries").await, 200);
    idle.push(rig.dial());
    assert_eq!(exchange(rig.dial(), b"").await.expect("a reply").status, 503);
    drop(idle);
}

/// The process is stopped for longer than any limit.
async fn be_stopped() {
    advance(Duration::from_secs(600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_not_cut_off_for_time_in_which_the_process_was_stopped() {
    // [LEASE-8]
    let rig = start();
    let request = format!(
        "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\
         Content-Type: application/json\r\nContent-Length: 5\r\n\r\n[1,2]",
        rig.bearer()
    );
    // Before the head, within it, within the body.
    for cut in [0, 20, request.len() - 2] {
        let mut io = rig.dial();
        io.write_all(&request.as_bytes()[..cut]).await.expect("written");
        sleep(Duration::from_secs(3)).await;
        be_stopped().await;
        sleep(Duration::from_secs(1)).await;
        io.write_all(&request.as_bytes()[cut..]).await.expect("written");
        assert_eq!(receive(&mut io).await.expect("a reply").status, 200, "{cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_its_reader_when_the_process_was_stopped() {
    // [LEASE-8]
    let rig = start();
    let mut io = rig.dial();
    let request = format!("GET /large HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\r\n", rig.bearer());
    io.write_all(request.as_bytes()).await.expect("written");
    sleep(Duration::from_secs(3)).await;
    be_stopped().await;
    sleep(Duration::from_secs(1)).await;
    let reply = receive(&mut io).await.expect("a reply");
    assert_eq!(reply.body.len(), 1024 * 1024);
}
