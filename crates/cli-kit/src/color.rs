//! Colors of text. Owns: the flag `--color`, and the variables that other programs use as well:
//! NO_COLOR, CLICOLOR and CLICOLOR_FORCE.

use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;

/// Color mode of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// At a terminal that has them, unless the environment says otherwise.
    #[default]
    Auto,
    /// Wherever it goes.
    Always,
    /// Never.
    Never,
}

/// Color choice of this process.
static CHOSEN: AtomicU8 = AtomicU8::new(Color::Auto as u8);

impl Color {
    /// Sets the choice for all later output of this process.
    pub fn choose(self) {
        CHOSEN.store(self as u8, Ordering::Relaxed);
    }

    /// The choice of this process.
    #[must_use]
    pub fn chosen() -> Self {
        let chosen = CHOSEN.load(Ordering::Relaxed);
        [Self::Always, Self::Never].into_iter().find(|one| *one as u8 == chosen).unwrap_or_default()
    }

    /// True if output has colors; `terminal` is true if it goes to a terminal.
    pub fn applies(self, terminal: bool, env: impl Fn(&str) -> Option<String>) -> bool {
        let is_set = |name| env(name).is_some_and(|value: String| !value.is_empty());
        let is_zero = |name| env(name).is_some_and(|value| value == "0");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if is_set("NO_COLOR") => false,
            Self::Auto if is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE") => true,
            Self::Auto if is_zero("CLICOLOR") => false,
            Self::Auto => terminal && env("TERM").is_some_and(|kind| kind != "dumb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_variables_and_these_before_the_terminal() {
        let shows = |color: Color, terminal: bool, set: &[(&str, &str)]| {
            let all = [set, &[("TERM", "xterm")]].concat();
            color.applies(terminal, |name| {
                all.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        for (color, terminal, set, want) in [
            (Color::Auto, true, &[][..], true),
            (Color::Auto, false, &[], false),
            (Color::Auto, true, &[("TERM", "dumb")], false),
            (Color::Auto, true, &[("NO_COLOR", "1")], false),
            (Color::Auto, true, &[("NO_COLOR", "")], true),
            (Color::Auto, true, &[("CLICOLOR", "0")], false),
            (Color::Auto, true, &[("CLICOLOR", "1")], true),
            (Color::Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (Color::Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (Color::Auto, true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (Color::Always, false, &[("NO_COLOR", "1")], true),
            (Color::Never, true, &[("CLICOLOR_FORCE", "1")], false),
        ] {
            assert_eq!(shows(color, terminal, set), want, "{color:?} {terminal} {set:?}");
        }
    }

    #[test]
    fn without_a_terminal_type_there_are_none() {
        assert!(!Color::Auto.applies(true, |_| None));
    }
}
