//! What a body looks like: every path in it, in two KiB.

mod filters;
mod print;
mod shape;
mod walk;

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use self::{print::Printer, walk::shapes};
use crate::json::{Derived, Kind, View, text};

/// Bytes of an outline where the caller names none.
pub const DEFAULT_OUTLINE_BYTES: usize = 2048;
/// Lines of a text that its outline shows.
const N_LINES: usize = 3;

/// The outline that was asked for last, and its size.
#[derive(Default)]
struct Held(Mutex<Option<(usize, Box<[u8]>)>>);

impl Held {
    fn get(&self, bytes: usize) -> Option<Vec<u8>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().filter(|(of, _)| *of == bytes).map(|(_, outline)| outline.to_vec())
    }

    /// A longer one than usual is not worth its place.
    fn put(&self, bytes: usize, outline: &[u8]) {
        if outline.len() <= 2 * DEFAULT_OUTLINE_BYTES {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *held = Some((bytes, outline.into()));
        }
    }
}

impl Derived for Held {
    fn heap_bytes(&self) -> usize {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        size_of::<Self>() + held.as_ref().map_or(0, |(_, outline)| outline.len())
    }
}

impl View<'_> {
    /// Returns an outline of the body in at most `bytes` bytes (512 at least): JSON.
    ///
    /// `{"kind": "json", "bytes", "paths": […], "filters": […], "more"?}`. Every value of the body is
    /// looked at, also where the items of an array differ. A path is written as jq writes it
    /// (`.items[].name`) and says `type` (several as `string|null`), `count`, `present` (in how many
    /// of a hundred objects, when not in all), `min` and `max` of numbers, `enum` of at most 12
    /// different values, else up to 3 `samples`, and of containers `items` and `bytes`. What repeats
    /// itself inside itself is said once: `{"path", "$rec": path}`. An object with many names is
    /// outlined as a map: its values are at `[]`. What does not fit is left out, the deepest first,
    /// and counted in `more`. `filters` are three jq filters that suit the body.
    ///
    /// A text gives `{"kind": "text", "bytes", "lines", "samples"}`.
    ///
    /// The outline asked for last is held with the index: asking again reads nothing.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use raincheck_cache::{View, scan};
    ///
    /// let body = br#"{"items":[{"id":1,"tag":"a"},{"id":2,"tag":null},{"id":9}]}"#.as_slice();
    /// let index = scan(body)?;
    /// let outline = String::from_utf8(View::new(&body, &index).outline(2048)?)?;
    /// assert!(outline.contains(r#"{"path":".items[].id","type":"number","count":3,"enum":[1,2,9]}"#));
    /// assert!(outline.contains(r#"".items[].tag","type":"string|null","count":2,"present":66,"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn outline(&self, bytes: usize) -> io::Result<Vec<u8>> {
        let bytes = bytes.max(512);
        let held = self.index().derived::<Held>();
        if let Some(outline) = held.get(bytes) {
            return Ok(outline);
        }
        let outline = self.make_outline(bytes)?;
        held.put(bytes, &outline);
        Ok(outline)
    }

    fn make_outline(&self, bytes: usize) -> io::Result<Vec<u8>> {
        if self.root().kind == Kind::Text {
            return self.outline_of_text(bytes);
        }
        let shapes = shapes(*self)?;
        let filters = filters::suggest(self, &shapes)?;
        Ok(Printer::new(&shapes).print(self.index().body_bytes(), &filters, bytes))
    }

    fn outline_of_text(&self, bytes: usize) -> io::Result<Vec<u8>> {
        let (n_bytes, n_lines) = (self.index().body_bytes(), self.len(self.root())?);
        let mut json =
            format!("{{\"kind\":\"text\",\"bytes\":{n_bytes},\"lines\":{n_lines}").into_bytes();
        json.extend_from_slice(b",\"samples\":[");
        for line in 0..n_lines.min(N_LINES) {
            let start = self.line_start(line)?;
            let end = n_bytes.min(start + bytes / 16);
            let raw = self.bytes(start, end)?;
            let shown = String::from_utf8_lossy(&raw);
            let shown = shown.lines().next().unwrap_or("").trim_end_matches('\u{fffd}');
            if line > 0 {
                json.push(b',');
            }
            text::encode(shown, &mut json);
        }
        json.extend_from_slice(b"]}");
        Ok(json)
    }
}

#[cfg(test)]
mod tests;
