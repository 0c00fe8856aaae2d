//! Mapping between hosts and workloads: `<workload>--<project>--<port>.<domain>` for a port of a
//! workload, `<inference>--<project>.<domain>` for an inference. Owns: that hosts are unique, and
//! that no host of a workload is one of the server's. Does not know about: authorization.

use api_types::{CreationRequest, ExposedUrl};
use engine::BasePath;
use http_kit::ApiError;
use spec::Port;
use uuid::Uuid;
use view::{View, WorkloadView};

/// Separator of the parts of a label. No part contains it.
const BETWEEN: &str = "--";
/// Maximum length of a DNS label (RFC 1035).
const LABEL_CHARS_MAX: usize = 63;
/// Prefix of internationalized labels (RFC 5890), which a browser would decode.
const FOREIGN: &str = "xn";

/// First and last part of the label of an inference whose name makes no label: its id is between
/// them. The last part of any other label of three parts is a number.
const BY_ID: (&str, &str) = ("inference", "id");

/// Owner of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostOwner {
    /// The server, or an unknown host.
    Server,
    /// A port of a workload, if there is one of these names.
    Workload {
        /// Name of its project.
        project: String,
        /// Name of the workload.
        name: String,
        /// Number of the port.
        port: u16,
    },
    /// An inference, if there is one of these names.
    Inference {
        /// Name of its project.
        project: String,
        /// Name of the inference.
        name: String,
    },
    /// The inference of this id, if there is one.
    InferenceById(Uuid),
    /// No workload, although the host is below their domain.
    NoWorkload,
}

/// Owner of a host without its port; `domain` is that of workloads.
pub fn whose(host: &str, domain: &str) -> HostOwner {
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let below = host.strip_suffix(domain).and_then(|below| below.strip_suffix('.'));
    let Some(label) = below.filter(|label| label.contains(BETWEEN)) else {
        return HostOwner::Server;
    };
    let parts: Vec<&str> = label.split(BETWEEN).collect();
    let (name, project, port) = match parts[..] {
        [name, project] => {
            return HostOwner::Inference { project: project.into(), name: name.into() };
        }
        [first, id, last] if (first, last) == BY_ID => {
            return id.parse().map_or(HostOwner::NoWorkload, HostOwner::InferenceById);
        }
        [name, project, port] => (name, project, port),
        _ => return HostOwner::NoWorkload,
    };
    let written_so = |number: &u16| number.to_string() == port;
    match port.parse().ok().filter(written_so) {
        Some(port) => HostOwner::Workload { project: project.into(), name: name.into(), port },
        None => HostOwner::NoWorkload,
    }
}

/// True if a host, without its port, is below the domain of workloads, and so not one of the
/// server.
pub fn is_of_a_workload(host: &str, domain: &str) -> bool {
    whose(host, domain) != HostOwner::Server
}

/// True if a host, without its port, is that of an inference, if there is one of that name.
pub fn is_of_an_inference(host: &str, domain: &str) -> bool {
    matches!(whose(host, domain), HostOwner::Inference { .. } | HostOwner::InferenceById(_))
}

/// The label of a port; an error for a name that makes no label.
fn label(project: &str, name: &str, port: u16) -> Result<String, ApiError> {
    label_of(&[name, project, &port.to_string()])
}

/// The label of a name, a project and optional further parts.
fn label_of(parts: &[&str]) -> Result<String, ApiError> {
    for (field, of) in ["name", "projectId"].into_iter().zip(parts) {
        if of.contains(BETWEEN) {
            let why = format!("`{of}` has `{BETWEEN}` in it, which no host of exposedUrls may");
            return Err(ApiError::field(field, format!("{why}; choose another name")));
        }
    }
    let label = parts.join(BETWEEN);
    let (chars, most) = (label.len(), LABEL_CHARS_MAX);
    if chars > most {
        let why =
            format!("the host {label} of exposedUrls has {chars} characters, of {most} allowed");
        return Err(ApiError::field("name", format!("{why}; choose a shorter name")));
    }
    if parts.first() == Some(&FOREIGN) {
        let why = format!("no host may begin with {FOREIGN}{BETWEEN}; choose another name");
        return Err(ApiError::field("name", why));
    }
    Ok(label)
}

/// Base of all addresses: the server's address and the domain of workloads.
#[derive(Debug, Clone)]
pub struct Origins {
    /// Address of the server, such as `http://127.0.0.1:7171`.
    pub server: String,
    /// Domain of workloads.
    pub domain: String,
}

impl Origins {
    /// The address of a port, without a path.
    fn of(&self, project: &str, name: &str, port: u16) -> Result<String, ApiError> {
        Ok(self.at(&label(project, name, port)?))
    }

    /// The address of a label, without a path.
    fn at(&self, label: &str) -> String {
        let (scheme, place) = self.server.split_once("://").unwrap_or(("http", &self.server));
        // The port of an address such as `[::1]:7070` is after the last colon.
        let own_port = place.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let own_port = own_port.map(|(_, port)| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{label}.{}{own_port}", self.domain)
    }

    /// The address of an inference, without a path. A name that makes no label, because of its
    /// length or `--` in it, is replaced by the id.
    pub fn of_inference(&self, workload: &WorkloadView) -> String {
        let named = self.of_inference_named(&workload.project_name, &workload.spec.name);
        named.unwrap_or_else(|| {
            let id = workload.id.to_string();
            self.at(&[BY_ID.0, &id, BY_ID.1].join(BETWEEN))
        })
    }

    /// The address of an inference of these names, without a path; `None` if they make no label.
    pub fn of_inference_named(&self, project: &str, name: &str) -> Option<String> {
        Some(self.at(&label_of(&[name, project]).ok()?))
    }

    /// The address of a port of the machine, without a path.
    fn at_machine(&self, port: u16) -> String {
        let place = self.server.split_once("://").map_or(self.server.as_str(), |(_, place)| place);
        let host = place.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        format!("http://{}:{port}", host.map_or(place, |(host, _)| host))
    }

    /// The address of a port of a workload, without a path; `None` if the names make no label, as
    /// after a renaming of the project.
    pub fn of_port(&self, workload: &WorkloadView, port: u16) -> Option<String> {
        self.of(&workload.project_name, &workload.spec.name, port).ok()
    }

    /// The address of the page at a port of a workload: with the base path of its program, and a
    /// slash at the end.
    pub fn of_page(&self, workload: &WorkloadView, port: u16) -> Option<String> {
        Some(self.of_port(workload, port)? + &base_path(workload, port))
    }
}

/// The path of the page at a port, with a slash on both ends.
fn base_path(workload: &WorkloadView, port: u16) -> String {
    let pod = &crate::pods_shown(&workload.spec).pod;
    let words = pod.command.iter().flatten().chain(&pod.args);
    let given = BasePath::of(words, &workload.project_name, &workload.spec.name);
    let opened = workload.spec.urls.iter().map(|url| url.port);
    let opened = opened.chain(pod.container.ports.iter().map(|port| port.container));
    // A single port is that of the base path, however the program gets its number.
    let is_only = opened.clone().all(|other| other == port);
    let here = given.filter(|given| is_only || given.port == port);
    here.map_or_else(|| "/".to_owned(), |given| given.path)
}

/// The addresses of a workload: of ports that are opened in a browser, then of ports requested by
/// their number on the machine.
pub fn addresses(workload: &WorkloadView, origins: &Origins) -> Vec<String> {
    let at_machine =
        |port: &Port| Some(origins.at_machine(port.host?) + &base_path(workload, port.container));
    let opened = workload.spec.urls.iter().filter_map(|url| origins.of_page(workload, url.port));
    let ports = workload.spec.pods.pod.container.ports.iter().filter_map(at_machine);
    opened.chain(ports).collect()
}

/// Refuses ports whose address would be invalid. Invalid port numbers are refused with the rest of
/// the workload.
pub fn check(
    origins: &Origins,
    view: &View,
    project: u64,
    request: &CreationRequest,
) -> Result<(), ApiError> {
    let urls = request.spec.iter().flat_map(|spec| spec.exposed_urls.iter().flatten());
    let kept = urls.enumerate().filter(|(_, url)| url.exclude != Some(true));
    let Some(project) = view.projects.get(&project) else { return Ok(()) };
    for (at, ExposedUrl { container, url, .. }) in kept {
        let Some(port) = container.and_then(|port| u16::try_from(port).ok()) else { continue };
        let own = origins.of(&project.unit.name, &request.name, port)?;
        let same = |given: &String| given.trim_end_matches('/').eq_ignore_ascii_case(&own);
        if let Some(other) = url.as_ref().filter(|given| !given.is_empty() && !same(given)) {
            let why = format!("`{}` is not its address, which is {own}/", units::shown(other));
            return Err(ApiError::field(
                &format!("spec.exposedUrls[{at}].url"),
                format!("{why}; leave it out"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose_of(host: &str) -> String {
        match whose(host, "apps.example.org") {
            HostOwner::Workload { project, name, port } => format!("{project}/{name}:{port}"),
            HostOwner::Inference { project, name } => format!("{project}/{name}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_host_is_one_ports_or_nobodys_or_the_servers() {
        for (host, whose) in [
            ("a--p--80.apps.example.org", "p/a:80"),
            ("A--P--80.Apps.Example.org.", "p/a:80"),
            ("a-b--p-1--65535.apps.example.org", "p-1/a-b:65535"),
            ("a--p--0800.apps.example.org", "NoWorkload"),
            ("a--p--+80.apps.example.org", "NoWorkload"),
            ("a--p--65536.apps.example.org", "NoWorkload"),
            ("a--p.apps.example.org", "p/a"),
            ("A-b--80.apps.example.org", "80/a-b"),
            (
                "inference--00000000-0000-0000-0000-000000000000--id.apps.example.org",
                "InferenceById(00000000-0000-0000-0000-000000000000)",
            ),
            ("inference--x--id.apps.example.org", "NoWorkload"),
            ("a--p--q--80.apps.example.org", "NoWorkload"),
            ("x.a--p--80.apps.example.org", "p/x.a:80"),
            ("gpu.apps.example.org", "Server"),
            ("apps.example.org", "Server"),
            ("a--p--80.example.org", "Server"),
            ("a--p--80apps.example.org", "Server"),
            ("127.0.0.1", "Server"),
            ("", "Server"),
        ] {
            assert_eq!(whose_of(host), whose, "{host}");
        }
    }

    #[test]
    fn what_has_no_host_of_its_own_is_refused_by_its_field() {
        let long = "a".repeat(50);
        for (project, name, why) in [
            ("p", "a--b", "name: `a--b` has `--` in it"),
            ("p--q", "a", "projectId: `p--q` has `--` in it"),
            ("p-234567", long.as_str(), "name: the host aaa"),
            ("p", "xn", "name: no host may begin with xn--"),
        ] {
            let error = label(project, name, 80).expect_err(name);
            assert!(error.message().starts_with(why), "{}", error.message());
        }
        assert_eq!(label("p-23456", &long, 80).expect("fits").len(), 63);
    }

    #[test]
    fn a_port_of_the_machine_is_where_the_server_is() {
        let at = |server: &str| {
            Origins { server: server.to_owned(), domain: String::new() }.at_machine(8888)
        };
        assert_eq!(at("https://gpu-box:7070"), "http://gpu-box:8888");
        assert_eq!(at("http://[::1]:7070"), "http://[::1]:8888");
        assert_eq!(at("https://gpu-box"), "http://gpu-box:8888");
    }

    #[test]
    fn addresses_have_the_scheme_and_the_port_of_the_server() {
        let of = |server: &str| {
            let (server, domain) = (server.to_owned(), "localhost".to_owned());
            Origins { server, domain }.of("p", "a", 80).expect("right")
        };
        assert_eq!(of("http://127.0.0.1:7171"), "http://a--p--80.localhost:7171");
        assert_eq!(of("https://[::1]:443"), "https://a--p--80.localhost:443");
        assert_eq!(of("http://elastane.test"), "http://a--p--80.localhost");
    }
}
