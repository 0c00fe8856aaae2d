//! The protocol as both languages must understand it.

use std::fs;

use elastic_proto::v1::{DType, Tensor, Variable};
use elastic_proto::{Credentials, PROTOCOL, server_of, tensor};
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor as _;
use tonic::{Code, Request, Status};

fn credentials(token: &str) -> Credentials {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    fs::write(&path, format!("{token}\n")).expect("written");
    Credentials::read(&path).expect("a token")
}

fn call(from: &Credentials, to: &Credentials) -> Result<(), Status> {
    let request = from.sign().call(Request::new(()))?;
    to.clone().call(request).map(drop)
}

#[test]
fn a_call_with_the_token_passes_and_one_with_another_does_not() {
    let (one, other) = (credentials("0123456789abcdef"), credentials("0123456789abcdeg"));
    assert!(call(&one, &one).is_ok());
    assert_eq!(call(&other, &one).expect_err("refused").code(), Code::Unauthenticated);
    let bare = one.clone().call(Request::new(())).expect_err("refused");
    assert_eq!(bare.code(), Code::Unauthenticated);
    assert!(!format!("{one:?}").contains("0123"));
}

#[test]
fn another_version_is_refused_and_the_text_names_both() {
    let one = credentials("0123456789abcdef");
    let mut request = one.sign().call(Request::new(())).expect("signed");
    request.metadata_mut().insert("elastane-protocol", MetadataValue::from(PROTOCOL + 1));
    let refused = { one }.call(request).expect_err("refused");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("speaks version 2 of the protocol and this side version 1"));
}

#[test]
fn a_file_without_a_token_is_refused_by_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    let error = Credentials::read(&path).expect_err("no file").to_string();
    assert!(error.contains(&path.display().to_string()), "{error}");
    for text in ["", "short", "sixteen characters and blanks"] {
        fs::write(&path, text).expect("written");
        let error = Credentials::read(&path).expect_err(text).to_string();
        assert!(error.contains("at least 16 visible"), "{error}");
    }
}

fn refused(value: Option<Tensor>) -> String {
    Variable { name: "w".into(), value }.floats().expect_err("refused").to_string()
}

#[test]
fn an_array_whose_parts_disagree_is_refused_by_its_name() {
    let good = tensor(&[2, 3], &[0.0; 6]);
    let ok = Variable { name: "w".into(), value: Some(good.clone()) };
    assert_eq!(ok.floats(), Ok((vec![0.0; 6], &[2, 3][..])));
    assert_eq!(refused(None), "w: value is missing; send dtype, shape and content");
    let short = Tensor { content: good.content.slice(1..), ..good.clone() };
    let text = "w: DTYPE_FLOAT32 of shape [2, 3] has 24 bytes of content; it came with 23";
    assert_eq!(refused(Some(short)), text);
    let huge = Tensor { shape: vec![u64::MAX, 2], ..good.clone() };
    assert!(refused(Some(huge)).contains("more than 2^64"));
    let unknown = Tensor { dtype: 99, ..good.clone() };
    assert!(refused(Some(unknown)).contains("dtype 99 is not one of the protocol: DTYPE_FLOAT32"));
    let whole = Tensor { dtype: DType::DtypeInt32.into(), ..good };
    assert!(refused(Some(whole)).contains("DTYPE_INT32; trainable variables"));
}

/// Clients in other languages compute the same: these are `sha256(name)[..8]` modulo the number.
#[test]
fn a_variable_has_its_server_by_name() {
    let names = ["dense/kernel", "dense/bias", "conv2d/kernel", ""];
    assert_eq!(names.map(|name| server_of(name, 1)), [0; 4]);
    assert_eq!(names.map(|name| server_of(name, 3)), [0, 1, 2, 1]);
}
