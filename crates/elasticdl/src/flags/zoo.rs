//! The flags of `zoo init` and `zoo build`.

use crate::flag::{Flag, Takes};

/// The flags of `zoo init`.
pub const INIT: &[Flag] = &[
    Flag::new("base_image", Takes::Text, "Image that the image of the zoo is made from")
        .or("python:3.6"),
    Flag::new("extra_pypi_index", Takes::Text, "Index of packages that pip asks as well")
        .or("https://pypi.org/simple"),
    Flag::new("cluster_spec", Takes::Text, "Python file about pods")
        .or("")
        .refused("pods are not those of Kubernetes; say what they need with the flags of train"),
    Flag::new("local_pkg_dir", Takes::Text, "Folder of wheels to install in place of an index")
        .or(""),
    Flag::new("model_zoo", Takes::Text, "Folder with the models and their requirements.txt")
        .or("."),
];

/// The flags of `zoo build`.
pub const BUILD: &[Flag] = &[
    Flag::new("image", Takes::Text, "Name of the image").required(),
    Flag::new("docker_base_url", Takes::Text, "Socket of the daemon")
        .or("unix://var/run/docker.sock"),
    Flag::new("docker_tlscert", Takes::Text, "Certificate for the daemon").or("").refused(
        "the daemon is asked at its socket; the variables of the docker program choose another",
    ),
    Flag::new("docker_tlskey", Takes::Text, "Key for the daemon").or("").refused(
        "the daemon is asked at its socket; the variables of the docker program choose another",
    ),
];

/// Reason why `clean` has nothing to do.
const NO_IMAGES: &str = "no image is made of models here";

/// Flags of `clean`.
pub const CLEAN: &[Flag] = &[
    Flag::new("docker_image_repository", Takes::Text, "Images of this registry").nothing(NO_IMAGES),
    Flag::new("all", Takes::Switch, "All images").or("false").nothing(NO_IMAGES),
    Flag::new("docker_base_url", Takes::Text, "Socket of the Docker daemon").nothing(NO_IMAGES),
    Flag::new("docker_tlscert", Takes::Text, "Certificate for the daemon").nothing(NO_IMAGES),
    Flag::new("docker_tlskey", Takes::Text, "Key for the daemon").nothing(NO_IMAGES),
];
