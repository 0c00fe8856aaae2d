//! Suggestions for a name that does not exist. Owns: the maximum distance of a suggestion.

/// The nearest known name, if one is near enough.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &'a str| (strsim::damerau_levenshtein(wrong, name), name);
    let (edits, name) = known.into_iter().map(distance).min()?;
    (edits <= 1 + wrong.chars().count() / 4).then_some(name)
}

/// `; did you mean `NAME`?`, or an empty text.
#[must_use]
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(wrong, known);
    near.map(|name| format!("; did you mean `{}`?", units::shown(name))).unwrap_or_default()
}

/// The hint of [`hint`], or this advice if no name is near.
#[must_use]
pub fn hint_or<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>, advice: &str) -> String {
    match hint(wrong, known).as_str() {
        "" => format!("; {advice}"),
        near => near.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_near_and_another_name_is_not() {
        let known = ["train1", "train2", "resnet-sweep"];
        for (wrong, near) in [
            ("trian1", Some("train1")),
            ("train", Some("train1")),
            ("resnet-swep", Some("resnet-sweep")),
            ("nope", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), near, "{wrong}");
        }
        assert_eq!(hint("trian2", known), "; did you mean `train2`?");
        assert_eq!(hint("x", []), "");
        assert_eq!(hint_or("trian2", known, "list them"), "; did you mean `train2`?");
        assert_eq!(hint_or("x", known, "list them"), "; list them");
    }
}
