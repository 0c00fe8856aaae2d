//! Words of a submission: the name where none is given, and a command line that is one of them. Does not
//! know about: flags.

use crate::intent::Kind;

/// The prefix of the name where none is given.
pub(super) const fn of_kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Training(_) | Kind::Distributed(_) => "training",
        Kind::Workspace => "workspace",
        Kind::Inference(_) => "inference",
    }
}

/// A command line that came as one word, in quotes: nothing takes it apart.
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
