//! The extension: its files, the folders that they were written to, and how it finds the server.
//!
//! The files are carried in the library. [`install`] writes them into a folder with a `pairing.json`
//! beside them, which says where the server listens and with which secret: nothing has to be typed. A
//! server that gets another port rewrites the `pairing.json` of every folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint::{self, Endpoint};
use raincheck_loopback::keeper::Owner;
use raincheck_loopback::{Secret, can_listen, port, private};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use crate::owner::{self, Locks};

/// The files of the extension by their names.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

const MANIFEST: &str = "manifest.json";
const PAIRING: &str = "pairing.json";

/// In how many folders the extension is at the most.
const MAX_FOLDERS: usize = 64;

/// Why a folder was not written.
#[derive(Debug)]
pub enum Refusal {
    /// The folder holds something else.
    Occupied(PathBuf),
    /// No extension of ours is there.
    Absent(PathBuf),
    /// A server runs, and would go on with what is to be changed: its process, if it is known.
    Running(Option<u32>),
    /// It is in as many folders as are kept in step with the server.
    TooMany(usize),
    /// The system does not let us.
    Failed(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<raincheck_loopback::Error> for Refusal {
    fn from(error: raincheck_loopback::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Where the bridge keeps what it needs to find and to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    state: PathBuf,
    endpoint: PathBuf,
}

/// What the extension reads to find the server.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pairing {
    port: u16,
    secret: String,
    instance_id: String,
}

/// The folders that the extension was written to, with the files in each.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Installed(BTreeMap<PathBuf, Vec<String>>);

impl Places {
    /// Names the places below the folders for state and for what runs.
    #[must_use]
    pub fn new(state: &Path, runtime: &Path) -> Self {
        Self { state: state.join("browser"), endpoint: runtime.join("browser/endpoint.json") }
    }

    /// Returns the file that tells where the server listens.
    #[must_use]
    pub fn endpoint(&self) -> &Path {
        &self.endpoint
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.state.join("secret")
    }

    pub(crate) fn port(&self) -> PathBuf {
        self.state.join("port")
    }

    fn installed(&self) -> PathBuf {
        self.state.join("installed.json")
    }

    /// Returns the lock of who has the runtime folder's endpoint file.
    pub(crate) fn runtime_lock(&self) -> PathBuf {
        self.endpoint.with_file_name("endpoint.lock")
    }

    /// Returns the lock of who has the extensions of the state folder. It has a name of its own: both
    /// folders may be one.
    pub(crate) fn state_lock(&self) -> PathBuf {
        self.state.join("state.lock")
    }

    /// Asks the server of the endpoint file to prove that it is the one that wrote it; `None` when there
    /// is no such server.
    ///
    /// # Errors
    /// What answered instead.
    pub async fn reach(&self) -> Option<Result<Endpoint, String>> {
        let path = self.endpoint.clone();
        let read = spawn_blocking(move || {
            endpoint::read(&path).ok().flatten().filter(Endpoint::is_running)
        });
        let server = read.await.ok().flatten()?;
        let proved = Connection::open(&server).await;
        Some(proved.map(|_| server).map_err(|error| error.to_string()))
    }

    /// Returns the server that the extensions of these places are paired with: one that knows their
    /// secret.
    async fn paired(&self, secret: &Secret) -> Option<Endpoint> {
        let server = self.reach().await?.ok()?;
        secret.is(&server.secret).then_some(server)
    }

    /// Returns what extensions are told: where the server is, else where the next one may be.
    async fn pairing(&self, secret: &Secret) -> Pairing {
        match self.paired(secret).await {
            Some(server) => Pairing::new(server.port, secret, &server.instance_id),
            // The next server fills in its port.
            None => Pairing::new(port::last(&self.port()).unwrap_or(0), secret, ""),
        }
    }

    /// Returns the port that the next server asks for when somebody else has it. Works with blocking
    /// calls.
    #[must_use]
    pub fn taken_port(&self, asked: u16) -> Option<u16> {
        let port = if asked == 0 { port::last(&self.port()).unwrap_or(0) } else { asked };
        can_listen(port).is_err().then_some(port)
    }

    /// Returns the folders that the extension was written to. Works with blocking calls.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        self.list().map(|Installed(list)| list.into_keys().collect()).unwrap_or_default()
    }

    fn list(&self) -> Result<Installed, Refusal> {
        let Some(bytes) = private::read(&self.installed())? else {
            return Ok(Installed::default());
        };
        // A list that cannot be read costs its folders their next port, and is made anew.
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn keep(&self, list: &Installed) -> Result<(), Refusal> {
        let bytes = serde_json::to_vec(list).map_err(io::Error::from)?;
        Ok(private::write(&self.installed(), &bytes)?)
    }

    /// Tells every extension that was written where the server listens now; a folder that is gone is
    /// forgotten. Works with blocking calls.
    pub(crate) fn pair_all(&self, pairing: &Pairing) -> Result<(), Refusal> {
        let mut list = self.list()?;
        let before = list.0.len();
        list.0.retain(|folder, _| is_ours(folder));
        for folder in list.0.keys() {
            pairing.write(folder)?;
        }
        if list.0.len() != before {
            self.keep(&list)?;
        }
        Ok(())
    }
}

impl Pairing {
    pub(crate) fn new(port: u16, secret: &Secret, instance_id: &str) -> Self {
        Self { port, secret: secret.text().to_owned(), instance_id: instance_id.to_owned() }
    }

    fn write(&self, folder: &Path) -> Result<(), Refusal> {
        let path = folder.join(PAIRING);
        let bytes = serde_json::to_vec(self).map_err(io::Error::from)?;
        let is_same = private::read(&path)?.is_some_and(|found| found == bytes);
        if is_same { Ok(()) } else { Ok(private::write(&path, &bytes)?) }
    }
}

/// Returns the sources of the extension by their names.
#[cfg(test)]
pub(crate) fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter_map(|(name, bytes)| Some((*name, std::str::from_utf8(bytes).ok()?)))
}

/// Returns the id that browsers give the extension, which follows from the key in its manifest.
#[must_use]
pub fn id() -> String {
    let key = manifest().and_then(|manifest| STANDARD.decode(manifest.key).ok());
    let digest = Sha256::digest(key.unwrap_or_default());
    let letter = |nibble: u8| char::from(b'a' + nibble);
    digest.iter().take(16).flat_map(|byte| [letter(byte >> 4), letter(byte & 15)]).collect()
}

/// Returns the only `Origin` that may come with a request of the extension [SEC-2].
#[must_use]
pub fn origin() -> String {
    format!("chrome-extension://{}", id())
}

#[derive(Deserialize)]
struct Manifest {
    key: String,
}

fn manifest() -> Option<Manifest> {
    let (_, bytes) = FILES.iter().find(|(name, _)| *name == MANIFEST)?;
    serde_json::from_slice(bytes).ok()
}

/// How the extension in a folder compares with the one that this library carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The same, file by file.
    Current,
    /// Another, of this version.
    Other(String),
    /// None is there any more.
    Gone,
}

/// Compares the extension in a folder with this library's own. Works with blocking calls.
#[must_use]
pub fn compare(folder: &Path) -> Copy {
    #[derive(Deserialize)]
    struct Versioned {
        version: String,
    }
    if !is_ours(folder) {
        return Copy::Gone;
    }
    let is_same = |(name, bytes): &(&str, &[u8])| {
        fs::read(folder.join(name)).is_ok_and(|found| found == *bytes)
    };
    if FILES.iter().all(is_same) {
        return Copy::Current;
    }
    let found = fs::read(folder.join(MANIFEST)).ok();
    let found: Option<Versioned> = found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Copy::Other(found.map_or_else(|| "unknown".to_owned(), |found| found.version))
}

/// Tells whether a folder holds this extension, of whatever version.
fn is_ours(folder: &Path) -> bool {
    let found = fs::read(folder.join(MANIFEST)).ok();
    let found: Option<Manifest> = found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    found.is_some_and(|found| manifest().is_some_and(|ours| ours.key == found.key))
}

/// Writes the extension into a folder, over an older one of ours, and pairs it with the server that runs
/// once that has proved the secret [SEC-13]. Works with blocking calls, too.
///
/// # Errors
/// When the folder holds something else, or cannot be written.
///
/// # Cancel safety
/// A dropped call has written nothing, or all.
pub async fn install(places: &Places, folder: &Path) -> Result<(), Refusal> {
    install_during(places, folder, async {}).await
}

/// Installs while something else happens, between the look for a server and the writing.
async fn install_during(
    places: &Places,
    folder: &Path,
    meanwhile: impl Future<Output = ()>,
) -> Result<(), Refusal> {
    check_room(&std::path::absolute(folder)?)?;
    let secret = Secret::kept(&places.secret())?;
    let pairing = places.pairing(&secret).await;
    meanwhile.await;
    write_all(places, folder, &pairing)?;
    // A server that opened its listener meanwhile had no such folder in its list yet. One that opens it
    // from now on has.
    let now = places.pairing(&secret).await;
    if now != pairing && !now.instance_id.is_empty() { now.write(folder) } else { Ok(()) }
}

/// Tells whether a folder may be written: it is empty, or holds this extension.
fn check_room(folder: &Path) -> Result<(), Refusal> {
    let is_empty = !folder.exists() || fs::read_dir(folder)?.next().is_none();
    if is_empty || is_ours(folder) { Ok(()) } else { Err(Refusal::Occupied(folder.to_owned())) }
}

fn write_all(places: &Places, folder: &Path, pairing: &Pairing) -> Result<(), Refusal> {
    let folder = std::path::absolute(folder)?;
    check_room(&folder)?;
    let mut list = places.list()?;
    if !list.0.contains_key(&folder) && list.0.len() >= MAX_FOLDERS {
        return Err(Refusal::TooMany(MAX_FOLDERS));
    }
    for gone in list.0.get(&folder).into_iter().flatten() {
        if !FILES.iter().any(|(name, _)| name == gone) {
            fs::remove_file(folder.join(gone)).ok();
        }
    }
    // First the folder, its owner's alone; the manifest last, since with it the extension is there.
    pairing.write(&folder)?;
    let is_manifest = |name: &str| name == MANIFEST;
    for (name, bytes) in FILES.iter().filter(|(name, _)| !is_manifest(name)) {
        write(&folder.join(name), bytes)?;
    }
    for (name, bytes) in FILES.iter().filter(|(name, _)| is_manifest(name)) {
        write(&folder.join(name), bytes)?;
    }
    list.0.insert(folder, FILES.iter().map(|(name, _)| (*name).to_owned()).collect());
    places.keep(&list)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

/// Removes what [`install`] wrote; what else is in the folder stays. Works with blocking calls.
///
/// # Errors
/// When no extension of ours is there, or something cannot be removed.
pub fn uninstall(places: &Places, folder: &Path) -> Result<(), Refusal> {
    let folder = std::path::absolute(folder)?;
    let mut list = places.list()?;
    let known = list.0.remove(&folder);
    if known.is_none() && !is_ours(&folder) {
        return Err(Refusal::Absent(folder));
    }
    let ours = || FILES.iter().map(|(name, _)| (*name).to_owned());
    let names: Vec<String> = known.unwrap_or_else(|| ours().collect());
    for name in names.iter().map(String::as_str).chain([PAIRING]) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut inner = Path::new(name).parent();
        while let Some(part) = inner.filter(|part| !part.as_os_str().is_empty()) {
            // One that holds something else stays.
            fs::remove_dir(folder.join(part)).ok();
            inner = part.parent();
        }
    }
    fs::remove_dir(&folder).ok();
    places.keep(&list)
}

/// Draws a new secret and gives it to every extension that was written; a copy of the old one opens
/// nothing any more. Works with blocking calls.
///
/// # Errors
/// When a server runs, which would go on with the old one, or the secret cannot be written.
pub fn rotate(places: &Places) -> Result<usize, Refusal> {
    // While it is held no server starts with the old one.
    let _locks =
        Locks::take(&places.runtime_lock(), &places.state_lock()).map_err(|owner| match owner {
            Owner::Other(pid) => Refusal::Running(pid),
            Owner::Unknown | Owner::Ours | Owner::Unreachable(_) => {
                Refusal::Failed(owner::words(&owner).unwrap_or_default())
            }
        })?;
    let secret = Secret::rotate(&places.secret())?;
    let last = port::last(&places.port()).unwrap_or(0);
    places.pair_all(&Pairing::new(last, &secret, ""))?;
    Ok(places.folders().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path) -> Places {
        Places::new(&dir.join("state"), &dir.join("run"))
    }

    fn pairing(folder: &Path) -> Pairing {
        serde_json::from_slice(&fs::read(folder.join(PAIRING)).expect("there")).expect("a pairing")
    }

    #[test]
    fn the_id_is_the_one_that_browsers_derive() {
        // [BROWSER-17]
        assert_eq!(id(), include_str!("../extension/ID").trim(), "[SEC-2]");
    }

    #[tokio::test]
    async fn a_folder_is_written_again_and_removed_without_what_is_not_ours() {
        let dir = tempfile::tempdir().expect("a folder");
        let (places, folder) = (places(dir.path()), dir.path().join("ext"));
        install(&places, &folder).await.expect("installed");
        assert_eq!(compare(&folder), Copy::Current);
        fs::write(folder.join("mine.txt"), "mine").expect("written");
        install(&places, &folder).await.expect("installed again");
        assert_eq!(places.folders(), std::slice::from_ref(&folder));
        uninstall(&places, &folder).expect("removed");
        let left: Vec<_> = fs::read_dir(&folder).expect("there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(matches!(uninstall(&places, &folder), Err(Refusal::Absent(_))));
    }

    #[tokio::test]
    async fn an_older_copy_is_told_from_the_same_and_from_none() {
        let dir = tempfile::tempdir().expect("a folder");
        let (places, folder) = (places(dir.path()), dir.path().join("ext"));
        install(&places, &folder).await.expect("installed");
        let path = folder.join(MANIFEST);
        let ours = fs::read_to_string(&path).expect("there");
        let older = ours.replace(env!("CARGO_PKG_VERSION"), "0.0.1");
        fs::write(&path, older).expect("written");
        assert_eq!(compare(&folder), Copy::Other("0.0.1".to_owned()));
        install(&places, &folder).await.expect("installed again");
        assert_eq!(compare(&folder), Copy::Current);
        uninstall(&places, &folder).expect("removed");
        assert_eq!(compare(&folder), Copy::Gone);
    }

    #[tokio::test]
    async fn a_folder_with_something_else_is_left_alone() {
        // [BROWSER-17]
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("letter"), "dear").expect("written");
        let refused = install(&places(dir.path()), dir.path()).await;
        assert!(matches!(refused, Err(Refusal::Occupied(_))), "{refused:?}");
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
    }

    #[tokio::test]
    async fn a_server_that_opens_its_listener_meanwhile_is_found() {
        // [BROWSER-17]
        use raincheck_core::time::Timestamp;
        use raincheck_loopback::endpoint::{Kind, Place};
        use raincheck_loopback::{Options, bind};

        let dir = tempfile::tempdir().expect("a folder");
        let (places, folder) = (places(dir.path()), dir.path().join("ext"));
        let secret = Secret::kept(&places.secret()).expect("a secret");
        let (served_on, mut serving) = (std::cell::Cell::new(None), tokio::task::JoinSet::new());
        let open = async {
            let (path, started_at) = (places.endpoint().to_owned(), Timestamp::from_millis(1));
            let options = Options {
                token: Some(secret.clone()),
                endpoint: Some(Place { path, kind: Kind::Browser, started_at }),
                ..Options::new("browser-mcp").expect("random bytes")
            };
            let (service, info) = bind(options).await.expect("a listener");
            let stop = tokio_util::sync::CancellationToken::new();
            serving.spawn(service.run(stop));
            // As a server does that opens its listener.
            let told = Pairing::new(info.port, &secret, &info.instance_id);
            places.pair_all(&told).expect("paired");
            served_on.set(Some(info.port));
        };
        install_during(&places, &folder, open).await.expect("installed");
        assert_eq!(Some(pairing(&folder).port), served_on.get());
    }

    #[tokio::test]
    async fn every_folder_follows_the_port_and_the_secret() {
        // [BROWSER-17]
        let dir = tempfile::tempdir().expect("a folder");
        let places = places(dir.path());
        let folders = [dir.path().join("one"), dir.path().join("two")];
        for folder in &folders {
            install(&places, folder).await.expect("installed");
        }
        let first = pairing(&folders[0]);
        let secret = Secret::from_text(&first.secret).expect("a secret");
        places.pair_all(&Pairing::new(4711, &secret, "start-2")).expect("paired");
        assert_eq!(pairing(&folders[1]).port, 4711);
        assert_eq!(rotate(&places).expect("rotated"), 2);
        for folder in &folders {
            assert_ne!(pairing(folder).secret, first.secret);
        }
    }
}
