//! A checksum that finds damage. It is no defence against a forger: the files are their owner's alone.

const LANE: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX: u64 = 0xd6e8_feb8_6659_fd93;

/// Returns the checksum of bytes; the same on every machine.
pub(super) fn of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (rows, few) = words.as_chunks::<4>();
    let mut lanes = [LANE, LANE.rotate_left(16), LANE.rotate_left(32), LANE.rotate_left(48)];
    for row in rows {
        for (lane, word) in lanes.iter_mut().zip(row) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    }
    let mut sum = lanes.into_iter().fold(bytes.len() as u64, step);
    for word in few {
        sum = step(sum, u64::from_le_bytes(*word));
    }
    for byte in rest {
        sum = step(sum, u64::from(*byte));
    }
    step(sum, MIX)
}

/// Every step can be undone, so that two inputs that differ in one word never meet.
fn step(sum: u64, word: u64) -> u64 {
    let mixed = (sum ^ word).wrapping_mul(MIX);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn any_changed_bit_and_any_cut_changes_the_sum() {
        let bytes: Vec<u8> = (0..100_u8).collect();
        let sum = of(&bytes);
        for at in 0..bytes.len() {
            assert_ne!(of(&bytes[..at]), sum, "cut at {at}");
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert_ne!(of(&other), sum, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn zeros_of_different_lengths_differ() {
        let sums: std::collections::BTreeSet<u64> = (0..200).map(|n| of(&vec![0; n])).collect();
        assert_eq!(sums.len(), 200);
    }
}
