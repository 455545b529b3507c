//! Cursors: opaque to the caller, and good only for what they were made for [LOG-1].

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::scope::Scope;

/// What a list belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binding<'a> {
    /// The log of a task.
    Log(&'a TaskId),
    /// The tasks of a scope.
    Tasks(&'a Scope),
}

impl Binding<'_> {
    /// Writes a cursor for a place.
    pub(crate) fn write(self, place: u64) -> String {
        format!("{}{place:016x}{:016x}", self.prefix(), self.check(place))
    }

    /// Reads a cursor back.
    ///
    /// # Errors
    /// `bad_cursor` for anything that [`write`](Self::write) did not write for this list.
    pub(crate) fn read(self, cursor: &str) -> Result<u64, Error> {
        let place = cursor
            .strip_prefix(self.prefix())
            .and_then(|digits| digits.get(..16))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .filter(|place| self.write(*place) == cursor);
        place.ok_or_else(|| Error::new(Kind::BadCursor, "`cursor` is not one of this list"))
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Log(_) => "log_",
            Self::Tasks(_) => "list_",
        }
    }

    /// Mixes the place with what it belongs to (FNV-1a). It tells lists apart; it is no secret.
    fn check(self, place: u64) -> u64 {
        let text = match self {
            Self::Log(task) => format!("log {task} {place}"),
            Self::Tasks(scope) => format!("tasks {scope} {place}"),
        };
        text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_only() {
        // [LOG-1]
        let (one, two) = (TaskId::from_parts(1, [1; 10]), TaskId::from_parts(1, [2; 10]));
        let cursor = Binding::Log(&one).write(42);
        assert_eq!(Binding::Log(&one).read(&cursor), Ok(42));
        let long = cursor.clone() + "x";
        let upper = cursor.to_uppercase();
        let odd =
            [&long, &upper, "garbage", "", "-1", "' OR 1=1", "\0", "log_", "log_é2345678901234567"];
        for odd in odd {
            let error = Binding::Log(&one).read(odd).expect_err(odd);
            assert_eq!(error.kind, Kind::BadCursor);
        }
        assert!(Binding::Log(&two).read(&cursor).is_err());
        assert!(Binding::Tasks(&Scope::local()).read(&cursor).is_err());
    }
}
