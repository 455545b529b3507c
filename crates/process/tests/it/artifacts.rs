//! The files that a program leaves.

use raincheck_core::error::Kind;
use raincheck_core::log::Stream;

use crate::harness::{shell, with};

// [CMD-6, ART-1]
#[tokio::test]
async fn files_become_artifacts_and_the_rest_of_the_attempt_is_cleared() {
    let script = r#"cd "$RAINCHECK_ARTIFACTS_DIR"; printf abc >field.bin; mkdir sub; : >sub/empty; ln -s /etc/hostname link
printf '{"artifact":{"path":"field.bin","kind":"trajectory"}}\n{"artifact":{"path":"/etc/hostname"}}\n' >/dev/fd/$RAINCHECK_CONTROL_FD"#;
    with(
        |folder| vec![shell(folder, "files", script)],
        |house| async move {
            let id = house.submit("files", "{}").await;
            let end = house.end(id).await;
            let seen: Vec<(&str, &str, u64)> = end
                .payload
                .artifacts
                .iter()
                .map(|artifact| (&*artifact.name, &*artifact.kind, artifact.size))
                .collect();
            assert_eq!(seen, [("field.bin", "trajectory", 3), ("sub/empty", "file", 0)]);
            let first = &end.payload.artifacts[0];
            let bytes = std::fs::read(house.task(id).join(&*first.path)).expect("kept");
            assert_eq!(bytes, b"abc");
            assert!(house.is_tidy(id).await);
            let notes: Vec<String> = house
                .log(id)
                .await
                .iter()
                .filter(|line| line.stream == Stream::System)
                .map(|line| line.message.to_string())
                .collect();
            assert_eq!(
                notes,
                [
                    "the reported artifact `/etc/hostname` lies outside of the artifacts folder",
                    "`link` is no artifact: it is a link",
                ]
            );
        },
    )
    .await;
}

#[tokio::test]
async fn what_a_failing_program_left_is_kept_as_well() {
    let script = r#"echo trace >"$RAINCHECK_ARTIFACTS_DIR/trace"; exit 1"#;
    with(
        |folder| vec![shell(folder, "fails", script)],
        |house| async move {
            let end = house.run("fails", "{}").await;
            assert_eq!(end.error().kind, Kind::ToolFailed);
            assert_eq!(&*end.payload.artifacts[0].name, "trace");
        },
    )
    .await;
}

// [SWEEP-1]
#[tokio::test]
async fn a_forgotten_task_takes_its_files_along() {
    use raincheck_process::Commands;
    use raincheck_runtime::ToolSet as _;

    let script = r#"echo 1 >"$RAINCHECK_ARTIFACTS_DIR/one""#;
    with(
        |folder| vec![shell(folder, "one", script)],
        |house| async move {
            let id = house.submit("one", "{}").await;
            house.end(id).await;
            assert!(house.task(id).exists());
            let commands = Commands::new(house.folder().join("tasks"), Vec::new()).expect("a root");
            commands.forget(&[id]).await;
            assert!(!house.task(id).exists());
            commands.forget(&[id]).await;
        },
    )
    .await;
}
