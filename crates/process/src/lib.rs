//! Command tools: any program, in any language, as a durable tool.
//!
//! A [`CommandTool`] says what to run; [`Commands`] holds them and is the [`ToolSet`] that an engine
//! is given. One attempt is one run of the program:
//!
//! | what the program sees | what it is for |
//! |---|---|
//! | standard input | the inputs as JSON, byte for byte, then the end |
//! | standard output and error | become log lines of the task |
//! | `RAINCHECK_CONTROL_FD` | a descriptor for JSON lines: `{"progress":{…}}`, `{"partial":…}`, `{"log":{"level","message"}}`, `{"artifact":{"path","kind"}}` |
//! | `RAINCHECK_RESULT_FILE` | where it may write its result as JSON |
//! | `RAINCHECK_ARTIFACTS_DIR` | a folder; every regular file left in it becomes an artifact |
//! | `RAINCHECK_TASK_ID`, `RAINCHECK_ATTEMPT` | who it is |
//!
//! Exit code 0 is success. The program leads a process group of its own and inherits nothing but
//! its pipes and the variables its tool allows. When it has to stop, its group gets SIGTERM, and
//! after a grace everything it started is killed, also what left the group; what it leaves running
//! at its own end is ended too.
//!
//! A program outlives its server in the hands of a [`Supervisor`], a small process of its own that the
//! next server finds and listens to. It takes a binary that calls [`supervisor_main`] when it is told
//! to, and an engine whose log is files. Without one the program runs under the server, and on Linux
//! the kernel kills it when the server dies.
//!
//! A task may limit the memory of its program with all it started, and the size of what it leaves in
//! its folders; once a second is looked at both. Processor time is not limited.
//!
//! [`ToolSet`]: raincheck_runtime::ToolSet
//!
//! Requirement ids in brackets (`[CANCEL-6]`) refer to `docs/spec`.
#![cfg_attr(not(unix), expect(dead_code, reason = "no other platform runs programs yet"))]

mod order;

mod patience;

mod place;

mod tool;

mod commands;

mod attempt;

mod leftovers;

mod artifacts;

mod supervise;

mod supervisor;

mod os;

pub use commands::{Commands, unrecorded_end};
pub use place::place_fault;
pub use supervisor::{Supervisor, supervisor_main};
pub use tool::{CommandTool, DEFAULT_ENVIRONMENT, EnvRule};
