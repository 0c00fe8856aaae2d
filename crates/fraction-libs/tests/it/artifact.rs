//! The files themselves: what they need of a system, and what is not in them.

use std::process::Command;

use fraction_libs::{PRELOAD, PROXY_CUDA, PROXY_NVML, SIMULATED_CUDA, SIMULATED_NVML};

/// The lines of `readelf` about a library.
fn readelf(library: &[u8], option: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), library).unwrap();
    let output = Command::new("readelf").args(["-W", option]).arg(file.path()).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Names that a library demands of others, and names that it offers.
fn symbols(library: &[u8]) -> (Vec<String>, Vec<String>) {
    let table = readelf(library, "--dyn-syms");
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let named: Vec<_> = rows.filter(|row| row.len() == 8 && row[0] != "Num:").collect();
    let of = |undefined: bool| {
        let chosen = named.iter().filter(|row| (row[6] == "UND") == undefined);
        chosen.map(|row| row[7].to_owned()).collect()
    };
    (of(true), of(false))
}

#[test]
fn the_libraries_load_with_any_c_library() {
    for library in [PRELOAD, PROXY_CUDA, PROXY_NVML, SIMULATED_CUDA, SIMULATED_NVML] {
        let (demanded, _) = symbols(library);
        for name in demanded {
            // Weak and without a version: not there without glibc.
            assert_eq!(name, "_r_debug");
        }
        let dynamic = readelf(library, "--dynamic");
        for absent in ["(VERNEED)", "(TEXTREL)", "(RPATH)"] {
            assert!(!dynamic.contains(absent), "{absent}");
        }
        // The simulated driver takes out what a chosen version lacks.
        assert_eq!(dynamic.contains("(INIT_ARRAY)"), library == SIMULATED_CUDA);
    }
}

#[test]
fn the_libraries_in_programs_of_others_offer_nothing_but_what_they_replace() {
    for (library, prefixes) in [
        (PRELOAD, &["cu", "nvml", "dlsym", "dlvsym"][..]),
        (PROXY_CUDA, &["cu", "elastane_fraction_proxy"]),
        (PROXY_NVML, &["nvml", "elastane_fraction_proxy"]),
    ] {
        let (_, offered) = symbols(library);
        for name in &offered {
            // Access between devices is outside the library's scope.
            assert!(!name.contains("Peer") && !name.contains("P2P"), "{name} is offered");
            assert!(prefixes.iter().any(|prefix| name.starts_with(prefix)), "{name} is offered");
        }
        assert!(offered.len() > 5, "{}", offered.len());
    }
}

#[test]
fn the_libraries_in_programs_of_others_never_panic_and_are_small() {
    let has_handler = |library: &[u8]| {
        let mark = b"the library panics here";
        library.windows(mark.len()).any(|window| window == mark)
    };
    for (library, kib_max) in [(PRELOAD, 41), (PROXY_CUDA, 38), (PROXY_NVML, 15)] {
        assert!(!has_handler(library), "something in the library can panic");
        assert!(library.len() <= kib_max * 1024, "{} bytes", library.len());
    }
    // The mark is where it is looked for: the simulated driver may end its program.
    assert!(has_handler(SIMULATED_CUDA));
}

#[test]
fn the_simulated_driver_says_that_it_is_simulated() {
    for library in [SIMULATED_CUDA, SIMULATED_NVML] {
        let name = b"Elastane Simulated GPU";
        assert!(library.windows(name.len()).any(|window| window == name));
    }
}
