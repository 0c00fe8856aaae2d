//! Questions that keep a core busy: callers take turns.

use std::cell::Cell;

use axum::http::StatusCode;
use futures_util::future::join_all;
use serde_json::json;

use crate::iam::{call, give, user};
use crate::server::Server;

const FLOOD: usize = 100;

#[tokio::test]
async fn a_flood_of_questions_of_one_user_does_not_come_before_one_of_another() {
    let server = Server::with_teams().await;
    let mut tokens = Vec::new();
    for name in ["ann@example.org", "bob@example.org"] {
        let (_, token) = user(&server, name).await;
        give(&server, name, 6, ("project", "1")).await;
        tokens.push(token);
    }
    let waits = server.train("waits", 99).await;
    let submission = server.job("one", &json!({"image": "i"}));
    let diagnosis = format!("/elastane/v1/workloads/{waits}/explain?parts=diagnosis");
    for (method, path, body) in [
        ("POST", "/elastane/v1/what-if", json!({"trainings": [submission]})),
        ("GET", &diagnosis, json!(null)),
    ] {
        let answered = Cell::new(0);
        let ask = async |token: &str| {
            let (status, answer) = call(&server, token, (method, path), &body).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            answered.set(answered.get() + 1);
        };
        let flood = join_all((0..FLOOD).map(|_| ask(&tokens[0])));
        let one = async {
            while answered.get() == 0 {
                tokio::task::yield_now().await;
            }
            ask(&tokens[1]).await;
            answered.get()
        };
        let (_, before) = tokio::join!(flood, one);
        assert!(before < FLOOD / 2, "{method} {path}: {before} were answered before");
    }
}
