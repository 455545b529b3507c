//! Why a body is refused, and where.

/// Why bytes are not a body, with the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} at line {line}, column {column} (byte {offset})")]
pub struct Invalid {
    /// Offset of the byte at fault, from 0.
    pub offset: usize,
    /// Line of that byte, from 1.
    pub line: usize,
    /// Column of that byte in its line, from 1, in bytes.
    pub column: usize,
    /// What is wrong there.
    pub why: Why,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// Nothing but white space.
    #[error("no value")]
    Empty,
    /// The body ends inside a value.
    #[error("the body ends inside a value")]
    Truncated,
    /// Something follows the value.
    #[error("something follows the value")]
    Trailing,
    /// A value was expected; `NaN`, `Infinity` and comments come here.
    #[error("not a JSON value")]
    Value,
    /// A number that JSON does not write this way.
    #[error("not a JSON number")]
    Number,
    /// A member name in quotes was expected.
    #[error("expected a member name in double quotes")]
    Name,
    /// A colon was expected.
    #[error("expected `:`")]
    Colon,
    /// A comma or the end of the container was expected.
    #[error("expected `,` or the end of the array or object")]
    Comma,
    /// A control character in a string that is not escaped.
    #[error("a control character in a string must be escaped")]
    Control,
    /// An escape that JSON does not know.
    #[error("not a JSON escape")]
    Escape,
    /// Half of a surrogate pair, which is no character.
    #[error("half of a surrogate pair is no character")]
    LoneSurrogate,
    /// A member name that the object already has: which value counts is not said anywhere.
    #[error("the object already has a member of this name")]
    DuplicateName,
    /// More containers inside each other than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("nested deeper than 512 levels")]
    TooDeep,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8")]
    Utf8,
    /// More than 4 GiB, which the index cannot address.
    #[error("more than 4 GiB")]
    TooLong,
}
