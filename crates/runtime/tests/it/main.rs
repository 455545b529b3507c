//! The engine under paused time: what callers see, and what executors are told.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that meets something else has failed"
)]

mod attempts;
mod calls;
mod cancel;
mod durability;
mod endings;
mod gated;
mod input;
mod logs;
mod queue;
mod reattach;
mod results;
mod shutdown;
mod stall;
mod storm;
mod submit;
mod time;
mod world;

#[test]
fn no_file_of_this_suite_is_forgotten() {
    let main = include_str!("main.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    for entry in std::fs::read_dir(folder).expect("the folder of the suite") {
        let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
        let module = name.trim_end_matches(".rs");
        assert!(module == "main" || main.contains(&format!("mod {module};")), "{name}");
    }
}
