//! What a program says becomes its task's log.

use raincheck_core::log::{Level, Line, Stream};

use crate::harness::{python, shell, with};

// [CMD-2, LOG-1]
#[tokio::test]
async fn bytes_of_any_kind_become_lines_and_none_is_lost() {
    const BYTES: &str = r#"
import sys
w = sys.stdout.buffer
def put(b): w.write(b); w.flush()
put(b"price \xe2\x82"); put(b"\xac 5\n")
put(b"fa\xe7ade \x97 cp1252\n")
put(b"\xff\xfeh\x00i\x00\n\x00")
put(b"pad \xf0\x9f"); put(b"\x8e\xae end\r\n")
put(b"last \xe2\x82")
w.write(b"\n" + b"more\n" * 40000); w.flush()
"#;
    with(
        |folder| vec![python(folder, "bytes", BYTES)],
        |house| async move {
            let id = house.submit("bytes", "{}").await;
            house.end(id).await;
            let lines = house.log(id).await;
            let first: Vec<&str> = lines.iter().take(5).map(|line| &*line.message).collect();
            assert_eq!(
                first,
                [
                    "price € 5",
                    "fa\u{fffd}ade \u{fffd} cp1252",
                    "\u{fffd}\u{fffd}h\\x00i\\x00",
                    "\\x00pad 🎮 end",
                    "last \u{fffd}",
                ]
            );
            assert_eq!(lines.iter().filter(|line| &*line.message == "more").count(), 40_000);
            assert!(lines.iter().map(|line| line.seq).eq(1..=lines.len() as u64));
        },
    )
    .await;
}

// [CMD-3]
#[tokio::test]
async fn the_control_channel_has_its_own_lines_and_its_faults_are_told() {
    let script = r#"printf '{"log":{"level":"warn","message":"said\\non control"}}\nnonsense\n' >/dev/fd/$RAINCHECK_CONTROL_FD; echo out; echo err >&2"#;
    with(
        |folder| vec![shell(folder, "talk", script)],
        |house| async move {
            let id = house.submit("talk", "{}").await;
            house.end(id).await;
            let lines = house.log(id).await;
            let of = |stream| -> Vec<(Level, String)> {
                let mine = lines.iter().filter(|line| line.stream == stream);
                mine.map(|line| (line.level, line.message.to_string())).collect()
            };
            assert_eq!(of(Stream::Stdout), [(Level::Info, "out".to_owned())]);
            assert_eq!(of(Stream::Stderr), [(Level::Info, "err".to_owned())]);
            assert_eq!(
                of(Stream::Control),
                [(Level::Warn, "said".to_owned()), (Level::Warn, "on control".to_owned())]
            );
            let [(Level::Warn, fault)] = &of(Stream::System)[..] else { panic!("{lines:?}") };
            assert!(fault.contains("is not JSON"), "{fault}");
        },
    )
    .await;
}

// [LOG-2]
#[tokio::test]
async fn a_runaway_writer_keeps_its_quota_and_is_not_held_up() {
    let tools = |folder: &_| {
        let mut tool = shell(folder, "spam", "yes 0123456789 | head -c 3000000");
        tool.log_quota = 100_000;
        vec![tool]
    };
    with(tools, |house| async move {
        let id = house.submit("spam", "{}").await;
        house.end(id).await;
        let lines = house.log(id).await;
        // The quota is of what is stored: of short lines that is more than their text.
        let stored = |line: &Line| serde_json::to_string(line).expect("a line").len() + 1;
        let kept: usize =
            lines.iter().filter(|line| line.stream == Stream::Stdout).map(stored).sum();
        assert!((99_000..=100_000).contains(&kept), "{kept} bytes");
        let last = lines.last().expect("lines");
        assert!(last.message.contains("truncated"), "{last:?}");
    })
    .await;
}
