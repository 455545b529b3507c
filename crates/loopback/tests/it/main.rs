//! A listener as its callers meet it: over a network in memory with paused time, and over real sockets.

#[cfg(test)]
mod artifacts;
mod attach;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod client;
#[cfg(test)]
mod control;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod health;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod sockets;

#[test]
fn no_file_of_these_tests_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    for entry in std::fs::read_dir(folder).expect("the folder of the tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        let module = name.strip_suffix(".rs").expect("a source file");
        let is_named = include_str!("main.rs").contains(&format!("mod {module};"));
        assert!(module == "main" || is_named, "{name}");
    }
}
