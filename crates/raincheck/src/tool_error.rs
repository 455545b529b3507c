//! What a tool's function fails with.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;

use raincheck_core::error::{Error, Kind};

/// The failure of a tool's function. Every error turns into one with `?`.
///
/// An [`Error`] of the contract keeps its kind; any other error is `tool_failed` with its message
/// and the messages of what caused it.
///
/// ```
/// use raincheck::ToolError;
///
/// fn port(text: &str) -> Result<u16, ToolError> {
///     let port = text.parse()?;
///     if port < 1024 {
///         return Err(ToolError::new(format!("port {port} is reserved")));
///     }
///     Ok(port)
/// }
/// # assert!(port("80").is_err() && port("x").is_err() && port("8080").is_ok());
/// ```
pub struct ToolError(Error);

impl ToolError {
    /// Makes a failure of the tool, `tool_failed`, from words. They are shown to the caller as the tool's
    /// own, inside a mark.
    #[must_use]
    pub fn new(message: impl fmt::Display) -> Self {
        Self(Error::new(Kind::ToolFailed, message.to_string()))
    }

    /// Returns the error of the contract.
    #[must_use]
    pub fn into_error(self) -> Error {
        self.0
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        if let Some(known) = (&error as &dyn Any).downcast_ref::<Error>() {
            return Self(known.clone());
        }
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_contract_keeps_its_kind() {
        let fault = ToolError::from(Error::new(Kind::TooLarge, "too much"));
        assert_eq!(fault.into_error().kind, Kind::TooLarge);
    }

    #[test]
    fn any_other_error_is_the_tools_failure_with_its_causes() {
        #[derive(Debug)]
        struct Outer(std::num::ParseIntError);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bad frame")
            }
        }
        impl StdError for Outer {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&self.0)
            }
        }
        let cause = "x".parse::<u8>().expect_err("no number");
        let error = ToolError::from(Outer(cause)).into_error();
        assert_eq!(error.kind, Kind::ToolFailed);
        assert_eq!(&*error.message, "bad frame: invalid digit found in string");
    }
}
