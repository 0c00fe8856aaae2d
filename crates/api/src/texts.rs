//! Every kind of refusal in one place, for review, with its status. A change of wording is a change
//! of `texts.txt`. Errors of a field are written where that field is read.

use auth::TokenFault;
use expect_test::expect_file;
use http_kit::{ApiError, TlsError};
use oidc::{Error as ProviderError, TokenFault as IdTokenFault};
use orchestrator::Error;
use serving::{Error as ServingError, NoReplica};
use testkit::{assert_plain, texts};

fn text(text: &str) -> String {
    text.to_owned()
}

fn of_control() -> Vec<Error> {
    let hint = || text("HINT");
    let missing = |what, name: &str| Error::NotFound { what, name: text(name), hint: hint() };
    vec![
        Error::Invalid { field: "FIELD", message: text("WHAT IS WRONG AND WHAT IS ALLOWED") },
        missing("project", "7"),
        missing("workload", "ID"),
        missing("node", "node-1"),
        Error::Conflict { message: text("WHAT IS THERE AND WHAT TO DO") },
        Error::Unavailable { message: text("WHY, AND WHAT TO DO") },
        Error::Internal { message: text("WHAT FAILED") },
    ]
}

fn shown(fault: &ApiError) -> String {
    format!("{} {}", fault.status.as_u16(), fault.message())
}

fn faults() -> String {
    let all = [
        ApiError::bad("WHAT IS WRONG"),
        ApiError::field("spec.image", "WHAT IS ALLOWED"),
        ApiError::not_yet("spec.x"),
        ApiError::forbidden("WHY"),
        ApiError::too_many(30),
        ApiError::internal("CAUSE"),
        ApiError::no_such("project", "7"),
        ApiError::no_such("workload", "ID"),
        ApiError::no_such("template", "ID"),
    ];
    let lines = all.iter().map(|fault| format!("    {}\n", shown(fault)));
    format!("# ApiError\n{}", lines.collect::<String>())
}

fn of_login() -> String {
    let (issuer, fault) = (|| text("https://id.example.org"), || text("FAULT"));
    let provider = [
        ProviderError::Unavailable { issuer: issuer(), fault: fault() },
        ProviderError::Unusable { issuer: issuer(), fault: fault() },
        ProviderError::Refused(fault()),
        ProviderError::Token(IdTokenFault::Expired),
        ProviderError::UnknownUser(fault()),
    ];
    let provider = texts!(
        ProviderError { Unavailable, Unusable, Refused, Token, UnknownUser },
        provider,
        ToString::to_string,
    );
    use IdTokenFault as I;
    let id_tokens = [
        I::Malformed,
        I::Kind,
        I::Algorithm(text("none")),
        I::UnknownKey,
        I::Signature,
        I::Issuer(text("https://other.example.org")),
        I::Audience(text("other")),
        I::Expired,
        I::Early,
        I::Nonce,
        I::Subject,
    ];
    let id_tokens = texts!(
        IdTokenFault {
            Malformed,
            Kind,
            Algorithm,
            UnknownKey,
            Signature,
            Issuer,
            Audience,
            Expired,
            Early,
            Nonce,
            Subject,
        },
        id_tokens,
        ToString::to_string,
    );
    use TokenFault as T;
    let tokens = texts!(
        TokenFault { Malformed, Algorithm, Signature, Expired },
        [T::Malformed, T::Algorithm, T::Signature, T::Expired],
        ToString::to_string,
    );
    [provider, id_tokens, tokens].join("\n")
}

fn of_connections() -> String {
    use ServingError as S;
    let requests = [
        S::NoReplica(NoReplica::InTime { waited_s: 60 }),
        S::Crowded,
        S::NoTurn,
        S::TooSlow(30),
        S::Broken(text("FAULT")),
    ];
    let requests = texts!(
        ServingError { NoReplica, Crowded, NoTurn, TooSlow, Broken },
        requests,
        ToString::to_string,
    );
    let replicas = [
        NoReplica::Full,
        NoReplica::Crowded,
        NoReplica::InTime { waited_s: 60 },
        NoReplica::Closed(text("WHY")),
    ];
    let replicas =
        texts!(NoReplica { Full, Crowded, InTime, Closed }, replicas, ToString::to_string);
    let certificates = [
        TlsError::File { what: "certificate", path: "/s/cert.pem".into(), fault: text("FAULT") },
        TlsError::NotAPair { certificate: "/s/cert.pem".into(), key: "/s/key.pem".into() },
        TlsError::Unusable(rustls::Error::HandshakeNotComplete),
    ];
    let certificates =
        texts!(TlsError { File, NotAPair, Unusable }, certificates, ToString::to_string);
    [requests, replicas, certificates].join("\n")
}

#[test]
fn every_kind_of_refusal() {
    let of_control = texts!(
        Error { Invalid, NotFound, Conflict, Unavailable, Internal },
        of_control(),
        |error: &Error| shown(&ApiError::from(error.clone())),
    );
    let all = [faults(), of_control, of_login(), of_connections()].join("\n");
    expect_file!["texts.txt"].assert_eq(&all);
    assert_plain(&all);
}
