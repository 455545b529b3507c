//! What a client answers to questions: the results of requests, by the keys of these.

use std::collections::BTreeMap;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::input::MAX_TEXT;
use raincheck_core::text;

/// Reads `inputResponses`. All of them are looked at before the first one counts.
///
/// # Errors
/// `invalid_params` for what is no object of objects, or too long.
pub(crate) fn read(responses: &Json) -> Result<BTreeMap<String, Json>, Error> {
    let responses: BTreeMap<String, Json> = responses.read().map_err(|_| {
        Error::new(Kind::InvalidParams, "`inputResponses` is no object")
            .with_hint("send the answers by the keys of inputRequests")
    })?;
    responses.iter().try_for_each(|(key, response)| is_response(key, response))?;
    Ok(responses)
}

/// Looks whether an answer can be one.
fn is_response(key: &str, response: &Json) -> Result<(), Error> {
    let why = if !response.get().trim_start().starts_with('{') {
        "is no object"
    } else if response.get().len() > MAX_TEXT {
        "is larger than 256 KiB"
    } else {
        return Ok(());
    };
    let key = text::escape(text::clip(key, 100)).into_owned();
    Err(Error::new(Kind::InvalidParams, format!("the answer to `{key}` in `inputResponses` {why}"))
        .with_hint(
            "send the result of the request, such as {\"action\": \"accept\", \"content\": {}}",
        ))
}
