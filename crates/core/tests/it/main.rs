//! The ledger against a naive model, and the faults that the comparison must catch.

#![expect(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic, and a planted fault touches one command only"
)]

mod evict;
mod faults;
mod ledger;
mod machine;
mod model;
mod places;

/// Every file beside this one is a module of it.
#[test]
fn no_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let source = std::fs::read_to_string(folder.join("main.rs")).expect("readable");
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().and_then(|s| s.to_str()).expect("UTF-8").to_owned();
        assert!(name == "main" || source.contains(&format!("mod {name};")), "{name} is forgotten");
    }
}
