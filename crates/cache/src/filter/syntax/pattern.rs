//! `… as PATTERN | …`, with alternatives.

use std::collections::BTreeSet;

use jaq_core::load::parse::{BinaryOp, Pattern};

use super::lex::Kind;
use super::parser::{Parsed, Parser, string};
use super::{Def, Term};

/// Names that no filter can write: what a binding with alternatives is made of.
const INPUT: &str = "$ input";
const VALUE: &str = "$ value";
const BODY: &str = "body of alternatives";

impl<'s> Parser<'s, '_> {
    /// What follows `SOURCE as`.
    pub(super) fn binding(&mut self, source: Term<'s>, has_commas: bool) -> Parsed<Term<'s>> {
        let mut patterns = vec![self.pattern()?];
        while self.take("?//") {
            patterns.push(self.pattern()?);
        }
        self.expect("|")?;
        let body = self.pipe(has_commas)?;
        if let [_] = patterns.as_slice()
            && let Some(pattern) = patterns.pop()
        {
            return Ok(bind(source, pattern, body));
        }
        Ok(alternatives(source, patterns, body))
    }

    pub(super) fn pattern(&mut self) -> Parsed<Pattern<&'s str>> {
        self.deeper(|p| {
            if p.take("[") {
                let mut items = vec![p.pattern()?];
                while p.take(",") {
                    items.push(p.pattern()?);
                }
                p.expect("]")?;
                return Ok(Pattern::Arr(items));
            }
            if p.take("{") {
                let mut entries = Vec::new();
                p.pattern_entry(&mut entries)?;
                while p.take(",") {
                    p.pattern_entry(&mut entries)?;
                }
                p.expect("}")?;
                return Ok(Pattern::Obj(entries));
            }
            p.variable().map(Pattern::Var)
        })
    }

    fn pattern_entry(&mut self, entries: &mut Vec<(Term<'s>, Pattern<&'s str>)>) -> Parsed<()> {
        let token = self.peek();
        let name = match token.kind {
            Kind::Variable => {
                self.next();
                let name = string(token.text.get(1..).unwrap_or_default());
                entries.push((name.clone(), Pattern::Var(token.text)));
                if !self.take(":") {
                    return Ok(());
                }
                entries.push((name, self.pattern()?));
                return Ok(());
            }
            Kind::Word => {
                self.next();
                string(token.text)
            }
            Kind::Quote => self.string(None)?,
            Kind::Sign if token.text == "(" => {
                self.next();
                let name = self.pipe(true)?;
                self.expect(")")?;
                name
            }
            _ => return Err(self.unexpected("a key such as `name` or `$name`")),
        };
        self.expect(":")?;
        entries.push((name, self.pattern()?));
        Ok(())
    }
}

fn bind<'s>(source: Term<'s>, pattern: Pattern<&'s str>, body: Term<'s>) -> Term<'s> {
    Term::BinOp(Box::new(source), BinaryOp::Pipe(Some(pattern)), Box::new(body))
}

/// Tries each pattern, and the body with it, until one does not fail. Each variable of any pattern is
/// bound in the body, to null where its pattern was not the one.
fn alternatives<'s>(source: Term<'s>, patterns: Vec<Pattern<&'s str>>, body: Term<'s>) -> Term<'s> {
    let names: Vec<BTreeSet<&'s str>> = patterns.iter().map(variables).collect();
    let all: BTreeSet<&'s str> = names.iter().flatten().copied().collect();
    let mut attempt = None;
    for (pattern, own) in patterns.into_iter().zip(names).rev() {
        let value = |name| {
            if own.contains(name) { Term::Var(name) } else { Term::Call("null", Vec::new()) }
        };
        let call = Term::Call(BODY, all.iter().map(|name| value(*name)).collect());
        let this = bind(Term::Var(VALUE), pattern, call);
        attempt = Some(match attempt {
            None => this,
            Some(next) => {
                let from_input =
                    Term::BinOp(Box::new(Term::Var(INPUT)), BinaryOp::Pipe(None), Box::new(next));
                Term::TryCatch(Box::new(this), Some(Box::new(from_input)))
            }
        });
    }
    let body = Def { name: BODY, args: all.into_iter().collect(), body };
    let inner = Term::Def(vec![body], Box::new(attempt.unwrap_or_default()));
    bind(Term::Id, Pattern::Var(INPUT), bind(source, Pattern::Var(VALUE), inner))
}

fn variables<'s>(pattern: &Pattern<&'s str>) -> BTreeSet<&'s str> {
    match pattern {
        Pattern::Var(name) => BTreeSet::from([*name]),
        Pattern::Arr(items) => items.iter().flat_map(variables).collect(),
        Pattern::Obj(entries) => {
            entries.iter().flat_map(|(_, pattern)| variables(pattern)).collect()
        }
    }
}
