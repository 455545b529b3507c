//! Having the memory of a copy ready before it is needed.
#![expect(unsafe_code, reason = "advice on memory has no safe form")]

use std::fs::read_to_string;

/// The largest mapping that is looked after, in bytes.
const LARGEST: usize = 32 << 20;

/// What the kernel is asked to do with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// Map what it shows.
    Read = 22,
    /// Make its pages this process's own.
    Write = 23,
}

/// Maps the program, and makes what it writes to this process's own. A new copy has neither, and would
/// stop for each page at its first touch. Where the kernel knows no such advice nothing happens.
pub(crate) fn warm_up() {
    let maps = read_to_string("/proc/self/maps").unwrap_or_default();
    for (from, size, advice) in maps.lines().filter_map(plan) {
        // SAFETY: neither advice changes what any byte reads as; a range that is not mapped any more is
        // refused.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(from), size, advice as i32) };
    }
}

/// Reads one line of the memory map: what is to be done with which bytes.
fn plan(line: &str) -> Option<(usize, usize, Advice)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let (from, to) = range.split_once('-')?;
    let from = usize::from_str_radix(from, 16).ok()?;
    let size = usize::from_str_radix(to, 16).ok()?.checked_sub(from)?;
    let advice = match rights {
        "rw-p" => Advice::Write,
        "r-xp" | "r--p" => Advice::Read,
        _ => return None,
    };
    let is_special = line.ends_with("[vvar]") || line.ends_with("[vdso]");
    (size <= LARGEST && !is_special).then_some((from, size, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_program_uses_of_its_memory_is_touched() {
        let lines = [
            ("1000-3000 r-xp 00000000 08:01 17 /bin/it", Some((0x1000, 0x2000, Advice::Read))),
            ("3000-4000 r--p 00000000 08:01 17 /bin/it", Some((0x3000, 0x1000, Advice::Read))),
            ("4000-5000 rw-p 00000000 00:00 0 [heap]", Some((0x4000, 0x1000, Advice::Write))),
            ("5000-6000 rw-s 00000000 00:05 9 /dev/shared", None),
            ("6000-7000 ---p 00000000 00:00 0", None),
            ("7000-8000 r--p 00000000 00:00 0 [vvar]", None),
            ("8000-400008000 rw-p 00000000 00:00 0", None),
            ("nonsense", None),
        ];
        for (line, expected) in lines {
            assert_eq!(plan(line), expected, "{line}");
        }
        warm_up();
    }
}
