//! Tables of all texts of an enum, to review them as a whole. Owns: that no variant is left out.

/// A table of what people read of an enum: a line with the variant, one with its text, for each of
/// the samples. A variant that is not listed does not compile, one without a sample fails.
#[macro_export]
macro_rules! texts {
    ($type:ident { $($variant:ident),+ $(,)? }, $samples:expr, $text:expr $(,)?) => {{
        let name = |of: &$type| match of {
            $($type::$variant { .. } => stringify!($variant),)+
        };
        let text = $text;
        let samples = $samples;
        let rows = samples.iter().map(|sample| (name(sample), text(sample)));
        $crate::table_of_texts(stringify!($type), &[$(stringify!($variant)),+], rows)
    }};
}

/// The table of [`texts`]; panics where a variant has no sample.
pub fn table_of_texts<'a>(
    title: &str,
    variants: &[&'a str],
    rows: impl Iterator<Item = (&'a str, String)>,
) -> String {
    let rows: Vec<_> = rows.collect();
    for variant in variants {
        let has = rows.iter().any(|(name, _)| name == variant);
        assert!(has, "no text of {title}::{variant} is shown; add a sample of it");
    }
    let mut table = format!("# {title}\n");
    for (name, text) in rows {
        assert!(!text.trim().is_empty(), "{title}::{name} says nothing");
        table.push_str(&format!("{name}\n"));
        text.lines().for_each(|line| table.push_str(&format!("    {line}\n")));
    }
    table
}

/// Asserts that these texts use no words without a meaning in the field.
///
/// # Panics
/// One of the texts has such a word.
pub fn assert_plain(texts: &str) {
    let lines = texts.lines().filter(|line| line.starts_with(' '));
    let texts: Vec<_> = lines.map(str::to_lowercase).collect();
    for word in ["nobody", "somebody", "anybody", "whoever", "anew", " lest ", "of late"] {
        let line = texts.iter().find(|line| line.contains(word));
        assert_eq!(line, None, "{word}");
    }
}
