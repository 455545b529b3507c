//! The facade, driven with raw lines against a real engine in memory.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets something else has failed"
)]

mod attach;
#[cfg(feature = "cache")]
mod cache;
mod calls;
mod client;
mod control;
mod ends;
mod flood;
mod gateway;
#[cfg(feature = "http")]
mod http;
mod input;
mod layers;
mod lines;
mod links;
mod logs;
mod marks;
mod native;
mod operations;
mod order;
mod outcomes;
mod personas;
mod progress;
#[cfg(feature = "url")]
mod remote;
mod repeats;
mod rounds;
mod session;
mod submit;
mod surface;
mod tasks;
mod tools;

/// A file that nobody names here would never run.
#[test]
fn no_file_of_this_folder_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let text = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).expect("the folder of this file") {
        let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
        let Some(module) = name.strip_suffix(".rs") else { continue };
        assert!(module == "main" || text.contains(&format!("mod {module};")), "{name}");
    }
}
