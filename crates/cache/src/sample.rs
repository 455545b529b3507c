//! A few children of a value, spread over it.

use std::io;

use crate::{
    json::{Kind, Node, NotFound, Pointer, View, text},
    page::{Budget, DEFAULT_PAGE_BYTES, PageError, cost, skeleton},
};

/// Children of a value, spread over it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The value.
    pub path: Pointer,
    /// How many children it has; of a text how many lines.
    pub total_items: usize,
    /// JSON: `[{"index": 0, "value": …}, …]`, of an object with `"name"` before `"value"`.
    pub data: Vec<u8>,
}

impl View<'_> {
    /// Returns up to `n` children of the value at `path` (without it: of the array that most of the
    /// body is), the first and the last among them, each as it is or, if it is larger than its
    /// share of the budget, as a skeleton.
    ///
    /// # Errors
    ///
    /// When there is nothing at the path, the budget is too small for one child, or the body cannot
    /// be read.
    pub fn sample(
        &self,
        path: Option<&Pointer>,
        n: usize,
        budget: Budget,
    ) -> Result<Sample, PageError> {
        let (path, node) = match path {
            Some(path) => (path.clone(), self.resolve(path)?),
            None => self.main_value()?,
        };
        let total_items = self.len(node)?;
        let bytes = budget.bytes.unwrap_or(DEFAULT_PAGE_BYTES);
        let room = bytes.saturating_sub(budget.overhead + 2);
        // Less than this holds no reference.
        let least = 120 + path.as_str().len() * 2;
        let n = n.clamp(1, total_items.max(1)).min((room / least).max(1));
        let share = room / n;
        if share < least {
            let needed = bytes + least - share;
            return Err(PageError::BudgetTooSmall { bytes, needed });
        }
        let mut data = vec![b'['];
        for ordinal in spread(n, total_items) {
            let json = if node.kind == Kind::Text {
                self.sampled_line(ordinal, share, budget.is_escaped)?
            } else {
                self.sampled(&path, node, ordinal, share, budget.is_escaped)?
            };
            if data.len() > 1 && !json.is_empty() {
                data.push(b',');
            }
            data.extend_from_slice(&json);
        }
        data.push(b']');
        Ok(Sample { path, total_items, data })
    }

    fn sampled(
        &self,
        path: &Pointer,
        node: Node,
        ordinal: usize,
        share: usize,
        is_escaped: bool,
    ) -> Result<Vec<u8>, NotFound> {
        let Some(child) = self.nth(node, ordinal)? else { return Ok(Vec::new()) };
        let mut path = path.clone();
        let mut json = format!("{{\"index\":{ordinal},").into_bytes();
        match child.name {
            Some(name) if name.bytes() * 2 > share / 2 => return Ok(Vec::new()),
            Some(name) => {
                path.push_name(&self.text(name)?);
                json.extend_from_slice(b"\"name\":");
                json.extend_from_slice(&self.raw(name)?);
                json.push(b',');
            }
            None => path.push_position(ordinal),
        }
        json.extend_from_slice(b"\"value\":");
        let room = share.saturating_sub(cost(&json, is_escaped) + 2);
        let value = child.value;
        let is_whole = value.bytes() <= room && cost(&self.raw(value)?, is_escaped) <= room;
        if is_whole {
            json.extend_from_slice(&self.raw(value)?);
        } else {
            json.extend_from_slice(&skeleton(self, &path, value, room, is_escaped)?.0);
        }
        json.push(b'}');
        // A pointer may be longer than the share.
        if cost(&json, is_escaped) + 1 > share { Ok(Vec::new()) } else { Ok(json) }
    }

    fn sampled_line(&self, line: usize, share: usize, is_escaped: bool) -> io::Result<Vec<u8>> {
        let mut json = format!("{{\"index\":{line},\"value\":").into_bytes();
        let room = share.saturating_sub(cost(&json, is_escaped) + 2);
        let start = self.line_start(line)?;
        // A character of a text takes at most seven bytes on its way out.
        let end = self.index().body_bytes().min(start + room / 2);
        let raw = self.bytes(start, end)?;
        let text = String::from_utf8_lossy(&raw);
        let text = text.lines().next().unwrap_or("").trim_end_matches('\u{fffd}');
        let mut value = Vec::new();
        text::encode(text, &mut value);
        if cost(&value, is_escaped) > room {
            value.clear();
            let end = text.floor_char_boundary((room / 8).min(text.len()));
            text::encode(text.get(..end).unwrap_or(""), &mut value);
        }
        json.extend_from_slice(&value);
        json.push(b'}');
        Ok(json)
    }
}

/// Returns `n` positions out of `total`, the first and the last among them.
fn spread(n: usize, total: usize) -> impl Iterator<Item = usize> {
    let n = n.min(total);
    (0..n).map(move |position| if n == 1 { 0 } else { position * (total - 1) / (n - 1) })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::json::{scan, scan_text};

    fn sample(body: &str, path: Option<&str>, n: usize, bytes: usize) -> (Sample, Vec<Value>) {
        let body = body.as_bytes();
        let index = scan(body).unwrap();
        let budget = Budget { bytes: Some(bytes), overhead: 10, is_escaped: true };
        let path = path.map(|path| Pointer::parse(path).unwrap());
        let sample = View::new(&body, &index).sample(path.as_ref(), n, budget).unwrap();
        let text = std::str::from_utf8(&sample.data).unwrap();
        assert!(serde_json::to_string(text).unwrap().len() + 8 <= bytes);
        let items = serde_json::from_str(text).unwrap();
        (sample, items)
    }

    fn indices(items: &[Value]) -> Vec<u64> {
        items.iter().map(|item| item["index"].as_u64().unwrap()).collect()
    }

    #[test]
    fn items_are_spread_over_the_whole() {
        let body = format!(r#"{{"n":1,"items":[{}9]}}"#, "7,".repeat(1000));
        let (found, items) = sample(&body, None, 5, 4096);
        assert_eq!((found.path.as_str(), found.total_items), ("/items", 1001));
        assert_eq!(indices(&items), [0, 250, 500, 750, 1000]);
        assert_eq!(items[4]["value"], 9);
        assert_eq!(indices(&sample("[1,2]", None, 9, 4096).1), [0, 1]);
        assert!(sample("[]", None, 3, 4096).1.is_empty());
        let (_, items) = sample(r#"{"a":1,"b":[2]}"#, Some(""), 2, 4096);
        assert_eq!((&items[1]["name"], &items[1]["value"][0]), (&"b".into(), &2.into()));
    }

    #[test]
    fn a_large_item_is_a_skeleton_in_its_share() {
        let item = format!(r#"{{"name":"x","kids":[{}0]}}"#, "0,".repeat(9000));
        let (_, items) = sample(&format!("[{item},{item},{item}]"), None, 3, 2048);
        assert_eq!(items.len(), 3);
        assert_eq!(items[2]["value"]["name"], "x");
        assert_eq!(items[2]["value"]["kids"]["$ref"], "/2/kids");
    }

    #[test]
    fn a_text_gives_lines() {
        let lines: Vec<String> = (0..5000).map(|n| format!("line {n} \"→\"")).collect();
        let body = lines.join("\n");
        let body = body.as_bytes();
        let index = scan_text(body).unwrap();
        let found = View::new(&body, &index).sample(None, 3, Budget::default()).unwrap();
        let items: Vec<Value> = serde_json::from_slice(&found.data).unwrap();
        assert_eq!(indices(&items), [0, 2499, 4999]);
        assert_eq!(items[1]["value"], "line 2499 \"→\"");
    }
}
