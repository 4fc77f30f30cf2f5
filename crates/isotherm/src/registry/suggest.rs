//! What a user may have meant by a name that there is not.

/// The candidate with the fewest letters changed, if that is at most a third of them. O(length^2) a candidate.
pub fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near =
        candidates.map(|candidate| (distance(word, candidate), candidate)).min_by_key(|(changed, _)| *changed)?;
    (near.0 * 3 <= word.chars().count()).then_some(near.1)
}

/// Letters to insert, delete or replace (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_key_and_other_words_none() {
        let keys = ["gc.victim", "gc.floor", "device.page_size"];
        assert_eq!(closest("gc.victm", keys.into_iter()), Some("gc.victim"));
        assert_eq!(closest("device.pagesize", keys.into_iter()), Some("device.page_size"));
        assert_eq!(closest("wear.threshold", keys.into_iter()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
