//! What `select` asks of a value.

use std::cmp::Ordering;

use jaq_core::load::parse::BinaryOp;
use jaq_core::ops::Cmp;

use super::Plan;
use super::item::{Item, decoded};
use super::run::{GaveUp, Run};
use crate::filter::syntax::Term;
use crate::json::Kind;

/// A question about a value; each path in it has one output.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::filter) enum Condition {
    /// Neither null nor false.
    Holds(Plan),
    Compares(Plan, Operator, Literal),
    Contains(Plan, String),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value as a filter writes it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::filter) enum Literal {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
}

/// A number as the engine compares it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::filter) enum Number {
    Integer(i64),
    Float(f64),
}

impl Condition {
    pub(super) fn of(term: &Term<'_>) -> Option<Self> {
        let boxed = |term| Self::of(term).map(Box::new);
        Some(match term {
            Term::BinOp(left, BinaryOp::Cmp(operator), right) => {
                Self::comparison(left, *operator, right)?
            }
            Term::BinOp(left, BinaryOp::And, right) => Self::And(boxed(left)?, boxed(right)?),
            Term::BinOp(left, BinaryOp::Or, right) => Self::Or(boxed(left)?, boxed(right)?),
            Term::BinOp(left, BinaryOp::Pipe(None), right) => match &**right {
                Term::Call("not", arguments) if arguments.is_empty() => Self::Not(boxed(left)?),
                Term::Call("contains", arguments) => match arguments.as_slice() {
                    [part] => Self::Contains(one(left)?, super::plain(part)?),
                    _ => return None,
                },
                _ => Self::Holds(one(term)?),
            },
            _ => Self::Holds(one(term)?),
        })
    }

    fn comparison(left: &Term<'_>, operator: Cmp, right: &Term<'_>) -> Option<Self> {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let operator = match operator {
            Cmp::Eq => Equal,
            Cmp::Ne => NotEqual,
            Cmp::Lt => Less,
            Cmp::Le => LessOrEqual,
            Cmp::Gt => Greater,
            Cmp::Ge => GreaterOrEqual,
        };
        if let Some(literal) = Literal::of(right) {
            return Some(Self::Compares(one(left)?, operator, literal));
        }
        let mirrored = match operator {
            Less => Greater,
            LessOrEqual => GreaterOrEqual,
            Greater => Less,
            GreaterOrEqual => LessOrEqual,
            Equal | NotEqual => operator,
        };
        Some(Self::Compares(one(right)?, mirrored, Literal::of(left)?))
    }

    pub(super) fn holds(&self, run: &mut Run<'_>, item: &Item) -> Result<bool, GaveUp> {
        match self {
            Self::Holds(path) => match run.single(path, item)? {
                Item::Null => Ok(false),
                Item::Count(_) | Item::Made(..) => Ok(true),
                Item::Node(node) => match node.kind {
                    Kind::Null => Ok(false),
                    Kind::Bool => Ok(node.bytes() == "true".len()),
                    _ => Ok(true),
                },
            },
            Self::Compares(path, operator, literal) => {
                let item = run.single(path, item)?;
                let order = literal.compared(run, &item)?.reverse();
                Ok(match operator {
                    Operator::Equal => order.is_eq(),
                    Operator::NotEqual => order.is_ne(),
                    Operator::Less => order.is_lt(),
                    Operator::LessOrEqual => order.is_le(),
                    Operator::Greater => order.is_gt(),
                    Operator::GreaterOrEqual => order.is_ge(),
                })
            }
            Self::Contains(path, part) => match run.single(path, item)? {
                Item::Node(node) if node.kind == Kind::String => {
                    let raw = run.raw(node)?;
                    let text = decoded(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default());
                    let text = std::str::from_utf8(&text).map_err(|_| GaveUp::ForEngine)?;
                    Ok(text.contains(part.as_str()))
                }
                _ => Err(GaveUp::ForEngine),
            },
            Self::Not(inner) => Ok(!inner.holds(run, item)?),
            Self::And(left, right) => Ok(left.holds(run, item)? && right.holds(run, item)?),
            Self::Or(left, right) => Ok(left.holds(run, item)? || right.holds(run, item)?),
        }
    }
}

fn one(term: &Term<'_>) -> Option<Plan> {
    Plan::of(term).filter(Plan::has_one_output)
}

impl Literal {
    fn of(term: &Term<'_>) -> Option<Self> {
        Some(match term {
            Term::Call(name, arguments) if arguments.is_empty() => match *name {
                "null" => Self::Null,
                "true" => Self::Bool(true),
                "false" => Self::Bool(false),
                _ => return None,
            },
            Term::Num(text) => Self::Number(Number::of(text)?),
            Term::Neg(inner) => match &**inner {
                Term::Num(text) => match Number::of(text)? {
                    Number::Integer(integer) => Self::Number(Number::Integer(-integer)),
                    Number::Float(float) => Self::Number(Number::Float(-float)),
                },
                _ => return None,
            },
            _ => Self::String(super::plain(term)?),
        })
    }

    /// The order of this and a value: as the engine, by type first.
    fn compared(&self, run: &mut Run<'_>, item: &Item) -> Result<Ordering, GaveUp> {
        let kind = match item {
            Item::Node(node) => node.kind,
            Item::Null => Kind::Null,
            Item::Count(_) => Kind::Number,
            Item::Made(_, Some(_)) => Kind::Array,
            Item::Made(_, None) => Kind::Object,
        };
        let rank = |kind: Kind| match kind {
            Kind::Null => 0,
            Kind::Bool => 1,
            Kind::Number => 2,
            Kind::String => 3,
            _ => 4,
        };
        let own = match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::String(_) => 3,
        };
        if own != rank(kind) {
            return Ok(own.cmp(&rank(kind)));
        }
        match (self, item) {
            (Self::Bool(own), Item::Node(node)) => Ok(own.cmp(&(node.bytes() == "true".len()))),
            (Self::Number(own), Item::Count(count)) => {
                let count = i64::try_from(*count).map_err(|_| GaveUp::ForEngine)?;
                Ok(own.compared(Number::Integer(count)))
            }
            (Self::Number(own), Item::Node(node)) => {
                let raw = run.raw(*node)?;
                let text = std::str::from_utf8(&raw).map_err(|_| GaveUp::ForEngine)?;
                Ok(own.compared(Number::of(text).ok_or(GaveUp::ForEngine)?))
            }
            (Self::String(own), Item::Node(node)) => {
                let raw = run.raw(*node)?;
                Ok(own
                    .as_bytes()
                    .cmp(&decoded(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default())))
            }
            _ => Ok(Ordering::Equal),
        }
    }
}

impl Number {
    /// `None` for integers that need more than 64 bits.
    fn of(text: &str) -> Option<Self> {
        let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if is_integer && text != "-0" {
            return text.parse().ok().map(Self::Integer);
        }
        text.parse().ok().filter(|float: &f64| float.is_finite()).map(Self::Float)
    }

    fn compared(self, other: Self) -> Ordering {
        #[expect(clippy::cast_precision_loss, reason = "the engine compares so")]
        let float = |number| match number {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        };
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (left, right) => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
        }
    }
}
