//! Suggestion of a known word for an unknown one. Owns: the maximum distance.

/// The known word nearest to an unknown one; `None` if none is near.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let distance = |word: &'a str| (strsim::damerau_levenshtein(wrong, word), word);
    let (edits, word) = known.into_iter().map(distance).min()?;
    (edits <= 1 + wrong.chars().count() / 4).then_some(word)
}

/// The text `; did you mean ...?`; empty if no word is near.
pub(crate) fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}
