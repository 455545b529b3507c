//! Real programs, run through the operating system, heard by a fake listener.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::*;

/// Remembers what it hears, and lets a test wait for it.
struct Ear {
    lines: Mutex<Vec<Draft>>,
    partials: Mutex<Vec<Json>>,
    progress: Mutex<Progress>,
    heard: watch::Sender<usize>,
    reported: watch::Sender<usize>,
    drawn: watch::Sender<Option<String>>,
    /// The log takes nothing before this is true.
    is_open: watch::Sender<bool>,
}

impl Default for Ear {
    fn default() -> Self {
        Self {
            lines: Mutex::default(),
            partials: Mutex::default(),
            progress: Mutex::default(),
            heard: watch::Sender::new(0),
            reported: watch::Sender::new(0),
            drawn: watch::Sender::new(None),
            is_open: watch::Sender::new(true),
        }
    }
}

#[async_trait]
impl Listener for Ear {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1)
    }

    fn begun(&self) {}

    fn progress(&self, progress: Progress) {
        self.drawn.send_replace(progress.message.clone());
        *self.progress.lock().expect("a lock") = progress;
    }

    fn partial(&self, partial: Json) {
        self.partials.lock().expect("a lock").push(partial);
        self.reported.send_modify(|n| *n += 1);
    }

    async fn logs(&self, lines: Vec<Draft>) {
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open).await;
        let n = {
            let mut all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(lines);
            all.len()
        };
        self.heard.send_replace(n);
    }

    async fn stopping(&self) {}
}

impl Ear {
    fn text(&self, stream: Stream) -> String {
        let lines = self.lines.lock().expect("a lock");
        let mine = lines.iter().filter(|line| line.stream == stream);
        mine.map(|line| format!("{}\n", line.message)).collect()
    }

    /// Waits until so many lines were heard, then says how long a stopped program may take.
    async fn after(&self, n_lines: usize, grace: Duration) -> Duration {
        let _ = self.heard.subscribe().wait_for(|n| *n >= n_lines).await;
        grace
    }
}

const MARK: &str = "RAINCHECK_TASK_ID";

fn order(argv: &[&str], mark: &str) -> Order {
    let program = ["/bin", "/usr/bin", "/usr/local/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(argv[0]))
        .find(|file| file.is_file())
        .unwrap_or_else(|| PathBuf::from(argv[0]));
    Order {
        program: program.into(),
        arguments: argv[1..].iter().map(|text| (*text).to_owned()).collect(),
        folder: "/".into(),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            (MARK.into(), mark.into()),
        ],
        mark: format!("{MARK}={mark}").into(),
        limits: Limits::default(),
    }
}

fn shell(script: &str, mark: &str) -> Order {
    order(&["sh", "-c", script], mark)
}

async fn run(script: &str, mark: &str, stdin: &str) -> (Ended, Ear) {
    let ear = Ear::default();
    let never = std::future::pending();
    let ended = supervise(shell(script, mark), stdin.as_bytes(), &ear, never).await;
    (ended.expect("it starts"), ear)
}

/// Tells which of the processes whose numbers were logged still run.
fn alive(ear: &Ear) -> Vec<String> {
    let text = ear.text(Stream::Stdout);
    let pids = text.lines().filter_map(|line| line.strip_prefix("pid ")).map(str::trim);
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
    })
    .map(str::to_owned)
    .collect()
}

#[tokio::test]
async fn inputs_reach_the_program_and_its_words_become_lines() {
    let script = r#"cat; echo; echo oops >&2; printf '{"progress":{"percent":40}}\n{"partial":{"a":1.0}}\n' >&$RAINCHECK_CONTROL_FD; exit 3"#;
    let script = script.replace("&$RAINCHECK_CONTROL_FD", "/dev/fd/$RAINCHECK_CONTROL_FD");
    let inputs = r#"{"z":1.0,"a":[1e2]}"#;
    let (ended, ear) = run(&script, "words", inputs).await;
    assert_eq!((ended.exit, ended.is_stopped), (Some(Exit::Code(3)), false));
    assert_eq!(ear.text(Stream::Stdout), format!("{inputs}\n"));
    assert_eq!(ended.stderr_tail, ["oops"]);
    assert_eq!(ear.progress.lock().expect("a lock").percent, Some(40.0));
    assert_eq!(ear.partials.lock().expect("a lock")[0].get(), r#"{"a":1.0}"#);
    assert!(ended.usage.peak_memory > Some(100_000), "{:?}", ended.usage);
    assert!(ended.usage.cpu.is_some());
}

#[tokio::test]
async fn too_many_words_about_artifacts_are_told_once() {
    let ear = Ear::default();
    let claim = b"{\"artifact\":{\"path\":\"a\"}}\n";
    let said = claim.repeat(pumps::MAX_CLAIMS + 100);
    let (log, backlog) = backlog::open();
    let never = CancellationToken::new();
    let bar = pumps::Bar::default();
    let heard = pumps::control(&said[..], &ear, log, &never, &bar);
    let (claims, ()) = tokio::join!(heard, backlog.drain(&ear));
    assert_eq!(claims.len(), pumps::MAX_CLAIMS);
    assert_eq!(ear.text(Stream::System).lines().count(), 1);
}

#[tokio::test]
async fn a_signal_is_told_from_a_code() {
    let (ended, _) = run("kill -SEGV $$", "segv", "").await;
    assert_eq!(ended.exit, Some(Exit::Signal(11)));
    let (ended, _) = run("exit 139", "139", "").await;
    assert_eq!(ended.exit, Some(Exit::Code(139)));
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_is_not_waited_for() {
    let (ended, _) = run("exit 0", "unread", &"x".repeat(8 << 20)).await;
    assert_eq!(ended.exit, Some(Exit::Code(0)));
}

#[tokio::test]
async fn a_program_that_reads_and_writes_much_at_once_does_not_lock_up() {
    let inputs = format!("{}\n", "0123456789abcde\n".repeat(200_000));
    let (ended, ear) = run("cat", "cat", &inputs).await;
    assert_eq!(ended.exit, Some(Exit::Code(0)));
    assert_eq!(ear.text(Stream::Stdout), inputs);
}

// [SEC-8]
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_inherits_its_pipes_and_nothing_else() {
    // A descriptor that would be inherited by any program started here.
    let stray = std::fs::File::open("/dev/null").expect("a file");
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).expect("a flag");
    let script = "cd /proc/self/fd; echo *; echo $RAINCHECK_CONTROL_FD; env | grep -v '^PWD='; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat; echo $$";
    let (_, ear) = run(script, "fds", "").await;
    let text = ear.text(Stream::Stdout);
    let mut lines = text.lines();
    let control = text.lines().nth(1).expect("a number");
    let fds: Vec<&str> = lines.next().expect("descriptors").split(' ').collect();
    let strange: Vec<&&str> = fds
        .iter()
        .filter(|fd| !["0", "1", "2", control].contains(*fd))
        .filter(|fd| fd.parse() != Ok(std::os::fd::AsRawFd::as_raw_fd(&stray)))
        .collect();
    // The shell itself opens the folder it lists.
    assert!(strange.len() <= 1, "{fds:?}");
    let stray = std::os::fd::AsRawFd::as_raw_fd(&stray).to_string();
    assert!(!fds.contains(&&*stray), "{fds:?} holds the stray {stray}");
    let rest: Vec<&str> = lines.skip(1).collect();
    let (group, pid) = (rest[rest.len() - 2].trim(), rest[rest.len() - 1]);
    assert_eq!(group, pid, "it leads a group of its own");
    let variables = &rest[..rest.len() - 2];
    assert!(
        variables.iter().all(|line| line.starts_with("PATH=")
            || line.starts_with("RAINCHECK_")
            || line.starts_with("_=")
            || line.starts_with("OLDPWD=")
            || line.starts_with("SHLVL=")),
        "{variables:?}"
    );
}

// [CANCEL-6]
#[tokio::test]
async fn a_program_that_obeys_is_gone_before_its_grace_is_over() {
    let ear = Ear::default();
    let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let stop = ear.after(1, Duration::from_secs(60));
    let ended = supervise(shell(script, "obeys"), b"", &ear, stop).await.expect("it starts");
    assert!(ended.is_stopped && ended.wall < Duration::from_secs(30), "{ended:?}");
    assert_eq!(ended.exit, Some(Exit::Code(0)));
    assert_eq!(ear.text(Stream::Stdout), "ready\nbye\n");
}

/// Forks like a stubborn tool: children that ignore SIGTERM, one in a group of its own, one a
/// daemon with a session of its own and no parent.
const TREE: &str = r#"
import os, signal, sys, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
seen, ready = os.pipe()
def linger():
    os.write(1, f"pid {os.getpid()}\n".encode())
    os.write(ready, b"x")
    while True: time.sleep(1)
if os.fork() == 0:
    if os.fork() == 0: linger()
    if os.fork() == 0:
        os.setpgid(0, 0)
        linger()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: linger()
        os._exit(0)
    linger()
if len(sys.argv) > 1:
    for _ in range(4): os.read(seen, 1)
    os._exit(0)
linger()
"#;

// [CMD-7, CANCEL-6]
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_whole_tree_is_killed_after_the_grace_also_what_left_the_group() {
    let ear = Ear::default();
    let order = order(&["python3", "-c", TREE], "tree");
    let stop = ear.after(5, Duration::from_millis(100));
    let ended = supervise(order, b"", &ear, stop).await.expect("python3 starts");
    assert_eq!((ended.exit, ended.is_stopped), (Some(Exit::Signal(9)), true));
    assert_eq!(alive(&ear), Vec::<String>::new());
}

// [CMD-7]
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_program_leaves_running_is_ended_with_it() {
    let ear = Ear::default();
    let order = order(&["python3", "-c", TREE, "leave"], "leave");
    let never = std::future::pending();
    let ended = supervise(order, b"", &ear, never).await.expect("python3 starts");
    assert_eq!((ended.exit, ended.is_stopped), (Some(Exit::Code(0)), false));
    assert_eq!(alive(&ear), Vec::<String>::new());
    assert_eq!(
        ear.text(Stream::System),
        "4 processes that the program left running were ended with it\n"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_reader_at_the_end_of_a_pipe_may_finish() {
    let script = "(sleep 0.05; echo last) & exit 0";
    let (_, ear) = run(script, "reader", "").await;
    assert_eq!((&*ear.text(Stream::Stdout), &*ear.text(Stream::System)), ("last\n", ""));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_run_that_is_dropped_leaves_no_process_behind() {
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let ear = Ear::default();
    let order = order(&["python3", "-c", TREE], "dropped");
    let never = std::future::pending();
    let mut running = Box::pin(supervise(order, b"", &ear, never));
    tokio::select! {
        _ = &mut running => panic!("it lingers"),
        _ = ear.after(5, Duration::ZERO) => {}
    }
    let ends: Vec<OwnedFd> = alive(&ear)
        .iter()
        .map(|pid| Pid::from_raw(pid.parse().expect("a number")).expect("not 0"))
        .map(|pid| pidfd_open(pid, PidfdFlags::empty()).expect("it runs"))
        .collect();
    assert_eq!(ends.len(), 5);
    drop(running);
    // They are killed; the system says when they are gone.
    for end in &ends {
        let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
        let mut ended = [PollFd::new(end, PollFlags::IN)];
        assert_eq!(poll(&mut ended, Some(&patience)), Ok(1), "a process is still there");
    }
}

// [LOG-2]
#[tokio::test]
async fn a_flood_is_read_at_its_own_pace_and_ends_when_it_is_stopped() {
    let ear = Ear::default();
    let stop = ear.after(200_000, Duration::from_secs(5));
    let ended = supervise(order(&["yes"], "yes"), b"", &ear, stop).await.expect("yes starts");
    assert!(ended.is_stopped);
    assert_eq!(ended.exit, Some(Exit::Signal(15)));
}

// [LOG-2]
#[tokio::test]
async fn a_log_that_takes_nothing_holds_no_program_up_and_the_gap_is_counted() {
    let ear = Ear::default();
    ear.is_open.send_replace(false);
    let n = 400_000;
    let last = r#"{"partial":"the end"}"#;
    let script = format!("seq {n}; echo '{last}' >/dev/fd/$RAINCHECK_CONTROL_FD; exec sleep 60");
    let order = shell(&script, "stalled");
    // The program comes to its end while the log is stuck: then the log opens.
    let stop = async {
        let _ = ear.reported.subscribe().wait_for(|n| *n > 0).await;
        ear.is_open.send_replace(true);
        Duration::from_secs(5)
    };
    let ended = supervise(order, b"", &ear, stop).await.expect("it starts");
    assert_eq!(ended.stdout_tail.lines().last(), Some("400000"), "the program was held up");
    let lines = ear.text(Stream::Stdout).lines().count();
    let told: usize = ear
        .text(Stream::System)
        .lines()
        .filter_map(|line| line.split_once(" line")?.0.parse::<usize>().ok())
        .sum();
    assert_eq!(lines + told, n);
    assert!(told > 0);
}

// [CMD-2, LOG-1]
#[tokio::test]
async fn one_line_of_eight_megabytes_is_logged_whole() {
    let program = "import sys\nw = sys.stdout.buffer\nw.write(b'start\\n' + b'0123456789abcdef' * (1 << 19) + b'\\nafter\\n')\nsys.stderr.write('x' * 200000)";
    let ear = Ear::default();
    let order = order(&["python3", "-c", program], "long");
    let ended = supervise(order, b"", &ear, std::future::pending()).await.expect("python3 starts");
    assert_eq!(ended.exit, Some(Exit::Code(0)));
    let text = ear.text(Stream::Stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("start", "after"));
    assert_eq!(lines[1..lines.len() - 1].concat(), "0123456789abcdef".repeat(1 << 19));
    assert_eq!(ear.text(Stream::Stderr).replace('\n', ""), "x".repeat(200_000));
}

#[tokio::test]
async fn many_programs_at_once_each_keep_their_own_pipes() {
    let runs = (0..24).map(|n| async move {
        let (_, ear) =
            run(&format!("cat; echo {n} >&2"), &format!("many-{n}"), &n.to_string()).await;
        (ear.text(Stream::Stdout), ear.text(Stream::Stderr))
    });
    let mut set = tokio::task::JoinSet::new();
    for run in runs {
        set.spawn(run);
    }
    for (stdout, stderr) in set.join_all().await {
        assert_eq!(stdout, stderr);
    }
}

#[tokio::test]
async fn a_file_that_is_no_program_is_an_error() {
    let ear = Ear::default();
    let order = order(&["/"], "none");
    let error = supervise(order, b"", &ear, std::future::pending()).await.expect_err("no program");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

// [CMD-2]
#[tokio::test]
async fn a_progress_bar_is_seen_while_it_is_drawn_and_is_one_line_of_the_log() {
    let ear = Ear::default();
    let script = r"printf 'start\n\r 10%%'; printf '\r 60%%\r'; while :; do sleep 0.01; done";
    let drawn = async {
        let _ = ear.drawn.subscribe().wait_for(|text| text.as_deref() == Some("60%")).await;
        Duration::from_millis(10)
    };
    let ended = supervise(shell(script, "bar"), b"", &ear, drawn).await.expect("it starts");
    assert!(ended.is_stopped);
    assert_eq!(ear.text(Stream::Stdout), "start\n 60%\n");
}
