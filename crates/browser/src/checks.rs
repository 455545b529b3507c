//! Whether a call asks for something that there is, with all that it takes [BROWSER-1].

use std::path::Path;

use raincheck_core::error::{Error, Kind};

use crate::actions::{ACTIONS, Entry, Place, Rule, VIEWS};
use crate::address;
use crate::arguments::{Arguments, Field, Form};
use crate::files;
use crate::settings::Shows;

/// What is not one of several steps: what answers with an image or a file, and what is about steps.
const ALONE: &[&str] = &["batch", "record_start", "screenshot", "pdf"];

/// What a call is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    /// The port of this server, which no page may be sent to.
    pub(crate) own_port: Option<u16>,
    /// The folder that files may be taken from.
    pub(crate) files_dir: Option<&'a Path>,
    /// What a person allowed to be shown.
    pub(crate) shows: Shows,
}

impl Bounds<'_> {
    /// Checks the arguments of an entry; `also` are those that it takes beside its own. Works with
    /// blocking calls where it takes files.
    pub(crate) fn check(
        &self,
        arguments: &Arguments,
        (chooser, entry): (&str, &Entry),
        also: &[Field],
    ) -> Result<(), Error> {
        arguments.check((chooser, entry.name), &[entry.fields, also])?;
        self.check_shown(entry.name)?;
        match entry.rule {
            Rule::None => {}
            Rule::AtMostOne(names) if names.iter().any(|name| arguments.has(name)) => {
                arguments.check_one_of(entry.name, names, true)?;
            }
            Rule::AtMostOne(_) => {}
            Rule::One(names) => arguments.check_one_of(entry.name, names, true)?,
            Rule::Some(names) => arguments.check_one_of(entry.name, names, false)?,
            Rule::Together(names) => arguments.check_together(entry.name, names)?,
        }
        for field in entry.fields.iter().filter(|field| field.form == Form::Address) {
            if let Some(address) = arguments.text(field.name) {
                address::check(field.name, address, self.own_port)?;
            }
        }
        if let Some(name) = arguments.text("save_to") {
            files::check_name("save_to", self.files_dir, name)?;
        }
        for (n, name) in arguments.texts("files").iter().enumerate() {
            files::check(&format!("files[{n}]"), self.files_dir, name)?;
        }
        let steps = arguments.objects("steps");
        check_values(arguments, &steps)?;
        for (n, step) in steps.into_iter().enumerate() {
            self.step(&step).map_err(|error| {
                let message = format!("`steps[{n}]`: {}", error.message);
                Error { message: message.into(), ..error }
            })?;
        }
        Ok(())
    }

    /// Refuses what a person has to allow first.
    fn check_shown(&self, what: &str) -> Result<(), Error> {
        let (setting, is_shown) = match what {
            "storage" => ("show_storage", self.shows.storage),
            "cookies" => ("show_cookies", self.shows.cookies),
            _ => return Ok(()),
        };
        if is_shown {
            return Ok(());
        }
        let hint = format!(
            "ask the user to allow it: {setting} = true in [browser] of raincheck.toml, or --{} true",
            setting.replace('_', "-")
        );
        let error =
            Error::new(Kind::Unauthorized, format!("`{what}` is not shown: nobody allowed it"));
        Err(error.with_hint(hint))
    }

    /// Checks one step of a batch: it is done in the tab of the batch, within its limits.
    fn step(&self, step: &Arguments) -> Result<(), Error> {
        let chooser = if step.has("action") { "action" } else { "what" };
        let fits = |entry: &&Entry| entry.place == Place::Tab && !ALONE.contains(&entry.name);
        let known: Vec<&Entry> = ACTIONS.iter().chain(VIEWS).filter(fits).collect();
        let entry = step.choice(chooser, &known, |entry| entry.name, &[])?;
        self.check(step, (chooser, entry), &[])
    }
}

/// Checks that there is a value for every name that a recorded step has in the place of a secret.
fn check_values(arguments: &Arguments, steps: &[Arguments]) -> Result<(), Error> {
    let values = arguments.object("values");
    let has = |name: &str| values.as_ref().is_some_and(|values| values.text(name).is_some());
    for step in steps {
        let fields = step.objects("fields");
        let texts = std::iter::once(step).chain(&fields);
        let texts = texts.flat_map(|each| [each.text("text"), each.text("value")]).flatten();
        if let Some(name) = texts.filter_map(name_in).find(|name| !has(name)) {
            let words = format!("`values.{name}` is missing: a recorded step types it");
            let hint = format!("pass values {{\"{name}\": the text that was not recorded}}");
            return Err(Error::new(Kind::InvalidParams, words).with_hint(hint));
        }
    }
    Ok(())
}

/// Returns the name in `{{secret:NAME}}`.
pub(crate) fn name_in(text: &str) -> Option<&str> {
    let name = text.strip_prefix("{{secret:")?.strip_suffix("}}")?;
    let is_of_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
    (1..=40).contains(&name.len()).then_some(name).filter(|it| it.bytes().all(is_of_name))
}

/// Tells whether a call takes files, so that its check looks at the disk.
pub(crate) fn looks_at_files(arguments: &Arguments) -> bool {
    let takes = |arguments: &Arguments| arguments.has("files");
    takes(arguments) || arguments.objects("steps").iter().any(takes)
}

#[cfg(test)]
mod tests {
    use raincheck_core::content::Json;

    use super::*;

    fn check(inputs: &str) -> Result<(), Error> {
        let arguments = Arguments::read(&Json::parse(inputs).expect("JSON"))?;
        let all: Vec<Entry> = ACTIONS.iter().chain(VIEWS).copied().collect();
        let entry = arguments.choice("action", &all, |entry| entry.name, &[])?;
        let bounds = Bounds { own_port: Some(4711), files_dir: None, shows: Shows::default() };
        bounds.check(&arguments, ("action", entry), &[])
    }

    #[test]
    fn what_is_within_an_argument_is_checked_and_named() {
        // [BROWSER-1]
        for (inputs, words) in [
            (r##"{"action":"click","ref":"e1","button":"side"}"##, "`button`"),
            (r##"{"action":"click","ref":"e1","count":4}"##, "`count`"),
            (r##"{"action":"click","ref":"e1","modifiers":["Shift","Hyper"]}"##, "`modifiers[1]`"),
            (r##"{"action":"click","ref":"e1","modifiers":[]}"##, "`modifiers`"),
            (r##"{"action":"drag","from":{"ref":"e1"}}"##, "`to`"),
            (r##"{"action":"drag","from":{"ref":"e1"},"to":{"x":1}}"##, "`to`"),
            (
                r##"{"action":"drag","from":{"ref":"e1","selector":"a"},"to":{"ref":"e2"}}"##,
                "`from`",
            ),
            (r##"{"action":"drag","from":{"ref":"e1"},"to":{"ref":7}}"##, "`to.ref`"),
            (r##"{"action":"fill_form","fields":[]}"##, "`fields`"),
            (
                r##"{"action":"fill_form","fields":[{"ref":"e1","value":"a"},{"ref":"e2"}]}"##,
                "`fields[1].value`",
            ),
            (r##"{"action":"fill_form","fields":[{"ref":"e1","value":{}}]}"##, "`fields[0].value`"),
            (r##"{"action":"fill_form","fields":[{"name":"a","value":"b"}]}"##, "`name`"),
            (
                r##"{"action":"batch","steps":[{"action":"reload"},{"action":"tab_new"}]}"##,
                "`steps[1]`",
            ),
            (r##"{"action":"batch","steps":[{"action":"batch","steps":[]}]}"##, "`steps[0]`"),
            (r##"{"action":"batch","steps":[{"action":"click"}]}"##, "`steps[0]`"),
            (r##"{"action":"batch","steps":[{"action":"reload","tab_id":7}]}"##, "`tab_id`"),
            (r##"{"action":"batch","steps":["reload"]}"##, "`steps[0]`"),
            (r##"{"action":"page_tools","name":"add","origin":"http://a"}"##, "`schema_hash`"),
            (r##"{"action":"batch","steps":[{"action":"record_start"}]}"##, "`steps[0]`"),
            (
                r##"{"action":"batch","steps":[{"action":"fill","selector":"#a","text":"{{secret:a}}"}]}"##,
                "`values.a`",
            ),
            (
                r##"{"action":"batch","values":{"a":null},"steps":[{"action":"fill_form","fields":[{"selector":"#a","value":"{{secret:a}}"}]}]}"##,
                "`values.a`",
            ),
            (
                r##"{"action":"page_tools","name":"add","origin":"http://a","schema_hash":"0","arguments":[1]}"##,
                "`arguments`",
            ),
        ] {
            let error = check(inputs).expect_err(inputs);
            assert_eq!(error.kind, Kind::InvalidParams, "{inputs}");
            assert!(error.message.contains(words), "{inputs}: {error}");
        }
        for inputs in [
            r##"{"action":"click","ref":"e1","button":"right","count":2,"modifiers":["Shift"]}"##,
            r##"{"action":"drag","from":{"ref":"e1"},"to":{"x":1,"y":2.5}}"##,
            r##"{"action":"fill_form","fields":[{"ref":"e1","value":true},{"selector":"#a","value":["b"]}]}"##,
            r##"{"action":"batch","values":{"a":"x"},"recorded":{"n_steps":1},"steps":[{"action":"fill","selector":"#a","text":"{{secret:a}}"}]}"##,
            r##"{"action":"page_tools","name":"add","origin":"http://a","schema_hash":"0","arguments":{}}"##,
            r##"{"action":"page_tools"}"##,
            r##"{"action":"batch","steps":[{"action":"click","ref":"e1"},{"what":"snapshot"},{"what":"click","ref":"e2"}]}"##,
        ] {
            check(inputs).unwrap_or_else(|error| panic!("{inputs}: {error}"));
        }
    }

    #[test]
    fn a_step_goes_to_no_address_that_a_call_may_not_open() {
        // [SEC-7, BROWSER-16]
        let inputs =
            r#"{"action":"batch","steps":[{"action":"navigate","url":"file:///etc/passwd"}]}"#;
        assert_eq!(check(inputs).expect_err("blocked").kind, Kind::UrlBlocked);
    }

    #[test]
    fn what_a_page_keeps_is_shown_to_nobody_unless_a_person_allows_it() {
        // [BROWSER-48]
        for inputs in [
            r#"{"action":"storage"}"#,
            r#"{"action":"cookies"}"#,
            r#"{"action":"batch","steps":[{"what":"cookies"}]}"#,
        ] {
            assert_eq!(check(inputs).expect_err(inputs).kind, Kind::Unauthorized, "{inputs}");
        }
    }

    #[test]
    fn without_a_named_folder_no_file_is_taken() {
        let upload = r##"{"action":"upload","selector":"#f","files":["a.txt"]}"##;
        assert_eq!(check(upload).expect_err("no folder").kind, Kind::Unauthorized);
        let step = r##"{"action":"batch","steps":[{"action":"upload","selector":"#f","files":["a.txt"]}]}"##;
        assert_eq!(check(step).expect_err("no folder").kind, Kind::Unauthorized);
    }
}
