//! Priority classes from files, as `kubectl apply` takes them. Owns: the supported fields of such a
//! file. Does not know about: the effect of a class on the scheduler.

use std::io::Write;
use std::path::Path;

use cli_kit::exit::Error;
use serde_json::Value;

/// Maximum size in bytes: the limit of the server, and more than a person writes.
const BYTES_MAX: u64 = 1 << 20;

/// Creates or updates the classes of a file.
pub(crate) async fn run(
    file: &Path,
    project: Option<String>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let text = cli_kit::input::read_text(file, BYTES_MAX)?;
    let classes = classes(&text);
    let classes = classes.map_err(|why| Error::Usage(format!("{}: {why}", file.display())))?;
    let client = runai::connected(project).await?.client;
    let before = client.priority_classes().await?;
    for (name, value) in classes {
        let had = before.iter().find(|one| one.name == name).map(|one| one.value);
        client.put_priority_class(&name, value).await?;
        let what = match had {
            None => "created",
            Some(same) if same == value => "unchanged",
            Some(_) => "configured",
        };
        writeln!(out, "priorityclass.scheduling.k8s.io/{name} {what}")?;
    }
    Ok(())
}

/// Names and values of the classes in a text; several documents are separated by `---`.
fn classes(text: &str) -> Result<Vec<(String, u32)>, String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    documents.retain(|document| {
        document.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    });
    if documents.is_empty() {
        return Err("there is nothing in it".to_owned());
    }
    documents.iter().map(|document| class(&runai::yaml(document)?)).collect()
}

fn class(document: &Value) -> Result<(String, u32), String> {
    let text = |at: &str| document.pointer(at).and_then(Value::as_str);
    let kind = (text("/apiVersion").unwrap_or_default(), text("/kind").unwrap_or_default());
    if kind != ("scheduling.k8s.io/v1", "PriorityClass") {
        return Err(format!(
            "`{}` of `{}` is not taken; PriorityClass of scheduling.k8s.io/v1 is, and workloads go \
             with `runai submit`",
            units::shown(kind.1),
            units::shown(kind.0)
        ));
    }
    let name = text("/metadata/name").ok_or("metadata.name is missing")?.to_owned();
    let value = document.get("value").and_then(Value::as_u64);
    let value = value.and_then(|value| u32::try_from(value).ok());
    let value = value.ok_or("value is missing; write a whole number from 0 to 1000000000")?;
    if document.get("globalDefault").and_then(Value::as_bool) == Some(true) {
        return Err("globalDefault is true, and a workload without a class has that of its kind; \
                    write false"
            .to_owned());
    }
    if text("/preemptionPolicy").is_some_and(|policy| policy != "PreemptLowerPriority") {
        return Err("preemptionPolicy can only be PreemptLowerPriority; leave it out".to_owned());
    }
    let known = [
        "apiVersion",
        "kind",
        "metadata",
        "value",
        "globalDefault",
        "preemptionPolicy",
        "description",
    ];
    let fields = document.as_object().into_iter().flat_map(|fields| fields.keys());
    match fields.into_iter().find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(format!("the field `{}` is not known", units::shown(field))),
        None => Ok((name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::classes;

    #[test]
    fn the_files_of_the_document_are_read() {
        let one = |name: &str, value: u32| {
            format!(
                "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: {name}\n\
                 value: {value}\nglobalDefault: false\n"
            )
        };
        let (high, low) = (one("high-priority", 1_000_000), one("low-priority", 1000));
        assert_eq!(classes(&high), Ok(vec![("high-priority".into(), 1_000_000)]));
        assert_eq!(classes(&format!("---\n{high}---\n{low}")).expect("both").len(), 2);
        for (text, why) in [
            (String::new(), "nothing in it"),
            (high.replace("PriorityClass", "Pod"), "is not taken"),
            (high.replace("value: 1000000", ""), "value is missing"),
            (high.replace("1000000", "-1"), "value is missing"),
            (high.replace("Default: false", "Default: true"), "write false"),
            (format!("{high}preemptionPolicy: Never\n"), "leave it out"),
            (format!("{high}valeu: 1\n"), "`valeu` is not known"),
        ] {
            let error = classes(&text).expect_err(&text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
