//! Numbers: written as they came while nothing is calculated with them, doubles else.

use jaq_json::Num;

/// Integers up to here are exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a number as a filter or a body writes it.
pub(in crate::filter) fn literal(text: &str) -> Num {
    // What is not an integer in its plainest form keeps its text.
    if text == "-0" {
        return Num::Dec(text.to_owned().into());
    }
    Num::from_str_radix(text, 10).unwrap_or_else(|| Num::Dec(text.to_owned().into()))
}

pub(in crate::filter) fn as_f64(number: &Num) -> f64 {
    match number {
        Num::Float(float) => *float,
        #[expect(clippy::cast_precision_loss, reason = "as jq does")]
        Num::Int(int) => *int as f64,
        Num::BigInt(_) | Num::Dec(_) => number.to_string().parse().unwrap_or(f64::NAN),
    }
}

/// Returns the number as an integer if it is one.
pub(in crate::filter) fn as_isize(number: &Num) -> Option<isize> {
    match number {
        Num::Int(int) => Some(*int),
        _ => to_isize(as_f64(number)),
    }
}

fn to_isize(float: f64) -> Option<isize> {
    let is_exact = float.trunc() == float && float.abs() <= EXACT;
    #[expect(clippy::cast_possible_truncation, reason = "it is an integer below 2^53")]
    is_exact.then_some(float as isize)
}

/// Cuts a float to an integer, at most the largest.
pub(in crate::filter) fn clamp(float: f64) -> isize {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, as is wanted")]
    {
        float as isize
    }
}

/// Returns a number that prints as jq prints the double.
pub(in crate::filter) fn from_f64(float: f64) -> Num {
    match to_isize(float) {
        Some(int) if int != 0 || float.is_sign_positive() => Num::Int(int),
        _ => Num::Float(float),
    }
}

/// Writes a double as jq does: 17 digits at most, no `.0`, large and small ones with an exponent of two
/// digits or more. Infinity is the largest double; NaN is null.
pub(in crate::filter) fn print(float: f64, out: &mut Vec<u8>) {
    if float.is_nan() {
        out.extend_from_slice(b"null");
        return;
    }
    let float = float.clamp(f64::MIN, f64::MAX);
    let shortest = format!("{float:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = exponent + 1;
    let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    out.extend_from_slice(sign.as_bytes());
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let text = if point <= -4 || point > len + 15 {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{first}{dot}{rest}e{sign}{:02}", exponent.abs())
    } else if point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else if point >= len {
        format!("{digits}{}", zeros(point - len))
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{fraction}")
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(float: f64) -> String {
        let mut out = Vec::new();
        print(float, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_print_as_jq_prints_them() {
        let table = [
            (3.0, "3"),
            (-0.0, "-0"),
            (1e15, "1000000000000000"),
            (1e16, "1e+16"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (1.234e-5, "1.234e-05"),
            (1.5e300, "1.5e+300"),
            (31.4159, "31.4159"),
            (1.2345678901234568e29, "123456789012345680000000000000"),
            (f64::INFINITY, "1.7976931348623157e+308"),
            (f64::NAN, "null"),
        ];
        for (float, text) in table {
            assert_eq!(printed(float), text);
        }
    }

    #[test]
    fn a_literal_keeps_its_text() {
        for text in ["100e-2", "1.000", "-0", "12345678901234567890123", "9007199254740993"] {
            assert_eq!(literal(text).to_string(), text);
        }
    }
}
