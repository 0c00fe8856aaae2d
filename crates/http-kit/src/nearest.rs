//! Suggestions for an unknown name. Owns: how near a known one has to be.

/// Longest unknown name for which the nearest one is looked for.
const NAME_BYTES_MAX: usize = 128;

/// The known word that is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison takes time and memory by the product of both lengths.
    if word.len() > NAME_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}
