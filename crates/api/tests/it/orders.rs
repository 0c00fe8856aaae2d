//! Lists of workloads: the same page whether it is found by looking at all of them, or in an order
//! that is known from an earlier list.

use serde_json::Value;

use crate::server::Server;

/// The names on a page, and where the next one begins.
async fn page(server: &Server, query: &str) -> (Vec<String>, Value) {
    let page = server.get(&format!("/api/v1/workloads?{query}")).await;
    let rows = page["workloads"].as_array().unwrap().iter();
    let names = rows.map(|row| row["name"].as_str().unwrap().to_owned());
    (names.collect(), page["next"].clone())
}

#[tokio::test]
async fn a_list_is_the_same_however_often_it_is_asked_for() {
    let server = Server::with_teams().await;
    for number in [3, 1, 2, 12, 11, 21] {
        server.train(&format!("t{number}"), 0).await;
    }
    for (query, want) in [
        ("limit=4", &["t3", "t1", "t2", "t12"][..]),
        ("limit=4&offset=4", &["t11", "t21"]),
        ("sortBy=name&limit=3&offset=1", &["t11", "t12", "t2"]),
        ("sortBy=name&sortOrder=desc&filterBy=name=@1&limit=2", &["t21", "t12"]),
        ("sortBy=projectName&sortOrder=desc&limit=2", &["t3", "t1"]),
        ("sortBy=submittedBy&sortOrder=desc&search=t2", &["t2", "t21"]),
        ("sortBy=totalPendingTimeSeconds&filterBy=name==t2", &["t2"]),
    ] {
        let first = page(&server, query).await;
        assert_eq!(first.0, want, "{query}");
        for _ in 0..3 {
            assert_eq!(page(&server, query).await, first, "{query}");
        }
    }
    server.train("a", 0).await;
    assert_eq!(page(&server, "sortBy=name&limit=1").await.0, ["a"]);
}
