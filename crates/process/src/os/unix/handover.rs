//! Open files on their way from one process to another, over a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most files of one message.
const MAX_FILES: usize = 4;

/// Sends a word of one byte, and files with it. Nothing is waited for.
///
/// # Errors
/// When the other end is gone, or has not read for long.
pub(crate) fn send(socket: &impl AsFd, word: u8, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !with.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&[word])], &mut with, how_to_send())?;
    Ok(())
}

/// Receives the next word and the files that came with it; `None` when the other end is gone.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let read = recvmsg(socket, &mut [IoSliceMut::new(&mut word)], &mut with, close_at_exec())?;
    let mut files = Vec::new();
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            files.extend(some);
        }
    }
    Ok((read.bytes > 0).then_some((word[0], files)))
}

#[cfg(not(target_vendor = "apple"))]
const fn how_to_send() -> SendFlags {
    SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL)
}

/// Both ends ignore SIGPIPE, so that a system without the flag needs none.
#[cfg(target_vendor = "apple")]
const fn how_to_send() -> SendFlags {
    SendFlags::DONTWAIT
}

#[cfg(target_os = "linux")]
const fn close_at_exec() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
const fn close_at_exec() -> RecvFlags {
    RecvFlags::empty()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_word_brings_its_own_files() {
        let (near, far) = UnixStream::pair().expect("a pair");
        let mut sent = tempfile::tempfile().expect("a file");
        sent.write_all(b"words").expect("written");
        sent.rewind().expect("rewound");
        send(&near, b'a', &[sent.as_fd()]).expect("sent");
        send(&near, b'b', &[]).expect("sent");
        let (word, mut files) = receive(&far).expect("read").expect("a word");
        assert_eq!((word, files.len()), (b'a', 1));
        let mut text = String::new();
        let mut got = std::fs::File::from(files.remove(0));
        got.read_to_string(&mut text).expect("read");
        assert_eq!(text, "words");
        let (word, files) = receive(&far).expect("read").expect("a word");
        assert_eq!((word, files.len()), (b'b', 0));
        drop(near);
        assert!(receive(&far).expect("read").is_none());
    }
}
