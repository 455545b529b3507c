//! The listeners of servers, told only once they have proved to be those of their endpoint files.

use raincheck_loopback::client;
use raincheck_loopback::endpoint::Endpoint;

/// Asks each listener whose process runs to prove that it knows the secret of its endpoint file [SEC-13].
/// Blocks, for some seconds where one does not answer.
#[must_use]
pub fn prove(endpoints: Vec<Endpoint>) -> Vec<(Endpoint, Result<(), String>)> {
    let running: Vec<Endpoint> = endpoints.into_iter().filter(Endpoint::is_running).collect();
    if running.is_empty() {
        return Vec::new();
    }
    let unasked = running.clone();
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| runtime.block_on(client::prove(running)))
    };
    // On a thread of its own: whoever asks may be in a runtime.
    match std::thread::scope(|scope| scope.spawn(ask).join()) {
        Ok(Ok(asked)) => asked
            .into_iter()
            .map(|(it, proof)| (it, proof.map_err(|error| error.to_string())))
            .collect(),
        Ok(Err(_)) | Err(_) => {
            unasked.into_iter().map(|it| (it, Err("it cannot be asked".to_owned()))).collect()
        }
    }
}

/// Returns the listeners that have proved themselves.
#[must_use]
pub fn proven(endpoints: Vec<Endpoint>) -> Vec<Endpoint> {
    prove(endpoints).into_iter().filter_map(|(it, proof)| proof.ok().map(|()| it)).collect()
}
