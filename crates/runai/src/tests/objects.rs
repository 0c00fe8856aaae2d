//! Objects other than workloads, and manifests: from words to requests, from objects to tables.

use expect_test::expect;
use serde_json::{Value, json};

use super::meaning;
use crate::manifest::{parse, take_own_namespace};
use crate::objects::{kind, page, table};
use dialects::intent::{
    Dialect, Intent, ListObjects, Manifest, Name, Objects, OutputFormat, OutputOptions, Page,
};

#[test]
fn every_noun_is_listed_and_described() {
    for (word, of) in [
        ("template", Objects::Template),
        ("templates", Objects::Template),
        ("environment", Objects::Environment),
        ("compute", Objects::Compute),
        ("datasource", Objects::Datasource),
        ("pvc", Objects::Pvc),
        ("datavolume", Objects::Datavolume),
        ("credential", Objects::Credential),
        ("department", Objects::Department),
        ("nodepool", Objects::Nodepool),
        ("workload-type", Objects::WorkloadType),
    ] {
        let list = |all_projects, page, shown| {
            let how = OutputOptions::only(shown);
            let dialect = Dialect::V2;
            Ok(Intent::ListObjects(ListObjects { of, dialect, all_projects, page, how }))
        };
        let first = Page { offset: 0, limit: Some(50), has_more_pages: true };
        assert_eq!(meaning(&format!("runai {word} list")), list(false, first, OutputFormat::Text));
        let every = meaning(&format!("runai {word} list -A --yaml --no-pagination"));
        let all = Page { has_more_pages: true, ..Page::default() };
        assert_eq!(every, list(true, all, OutputFormat::Yaml));
        let one =
            Ok(Intent::DescribeObject(of, "a".to_owned(), OutputOptions::only(OutputFormat::Json)));
        assert_eq!(meaning(&format!("runai {word} describe a -o json")), one);
    }
}

#[test]
fn templates_have_the_words_of_the_first_dialect_too() {
    let one =
        Ok(Intent::DescribeObject(Objects::Template, "a".to_owned(), OutputOptions::default()));
    for line in ["describe template a", "template get a", "template describe a"] {
        assert_eq!(meaning(&format!("runai {line}")), one, "{line}");
    }
    let Ok(Intent::ListObjects(list)) = meaning("runai list templates") else { panic!() };
    assert_eq!((list.of, list.dialect), (Objects::Template, Dialect::V1));
    assert!(matches!(meaning("runai describe template"), Ok(Intent::Describe(_))), "a job");
}

fn template() -> Value {
    json!({
        "meta": {"id": "7", "name": "torch", "description": "as we do it", "scopeType": "project",
                 "workloadType": "Training"},
        "spec": {"image": "ubuntu", "compute": {"gpuDevicesRequest": 1}}
    })
}

#[test]
fn objects_are_shown_by_the_table_of_their_kind() {
    let templates = kind(Objects::Template);
    expect![[r#"
        Name   Type      Scope    Image   Description
        ─────────────────────────────────────────────
        torch  Training  project  ubuntu  as we do it
    "#]]
    .assert_eq(&table(templates, Dialect::V2, &[template()]).ruled());
    expect![[r#"
        NAME   DESCRIPTION
        torch  as we do it
    "#]]
    .assert_eq(&table(templates, Dialect::V1, &[template()]).plain());
    expect![[r#"
        Name: torch
        Type: Training
        Scope: project
        Image: ubuntu
        Description: as we do it
        Specification:
          compute:
            gpuDevicesRequest: 1
          image: ubuntu
    "#]]
    .assert_eq(&page(templates, &template()));
    let department = json!({
        "name": "default", "totalResources": {"gpuQuota": 2.5},
        "children": [{"id": "1", "name": "team-a"}, {"id": "2", "name": "team-b"}]
    });
    expect![[r#"
        Name     GPU Quota  Allocated GPUs  Projects
        ─────────────────────────────────────────────────
        default  2.5        -               team-a,team-b
    "#]]
    .assert_eq(&table(kind(Objects::Department), Dialect::V2, &[department]).ruled());
    let pool = |name: &str, is_default: bool| {
        json!({"name": name, "isDefault": is_default, "labelKey": "key", "labelValue": name,
               "phase": "Ready", "status": {"nodes": []}})
    };
    let pools = [pool("default", true), pool("a100", false)];
    expect![[r#"
        Name     Label Key  Label Value  Phase  GPU Time Slicing  Nodes
        ───────────────────────────────────────────────────────────────
        default  -          -            Ready  -                 -
        a100     key        a100         Ready  -                 -
    "#]]
    .assert_eq(&table(kind(Objects::Nodepool), Dialect::V2, &pools).ruled());
}

#[test]
fn a_page_knows_how_many_rows_come_after() {
    let page = |offset, limit| Page { offset, limit, has_more_pages: true }.of(vec![1, 2, 3, 4, 5]);
    assert_eq!(page(0, None), (vec![1, 2, 3, 4, 5], 0));
    assert_eq!(page(1, Some(2)), (vec![2, 3], 2));
    assert_eq!(page(9, Some(2)), (vec![], 0));
}

#[test]
fn a_manifest_is_submitted_with_what_is_said_beside_it() {
    let submit = |name, preemptible| Manifest {
        file: "a.yaml".into(),
        name,
        category: Some("Build".to_owned()),
        priority: Some("high".to_owned()),
        preemptible,
        strict: false,
    };
    let line = "runai workload submit -f a.yaml --category Build --priority high";
    let plain = Intent::SubmitManifest(Box::new(submit(None, None)));
    assert_eq!(meaning(line), Ok(plain));
    let prefix = Some(Name::Numbered("p".to_owned()));
    let numbered = Intent::SubmitManifest(Box::new(submit(prefix, Some(false))));
    let line = format!("{line} --name-prefix p --preemptibility non-preemptible");
    assert_eq!(meaning(&line), Ok(numbered));
    for (line, said) in [
        ("runai workload submit", "--file <FILE>"),
        ("runai workload submit a -f x --name-prefix p", "cannot be used with"),
        ("runai workload submit -f x --mnnvl Required", "there is one machine"),
    ] {
        let text = meaning(line).unwrap_err();
        assert!(text.contains(said), "{line}: {text}");
    }
}

#[test]
fn a_manifest_is_one_object_of_yaml_or_json() {
    let yaml = "kind: Pod\nmetadata:\n  name: a\nspec:\n  hostNetwork: no\n  n: 3\n";
    let said = json!({
        "kind": "Pod", "metadata": {"name": "a"}, "spec": {"hostNetwork": "no", "n": 3}
    });
    assert_eq!(parse(yaml).unwrap(), said);
    assert_eq!(parse(&said.to_string()).unwrap(), said);
    for wrong in ["", "- a\n", "a: [", "a: 1\na: 2\n", "kind: Pod\n---\nkind: Job\n"] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
    let two = format!("{yaml}\n---\n{yaml}");
    assert!(parse(&two).unwrap_err().contains("submit each in a file of its own"));
}

#[test]
fn a_namespace_of_the_project_is_taken_away_and_another_is_left_to_be_noted() {
    let of = |namespace: &str| json!({"metadata": {"name": "a", "namespace": namespace}});
    for (namespace, left) in [
        ("runai-team-a", json!({"metadata": {"name": "a"}})),
        ("team-a", json!({"metadata": {"name": "a"}})),
        ("default", of("default")),
    ] {
        let mut manifest = of(namespace);
        take_own_namespace(&mut manifest, "team-a");
        assert_eq!(manifest, left);
    }
    take_own_namespace(&mut json!({"kind": "Pod"}), "team-a");
}
