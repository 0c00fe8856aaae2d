//! Generates the types of the protocol. Owns: which file they come from. No program besides the
//! compiler of Rust is needed.

use std::error::Error;

const FILE: &str = "proto/elastic.proto";
const PACKAGE: &str = ".elastane.elastic.v1";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FILE}");
    let documented = "#[derive(serde::Serialize, serde::Deserialize)]";
    tonic_prost_build::configure()
        .bytes(PACKAGE)
        .btree_map(PACKAGE)
        .type_attribute(format!("{PACKAGE}.Metric"), documented)
        .type_attribute(format!("{PACKAGE}.Evaluation"), documented)
        .emit_rerun_if_changed(false)
        .compile_fds(protox::compile([FILE], ["proto"])?)?;
    Ok(())
}
