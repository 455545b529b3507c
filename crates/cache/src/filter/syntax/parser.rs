//! From tokens to a syntax tree.
//!
//! The tree is that of the engine; the grammar is jq's. Nesting is bounded, so that a tree can be walked
//! and dropped on any stack.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::BinaryOp;
use jaq_core::ops::{Cmp, Math};
use jaq_core::path::{Opt, Part, Path};

use super::lex::{Kind, Token, lex};
use super::{Def, Problem, Term, names};

/// How deep terms may stand in each other.
const DEPTH: usize = 128;

/// How many operators one term may chain, beside `|` and `,`.
const CHAIN: usize = 256;

/// The numbers of the lines of a filter, for `$__loc__`.
pub(in crate::filter) type Lines = jaq_core::load::Arena;

/// Parses a whole filter.
pub(in crate::filter) fn program<'s>(text: &'s str, lines: &'s Lines) -> Result<Term<'s>, Problem> {
    let tokens = lex(text)?;
    let mut parser = Parser { text, tokens: &tokens, lines: Some(lines), at: 0, depth: 0 };
    if parser.peek().kind == Kind::End {
        return Ok(Term::Id);
    }
    let term = parser.pipe(true)?;
    if parser.peek().kind == Kind::End {
        Ok(term)
    } else {
        Err(parser.unexpected("the end, `|` or `,`"))
    }
}

/// Parses a list of definitions.
pub(in crate::filter) fn definitions(text: &str) -> Result<Vec<Def<'_>>, Problem> {
    let tokens = lex(text)?;
    let mut parser = Parser { text, tokens: &tokens, lines: None, at: 0, depth: 0 };
    let definitions = parser.definitions()?;
    if parser.peek().kind == Kind::End { Ok(definitions) } else { Err(parser.unexpected("`def`")) }
}

pub(super) type Parsed<T> = Result<T, Problem>;

pub(super) struct Parser<'s, 't> {
    text: &'s str,
    tokens: &'t [Token<'s>],
    lines: Option<&'s Lines>,
    at: usize,
    depth: usize,
}

impl<'s> Parser<'s, '_> {
    pub(super) fn peek(&self) -> Token<'s> {
        let end = Token { kind: Kind::End, text: "", at: self.text.len() };
        self.tokens.get(self.at).copied().unwrap_or(end)
    }

    pub(super) fn next(&mut self) -> Token<'s> {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Sign && token.text == sign
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && token.text == word
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    pub(super) fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    pub(super) fn variable(&mut self) -> Parsed<&'s str> {
        let token = self.peek();
        if token.kind != Kind::Variable {
            return Err(self.unexpected("a variable such as `$x`"));
        }
        self.at += 1;
        Ok(token.text)
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Problem {
        let token = self.peek();
        let near = self.text.get(token.at..).unwrap_or_default();
        let hint = match token.kind {
            Kind::End => format!("the filter ends too soon: write {wanted} here"),
            _ => names::habit(token.text)
                .map_or_else(|| format!("write {wanted} here"), ToOwned::to_owned),
        };
        Problem::near(token.at, near, hint)
    }

    /// Runs a parser one level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            let token = self.peek();
            return Err(Problem::near(
                token.at,
                token.text,
                format!("a filter nests at most {DEPTH} deep: write it flatter"),
            ));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// `a, b | c, d`, or without commas inside of `{…}`.
    pub(super) fn pipe(&mut self, has_commas: bool) -> Parsed<Term<'s>> {
        self.deeper(|p| {
            let mut stages = vec![p.commas(has_commas)?];
            while p.take("|") {
                stages.push(p.commas(has_commas)?);
            }
            Ok(balanced(stages, || BinaryOp::Pipe(None)))
        })
    }

    fn commas(&mut self, has_commas: bool) -> Parsed<Term<'s>> {
        let mut items = vec![self.operation(0, has_commas)?];
        while has_commas && self.take(",") {
            items.push(self.operation(0, has_commas)?);
        }
        Ok(balanced(items, || BinaryOp::Comma))
    }

    /// Operators by their precedence, from `min` up.
    fn operation(&mut self, min: usize, has_commas: bool) -> Parsed<Term<'s>> {
        let mut left = self.operand(has_commas)?;
        let mut last = None;
        for _ in 0..CHAIN {
            let Some((operator, precedence, grouping)) = operator(&self.peek()) else {
                return Ok(left);
            };
            if precedence < min {
                return Ok(left);
            }
            if grouping == Grouping::None && last == Some(precedence) {
                return Err(self.unexpected("parentheses around the comparison"));
            }
            last = Some(precedence);
            self.at += 1;
            let next_min = if grouping == Grouping::Right { precedence } else { precedence + 1 };
            let right = self.deeper(|p| p.operation(next_min, has_commas))?;
            left = Term::BinOp(Box::new(left), operator, Box::new(right));
        }
        Err(self.unexpected(&format!("at most {CHAIN} operators in a row")))
    }

    /// A term with what stands before and behind it.
    fn operand(&mut self, has_commas: bool) -> Parsed<Term<'s>> {
        if self.is_word("def") {
            let definitions = self.definitions()?;
            return Ok(Term::Def(definitions, Box::new(self.pipe(has_commas)?)));
        }
        if self.take_word("label") {
            let label = self.variable()?;
            self.expect("|")?;
            return Ok(Term::Label(label, Box::new(self.pipe(has_commas)?)));
        }
        let term = self.postfix()?;
        if self.take_word("as") {
            return self.binding(term, has_commas);
        }
        Ok(term)
    }

    pub(super) fn definitions(&mut self) -> Parsed<Vec<Def<'s>>> {
        let mut definitions = Vec::new();
        while self.take_word("def") {
            definitions.push(self.definition()?);
        }
        Ok(definitions)
    }

    fn definition(&mut self) -> Parsed<Def<'s>> {
        let token = self.peek();
        if !matches!(token.kind, Kind::Word | Kind::Format) || token.text.contains("::") {
            return Err(self.unexpected("the name of the definition"));
        }
        self.at += 1;
        let mut args = Vec::new();
        if self.take("(") {
            loop {
                let token = self.next();
                if !matches!(token.kind, Kind::Word | Kind::Variable) {
                    self.at -= 1;
                    return Err(self.unexpected("the name of an argument"));
                }
                args.push(token.text);
                if !self.take(";") {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect(":")?;
        let body = self.pipe(true)?;
        self.expect(";")?;
        Ok(Def { name: token.text, args, body })
    }

    /// A term with its path, such as `.a[0]?` or `f(x).b`.
    pub(super) fn postfix(&mut self) -> Parsed<Term<'s>> {
        let mut term = self.deeper(Self::primary)?;
        let mut parts: Vec<(Part<Term<'s>>, Opt)> = Vec::new();
        loop {
            if self.take("?") {
                match parts.last_mut() {
                    Some((_, opt)) => *opt = Opt::Optional,
                    None => term = Term::TryCatch(Box::new(term), None),
                }
            } else if let Some(part) = self.part()? {
                parts.push((part, Opt::Essential));
            } else {
                break;
            }
            if parts.len() > CHAIN {
                return Err(self.unexpected("a shorter path"));
            }
        }
        // A leading `.a` is a part of the identity.
        match term {
            term if parts.is_empty() => Ok(term),
            Term::Path(base, Path(mut before)) if matches!(*base, Term::Id) => {
                before.append(&mut parts);
                Ok(Term::Path(base, Path(before)))
            }
            term => Ok(Term::Path(Box::new(term), Path(parts))),
        }
    }

    /// A part of a path, if there is one.
    fn part(&mut self) -> Parsed<Option<Part<Term<'s>>>> {
        let token = self.peek();
        match (token.kind, token.text) {
            (Kind::Field, text) => {
                self.at += 1;
                Ok(Some(Part::Index(key(text.get(1..).unwrap_or_default()))))
            }
            (Kind::Sign, "[") => self.bracket().map(Some),
            (Kind::Sign, ".") => {
                let behind = self.tokens.get(self.at + 1);
                match behind.map(|token| (token.kind, token.text)) {
                    Some((Kind::Quote, _)) => {
                        self.at += 1;
                        Ok(Some(Part::Index(self.string(None)?)))
                    }
                    Some((Kind::Sign, "[")) => {
                        self.at += 1;
                        self.bracket().map(Some)
                    }
                    _ => {
                        self.at += 1;
                        Err(self.unexpected("a key such as `.name`, `.\"a key\"` or `[0]`"))
                    }
                }
            }
            _ => Ok(None),
        }
    }

    /// `[]`, `[i]`, `[i:j]`.
    fn bracket(&mut self) -> Parsed<Part<Term<'s>>> {
        self.expect("[")?;
        if self.take("]") {
            return Ok(Part::Range(None, None));
        }
        let from = if self.is_sign(":") { None } else { Some(self.pipe(true)?) };
        if !self.take(":") {
            self.expect("]")?;
            return Ok(from.map_or(Part::Range(None, None), Part::Index));
        }
        let to = if self.is_sign("]") { None } else { Some(self.pipe(true)?) };
        if from.is_none() && to.is_none() {
            return Err(self.unexpected("an index"));
        }
        self.expect("]")?;
        Ok(Part::Range(from, to))
    }

    fn primary(&mut self) -> Parsed<Term<'s>> {
        let token = self.peek();
        match token.kind {
            Kind::Number => {
                self.at += 1;
                Ok(Term::Num(token.text))
            }
            Kind::Quote => self.string(None),
            Kind::Format => {
                self.at += 1;
                if self.peek().kind == Kind::Quote {
                    return self.string(Some(token.text));
                }
                Ok(Term::Call(token.text, Vec::new()))
            }
            Kind::Field => {
                self.at += 1;
                let part = Part::Index(key(token.text.get(1..).unwrap_or_default()));
                Ok(Term::Path(Box::new(Term::Id), Path(vec![(part, Opt::Essential)])))
            }
            Kind::Variable => {
                self.at += 1;
                self.variable_term(token)
            }
            Kind::Word => self.word(token),
            Kind::Sign => self.sign(token),
            Kind::Text | Kind::Char(_) | Kind::Enter | Kind::Leave | Kind::Unquote | Kind::End => {
                Err(self.unexpected("a filter such as `.` or `.name`"))
            }
        }
    }

    fn sign(&mut self, token: Token<'s>) -> Parsed<Term<'s>> {
        self.at += 1;
        match token.text {
            "." => {
                if self.peek().kind == Kind::Quote {
                    let part = Part::Index(self.string(None)?);
                    return Ok(Term::Path(Box::new(Term::Id), Path(vec![(part, Opt::Essential)])));
                }
                Ok(Term::Id)
            }
            ".." => Ok(Term::Recurse),
            "-" => Ok(Term::Neg(Box::new(self.postfix()?))),
            "(" => {
                let term = self.pipe(true)?;
                self.expect(")")?;
                Ok(term)
            }
            "[" => {
                if self.take("]") {
                    return Ok(Term::Arr(None));
                }
                let term = self.pipe(true)?;
                self.expect("]")?;
                Ok(Term::Arr(Some(Box::new(term))))
            }
            "{" => self.object(),
            _ => {
                self.at -= 1;
                Err(self.unexpected("a filter such as `.` or `.name`"))
            }
        }
    }

    fn word(&mut self, token: Token<'s>) -> Parsed<Term<'s>> {
        self.at += 1;
        match token.text {
            "if" => self.condition(),
            "try" => {
                let body = self.postfix()?;
                let handler =
                    if self.take_word("catch") { Some(Box::new(self.postfix()?)) } else { None };
                Ok(Term::TryCatch(Box::new(body), handler))
            }
            "reduce" | "foreach" => self.fold(token),
            "break" => Ok(Term::Break(self.variable()?)),
            "def" | "label" => {
                self.at -= 1;
                self.operand(true)
            }
            word => {
                if let Some(hint) = names::removed(word) {
                    return Err(Problem::near(
                        token.at,
                        self.text.get(token.at..).unwrap_or_default(),
                        hint,
                    ));
                }
                if names::is_keyword(word) || word.contains("::") {
                    self.at -= 1;
                    return Err(self.unexpected("a filter such as `.` or `.name`"));
                }
                Ok(Term::Call(word, self.arguments()?))
            }
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Term<'s>>> {
        let mut arguments = Vec::new();
        if self.take("(") {
            arguments.push(self.pipe(true)?);
            while self.take(";") {
                arguments.push(self.pipe(true)?);
            }
            if self.is_sign(",") {
                return Err(self.unexpected("`;` between arguments"));
            }
            self.expect(")")?;
        }
        Ok(arguments)
    }

    fn condition(&mut self) -> Parsed<Term<'s>> {
        let mut branches = Vec::new();
        loop {
            let condition = self.pipe(true)?;
            self.expect_word("then")?;
            branches.push((condition, self.pipe(true)?));
            if self.take_word("elif") {
                continue;
            }
            let other =
                if self.take_word("else") { Some(Box::new(self.pipe(true)?)) } else { None };
            self.expect_word("end")?;
            return Ok(Term::IfThenElse(branches, other));
        }
    }

    fn fold(&mut self, token: Token<'s>) -> Parsed<Term<'s>> {
        let source = self.postfix()?;
        self.expect_word("as")?;
        let pattern = self.pattern()?;
        let near = self.peek();
        let arguments = self.arguments()?;
        let is_known = match token.text {
            "reduce" => arguments.len() == 2,
            _ => (2..=3).contains(&arguments.len()),
        };
        if !is_known {
            let hint = match token.text {
                "reduce" => "write `reduce SOURCE as $x (INITIAL; UPDATE)`",
                _ => "write `foreach SOURCE as $x (INITIAL; UPDATE; EXTRACT)`",
            };
            return Err(Problem::near(near.at, self.text.get(near.at..).unwrap_or_default(), hint));
        }
        Ok(Term::Fold(token.text, Box::new(source), pattern, arguments))
    }

    pub(super) fn variable_term(&mut self, token: Token<'s>) -> Parsed<Term<'s>> {
        match token.text {
            "$__loc__" => {
                let before = self.text.get(..token.at).unwrap_or_default();
                let line = 1 + before.matches('\n').count();
                let line: &'s str = self.lines.map_or("1", |lines| lines.alloc(line.to_string()));
                let entries = [("file", string("<top-level>")), ("line", Term::Num(line))];
                Ok(Term::Obj(entries.map(|(name, value)| (string(name), Some(value))).into()))
            }
            "$ENV" => Err(Problem::near(token.at, token.text, names::NO_ENVIRONMENT)),
            name => Ok(Term::Var(name)),
        }
    }

    /// A string, from its quote, with what stands in it.
    pub(super) fn string(&mut self, format: Option<&'s str>) -> Parsed<Term<'s>> {
        let mut parts = Vec::new();
        self.at += 1;
        loop {
            let token = self.next();
            match token.kind {
                Kind::Text => parts.push(StrPart::Str(token.text)),
                Kind::Char(char) => parts.push(StrPart::Char(char)),
                Kind::Enter => {
                    let term = self.pipe(true)?;
                    if self.peek().kind != Kind::Leave {
                        return Err(self.unexpected("`)`"));
                    }
                    self.at += 1;
                    parts.push(StrPart::Term(term));
                }
                _ => return Ok(Term::Str(format, parts)),
            }
        }
    }
}

/// Returns a string that stands for itself.
pub(super) fn string(text: &str) -> Term<'_> {
    Term::Str(None, vec![StrPart::Str(text)])
}

fn key(name: &str) -> Term<'_> {
    string(name)
}

/// Joins terms by an operator that groups as one likes, as flat as can be.
fn balanced<'s>(mut terms: Vec<Term<'s>>, operator: fn() -> BinaryOp<&'s str>) -> Term<'s> {
    match terms.len() {
        0 => Term::Id,
        1 => terms.pop().unwrap_or_default(),
        n => {
            let right = balanced(terms.split_off(n / 2), operator);
            Term::BinOp(Box::new(balanced(terms, operator)), operator(), Box::new(right))
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouping {
    Left,
    Right,
    None,
}

/// What an operator does, how tightly it binds and how it groups.
fn operator<'s>(token: &Token<'s>) -> Option<(BinaryOp<&'s str>, usize, Grouping)> {
    use Grouping::{Left, None as Alone, Right};
    if !matches!(token.kind, Kind::Sign | Kind::Word) {
        return None;
    }
    Some(match token.text {
        "//" => (BinaryOp::Alt, 1, Right),
        "=" => (BinaryOp::Assign, 2, Alone),
        "|=" => (BinaryOp::Update, 2, Alone),
        "+=" => (BinaryOp::UpdateMath(Math::Add), 2, Alone),
        "-=" => (BinaryOp::UpdateMath(Math::Sub), 2, Alone),
        "*=" => (BinaryOp::UpdateMath(Math::Mul), 2, Alone),
        "/=" => (BinaryOp::UpdateMath(Math::Div), 2, Alone),
        "%=" => (BinaryOp::UpdateMath(Math::Rem), 2, Alone),
        "//=" => (BinaryOp::UpdateAlt, 2, Alone),
        "or" => (BinaryOp::Or, 3, Left),
        "and" => (BinaryOp::And, 4, Left),
        "==" => (BinaryOp::Cmp(Cmp::Eq), 5, Alone),
        "!=" => (BinaryOp::Cmp(Cmp::Ne), 5, Alone),
        "<" => (BinaryOp::Cmp(Cmp::Lt), 5, Alone),
        "<=" => (BinaryOp::Cmp(Cmp::Le), 5, Alone),
        ">" => (BinaryOp::Cmp(Cmp::Gt), 5, Alone),
        ">=" => (BinaryOp::Cmp(Cmp::Ge), 5, Alone),
        "+" => (BinaryOp::Math(Math::Add), 6, Left),
        "-" => (BinaryOp::Math(Math::Sub), 6, Left),
        "*" => (BinaryOp::Math(Math::Mul), 7, Left),
        "/" => (BinaryOp::Math(Math::Div), 7, Left),
        "%" => (BinaryOp::Math(Math::Rem), 7, Left),
        _ => return None,
    })
}
