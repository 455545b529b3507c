//! The file of one task's log.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use raincheck_core::ids::Fence;
use raincheck_core::log::{Draft, Line, MAX_LINE};
use raincheck_core::store::Page;
use raincheck_core::text::clip;
use raincheck_core::time::Timestamp;

use super::record::{self, Dropped};

/// How far apart the places of the index are, in bytes of the file.
const SPAN: u64 = 64 << 10;

/// How much text one page holds at the most, beside its first line.
const MAX_PAGE: usize = 1 << 20;

/// The log of one task. Its file is read through once before the first use; while another process
/// writes it, what came since is read before every use.
#[derive(Debug)]
pub(super) struct LogFile {
    folder: PathBuf,
    quota: u64,
    /// The newest attempt that wrote.
    fence: Fence,
    /// Whether this value is the file's writer, so that something would be lost with it.
    is_open: bool,
    loaded: Option<Loaded>,
}

/// What is known of the file.
#[derive(Debug, Default)]
struct Loaded {
    /// Open while lines may come.
    file: Option<File>,
    /// The length of the file in whole records.
    len: u64,
    /// The number of the last line.
    last: u64,
    /// Some line numbers and where their records begin.
    index: Vec<(u64, u64)>,
    /// The record that tells what was dropped: always the last one.
    mark: Option<Mark>,
}

/// The record that tells what was dropped.
#[derive(Clone, Copy, Debug)]
struct Mark {
    dropped: Dropped,
    /// Where it begins.
    at: u64,
    ts: Timestamp,
    /// Whether the file tells less than is known.
    is_behind: bool,
}

impl LogFile {
    pub(super) const fn new(folder: PathBuf, quota: u64) -> Self {
        Self { folder, quota, fence: Fence::NONE, is_open: false, loaded: None }
    }

    pub(super) const fn limit(&mut self, quota: u64) {
        self.quota = quota;
        self.is_open = true;
    }

    /// Tells whether nothing is lost when this value is.
    pub(super) const fn is_closed(&self) -> bool {
        !self.is_open
    }

    /// Counts lines that need no file any more and returns the number of the last line kept;
    /// `None` when they have to be [appended](Self::append).
    pub(super) fn drop_beyond_quota(&mut self, fence: Fence, lines: &[Draft]) -> Option<u64> {
        let loaded = self.loaded.as_mut()?;
        if fence < self.fence {
            return Some(loaded.last);
        }
        let mark = loaded.mark.as_mut()?;
        self.fence = fence;
        self.is_open = true;
        mark.dropped.count(lines);
        mark.is_behind = true;
        Some(loaded.last)
    }

    /// Appends lines and returns the number of the last one kept.
    pub(super) fn append(&mut self, fence: Fence, lines: &[Draft]) -> io::Result<u64> {
        self.load()?;
        if let Some(last) = self.drop_beyond_quota(fence, lines) {
            return Ok(last);
        }
        self.fence = fence;
        self.is_open = true;
        let quota = self.quota;
        let path = self.path();
        let folder = &self.folder;
        let loaded = self.loaded.get_or_insert_default();
        if loaded.file.is_none() {
            private_folder().create(folder)?;
            let file = private_file().create(true).truncate(false).write(true).open(path)?;
            // Without a record that an earlier writer did not finish.
            file.set_len(loaded.len)?;
            loaded.file = Some(file);
        }
        let mut batch = Batch { loaded, buffer: Vec::new() };
        for (place, line) in lines.iter().enumerate() {
            if !batch.push(line, quota)? {
                let mut dropped = Dropped::default();
                dropped.count(lines.get(place..).unwrap_or_default());
                batch.mark(dropped, line.ts, quota)?;
                break;
            }
        }
        let written = batch.write();
        if written.is_err() {
            // What the file holds now is to be seen.
            self.loaded = None;
        }
        written
    }

    /// Tells the final counts of what was dropped, and closes the file.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if !self.is_open {
            return Ok(());
        }
        self.load()?;
        self.is_open = false;
        let (path, quota) = (self.path(), self.quota);
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        if let Some(mark) = loaded.mark.filter(|mark| mark.is_behind) {
            let mut buffer = Vec::new();
            record::write(&mut buffer, &mark.dropped.record(loaded.last, mark.ts, quota))?;
            let mut file = OpenOptions::new().write(true).open(path)?;
            file.set_len(mark.at)?;
            file.seek(SeekFrom::Start(mark.at))?;
            file.write_all(&buffer)?;
            loaded.len = mark.at + buffer.len() as u64;
            loaded.mark = Some(Mark { is_behind: false, ..mark });
        }
        loaded.file = None;
        Ok(())
    }

    /// Reads up to `limit` lines after number `after`.
    pub(super) fn read(&mut self, after: u64, limit: u32) -> io::Result<Page<Line>> {
        self.load()?;
        let mut page = Page { items: Vec::new(), has_more: false };
        let path = self.path();
        let Some(loaded) = &self.loaded else { return Ok(page) };
        if after >= loaded.last {
            return Ok(page);
        }
        page.has_more = true;
        let mut file = File::open(path)?;
        let before = loaded.index.partition_point(|(seq, _)| *seq <= after + 1);
        let from = before.checked_sub(1).and_then(|place| loaded.index.get(place));
        let offset = from.map_or(0, |(_, offset)| *offset);
        file.seek(SeekFrom::Start(offset))?;
        let mut records = BufReader::with_capacity(128 << 10, file.take(loaded.len - offset));
        let (mut bytes, mut n_bytes) = (Vec::new(), 0);
        while page.items.len() < limit as usize && n_bytes < MAX_PAGE {
            bytes.clear();
            if records.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let line = record::parse(&bytes).ok_or(io::ErrorKind::InvalidData)?;
            if line.seq > after {
                n_bytes += line.message.len();
                page.items.push(line);
            }
        }
        page.has_more = page.items.last().is_some_and(|line| line.seq < loaded.last);
        Ok(page)
    }

    /// Removes the file, and its folder when nothing else is in it.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.loaded = None;
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::remove_dir(&self.folder) {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Learns what the file holds, as far as whole records go, unless this value wrote it itself.
    fn load(&mut self) -> io::Result<()> {
        if self.is_open && self.loaded.is_some() {
            return Ok(());
        }
        let mut loaded = self.loaded.take().unwrap_or_default();
        match File::open(self.path()) {
            Ok(file) => loaded.follow(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => loaded = Loaded::default(),
            Err(error) => return Err(error),
        }
        self.loaded = Some(loaded);
        Ok(())
    }
}

impl Loaded {
    /// Reads what was added since the last look.
    fn follow(&mut self, mut file: File) -> io::Result<()> {
        let len = file.metadata()?.len();
        if len == self.len {
            return Ok(());
        }
        if len < self.len || self.mark.is_some() {
            // Only the record that tells what was dropped is ever written again.
            *self = Self::default();
        }
        file.seek(SeekFrom::Start(self.len))?;
        self.scan(file)
    }

    fn scan(&mut self, file: File) -> io::Result<()> {
        let mut records = BufReader::with_capacity(128 << 10, file);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let n = records.read_until(b'\n', &mut bytes)?;
            let Some(line) = bytes.strip_suffix(b"\n").and_then(record::parse) else {
                return Ok(());
            };
            let at = self.len;
            self.note(line.seq, at);
            self.mark = Dropped::of(&line).map(|dropped| Mark {
                dropped,
                at,
                ts: line.ts,
                is_behind: false,
            });
            self.last = line.seq;
            self.len += n as u64;
        }
    }

    /// Takes the place of a record into the index when it is far enough from the last one there.
    fn note(&mut self, seq: u64, at: u64) {
        if self.index.last().is_none_or(|(_, place)| at - place >= SPAN) {
            self.index.push((seq, at));
        }
    }
}

/// Records on their way into the file.
struct Batch<'a> {
    loaded: &'a mut Loaded,
    buffer: Vec<u8>,
}

impl Batch<'_> {
    /// Takes one line, split when it is too long; `false` when what would be stored of it does not fit
    /// into the quota.
    fn push(&mut self, draft: &Draft, quota: u64) -> io::Result<bool> {
        let (begin, first) = (self.buffer.len(), self.loaded.last + 1);
        let mut places = Vec::new();
        let mut rest = &*draft.message;
        loop {
            let piece = clip(rest, MAX_LINE);
            rest = rest.get(piece.len()..).unwrap_or_default();
            let seq = first + places.len() as u64;
            places.push((seq, self.end()));
            let (ts, stream, level) = (draft.ts, draft.stream, draft.level);
            let line = Line { seq, ts, stream, level, message: piece.into() };
            record::write(&mut self.buffer, &line)?;
            if self.end() > quota {
                self.buffer.truncate(begin);
                return Ok(false);
            }
            if rest.is_empty() {
                break;
            }
        }
        for (seq, at) in places {
            self.loaded.note(seq, at);
            self.loaded.last = seq;
        }
        Ok(true)
    }

    /// Where the next record begins: so much is stored before it.
    fn end(&self) -> u64 {
        self.loaded.len + self.buffer.len() as u64
    }

    /// Takes the record that tells what was dropped.
    fn mark(&mut self, dropped: Dropped, ts: Timestamp, quota: u64) -> io::Result<()> {
        let at = self.end();
        let line = dropped.record(self.loaded.last + 1, ts, quota);
        record::write(&mut self.buffer, &line)?;
        self.loaded.note(line.seq, at);
        self.loaded.last = line.seq;
        self.loaded.mark = Some(Mark { dropped, at, ts, is_behind: false });
        Ok(())
    }

    /// Writes everything and returns the number of the last line.
    fn write(self) -> io::Result<u64> {
        let Some(file) = &mut self.loaded.file else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        file.seek(SeekFrom::Start(self.loaded.len))?;
        file.write_all(&self.buffer)?;
        self.loaded.len += self.buffer.len() as u64;
        Ok(self.loaded.last)
    }
}

/// How a file is opened that only its owner can read once it is made.
fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix sets a mode"))]
    let mut file = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file
}

/// A folder that only its owner can enter.
fn private_folder() -> DirBuilder {
    let mut folder = DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder
}

#[cfg(test)]
mod tests {
    use raincheck_core::log::{Level, Stream};

    use super::*;

    fn draft(message: &str) -> Draft {
        let ts = Timestamp::from_millis(0);
        Draft { ts, stream: Stream::Stdout, level: Level::Info, message: message.into() }
    }

    #[test]
    fn lines_that_could_not_be_written_leave_no_gap() {
        // [LOG-1]
        let root = tempfile::tempdir().expect("a directory");
        let mut log = LogFile::new(root.path().join("log"), 1000);
        log.append(Fence::NONE, &[draft("a")]).expect("kept");
        let read_only = File::open(log.path()).expect("the file");
        log.loaded.as_mut().expect("loaded").file = Some(read_only);
        log.append(Fence::NONE, &[draft("b")]).expect_err("it cannot be written");
        if let Some(loaded) = &mut log.loaded {
            loaded.file = OpenOptions::new().write(true).open(log.folder.join("log")).ok();
        }
        log.append(Fence::NONE, &[draft("c")]).expect("kept");
        let page = log.read(0, 10).expect("a page");
        let seen: Vec<_> = page.items.iter().map(|line| (line.seq, &*line.message)).collect();
        assert_eq!(seen, [(1, "a"), (2, "c")]);
    }
}
