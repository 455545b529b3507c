//! Having a supervisor for an attempt: the one that waits, or one that is made for it.

use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use crate::attempt::folder::{Folder, blocking};
use crate::supervisor::{
    ForkServer, Generation, Need, Ready, Supervisors, Talk, discard, folder_ahead,
};

/// How long after a start the supervisor of the next program is made, if the program has not ended
/// before. Made at once it would take the time of the program that was just started.
const SOON: Duration = Duration::from_millis(20);

/// Why a supervisor could not be started.
pub(super) enum NotStarted {
    Folder(io::Error),
    Process(io::Error),
}

/// A supervisor that waits to be told what to run.
pub(super) struct Started {
    pub(super) talk: Talk,
    /// The number of its process, where it has said so.
    pub(super) pid: Option<i32>,
    pub(super) generation: Generation,
    /// Whether the names on the way to its folder survive a loss of power.
    pub(super) are_names_synced: bool,
}

/// Gives an attempt its folder and a supervisor in it, which does not know yet what to run.
pub(super) async fn start(
    supervisors: &Supervisors,
    folder: &Folder,
    is_synced: bool,
) -> Result<Started, NotStarted> {
    let taken = if folder.is_of_first() { supervisors.take() } else { None };
    if let Some((ready, pid)) = taken
        && let Some(started) = settle(ready, pid, folder, is_synced).await
    {
        return Ok(started);
    }
    make(supervisors, folder, is_synced).await
}

/// Gives an attempt the supervisor that waited, and its folder; `None` when the task has one already,
/// or the system refuses.
async fn settle(ready: Ready, pid: u32, folder: &Folder, is_synced: bool) -> Option<Started> {
    let Ready { near, generation, task } = ready;
    // It is one change of a name, that no disk is waited for.
    if folder.take_over(&task).is_err() {
        discard(task);
        return None;
    }
    let place = folder.place();
    let are_names_synced = is_synced && blocking(move || place.sync_names()).await.is_ok();
    let (talk, pid) = (Talk::of(near).ok()?, i32::try_from(pid).ok());
    Some(Started { talk, pid, generation, are_names_synced })
}

/// Makes the folder of an attempt and starts a supervisor in it. The names of its folder are made to
/// last while it comes up.
async fn make(
    supervisors: &Supervisors,
    folder: &Folder,
    is_synced: bool,
) -> Result<Started, NotStarted> {
    let (folder, server) = (folder.clone(), supervisors.server());
    let start = move || {
        Ok(launch(&server, &folder, Need::Now).map(|(near, generation)| {
            // What fails here is tried again by the supervisor, which has to say why.
            let are_names_synced = is_synced && folder.place().sync_names().is_ok();
            (near, generation, are_names_synced)
        }))
    };
    let (near, generation, are_names_synced) =
        blocking(start).await.unwrap_or_else(|error| Err(NotStarted::Process(error)))?;
    let talk = Talk::of(near).map_err(NotStarted::Process)?;
    Ok(Started { talk, pid: None, generation, are_names_synced })
}

/// Blocks.
fn launch(
    server: &ForkServer,
    folder: &Folder,
    need: Need,
) -> Result<(UnixStream, Generation), NotStarted> {
    let seat = folder.create().and_then(|()| folder.place().seat()).map_err(NotStarted::Folder)?;
    let generation = server.launch(&seat, need).map_err(NotStarted::Process)?;
    Ok((seat.near, generation))
}

/// Makes the supervisor of the next program, a while after a start.
pub(super) async fn prepare_soon(root: &Path, supervisors: &Supervisors) -> Infallible {
    sleep(SOON).await;
    prepare(root, supervisors);
    std::future::pending().await
}

/// Makes the supervisor of the next program, if none waits for one, and does not wait for it.
pub(crate) fn prepare(root: &Path, supervisors: &Supervisors) {
    let task = folder_ahead(root);
    supervisors.prepare(move |server| {
        match launch(server, &Folder::first_below(&task), Need::Later) {
            Ok((near, generation)) => Ok(Ready { near, generation, task }),
            Err(NotStarted::Folder(error) | NotStarted::Process(error)) => {
                let _ = std::fs::remove_dir_all(&task);
                Err(error)
            }
        }
    });
}
