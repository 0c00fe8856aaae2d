//! Words of a submission: the default prefix of the name, and the note on a command line in a
//! single word. Does not know about: flags.

use crate::intent::Kind;

/// Default prefix of the name.
pub(super) const fn of_kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Training(_) | Kind::Distributed(_) => "training",
        Kind::Workspace => "workspace",
        Kind::Inference(_) => "inference",
    }
}

/// The note on a command line given as a single quoted word, which is not split.
pub(super) fn only_word(command: &[String], args: &[String]) -> Option<String> {
    let mut words = command.iter().chain(args);
    let (word, more) = (words.next()?, words.next());
    (more.is_none() && word.contains(char::is_whitespace)).then(|| {
        let shell = shell_words::join(["bash", "-c", word]);
        format!(
            "`{}` is one word, which names a program; for a shell: -- {shell}",
            units::shown(word)
        )
    })
}
