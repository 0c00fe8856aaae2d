//! The word that was probably meant. Owns: how near is near enough.

/// The known word nearest to a wrong one, if it is near at all.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let distance = |word: &'a str| (strsim::damerau_levenshtein(wrong, word), word);
    let (edits, word) = known.into_iter().map(distance).min()?;
    (edits <= 1 + wrong.chars().count() / 4).then_some(word)
}

/// ` ; did you mean ...?`, or nothing.
pub(crate) fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}
