//! What is known of the values at one path.

use crate::json::Kind;

/// Different values that are told one by one.
pub(super) const MAX_ENUM: usize = 12;
/// Values shown of those that are too many.
pub(super) const MAX_SAMPLES: usize = 3;
/// Longest value that is told, in bytes of JSON.
pub(super) const LONGEST_VALUE: usize = 48;
/// Members from which on an object is a map, whose names say nothing of its shape.
const MAX_NAMES: usize = 64;
/// Paths that are told apart; a body with more is one of maps in maps.
const MAX_SHAPES: usize = 4000;

/// Where a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(usize);

/// A number as it is written, and what it is worth.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) worth: f64,
    pub(super) text: String,
}

/// The values at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    /// How many there are of each kind, in the order of [`KINDS`].
    counts: [usize; KINDS.len()],
    pub(super) bytes: usize,
    /// Children of all of them.
    pub(super) n_children: usize,
    pub(super) members: Vec<(String, Id)>,
    /// The items of an array, or the values of a map.
    pub(super) item: Option<Id>,
    pub(super) is_map: bool,
    pub(super) least: Option<Number>,
    pub(super) most: Option<Number>,
    /// Different values as JSON, in the order in which they came; complete unless `is_open`.
    pub(super) values: Vec<String>,
    pub(super) is_open: bool,
    /// Where the next name is expected: objects of one kind have theirs in one order.
    expected: usize,
}

/// The kinds that are counted.
pub(super) const KINDS: [Kind; 6] =
    [Kind::Object, Kind::Array, Kind::String, Kind::Number, Kind::Bool, Kind::Null];

impl Shape {
    pub(super) fn count(&mut self, kind: Kind) {
        for (count, of) in self.counts.iter_mut().zip(KINDS) {
            *count += usize::from(of == kind);
        }
    }

    pub(super) fn n_of(&self, kind: Kind) -> usize {
        self.counts.iter().zip(KINDS).find(|(_, of)| *of == kind).map_or(0, |(count, _)| *count)
    }

    pub(super) fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(super) fn add_value(&mut self, json: &str) {
        if self.is_open && self.values.len() >= MAX_SAMPLES
            || self.values.iter().any(|it| it == json)
        {
            return;
        }
        if self.values.len() == MAX_ENUM {
            self.is_open = true;
            self.values.truncate(MAX_SAMPLES);
        } else {
            self.values.push(json.to_owned());
        }
    }

    /// Notes that there are values which cannot be told as they are.
    pub(super) fn open_values(&mut self) {
        self.is_open = true;
        self.values.truncate(MAX_SAMPLES);
    }

    pub(super) fn add_number(&mut self, text: &str) {
        let Ok(worth) = text.parse::<f64>() else { return };
        let number = || Number { worth, text: text.to_owned() };
        if self.least.as_ref().is_none_or(|least| worth < least.worth) {
            self.least = Some(number());
        }
        if self.most.as_ref().is_none_or(|most| worth > most.worth) {
            self.most = Some(number());
        }
    }

    /// Adds what another shape counted, without its children.
    fn take_counts(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.bytes += other.bytes;
        self.n_children += other.n_children;
        for number in other.least.iter().chain(&other.most) {
            self.add_number(&number.text);
        }
        for value in &other.values {
            self.add_value(value);
        }
        if other.is_open {
            self.open_values();
        }
    }
}

/// The shapes of a body. Two that turn out to be one are merged; an [`Id`] stays good.
#[derive(Debug)]
pub(super) struct Shapes {
    list: Vec<Shape>,
    /// What a shape was merged into.
    merged: Vec<Id>,
}

impl Shapes {
    pub(super) const ROOT: Id = Id(0);
    /// Stands for all paths beyond [`MAX_SHAPES`].
    const REST: Id = Id(1);

    pub(super) fn new() -> Self {
        Self { list: vec![Shape::default(); 2], merged: vec![Self::ROOT, Self::REST] }
    }

    pub(super) fn is_rest(&self, id: Id) -> bool {
        self.find(id) == Self::REST
    }

    pub(super) fn find(&self, id: Id) -> Id {
        let mut id = id;
        while let Some(into) = self.merged.get(id.0).filter(|into| **into != id) {
            id = *into;
        }
        id
    }

    pub(super) fn get(&self, id: Id) -> &Shape {
        static NONE: Shape = Shape {
            counts: [0; KINDS.len()],
            bytes: 0,
            n_children: 0,
            members: Vec::new(),
            item: None,
            is_map: false,
            least: None,
            most: None,
            values: Vec::new(),
            is_open: false,
            expected: 0,
        };
        self.list.get(self.find(id).0).unwrap_or(&NONE)
    }

    /// Changes a shape.
    pub(super) fn with<T: Default>(&mut self, id: Id, change: impl FnOnce(&mut Shape) -> T) -> T {
        let id = self.find(id);
        self.list.get_mut(id.0).map(change).unwrap_or_default()
    }

    fn add(&mut self) -> Id {
        if self.list.len() >= MAX_SHAPES {
            return Self::REST;
        }
        let id = Id(self.list.len());
        self.list.push(Shape::default());
        self.merged.push(id);
        id
    }

    /// Returns the shape of the items of `id`.
    pub(super) fn item(&mut self, id: Id) -> Id {
        if self.is_rest(id) {
            return Self::REST;
        }
        if let Some(item) = self.get(id).item {
            return self.find(item);
        }
        let item = self.add();
        self.with(id, |shape| shape.item = Some(item));
        item
    }

    /// Returns the shape of the member `name` of `id`.
    pub(super) fn member(&mut self, id: Id, name: &[u8]) -> Id {
        if self.is_rest(id) {
            return Self::REST;
        }
        let found = self.with(id, |shape| {
            let expected = shape.expected;
            let is_name =
                |at: &usize| shape.members.get(*at).is_some_and(|(it, _)| it.as_bytes() == name);
            let at = Some(expected)
                .filter(is_name)
                .or_else(|| shape.members.iter().position(|(it, _)| it.as_bytes() == name))?;
            shape.expected = at + 1;
            shape.members.get(at).map(|(_, id)| *id)
        });
        if let Some(member) = found {
            return self.find(member);
        }
        if self.get(id).is_map || self.get(id).members.len() >= MAX_NAMES {
            self.make_map(id);
            return self.item(id);
        }
        let member = self.add();
        self.with(id, |shape| {
            shape.members.push((String::from_utf8_lossy(name).into_owned(), member));
            shape.expected = shape.members.len();
        });
        member
    }

    fn make_map(&mut self, id: Id) {
        if self.get(id).is_map {
            return;
        }
        let members = self.with(id, |shape| {
            shape.is_map = true;
            std::mem::take(&mut shape.members)
        });
        let item = self.item(id);
        for (_, member) in members {
            self.merge(item, member);
        }
    }

    /// Makes one shape of two: `other` becomes `id`.
    pub(super) fn merge(&mut self, id: Id, other: Id) {
        let mut open = vec![(id, other)];
        while let Some((id, other)) = open.pop() {
            let (id, other) = (self.find(id), self.find(other));
            if id == other || other == Self::ROOT || other == Self::REST {
                continue;
            }
            let taken = self.with(other, std::mem::take);
            if let Some(into) = self.merged.get_mut(other.0) {
                *into = id;
            }
            self.with(id, |shape| shape.take_counts(&taken));
            if taken.is_map {
                self.make_map(id);
            }
            if let Some(item) = taken.item {
                match self.get(id).item {
                    Some(own) => open.push((own, item)),
                    None => self.with(id, |shape| shape.item = Some(item)),
                }
            }
            for (name, member) in taken.members {
                let own = self.get(id).members.iter().find(|(it, _)| *it == name);
                match own.map(|(_, own)| *own) {
                    Some(own) => open.push((own, member)),
                    None if self.get(id).is_map => open.push((self.item(id), member)),
                    None => self.with(id, |shape| shape.members.push((name, member))),
                }
            }
        }
    }

    /// Returns whether objects of two shapes are likely of one kind: most names are the same.
    pub(super) fn are_alike(&self, a: Id, b: Id) -> bool {
        let (a, b) = (self.get(a), self.get(b));
        let of_b = |name: &String| b.members.iter().any(|(it, _)| it == name);
        let n_same = a.members.iter().filter(|(name, _)| of_b(name)).count();
        n_same >= 2 && n_same * 10 >= a.members.len() * 6 && n_same * 10 >= b.members.len() * 4
    }
}
