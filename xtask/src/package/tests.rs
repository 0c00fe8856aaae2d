//! Packages of scripts that stand in for the product's programs: what is in them, and that they are
//! the same each time.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Writes the pages and the version as `elastane` does. The last line is what a linker leaves.
const ELASTANE: &str = "#!/bin/sh
case $1 in
version) echo elastane 1.2.3 ;;
completion) echo complete elastane in $2 ;;
man) mkdir -p $2 && echo .TH > $2/elastane.1 && echo .TH > $2/runai.1 && echo .TH > $2/runai-list.1 ;;
esac
# GLIBC_2.34 libgcc_s.so.1
";
const RUNAI: &str = "#!/bin/sh\necho \"complete runai in $2\"\n";

/// A release of version 1.2.3, and the folder that it is in; none where a tool is missing.
fn release_with(tools: &[&str]) -> Option<(tempfile::TempDir, Release)> {
    for tool in tools {
        if text(Command::new("sh").args(["-c", &format!("command -v {tool}")])).is_err() {
            return skip::missing(&format!("{tool} is not installed"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in [("elastane", ELASTANE), ("runai", RUNAI)] {
        let path = folder.path().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let words = ["--programs", folder.path().to_str().unwrap(), "--output"];
    let output = folder.path().join("out");
    let words = [words.as_slice(), &[output.to_str().unwrap()]].concat();
    let release = release(&crate::root(), Options::parse(&words).unwrap()).unwrap();
    Some((folder, release))
}

fn listing(command: &str, file: &Path) -> String {
    text(Command::new("sh").args(["-c", command, "sh"]).arg(file)).unwrap()
}

#[test]
fn a_debian_package_has_every_file_where_debian_looks_for_it() {
    let Some((_folder, release)) = release_with(&["dpkg-deb"]) else { return };
    let package = deb::build(&release).unwrap();
    assert!(package.ends_with(format!("elastane_1.2.3_{}.deb", release.arch)));
    let all = listing(r#"dpkg-deb -c "$1" | awk '{ print $1, $2, $6 }'"#, &package);
    for line in [
        "-rwxr-xr-x root/root ./usr/bin/elastane",
        "-rwxr-xr-x root/root ./usr/bin/runai",
        "-rw-r--r-- root/root ./etc/elastane/config.toml",
        "-rw-r--r-- root/root ./lib/systemd/system/elastane.service",
        "-rw-r--r-- root/root ./usr/share/man/man1/runai-list.1.gz",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/elastane",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/runai",
        "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_runai",
        "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/runai.fish",
        "-rw-r--r-- root/root ./usr/share/doc/elastane/copyright",
        "-rw-r--r-- root/root ./usr/share/doc/elastane/third-party.gz",
    ] {
        assert!(all.lines().any(|it| it == line), "{line} is not in\n{all}");
    }
    let fields =
        listing(r#"dpkg-deb -f "$1" Version Depends && dpkg-deb -I "$1" conffiles"#, &package);
    assert!(fields.contains("Version: 1.2.3\n"), "{fields}");
    assert!(fields.contains("Depends: libc6 (>= 2.34), libgcc-s1 (>= 4.2)\n"), "{fields}");
    assert!(fields.ends_with("/etc/elastane/config.toml\n"), "{fields}");
}

#[test]
fn the_same_source_gives_the_same_packages() {
    let Some((_folder, release)) = release_with(&["dpkg-deb", "busybox", "getent"]) else { return };
    for build in [deb::build, client, image::build] {
        let first = fs::read(build(&release).unwrap()).unwrap();
        let package = build(&release).unwrap();
        assert!(fs::read(&package).unwrap() == first, "{} differs", package.display());
    }
    let left = listing(r#"ls -A "$1" | grep -v -e deb$ -e gz$ || true"#, &release.output);
    assert_eq!(left, "", "nothing else is left behind");
}

#[test]
fn a_client_has_its_pages_its_completion_and_the_notices_of_its_libraries() {
    let Some((_folder, release)) = release_with(&[]) else { return };
    let archive = client(&release).unwrap();
    let all = listing(r#"tar -tf "$1" | grep -v /$ | sort"#, &archive);
    let name = format!("./runai-1.2.3-linux-{}", release.arch);
    let files =
        ["LICENSE", "completion/runai.bash", "completion/runai.fish", "completion/runai.zsh"];
    let more = ["man/runai-list.1.gz", "man/runai.1.gz", "runai", "third-party"];
    let wanted: String = files.iter().chain(&more).map(|file| format!("{name}/{file}\n")).collect();
    assert_eq!(all, wanted);
}

#[test]
fn an_image_is_what_docker_load_reads() {
    let Some((_folder, release)) = release_with(&["busybox", "getent"]) else { return };
    let archive = image::build(&release).unwrap();
    let file = |name: &str| listing(&format!(r#"tar -xOf "$1" ./{name}"#), &archive);
    let manifest: serde_json::Value = serde_json::from_str(&file("manifest.json")).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], "elastane:1.2.3");
    let config: serde_json::Value =
        serde_json::from_str(&file(manifest[0]["Config"].as_str().unwrap())).unwrap();
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/usr/bin/elastane", "up"]));
    let layer = listing(r#"tar -xOf "$1" ./layer.tar | sha256sum"#, &archive);
    let digest = format!("sha256:{}", layer.split_whitespace().next().unwrap());
    assert_eq!(config["rootfs"]["diff_ids"][0], digest);
    let all = listing(
        r#"tar -xOf "$1" ./layer.tar | tar -tv --numeric-owner | awk '{ print $1, $2, $6 }'"#,
        &archive,
    );
    for line in [
        "drwx------ 7070/7070 ./var/lib/elastane/",
        "drwxrwxrwt 0/0 ./tmp/",
        "-rwxr-xr-x 0/0 ./usr/bin/elastane",
        "lrwxrwxrwx 0/0 ./bin/sh",
    ] {
        assert!(all.lines().any(|it| it == line), "{line} is not in\n{all}");
    }
}

#[test]
fn options_and_versions_that_are_none_are_refused() {
    let fault = |words: &[&str]| {
        let options = Options::parse(words);
        format!("{:#}", options.and_then(|it| release(&crate::root(), it)).unwrap_err())
    };
    assert!(fault(&["--fast"]).contains("`--fast` is not known; allowed are --version V"));
    assert!(fault(&["--version"]).contains("--version needs a value"));
    assert!(fault(&["--programs", "/nowhere"]).contains("/nowhere"));
    let Some((folder, _)) = release_with(&[]) else { return };
    let programs = folder.path().to_str().unwrap();
    for version in ["v1", "1-2", "1.0/../x", ""] {
        let said = fault(&["--programs", programs, "--version", version]);
        assert!(said.contains("is not a version"), "{version}: {said}");
    }
}
