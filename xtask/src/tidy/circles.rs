//! Files of a crate that import each other in a circle. Owns: the imports of a file, as far as
//! paths show them. A parent and the modules below it may import each other. Does not know about:
//! macros, and names that come in by a glob.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Fault;
use crate::tree::{Tree, code_of, is_test_file, product_lines};

/// Modules by path, such as `a::b`; the root is empty.
type Modules<'a> = BTreeMap<String, &'a str>;
/// Imports of each module.
pub(super) type Imports = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for (path, text) in tree.iter().filter(|(path, _)| !is_test_file(path)) {
        let of_crate = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        if let Some((name, file)) = of_crate.filter(|(_, file)| file.ends_with(".rs")) {
            let module = file.trim_end_matches(".rs").replace('/', "::");
            let module = module.strip_suffix("::mod").unwrap_or(&module);
            let module = if matches!(module, "lib" | "main") { "" } else { module };
            crates.entry(name).or_default().insert(module.to_owned(), text);
        }
    }
    let fault = |(name, modules): (&str, Modules<'_>)| {
        let imports = imports(&modules);
        let circles: Vec<_> = modules.keys().filter_map(|own| circle(own, &imports)).collect();
        let shortest = circles.iter().min_by_key(|circle| circle.len())?;
        let (files, shortest) = (circles.len(), shortest.join(" -> "));
        let what = format!("{files} files import each other in circles, none may: {shortest}");
        Some(Fault::new(&format!("crates/{name}/src"), 0, what))
    };
    crates.into_iter().filter_map(fault).collect()
}

/// Imports of each module, except from modules above or below it.
fn imports(modules: &Modules<'_>) -> Imports {
    let paths: BTreeMap<&String, Vec<Vec<String>>> =
        modules.iter().map(|(own, text)| (own, paths(text))).collect();
    // A name that a module imports may be imported from there.
    let mut names: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for (own, paths) in &paths {
        for path in paths {
            let (target, _) = resolve(modules, own, path);
            if let Some(name) = path.last().filter(|_| target != **own) {
                names.insert((own.as_str(), name.as_str()), target);
            }
        }
    }
    let target = |own: &str, path: &Vec<String>| {
        let (target, rest) = resolve(modules, own, path);
        let by_name = rest.and_then(|name| names.get(&(target.as_str(), name)).cloned());
        by_name.unwrap_or(target)
    };
    let is_above = |one: &str, other: &str| {
        one.is_empty() || other == one || other.starts_with(&format!("{one}::"))
    };
    let of = |(own, paths): (&&String, &Vec<Vec<String>>)| {
        let targets = paths.iter().map(|path| target(own, path));
        let others = targets.filter(|other| !is_above(own, other) && !is_above(other, own));
        ((**own).clone(), others.collect())
    };
    paths.iter().map(of).collect()
}

/// The module that a path leads to, and the first name after it.
fn resolve<'p>(modules: &Modules<'_>, own: &str, path: &'p [String]) -> (String, Option<&'p str>) {
    let mut at = own.to_owned();
    for segment in path {
        at = match segment.as_str() {
            "crate" => String::new(),
            "self" => at,
            "super" => at.rsplit_once("::").map_or_else(String::new, |(above, _)| above.to_owned()),
            name => {
                let below = if at.is_empty() { name.to_owned() } else { format!("{at}::{name}") };
                if !modules.contains_key(&below) {
                    return (at, Some(name));
                }
                below
            }
        };
    }
    (at, None)
}

/// Every path in the code that begins in this crate: in a `use`, or with `crate`, `self` or
/// `super`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let lines = product_lines(text);
    let code: String = lines.iter().flat_map(|(_, line)| [code_of(line), " "]).collect();
    let mut found = Vec::new();
    for start in ["use ", "crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if !before.is_alphanumeric() && !matches!(before, '_' | ':' | '$') {
                read(code[at..].trim_start_matches("use "), &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads a path, or a list of paths in brackets; answers what follows.
fn read<'t>(text: &'t str, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    let length = path.len();
    let rest = if let Some(mut list) = text.strip_prefix('{') {
        loop {
            list = read(list, path, found).trim_start();
            list = list.strip_prefix(" as _").unwrap_or(list);
            match list.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => list = more,
                _ => break list.trim_start_matches([',', ' ']).trim_start_matches('}'),
            }
        }
    } else {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if !name.is_empty() {
            path.push(name.to_owned());
        }
        match rest.strip_prefix("::") {
            Some(more) => read(more, path, found),
            None => {
                found.push(path.clone());
                let alias = rest.strip_prefix(" as ").unwrap_or(rest);
                let is_name = |c: char| c.is_alphanumeric() || c == '_';
                if alias.len() == rest.len() { rest } else { alias.trim_start_matches(is_name) }
            }
        }
    };
    path.truncate(length);
    rest
}

/// The shortest way from a module back to it.
pub(super) fn circle<'i>(own: &'i String, imports: &'i Imports) -> Option<Vec<&'i str>> {
    let mut ways = VecDeque::from([vec![own.as_str()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in imports.get(*way.last()?).into_iter().flatten() {
            let longer = [way.as_slice(), &[next.as_str()]].concat();
            if next == own {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}
