//! "Did you mean": the known word nearest to one that is not known.

/// A hint about a word that is not known: the known one that was probably meant, or else what `otherwise` says.
pub fn did_you_mean<'w>(
    word: &str,
    known: impl IntoIterator<Item = &'w str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    nearest(word, known).map_or_else(otherwise, |near| format!("did you mean `{near}`?"))
}

/// The known word that `word` was probably meant to be, if any is near enough.
fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // A third of the letters may be wrong; more is another word.
    let most = word.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|candidate| (distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to add, drop or replace to turn one word into the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // Distances from what was read of `from` to every beginning of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (read, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = read + 1;
        for (index, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let known = ["limits", "requests", "lifetime"];
        assert_eq!(nearest("limit", known), Some("limits"));
        assert_eq!(nearest("Requests", known), Some("requests"));
        assert_eq!(nearest("reqeusts", known), Some("requests"));
        assert_eq!(nearest("lifetmie", known), Some("lifetime"));
        assert_eq!(nearest("sidecars", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn distance_counts_single_letters() {
        for (from, to, letters) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "adc", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(from, to), letters, "{from} {to}");
        }
    }
}
