//! What comes from a client, read as it was written: messages, arguments, schemas, cursors.

mod arguments;
mod cursor;
mod envelope;
mod members;
mod responses;
mod schema;
mod strict;

pub(crate) use self::arguments::{Argument, Fields, Whole, list};
pub(crate) use self::cursor::Binding;
pub(crate) use self::envelope::{Code, Id, Invalid, Message, parse};
pub(crate) use self::members::Members;
pub(crate) use self::responses::read as read_responses;
pub(crate) use self::schema::Validators;
pub(crate) use self::strict::read as read_strictly;

pub use self::schema::check_schema;
