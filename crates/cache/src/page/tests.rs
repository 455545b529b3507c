use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{
    json::{Index, Kind, Node, Source, scan, scan_text},
    samples,
};

/// Reads pages as a client does that sees nothing but answers.
struct Reader<'a> {
    view: View<'a>,
    bytes: usize,
    is_escaped: bool,
    n_pages: usize,
    n_cut: usize,
}

const ENVELOPE: [&str; 3] = [r#"{"success":true,"data":{"data":"#, r#","_pagination":"#, "}}"];

impl<'a> Reader<'a> {
    fn new(source: &'a dyn Source, index: &'a Index, bytes: usize, is_escaped: bool) -> Self {
        Self { view: View::new(source, index), bytes, is_escaped, n_pages: 0, n_cut: 0 }
    }

    fn sent(&self, text: &str) -> usize {
        if self.is_escaped { serde_json::to_string(text).unwrap().len() } else { text.len() }
    }

    fn request<'r>(&self, path: Option<&'r Pointer>, at: At<'r>) -> PageRequest<'r> {
        let overhead = self.sent(&ENVELOPE.concat());
        let budget = Budget { bytes: Some(self.bytes), overhead, is_escaped: self.is_escaped };
        PageRequest { path, at, budget, binding: 11 }
    }

    fn try_page(&self, path: Option<&Pointer>, at: At<'_>) -> Result<Page, PageError> {
        let page = self.view.page(self.request(path, at))?;
        let data = std::str::from_utf8(&page.data).expect("UTF-8");
        let pagination = serde_json::to_string(&page.pagination).unwrap();
        let [a, b, c] = ENVELOPE;
        let answer = format!("{a}{data}{b}{pagination}{c}");
        serde_json::from_str::<Value>(&answer).expect("valid JSON");
        assert!(self.sent(&answer) <= self.bytes, "{} of {}", self.sent(&answer), self.bytes);
        assert_eq!(page.pagination.page_bytes, data.len());
        Ok(page)
    }

    fn page(&self, path: Option<&Pointer>, at: At<'_>) -> Page {
        self.try_page(path, at).unwrap()
    }

    /// Returns all pages, checking that they follow each other and that both ways in agree.
    fn pages(&mut self, path: Option<&Pointer>) -> Vec<Page> {
        let first = match self.try_page(path, At::Page(1)) {
            Err(PageError::BudgetTooSmall { needed, .. }) => {
                assert!(needed > self.bytes);
                let before = std::mem::replace(&mut self.bytes, needed);
                let pages = self.pages(path);
                self.bytes = before;
                return pages;
            }
            other => other.unwrap(),
        };
        let total = first.pagination.total_pages;
        let mut pages = vec![first];
        while let Some(cursor) = &pages[pages.len() - 1].pagination.next_cursor {
            let number = pages.len() as u64 + 1;
            let page = self.page(None, At::Cursor(cursor));
            let same = self.page(path, At::Page(number));
            assert_eq!((&page.data, &page.pagination), (&same.data, &same.pagination));
            assert_eq!(page.pagination.page, number);
            assert_eq!(page.pagination.total_pages, total);
            pages.push(page);
        }
        assert_eq!(pages.len(), total);
        for (position, page) in pages.iter().enumerate() {
            assert_eq!(page.pagination.has_next, position + 1 < total);
            assert_eq!(page.pagination.has_previous, position > 0);
            self.n_cut += usize::from(page.pagination.cuts_character);
        }
        let beyond = self.page(path, At::Page(total as u64 + 1));
        assert!(matches!(&*beyond.data, b"[]" | b"{}" | b"\"\"" | b"null"));
        assert!(!beyond.pagination.has_next && beyond.pagination.next_cursor.is_none());
        self.n_pages += total;
        let content = pages[0].pagination.total_bytes;
        assert!(
            total <= 1 + 40 * content.div_ceil(self.bytes),
            "{total} pages for {content} bytes"
        );
        pages
    }

    /// Gives the value at `path` back, from its pages and those that they refer to.
    fn value(&mut self, path: &Pointer) -> Vec<u8> {
        let pages = self.pages(Some(path));
        let kind = pages[0].pagination.kind;
        match kind {
            "array" | "object" => {
                let slices = pages.iter().map(|page| page.data.clone()).collect();
                self.joined(path, kind == "object", slices)
            }
            "string" => {
                let texts: Vec<&[u8]> =
                    pages.iter().map(|page| &page.data[1..page.data.len() - 1]).collect();
                [b"\"", texts.concat().as_slice(), b"\""].concat()
            }
            "raw" => pages.iter().flat_map(|page| piece(&page.data, "$raw").unwrap().1).collect(),
            _ => pages.into_iter().flat_map(|page| page.data).collect(),
        }
    }

    /// Puts the slices of an array or object together, each reference through its own pages.
    fn joined(&mut self, path: &Pointer, is_object: bool, slices: Vec<Vec<u8>>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut ordinal = 0;
        for slice in slices {
            for (name, value) in children(&slice) {
                let mut path = path.clone();
                match &name {
                    Some(name) => path.push_name(&serde_json::from_slice::<String>(name).unwrap()),
                    None => path.push_position(ordinal),
                }
                let (is_going_on, value, is_over) = match piece(&value, "$str") {
                    Some((place, text)) => (place.0 > 0, quoted(place, text), place.1 == place.2),
                    None => (false, self.followed(&path, value), true),
                };
                if !is_going_on {
                    out.extend_from_slice(if out.is_empty() { b"" } else { b"," });
                    if let Some(name) = &name {
                        out.extend_from_slice(name);
                        out.push(b':');
                    }
                }
                out.extend_from_slice(&value);
                ordinal += usize::from(is_over);
            }
        }
        let (open, close) = if is_object { (b"{", b"}") } else { (b"[", b"]") };
        [open, out.as_slice(), close].concat()
    }

    /// Replaces a reference to `path` itself, or to a member of it, by what it stands for.
    fn followed(&mut self, path: &Pointer, json: Vec<u8>) -> Vec<u8> {
        if refers_to(&json, path) {
            return self.value(path);
        }
        if json[0] != b'{' {
            return json;
        }
        let mut members = Vec::new();
        for (name, value) in children(&json) {
            let name = name.unwrap();
            let mut path = path.clone();
            path.push_name(&serde_json::from_slice::<String>(&name).unwrap());
            let value = if refers_to(&value, &path) { self.value(&path) } else { value };
            members.push([name.as_slice(), b":", &value].concat());
        }
        [b"{", members.join(b",".as_slice()).as_slice(), b"}"].concat()
    }
}

fn children(json: &[u8]) -> Vec<(Option<Vec<u8>>, Vec<u8>)> {
    let index = scan(json).unwrap();
    let view = View::new(&json, &index);
    view.children(view.root())
        .unwrap()
        .map(|child| {
            let child = child.unwrap();
            let raw = |node: Node| view.raw(node).unwrap().into_owned();
            (child.name.map(raw), raw(child.value))
        })
        .collect()
}

fn refers_to(json: &[u8], path: &Pointer) -> bool {
    let Ok(Value::Object(members)) = serde_json::from_slice(json) else { return false };
    members.get("$ref").and_then(Value::as_str) == Some(path.as_str())
        && members.contains_key("bytes")
}

/// Takes `{"$str": …, "offset", "end", "total_bytes"}` apart.
fn piece(json: &[u8], word: &str) -> Option<((usize, usize, usize), Vec<u8>)> {
    let Ok(Value::Object(members)) = serde_json::from_slice(json) else { return None };
    let number = |name: &str| usize::try_from(members.get(name)?.as_u64()?).ok();
    let place = (number("offset")?, number("end")?, number("total_bytes")?);
    members.get(word)?;
    let (_, text) = children(json).swap_remove(0);
    if word == "$raw" {
        return Some((place, serde_json::from_slice::<String>(&text).unwrap().into_bytes()));
    }
    Some((place, text[1..text.len() - 1].to_vec()))
}

fn quoted((offset, end, total): (usize, usize, usize), text: Vec<u8>) -> Vec<u8> {
    let mut out = if offset == 0 { b"\"".to_vec() } else { Vec::new() };
    out.extend(text);
    if end == total {
        out.push(b'"');
    }
    out
}

/// Takes the white space between tokens away.
fn compact(json: &[u8]) -> Vec<u8> {
    let mut is_string = false;
    let mut is_escape = false;
    json.iter()
        .copied()
        .filter(|byte| {
            let is_kept = is_string || !byte.is_ascii_whitespace();
            if is_string {
                is_string = *byte != b'"' || is_escape;
                is_escape = *byte == b'\\' && !is_escape;
            } else {
                is_string = *byte == b'"';
            }
            is_kept
        })
        .collect()
}

fn cases(n_cases: u32) -> ProptestConfig {
    let asked_for = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig::with_cases(asked_for.unwrap_or(n_cases))
}

fn body(text: &str) -> (Vec<u8>, Index) {
    (text.as_bytes().to_vec(), scan(text.as_bytes()).unwrap())
}

/// Reads everything from the root and checks that it comes back.
fn comes_back(text: &str, bytes: usize) -> usize {
    let (body, index) = body(text);
    let mut reader = Reader::new(&body, &index, bytes, true);
    let value = reader.value(&Pointer::default());
    assert!(value == body, "{bytes}: {} of {} bytes", value.len(), body.len());
    reader.n_pages
}

fn numbers(n: usize) -> String {
    (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn the_largest_array_is_paged_and_not_the_first() {
    let (body, index) =
        body(&format!(r#"{{"warnings":[],"hierarchy":[{}],"n":1}}"#, numbers(5000)));
    let mut reader = Reader::new(&body, &index, 4096, true);
    let pages = reader.pages(None);
    let first = &pages[0].pagination;
    assert_eq!((first.path.as_str(), first.field.as_deref()), ("/hierarchy", Some("hierarchy")));
    assert_eq!((first.total_items, first.start_index), (5000, 0));
    assert!(first.end_index > 0 && first.has_next);
    assert!(
        pages[1].data.starts_with(br#"{"warnings":[],"hierarchy":["#),
        "what is small comes along"
    );
}

#[test]
fn empty_values_and_scalars_are_pages() {
    for text in ["[]", "{}", "0", "false", "\"\"", "null", "[[]]"] {
        let (body, index) = body(text);
        let mut reader = Reader::new(&body, &index, 1024, true);
        let pages = reader.pages(None);
        assert_eq!((pages.len(), pages[0].data.as_slice()), (1, text.as_bytes()));
    }
}

#[test]
fn items_of_very_different_size_stay_within_the_page() {
    let items: Vec<String> = (0..60)
        .map(|n| format!(r#"{{"n":{n},"k":[{}]}}"#, numbers(if n % 9 == 0 { 9000 } else { 3 })))
        .collect();
    for bytes in [1024, 4096, 65536] {
        comes_back(&format!(r#"{{"total":60,"items":[{}]}}"#, items.join(",")), bytes);
    }
}

#[test]
fn an_object_without_an_array_is_paged_by_its_members() {
    let members: Vec<String> =
        (0..900).map(|n| format!(r#""id{n}":{{"name":"n{n}","tags":[1,2]}}"#)).collect();
    let (body, index) = body(&format!("{{{}}}", members.join(",")));
    let mut reader = Reader::new(&body, &index, 4096, true);
    let pages = reader.pages(None);
    assert_eq!((pages[0].pagination.kind, pages[0].pagination.total_items), ("object", 900));
    assert!(pages[0].pagination.alternatives.is_empty());
    assert_eq!(reader.value(&Pointer::default()), body);
}

#[test]
fn what_nothing_divides_comes_as_raw_json() {
    let long = "k".repeat(9000);
    for text in [
        format!(r#"{{"{long}":1,"b":[{}]}}"#, numbers(900)),
        format!(r#"{{"{long}":{{"{long}":["{long}"]}}}}"#),
        format!("[1,{},2]", "7".repeat(5000)),
        "7".repeat(5000),
        format!(r#"{{"a":{{"{long}":1}},"b":2}}"#),
    ] {
        assert!(comes_back(&text, 1024) > 5);
    }
}

#[test]
fn nesting_to_the_limit_can_be_read() {
    let arrays = |depth| "[".repeat(depth) + &numbers(2000) + &"]".repeat(depth);
    let objects = |depth: usize| {
        let text = "x".repeat(9000);
        format!("{}\"{text}\"{}", "{\"a\":".repeat(depth), "}".repeat(depth))
    };
    comes_back(&arrays(40), 4096);
    comes_back(&objects(40), 4096);
    for (text, step) in [(arrays(512), "/0"), (objects(512), "/a")] {
        let (body, index) = body(&text);
        let mut reader = Reader::new(&body, &index, 8192, true);
        assert_eq!(reader.pages(None).len(), 1, "the root is a reference to what is in it");
        let path = Pointer::parse(&step.repeat(511)).unwrap();
        assert!(reader.pages(Some(&path)).len() > 1);
    }
}

#[test]
fn a_page_that_does_not_exist_is_empty() {
    let (body, index) = body(&format!(r#"{{"n":1,"items":[{}]}}"#, numbers(3000)));
    let reader = Reader::new(&body, &index, 4096, true);
    for number in [0, 9999, u64::MAX] {
        let page = reader.page(None, At::Page(number));
        assert_eq!((page.data.as_slice(), page.pagination.page), (b"[]".as_slice(), number));
        assert!(!page.pagination.has_next);
    }
}

#[test]
fn strings_in_an_array_are_read_by_the_cursor_alone() {
    let text = format!(
        r#"{{"items":["{}","{}","e{}{}","{}"]}}"#,
        "→".repeat(9000),
        "👨‍👩‍👧‍👦".repeat(2500),
        "\u{301}".repeat(300),
        "\\r\\n".repeat(3000),
        "가".repeat(8000)
    );
    let (body, index) = body(&text);
    let mut reader = Reader::new(&body, &index, 1024, true);
    let path = Pointer::parse("/items").unwrap();
    let slices = reader.pages(None).into_iter().map(|page| {
        let index = scan(&page.data).unwrap();
        let view = View::new(&page.data, &index);
        view.raw(view.resolve(&path).unwrap()).unwrap().into_owned()
    });
    let slices = slices.collect();
    let items = reader.joined(&path, false, slices);
    assert_eq!([b"{\"items\":", items.as_slice(), b"}"].concat(), body);
    assert_eq!(reader.n_cut, 1, "only the run of accents is longer than a page");
}

#[test]
fn what_is_around_an_array_comes_once_when_it_is_large() {
    let notes: Vec<String> =
        (0..40).map(|n| format!(r#""note{n}":"{}""#, "n".repeat(60))).collect();
    let text = format!(
        r#"{{"ok":true,"data":{{{},"rows":[{}],"log":"{}"}}}}"#,
        notes.join(","),
        numbers(9000),
        "l".repeat(9000)
    );
    let (body, index) = body(&text);
    let mut reader = Reader::new(&body, &index, 8192, true);
    let pages = reader.pages(None);
    let first: Value = serde_json::from_slice(&pages[0].data).unwrap();
    assert_eq!(first["data"]["note39"], "n".repeat(60));
    assert_eq!(first["data"]["log"]["$ref"], "/data/log");
    assert_eq!(pages[0].pagination.refs, 1);
    assert!(pages[1].data.starts_with(br#"{"data":{"rows":["#));
    let mut rows: Vec<Value> = Vec::new();
    for page in &pages {
        let data: Value = serde_json::from_slice(&page.data).unwrap();
        rows.extend(data["data"]["rows"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(rows.len(), 9000);
}

#[test]
fn a_page_of_references_is_made_once() {
    let items: Vec<String> = (0..30)
        .map(|n| format!(r#"{{"name":"item {n}","of":{{"n":{n}}},"rows":[{}]}}"#, numbers(9000)))
        .collect();
    let source = samples::Counted::new(format!("[{}]", items.join(",")).into_bytes());
    let index = scan(&source.body).unwrap();
    let before = index.heap_bytes();
    let mut reader = Reader::new(&source, &index, 8192, true);
    let pages = reader.pages(None);
    assert_eq!(pages.iter().map(|page| page.pagination.refs).sum::<usize>(), 30);
    assert!(index.heap_bytes() - before < source.body.len() / 128, "{}", index.heap_bytes());
    source.take();
    let again = reader.page(None, At::Page(1));
    assert_eq!((again.data, source.take()), (pages[0].data.clone(), 0));
}

#[test]
fn pages_of_references_that_take_too_much_are_made_again() {
    let items: Vec<String> =
        (0..400).map(|n| format!(r#"{{"name":"item {n}","rows":[{}]}}"#, numbers(300))).collect();
    let source = samples::Counted::new(format!("[{}]", items.join(",")).into_bytes());
    let index = scan(&source.body).unwrap();
    let before = index.heap_bytes();
    let mut reader = Reader::new(&source, &index, 1024, true);
    let pages = reader.pages(None);
    assert!(pages.len() > 50);
    let starts = pages.len() * size_of::<Position>();
    let held = index.heap_bytes() - before;
    assert!(held < starts + source.body.len() / 256 + 4096, "{held}");
    source.take();
    let last = reader.page(None, At::Page(pages.len() as u64));
    assert!(source.take() > 0 && last.data == pages[pages.len() - 1].data);
}

#[test]
fn pages_are_full() {
    let rows: Vec<String> = (0..3000)
        .map(|n| format!(r#"{{"n":{n},"k":"item-{n:04}","pad":"{}"}}"#, "x".repeat(60)))
        .collect();
    let (body, index) = body(&format!("[{}]", rows.join(",")));
    for bytes in [4096, 16_384, 32_768] {
        let mut reader = Reader::new(&body, &index, bytes, true);
        let pages = reader.pages(None);
        let fullest = body.len() / bytes;
        assert!(pages.len() <= fullest * 3 / 2 + 2, "{} pages of {bytes}", pages.len());
    }
}

#[test]
fn a_size_that_cannot_carry_a_page_says_which_can() {
    let (body, index) = body(&format!("[{}]", numbers(5000)));
    let reader = Reader::new(&body, &index, 200, true);
    let Err(PageError::BudgetTooSmall { needed, .. }) = reader.try_page(None, At::Page(1)) else {
        panic!("200 bytes are too few");
    };
    let mut reader = Reader::new(&body, &index, needed, true);
    assert!(reader.pages(None).len() > 1);
    let mut reader = Reader::new(&body, &index, 1024, true);
    assert!(reader.pages(None).len() > 1, "1 KiB is enough");
}

#[test]
fn a_cursor_of_something_else_is_refused() {
    let (body, index) = body(&format!(r#"{{"a":[{}],"b":[{}]}}"#, numbers(3000), numbers(2000)));
    let reader = Reader::new(&body, &index, 4096, true);
    let cursor = reader.page(None, At::Page(1)).pagination.next_cursor.unwrap();
    let request = reader.request(None, At::Cursor(&cursor));
    let bad = |request: PageRequest<'_>| match reader.view.page(request) {
        Err(PageError::BadCursor(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(bad(PageRequest { binding: 12, ..request }), BadCursor::Damaged);
    let path = Pointer::parse("/b").unwrap();
    assert_eq!(bad(PageRequest { path: Some(&path), ..request }), BadCursor::OtherPath);
    let budget = Budget { bytes: Some(8192), ..request.budget };
    assert_eq!(bad(PageRequest { budget, ..request }), BadCursor::OtherSize);
    let path = Pointer::parse("/a").unwrap();
    assert!(reader.view.page(PageRequest { path: Some(&path), ..request }).is_ok());
    let budget = Budget { bytes: None, ..request.budget };
    assert_eq!(reader.view.page(PageRequest { budget, ..request }).unwrap().pagination.page, 2);
}

#[test]
fn a_path_that_leads_nowhere_names_the_nearest() {
    let (body, index) = body(r#"{"items":[{"Name":"a"}]}"#);
    let reader = Reader::new(&body, &index, 4096, true);
    for (path, want) in [
        ("/nowhere", ""),
        ("/item", "/items"),
        ("/items/7", "/items"),
        ("/items/0/name", "/items/0/Name"),
        ("/items/00", "/items"),
        (&"/0".repeat(30_000), ""),
    ] {
        let path = Pointer::parse(path).unwrap();
        let Err(PageError::PathNotFound(NotFound::Absent { nearest, .. })) =
            reader.try_page(Some(&path), At::Page(1))
        else {
            panic!("{path} is there");
        };
        assert_eq!(nearest.as_str(), want);
    }
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn pages_keep_their_size_and_give_the_bytes_back(
        value in samples::value(),
        style in 0_u8..3,
        bytes in prop_oneof![1024_usize..1400, 1024_usize..9000, 8192_usize..70_000],
        is_escaped: bool,
        is_in_memory: bool,
    ) {
        let body = samples::write(&value, style);
        let index = scan(&body).unwrap();
        let blocks = samples::Blocks(body.clone());
        let source: &dyn Source = if is_in_memory { &body } else { &blocks };
        let mut reader = Reader::new(source, &index, bytes, is_escaped);
        let given_back = reader.value(&Pointer::default());
        prop_assert_eq!(
            String::from_utf8(compact(&given_back)).unwrap(),
            String::from_utf8(compact(&body)).unwrap()
        );
        if style != 1 {
            prop_assert_eq!(given_back, body.clone());
        }
        let pages = reader.pages(None);
        let path = Pointer::parse(&pages[0].pagination.path).unwrap();
        let node = reader.view.resolve(&path).unwrap();
        if node.kind == Kind::Array {
            let slices = pages.iter().map(|page| {
                let field = page.pagination.field.is_some();
                let index = scan(&page.data).unwrap();
                let view = View::new(&page.data, &index);
                let slice = if field { view.resolve(&path).unwrap() } else { view.root() };
                view.raw(slice).unwrap().into_owned()
            });
            let slices = slices.collect();
            let array = reader.joined(&path, false, slices);
            let want = reader.view.raw(node).unwrap();
            prop_assert_eq!(
                String::from_utf8(compact(&array)).unwrap(),
                String::from_utf8(compact(&want)).unwrap()
            );
        }
    }

    #[test]
    fn a_text_comes_back_line_by_line(
        lines in prop::collection::vec("[a-z →\"\\\\]{0,200}|(가|e\u{301}){0,900}", 0..60),
        bytes in 1024_usize..9000,
        is_escaped: bool,
    ) {
        let text = lines.join("\n");
        let body = text.as_bytes();
        let index = scan_text(body).unwrap();
        let mut reader = Reader::new(&body, &index, bytes, is_escaped);
        let mut got = String::new();
        let mut line = 0;
        for page in reader.pages(None) {
            prop_assert_eq!(page.pagination.kind, "text");
            prop_assert_eq!(page.pagination.start_index, line);
            let piece: String = serde_json::from_slice(&page.data).unwrap();
            line += piece.matches('\n').count();
            got.push_str(&piece);
        }
        prop_assert_eq!(got, text);
    }
}
