//! The bridge between an engine and a browser: a scripted extension under paused time, and simulated
//! worlds in which the network and both ends fail.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets something else has failed"
)]

mod accept;
mod browsers;
mod cancel;
mod chosen;
mod http;
mod lanes;
mod lease;
mod limits;
mod restart;
mod run;
mod sim;
mod stopped;
mod store;
mod verdicts;
mod world;

#[test]
fn no_file_of_this_suite_is_forgotten() {
    let main = include_str!("main.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    for entry in std::fs::read_dir(folder).expect("the folder of the suite") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let is_part = name == "main" || main.contains(&format!("mod {name};"));
        assert!(is_part, "{name} is in no `mod` of main.rs");
    }
}
