//! The engine: compiles a filter and runs it on a value.
//!
//! It has no limits of its own beside what a single value may grow to, so that it runs in a process that
//! can be killed.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use jaq_core::compile::Undefined;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars};

use super::syntax::{self, Def, Problem, Term};
use super::value::{Error, Value};

mod formats;
mod natives;
mod regex;
#[cfg(test)]
mod tests;

/// What filters can call: the definitions of this crate, parsed once.
static DEFINITIONS: LazyLock<Vec<Def<'static>>> = LazyLock::new(|| {
    syntax::definitions(include_str!("engine/definitions.jq")).unwrap_or_default()
});

/// The name under which a filter is compiled; one that no filter can write.
const MAIN: &str = "_main";

/// A compiled filter.
pub(super) struct Program {
    filter: jaq_core::Filter<natives::Data>,
}

/// Compiles a syntax tree; `text` is what it was parsed from.
///
/// # Errors
///
/// Names the first thing that is not defined.
pub(super) fn compile<'s>(text: &'s str, term: Term<'s>) -> Result<Program, Problem> {
    let main = Def { name: MAIN, args: Vec::new(), body: term };
    let definitions = DEFINITIONS.iter().cloned().chain([main]);
    let arena = Arena::default();
    let loaded = Loader::new(definitions).load(&arena, File { code: MAIN, path: () });
    let Ok(modules) = loaded else {
        return Err(Problem::near(0, text, "the filter cannot be loaded"));
    };
    let compiled = Compiler::default().with_funs(natives::all()).compile(modules);
    match compiled {
        Ok(filter) => Ok(Program { filter }),
        Err(errors) => {
            let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
            Err(first.map_or_else(
                || Problem::near(0, text, "the filter cannot be compiled"),
                |(name, what)| undefined(text, name, &what),
            ))
        }
    }
}

fn undefined(text: &str, name: &str, what: &Undefined) -> Problem {
    let at = (name.as_ptr() as usize)
        .checked_sub(text.as_ptr() as usize)
        .filter(|at| *at <= text.len())
        .unwrap_or(0);
    let hint = match what {
        Undefined::Filter(arity) => syntax::hint_for(
            name,
            *arity,
            known().iter().map(|(name, arity)| (name.as_str(), *arity)),
        ),
        Undefined::Var => format!("`{name}` is bound nowhere: bind it with `… as {name} | …`"),
        Undefined::Label => format!("there is no `label {name} | …` around this"),
        _ => "this is not defined".to_owned(),
    };
    Problem::near(at, text.get(at..).unwrap_or(name), hint)
}

/// Every filter that can be called, with the number of its arguments.
fn known() -> Vec<(String, usize)> {
    let natives =
        natives::all().into_iter().map(|(name, arguments, _)| (name.to_owned(), arguments.len()));
    DEFINITIONS.iter().map(|def| (def.name.to_owned(), def.args.len())).chain(natives).collect()
}

impl Program {
    /// Runs the filter; hands over each output, and the error that ends it, until told to stop.
    pub(super) fn run(
        &self,
        input: Value,
        mut each: impl FnMut(Result<Value, Error>) -> ControlFlow<()>,
    ) {
        let ctx = Ctx::<natives::Data>::new(&self.filter.lut, Vars::new([]));
        for output in self.filter.id.run((ctx, input)) {
            let output = output.map_err(|exception| {
                exception
                    .get_err()
                    .unwrap_or_else(|_| Error::str("the filter left by a way that leads nowhere"))
            });
            let is_end = output.is_err();
            if each(output).is_break() || is_end {
                return;
            }
        }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}
