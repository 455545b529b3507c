//! `{…}`.

use super::Term;
use super::lex::Kind;
use super::parser::{Parsed, Parser, string};

impl<'s> Parser<'s, '_> {
    /// An object, behind its brace.
    pub(super) fn object(&mut self) -> Parsed<Term<'s>> {
        let mut entries = Vec::new();
        if self.take("}") {
            return Ok(Term::Obj(entries));
        }
        loop {
            entries.push(self.entry()?);
            if self.take("}") {
                return Ok(Term::Obj(entries));
            }
            if !self.take(",") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn entry(&mut self) -> Parsed<(Term<'s>, Option<Term<'s>>)> {
        let token = self.peek();
        match token.kind {
            Kind::Variable if token.text == "$__loc__" => {
                self.at_next();
                Ok((string("__loc__"), Some(self.variable_term(token)?)))
            }
            Kind::Variable => {
                self.at_next();
                let term = self.variable_term(token)?;
                let value = if self.take(":") { Some(self.pipe(false)?) } else { None };
                Ok((term, value))
            }
            Kind::Word => {
                self.at_next();
                self.value_of(string(token.text))
            }
            Kind::Number => {
                self.at_next();
                Err(self.unexpected("a key in quotes, as in `{\"1\": …}`; keys are strings"))
            }
            Kind::Quote => {
                let name = self.string(None)?;
                self.value_of(name)
            }
            Kind::Format => {
                self.at_next();
                if self.peek().kind != Kind::Quote {
                    return Err(self.unexpected("a string behind the format"));
                }
                let name = self.string(Some(token.text))?;
                self.value_of(name)
            }
            Kind::Sign if token.text == "(" => {
                self.at_next();
                let name = self.pipe(true)?;
                self.expect(")")?;
                self.expect(":")?;
                Ok((name, Some(self.pipe(false)?)))
            }
            _ => {
                Err(self.unexpected("a key such as `name`, `\"a key\"`, `$variable` or `(filter)`"))
            }
        }
    }

    fn value_of(&mut self, name: Term<'s>) -> Parsed<(Term<'s>, Option<Term<'s>>)> {
        let value = if self.take(":") { Some(self.pipe(false)?) } else { None };
        Ok((name, value))
    }

    fn at_next(&mut self) {
        self.next();
    }
}
