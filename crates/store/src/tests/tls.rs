//! The way to PostgreSQL, encrypted.

use super::lab::Lab;
use crate::testing::PgServer;

use crate::*;

#[tokio::test]
async fn the_way_is_encrypted_and_the_server_is_who_it_should_be() {
    let Some(server) = PgServer::own() else { return };
    let Some((port, certificate)) = server.with_tls() else { return };
    let certificate = certificate.display();
    let lab = |host: &str, parameters: &str| Lab {
        dir: tempfile::tempdir().unwrap(),
        database: format!("postgres://elastane@{host}:{port}/postgres?{parameters}")
            .parse()
            .unwrap(),
    };
    let encrypted = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let verified = format!("sslmode=verify-full&sslrootcert={certificate}");
    for parameters in ["sslmode=require", &verified] {
        let lab = lab("localhost", parameters);
        lab.filled().await.0.load().await.unwrap();
        assert_eq!(lab.texts(encrypted).await, ["true"], "{parameters}");
        lab.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
    }
    for (host, parameters) in [("localhost", "sslmode=verify-full"), ("127.0.0.1", &verified)] {
        let error = lab(host, parameters).open().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{host} {parameters}: {error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}
