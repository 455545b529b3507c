//! What the project of the demo holds: its tests, and its scene.

use serde_json::{Value, json};

/// The name of the project.
pub(super) const PROJECT: &str = "TrolleyGame";

/// The tests that are told of by name.
const FIGHTER: [(&str, usize); 5] = [
    ("FighterTests.Constructor_SetsPropertiesCorrectly", 3),
    ("FighterTests.WithDescription_SetsDescription", 9),
    ("FighterTests.WithAudioFile_SetsAudioFile", 20),
    ("FighterTests.WithImagePath_SetsImagePath", 27),
    ("FighterTests.WithImagePrompt_SetsImagePrompt", 34),
];

/// How many tests the project has.
pub(super) const N_TESTS: usize = 42;

/// The test that fails, and what it says.
const BROKEN: (usize, &str) =
    (9, "NullReferenceException: Object reference not set to an instance of an object");

/// How many objects the scene has.
pub(super) const N_OBJECTS: usize = 6000;

/// Returns the results of the first tests of the project.
pub(super) fn tests(n: usize) -> Vec<Value> {
    (0..n).map(test).collect()
}

fn test(n: usize) -> Value {
    let named = FIGHTER.iter().find(|(_, place)| *place == n).map(|(name, _)| (*name).to_owned());
    let name = named.unwrap_or_else(|| format!("LevelTests.Level_{n:02}_Loads"));
    if n == BROKEN.0 {
        json!({ "name": name, "outcome": "Failed", "message": BROKEN.1 })
    } else {
        json!({ "name": name, "outcome": "Passed" })
    }
}

/// Says how far the tests are.
pub(super) fn partial(n_done: usize) -> Value {
    json!({
        "completed_tests": tests(n_done), "total_tests": N_TESTS, "completed_count": n_done,
        "test_run_status": "in_progress",
    })
}

/// Says how the tests ended; `n_runs` is how often they were begun.
pub(super) fn summary(n_runs: u32) -> Value {
    let all = tests(N_TESTS);
    let n_failed = all.iter().filter(|test| test.get("outcome") == Some(&json!("Failed"))).count();
    json!({
        "test_run_status": "failed", "total_tests": N_TESTS, "completed_count": N_TESTS,
        "passed": N_TESTS - n_failed, "failed": n_failed, "completed_tests": all,
        "times_begun": n_runs,
    })
}

/// Returns the objects of the scene.
pub(super) fn hierarchy() -> Value {
    let object = |n: usize| {
        let (name, parts) = match n % 100 {
            0 => ("Trolley", vec!["Transform", "Rigidbody", "TrolleyMotor"]),
            _ => ("Crate", vec!["Transform", "MeshFilter", "MeshRenderer", "BoxCollider"]),
        };
        json!({
            "name": format!("{name} ({n})"), "id": (9_007_199_254_740_993_u64 + n as u64).to_string(),
            "path": format!("/Level/{name} ({n})"), "active": true, "tag": name, "components": parts,
        })
    };
    json!({ "scene": "Assets/Scenes/Level.unity", "roots": (0..N_OBJECTS).map(object).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_tests_fails_and_all_have_names() {
        let summary = summary(1);
        assert_eq!((&summary["passed"], &summary["failed"]), (&json!(41), &json!(1)));
        let names: std::collections::BTreeSet<_> =
            tests(N_TESTS).iter().map(|test| test["name"].to_string()).collect();
        assert_eq!(names.len(), N_TESTS);
    }
}
