//! The two streams of a session, without a thread in between where the system allows it.

use std::fmt;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::guard::Stdout;

/// What is read from.
pub(super) type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// What is written to.
pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Where requests come from and where answers go.
pub struct Streams {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
}

impl Streams {
    /// Takes any two streams, such as the halves of an in-memory pipe.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer) }
    }

    /// Takes the standard streams of the process. Pipes and sockets are driven by the runtime's
    /// poller, which halves the latency of a call; anything else goes through blocking threads.
    ///
    /// # Errors
    /// When a stream cannot be used. Call it inside a tokio runtime.
    pub fn standard(stdout: Stdout) -> io::Result<Self> {
        #[cfg(unix)]
        {
            let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
            Ok(Self { reader: unix::reader(stdin)?, writer: unix::writer(stdout.fd)? })
        }
        #[cfg(not(unix))]
        {
            let Stdout {} = stdout;
            Ok(Self::new(tokio::io::stdin(), tokio::io::stdout()))
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Streams")
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
    use std::os::unix::fs::FileTypeExt as _;
    use std::os::unix::net::UnixStream as StdStream;

    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    /// Reads from a descriptor.
    pub(super) fn reader(fd: OwnedFd) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        match Kind::of(&fd)? {
            Kind::Pipe => {
                let reopened = pipe::OpenOptions::new().open_receiver(path_of(&fd));
                Ok(Box::new(reopened.or_else(|_| pipe::Receiver::from_owned_fd(fd))?))
            }
            Kind::Socket => Ok(Box::new(socket(fd)?)),
            Kind::Other => Ok(Box::new(tokio::fs::File::from_std(File::from(fd)))),
        }
    }

    /// Writes to a descriptor.
    pub(super) fn writer(fd: OwnedFd) -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
        match Kind::of(&fd)? {
            Kind::Pipe => {
                let reopened = pipe::OpenOptions::new().open_sender(path_of(&fd));
                Ok(Box::new(reopened.or_else(|_| pipe::Sender::from_owned_fd(fd))?))
            }
            Kind::Socket => Ok(Box::new(socket(fd)?)),
            Kind::Other => Ok(Box::new(tokio::fs::File::from_std(File::from(fd)))),
        }
    }

    /// What stands behind a descriptor.
    enum Kind {
        Pipe,
        Socket,
        Other,
    }

    impl Kind {
        fn of(fd: &OwnedFd) -> io::Result<Self> {
            let kind = File::from(fd.try_clone()?).metadata()?.file_type();
            Ok(if kind.is_fifo() {
                Self::Pipe
            } else if kind.is_socket() {
                Self::Socket
            } else {
                Self::Other
            })
        }
    }

    /// Names a pipe so that opening it gives a description of its own: the non-blocking flag is then
    /// not shared with whoever else holds the pipe. Where no such name exists the open fails.
    fn path_of(fd: &impl AsFd) -> String {
        format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
    }

    fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
        let stream = StdStream::from(fd);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    #[cfg(test)]
    mod tests {
        use rustix::fs::{OFlags, fcntl_getfl};
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        use super::*;

        /// Sends a line from one end to the other.
        async fn carry(reader: OwnedFd, writer: OwnedFd) {
            let mut writer = super::writer(writer).expect("a writer");
            let mut reader = super::reader(reader).expect("a reader");
            writer.write_all(b"line\n").await.expect("written");
            writer.flush().await.expect("flushed");
            drop(writer);
            let mut got = String::new();
            reader.read_to_string(&mut got).await.expect("read to the end");
            assert_eq!(got, "line\n");
        }

        #[tokio::test]
        async fn a_pipe_carries_lines_and_keeps_its_own_flags() {
            let (reader, writer) = io::pipe().expect("a pipe");
            let ours = reader.try_clone().expect("a second descriptor");
            carry(reader.into(), writer.into()).await;
            if cfg!(target_os = "linux") {
                let flags = fcntl_getfl(&ours).expect("flags");
                assert!(!flags.contains(OFlags::NONBLOCK), "whoever shares the pipe may block");
            }
        }

        #[tokio::test]
        async fn a_pair_of_sockets_carries_lines() {
            let (reader, writer) = StdStream::pair().expect("a pair of sockets");
            carry(reader.into(), writer.into()).await;
        }

        #[tokio::test]
        async fn a_file_is_read_and_written_as_well() {
            let null = File::options().read(true).write(true).open("/dev/null").expect("null");
            let mut input = reader(null.try_clone().expect("a clone").into()).expect("ok");
            let mut got = Vec::new();
            assert_eq!(input.read_to_end(&mut got).await.expect("the end"), 0);
            let mut output = writer(null.into()).expect("ok");
            output.write_all(b"x").await.expect("written");
        }
    }
}
