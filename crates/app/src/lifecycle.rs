//! When a server ends, and how a panic is told.

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{self, PanicHookInfo};
use std::time::Duration;

use raincheck::mcp::stdio::DRAIN;
use tokio_util::sync::CancellationToken;

/// How long a server may take to end once the last calls are answered, which has [`DRAIN`]; then the
/// process ends anyway.
pub const END_BUDGET: Duration = Duration::from_millis(1300);

/// Makes panics log lines: one attempt may be lost, the server goes on.
pub fn log_panics() {
    panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info.location().map(ToString::to_string);
        tracing::error!(
            place = place.as_deref().unwrap_or("unknown"),
            "panic: {}",
            words(info.payload())
        );
    }));
}

fn words(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}

/// Lets signals reach this process that whoever started it had blocked: a process inherits that, and
/// could not be told to end. To be called before there is a second thread.
///
/// What the launcher ignores stays ignored, as `nohup` wants it.
#[cfg_attr(unix, expect(unsafe_code, reason = "the mask of signals has no safe form"))]
pub fn unblock_signals() {
    #[cfg(unix)]
    // SAFETY: the set is made before it is read, and lives until the call returns.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Prepares to be told to end: by a signal, or, where it `follows_parent`, by the death of the process
/// that started this one.
///
/// The future fires `told`, then `stop`, and ends; it also ends when somebody else fires `stop`. It is to
/// be made inside the runtime.
///
/// # Errors
/// When the system does not let the process listen.
pub fn until_told(
    (stop, told): (CancellationToken, CancellationToken),
    follows_parent: bool,
) -> io::Result<impl Future<Output = ()>> {
    let mut signals = signals::Signals::install(follows_parent)?;
    Ok(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            cause = signals.next() => {
                tracing::info!(cause, "told to end");
                told.cancel();
                stop.cancel();
            }
        }
    })
}

/// Waits until `stop` fired and the budget to end is used up. A process that was `told` to end still has
/// to answer its last calls then; at the end of standard input that was before.
pub async fn out_of_time(stop: CancellationToken, told: CancellationToken) {
    stop.cancelled().await;
    let answering = if told.is_cancelled() { DRAIN } else { Duration::ZERO };
    tokio::time::sleep(answering + END_BUDGET).await;
}

#[cfg(unix)]
mod signals {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// The signals that end a server, and the parent's death.
    pub(super) struct Signals {
        terminate: Signal,
        interrupt: Signal,
        hang_up: Signal,
        parent: Option<parent::Watch>,
    }

    impl Signals {
        pub(super) fn install(follows_parent: bool) -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hang_up: signal(SignalKind::hangup())?,
                parent: follows_parent.then(parent::Watch::start).transpose()?,
            })
        }

        /// Waits for the first of them and names it.
        pub(super) async fn next(&mut self) -> &'static str {
            let parent = async {
                match &mut self.parent {
                    Some(parent) => parent.died().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.hang_up.recv() => "SIGHUP",
                () = parent => "the parent process died",
            }
        }
    }

    #[cfg(target_os = "linux")]
    mod parent {
        use std::io;

        use rustix::process::{Pid, Signal as Number, getppid, set_parent_process_death_signal};
        use tokio::signal::unix::{Signal, SignalKind, signal};

        /// Asks the kernel for a signal when the parent dies.
        ///
        /// The kernel also sends it when only the parent's *thread* that started us ends; the parent's
        /// number tells the two apart.
        pub(super) struct Watch {
            parent: Option<Pid>,
            signal: Signal,
        }

        impl Watch {
            pub(super) fn start() -> io::Result<Self> {
                let parent = getppid();
                let signal = signal(SignalKind::user_defined1())?;
                set_parent_process_death_signal(Some(Number::USR1))?;
                Ok(Self { parent, signal })
            }

            pub(super) async fn died(&mut self) {
                while getppid() == self.parent {
                    if self.signal.recv().await.is_none() {
                        return std::future::pending().await;
                    }
                }
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod parent {
        use std::io;

        /// Elsewhere the end of standard input tells of the parent's death.
        pub(super) struct Watch;

        impl Watch {
            pub(super) fn start() -> io::Result<Self> {
                Ok(Self)
            }

            pub(super) async fn died(&mut self) {
                std::future::pending().await
            }
        }
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;

    /// Ctrl-C; the end of standard input tells of the rest.
    pub(super) struct Signals;

    impl Signals {
        pub(super) fn install(_follows_parent: bool) -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> &'static str {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            "Ctrl-C"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_budget_to_end_counts_from_the_last_answer() {
        // [HOST-3, HTTP-8]
        for (is_told, most) in [(false, END_BUDGET), (true, DRAIN + END_BUDGET)] {
            let (stop, told) = (CancellationToken::new(), CancellationToken::new());
            let start = tokio::time::Instant::now();
            tokio::join!(out_of_time(stop.clone(), told.clone()), async move {
                tokio::time::sleep(Duration::from_secs(60)).await;
                if is_told {
                    told.cancel();
                }
                stop.cancel();
            });
            assert_eq!(start.elapsed(), Duration::from_secs(60) + most);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_hang_up_fires_the_stop() {
        let stop = CancellationToken::new();
        let told = until_told((stop.clone(), stop.clone()), true).expect("listening");
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)
            .expect("sent");
        told.await;
        assert!(stop.is_cancelled());
    }
}
