//! Queries that lists send to the server.

use super::meaning;
use dialects::intent::Intent;

/// Query that a list sends to the server.
fn asked(line: &str) -> String {
    let Ok(Intent::ListWorkloads(list)) = meaning(line) else { panic!("{line}") };
    let project = (!list.all_projects).then_some("team-a");
    let style = list.table.unwrap();
    match crate::list::selection(&list, style, project) {
        Ok(one) => {
            let (order, _) = one.sort_by.unwrap();
            let (from, most) = (one.offset, one.limit);
            format!("{} by {order} from {from} most {most:?}", one.conditions.join(","))
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_list_asks_the_server_for_the_rows_that_it_prints() {
    for (line, said) in [
        ("list", "projectName==team-a by qualifiedName from 0 most None"),
        ("list -A --limit 3", " by activity from 0 most Some(3)"),
        (
            "training list -A --status running,Pending --limit 5 --offset 10",
            "type==Training|Distributed,phase==Running|Pending by activity from 10 most Some(5)",
        ),
        (
            "mpi list --node n1,n2 --user ann --label a=1 --label b=2 --no-pagination",
            "projectName==team-a,distributedFramework==MPI,nodes==n1|n2,submittedBy==ann,\
             labels==a=1,labels==b=2 by activity from 0 most None",
        ),
        ("workload list -A --sort age", " by activity from 0 most None"),
        ("list jobs --label a=b,c", "a name of a project, node, user or label has no comma"),
    ] {
        assert_eq!(asked(&format!("runai {line}")), said, "{line}");
    }
    let refused = meaning("runai list nodes --user ann").unwrap_err();
    assert!(refused.contains("only `list jobs` takes them"), "{refused}");
}
