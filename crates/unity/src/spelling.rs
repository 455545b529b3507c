//! One spelling of a project's path, whichever its editor gives: through a link, in another case, with other
//! separators.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::wire;

/// What an editor is known by: the path of its project, in one spelling.
pub(crate) type Key = Arc<str>;

/// How projects are spelled.
#[derive(Debug)]
pub(crate) struct Spellings {
    /// The project of the server: as its editor most likely gives it, and as it is known.
    own: Option<(String, Key)>,
}

impl Spellings {
    /// Learns of the server's own project. Works with blocking calls.
    pub(crate) fn new(own: Option<&Path>) -> Self {
        let spelled = own.and_then(Path::to_str).map(wire::path);
        Self {
            own: spelled.map(|spelled| {
                let key = real(&spelled).into();
                (spelled, key)
            }),
        }
    }

    /// Returns what a project is known by.
    pub(crate) async fn key(&self, path: &str) -> Key {
        if let Some((spelled, key)) = &self.own
            && spelled == path
        {
            return Arc::clone(key);
        }
        let spelled = path.to_owned();
        let found = spawn_blocking(move || real(&spelled)).await;
        found.unwrap_or_else(|_| folded(path)).into()
    }
}

/// Follows links and takes the case that the folder has; what this machine does not have stays as it is
/// spelled. Works with blocking calls.
fn real(path: &str) -> String {
    let there = Path::new(path).is_absolute().then(|| fs::canonicalize(path).ok()).flatten();
    let there = there.as_deref().and_then(Path::to_str).map(|path| wire::path(&short(path)));
    folded(there.as_deref().unwrap_or(path))
}

/// Takes the form of Windows for paths of any length back to the usual one.
fn short(path: &str) -> String {
    match path.strip_prefix(r"\\?\") {
        Some(rest) => match rest.strip_prefix(r"UNC\") {
            Some(share) => format!(r"\\{share}"),
            None => rest.to_owned(),
        },
        None => path.to_owned(),
    }
}

/// Makes one of the spellings that Windows takes for one folder. A path of another system stays as it is.
pub(crate) fn folded(path: &str) -> String {
    let is_drive = match path.as_bytes() {
        [drive, b':', rest @ ..] => {
            drive.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'/' | b'\\'))
        }
        _ => false,
    };
    let is_share = path.starts_with(r"\\");
    if !is_drive && !is_share {
        return path.to_owned();
    }
    let parts = path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".");
    let joined = parts.collect::<Vec<_>>().join("/").to_lowercase();
    if is_share { format!("//{joined}") } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_that_windows_takes_for_one_folder_are_one() {
        // [UNITY-7]
        for (one, other) in [
            (r"C:\Games\Own", "c:/games/own"),
            (r"C:\Games\\Own", r"C:/Games/./Own/"),
            (r"\\Server\Share\Own", r"\\server/share\own"),
            ("D:", r"d:\"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} and {other}");
        }
        assert_ne!(folded(r"C:\Own"), folded(r"D:\Own"));
        assert_ne!(folded(r"\\a\Own"), folded(r"\\b\Own"));
    }

    #[test]
    fn where_case_matters_two_cases_are_two_projects() {
        for path in ["/Games/Own", "own", "/c:/own", "C:own", ""] {
            assert_eq!(folded(path), path);
        }
    }

    #[test]
    fn a_long_path_of_windows_is_the_usual_one() {
        assert_eq!(short(r"\\?\C:\Games\Own"), r"C:\Games\Own");
        assert_eq!(short(r"\\?\UNC\server\share\Own"), r"\\server\share\Own");
        assert_eq!(short("/games/own"), "/games/own");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_is_the_folder_that_it_leads_to() {
        // [UNITY-7]
        let dir = tempfile::tempdir().expect("a folder");
        let (folder, link) = (dir.path().join("own"), dir.path().join("link"));
        fs::create_dir(&folder).expect("made");
        std::os::unix::fs::symlink(&folder, &link).expect("linked");
        let spellings = Spellings::new(Some(&link));
        let mut keys = Vec::new();
        for path in [&folder, &link, &dir.path().join("own/../own")] {
            keys.push(spellings.key(path.to_str().expect("a text")).await);
        }
        keys.dedup();
        assert_eq!(keys.len(), 1, "{keys:?}");
        let other = dir.path().join("Own");
        assert_ne!(spellings.key(other.to_str().expect("a text")).await, keys[0]);
    }
}
