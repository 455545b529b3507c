//! What attempts ask their callers while they run [TASKS-6].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::{Json, NotJson};

/// How many questions one task may ask.
pub const MAX_INPUTS: usize = 100;

/// How many questions of one task may be open at once.
pub const MAX_OPEN: usize = 16;

/// How long a key may be, in bytes; it holds ASCII letters, digits, `_`, `-` and `.`.
pub const MAX_KEY: usize = 100;

/// How long a question, or an answer, may be, in bytes.
pub const MAX_TEXT: usize = 256 << 10;

/// A question: a request that a client can answer, as MCP has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequest {
    /// What the question is known by, among those of its task: asked again under the same key, in another
    /// attempt too, it is the same question.
    pub key: Arc<str>,
    /// The request, `{"method": …, "params": …}`.
    pub request: Json,
}

impl InputRequest {
    /// Asks by a method of MCP that servers may ask clients by, such as `elicitation/create`.
    ///
    /// # Errors
    /// When the parameters cannot be written as JSON.
    pub fn new(
        key: impl Into<Arc<str>>,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Self, NotJson> {
        #[derive(Serialize)]
        struct Request<'a, P> {
            method: &'a str,
            params: &'a P,
        }
        Ok(Self { key: key.into(), request: Json::of(&Request { method, params })? })
    }

    /// Asks a person to fill in what a schema describes: an object schema whose properties are strings,
    /// numbers or booleans. It is answered with `{"action": "accept", "content": {…}}`, or with the action
    /// `decline` or `cancel`.
    ///
    /// # Errors
    /// When the schema cannot be written as JSON.
    pub fn elicitation(
        key: impl Into<Arc<str>>,
        message: &str,
        schema: &impl Serialize,
    ) -> Result<Self, NotJson> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a, S> {
            mode: &'static str,
            message: &'a str,
            requested_schema: &'a S,
        }
        let params = Params { mode: "form", message, requested_schema: schema };
        Self::new(key, "elicitation/create", &params)
    }

    /// Tells whether the question may be asked, and names what is wrong with it otherwise.
    ///
    /// # Errors
    /// What is too long, or empty.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if self.key.is_empty() || self.key.len() > MAX_KEY || !self.key.bytes().all(is_of_word) {
            return Err("the key of a question has up to 100 letters, digits, `_`, `-` and `.`");
        }
        if self.request.get().len() > MAX_TEXT {
            return Err("a question has at most 256 KiB");
        }
        Ok(())
    }
}

/// The keys of the questions of a task that are open, in the order in which they were asked.
///
/// ```
/// use raincheck_core::input::OpenInputs;
///
/// let open: OpenInputs = ["a", "b"].into_iter().collect();
/// assert!(open.contains("b"));
/// assert_eq!(open.without("a").as_str(), Some("b"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenInputs(Option<Arc<str>>);

impl OpenInputs {
    /// Reads what [`as_str`](Self::as_str) wrote.
    #[must_use]
    pub fn read(text: &str) -> Self {
        text.split(' ').collect()
    }

    /// Returns the keys with a space between two, which no key has; `None` where no question is open.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Tells whether no question is open.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.as_str().unwrap_or_default().split(' ').filter(|key| !key.is_empty())
    }

    /// Tells whether a question is open.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.keys().any(|open| open == key)
    }

    /// Returns these and one more, once.
    #[must_use]
    pub fn with(&self, key: &str) -> Self {
        if self.contains(key) { self.clone() } else { self.keys().chain([key]).collect() }
    }

    /// Returns these without one.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        self.keys().filter(|open| *open != key).collect()
    }

    /// Returns those that are among others, too.
    #[must_use]
    pub fn among(&self, others: &Self) -> Self {
        self.keys().filter(|open| others.contains(open)).collect()
    }
}

impl<'a> FromIterator<&'a str> for OpenInputs {
    fn from_iter<I: IntoIterator<Item = &'a str>>(keys: I) -> Self {
        let keys: Vec<&str> = keys.into_iter().filter(|key| !key.is_empty()).collect();
        Self((!keys.is_empty()).then(|| keys.join(" ").into()))
    }
}

/// A question of a task, and its answer once there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// What it is known by.
    pub key: Arc<str>,
    /// The request.
    pub request: Json,
    /// What it was answered.
    pub response: Option<Json>,
}

impl Input {
    /// Tells whether the question can be answered so, as MCP has the answers to its three kinds of
    /// questions; any other is its asker's to read. What is in the `content` of an accepted form is looked
    /// at no further than for the fields that the form requires.
    ///
    /// # Errors
    /// What the answer lacks.
    pub fn check_response(&self, response: &Json) -> Result<(), BadAnswer> {
        let Ok(asked) = self.request.read::<Asked>() else { return Ok(()) };
        let given: Map<String, Value> = response.read().map_err(|_| BadAnswer::NoObject)?;
        let needed: &[&str] = match asked.method.as_str() {
            "elicitation/create" => return asked.params.check(&given),
            "sampling/createMessage" => &["role", "content", "model"],
            "roots/list" => &["roots"],
            _ => &[],
        };
        let lacking = needed.iter().find(|name| !given.contains_key(**name));
        lacking.map_or(Ok(()), |name| Err(BadAnswer::Lacks(name)))
    }
}

/// Why something is no answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// It is no object.
    #[error("it is no object")]
    NoObject,
    /// A field that its kind of question has is not there.
    #[error("`{0}` is missing")]
    Lacks(&'static str),
    /// The answer to a question to a person does not say what that person did.
    #[error("`action` must be accept, decline or cancel")]
    NoAction,
    /// The content of a form is no object.
    #[error("`content` must be an object")]
    NoContent,
    /// A field that the form requires is not there. Its name is the asker's.
    #[error("a field that the form requires is missing in `content`")]
    LacksContent(String),
}

/// What is read of a question before its answer is taken.
#[derive(Deserialize)]
struct Asked {
    method: String,
    #[serde(default)]
    params: Form,
}

/// What is read of a question to a person.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Form {
    mode: Option<String>,
    requested_schema: Schema,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema {
    required: Vec<String>,
}

impl Form {
    fn check(&self, given: &Map<String, Value>) -> Result<(), BadAnswer> {
        match given.get("action").and_then(Value::as_str) {
            Some("decline" | "cancel") => return Ok(()),
            Some("accept") => {}
            _ => return Err(BadAnswer::NoAction),
        }
        if self.mode.as_deref() == Some("url") {
            return Ok(());
        }
        let nothing = Map::new();
        let content = match given.get("content") {
            Some(content) => content.as_object().ok_or(BadAnswer::NoContent)?,
            None => &nothing,
        };
        let lacking =
            self.requested_schema.required.iter().find(|name| !content.contains_key(*name));
        lacking.map_or(Ok(()), |name| Err(BadAnswer::LacksContent(name.clone())))
    }
}

/// A change of the questions of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputChange {
    /// One was asked; it may have been asked before.
    Asked(InputRequest),
    /// One was answered.
    Given {
        /// Which.
        key: Arc<str>,
        /// What.
        response: Json,
    },
}

impl InputChange {
    /// Applies the change: the first question under a key and its first answer stay.
    pub fn apply(self, inputs: &mut Vec<Input>) {
        match self {
            Self::Asked(InputRequest { key, request }) => {
                if inputs.iter().all(|input| input.key != key) {
                    inputs.push(Input { key, request, response: None });
                }
            }
            Self::Given { key, response } => {
                if let Some(input) = inputs.iter_mut().find(|input| input.key == key) {
                    input.response.get_or_insert(response);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_question_and_the_first_answer_under_a_key_stay() {
        let request = |n: u32| InputRequest::new("k", "m", &n).expect("JSON");
        let given =
            |n: u32| InputChange::Given { key: "k".into(), response: Json::of(&n).expect("JSON") };
        let mut inputs = Vec::new();
        for change in [given(0), InputChange::Asked(request(1)), InputChange::Asked(request(2))] {
            change.apply(&mut inputs);
        }
        given(3).apply(&mut inputs);
        given(4).apply(&mut inputs);
        let [Input { request, response: Some(response), .. }] = &inputs[..] else {
            panic!("{inputs:?}")
        };
        assert_eq!((request.get(), response.get()), (r#"{"method":"m","params":1}"#, "3"));
    }

    #[test]
    fn open_questions_are_written_and_read_in_their_order() {
        let open = OpenInputs::default().with("b").with("a").with("b");
        assert_eq!((open.as_str(), open.contains("a b")), (Some("b a"), false));
        assert_eq!(OpenInputs::read("b a"), open);
        assert_eq!(open.among(&open.without("b")).as_str(), Some("a"));
        let none = open.without("a").without("b");
        assert!(none.is_empty() && none == OpenInputs::read("") && none.keys().next().is_none());
    }

    #[test]
    fn an_answer_has_the_form_that_its_question_asks_for() {
        let form =
            r#"{"method":"elicitation/create","params":{"requestedSchema":{"required":["name"]}}}"#;
        let url = r#"{"method":"elicitation/create","params":{"mode":"url"}}"#;
        let odd = r#"{"method":"elicitation/create","params":7}"#;
        let sampling = r#"{"method":"sampling/createMessage"}"#;
        for (asked, given, fault) in [
            (form, r#"{"action":"accept","content":{"name":"Ada"}}"#, None),
            (form, r#"{"action":"decline"}"#, None),
            (form, r#"{"name":"Ada"}"#, Some(BadAnswer::NoAction)),
            (form, r#"{"action":"yes"}"#, Some(BadAnswer::NoAction)),
            (form, r#"{"action":"accept"}"#, Some(BadAnswer::LacksContent("name".to_owned()))),
            (form, r#"{"action":"accept","content":[]}"#, Some(BadAnswer::NoContent)),
            (form, "[]", Some(BadAnswer::NoObject)),
            (url, r#"{"action":"accept"}"#, None),
            (sampling, r#"{"role":"assistant","content":{}}"#, Some(BadAnswer::Lacks("model"))),
            (r#"{"method":"roots/list"}"#, "{}", Some(BadAnswer::Lacks("roots"))),
            (r#"{"method":"own/question"}"#, r#"{"any":1}"#, None),
            (odd, r#"{"any":1}"#, None),
        ] {
            let request = Json::parse(asked).expect("JSON");
            let input = Input { key: "k".into(), request, response: None };
            let said = input.check_response(&Json::parse(given).expect("JSON"));
            assert_eq!(said.err(), fault, "{asked} {given}");
        }
    }

    #[test]
    fn an_elicitation_is_what_the_protocol_asks_for() {
        let schema = serde_json::json!({"type": "object"});
        let asked = InputRequest::elicitation("k", "Sure?", &schema).expect("JSON");
        assert_eq!(
            asked.request.get(),
            r#"{"method":"elicitation/create","params":{"mode":"form","message":"Sure?","requestedSchema":{"type":"object"}}}"#
        );
        assert!(asked.check().is_ok());
        for odd in ["", "a b", "k\n", &"k".repeat(101)] {
            assert!(InputRequest { key: odd.into(), ..asked.clone() }.check().is_err(), "{odd:?}");
        }
    }
}
