//! A stand-in for `nvidia-smi` inside runs on simulated GPUs. Owns: a table that looks familiar,
//! says SIMULATED, and shows exactly what the run was granted.

use std::fmt::Write as _;

use engine::Error;

use engine::environment::{DEVICES_VARIABLE, GrantedDevice};

const MIB: u64 = 1 << 20;
const WIDTH: usize = 77;

/// What `nvidia-smi` prints in a run: the table, or with `-L` one line per GPU. `variable` looks
/// up an environment variable.
///
/// # Errors
/// An option it does not know, or not inside a run.
pub fn nvidia_smi(
    args: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    let devices = variable(DEVICES_VARIABLE).ok_or_else(|| {
        Error::Invalid(
            "this nvidia-smi shows the simulated GPUs of a run; run it inside one".into(),
        )
    })?;
    let devices: Vec<GrantedDevice> = serde_json::from_str(&devices)
        .map_err(|error| Error::Invalid(format!("{DEVICES_VARIABLE} is not readable: {error}")))?;
    match args {
        [] => Ok(table(&devices)),
        [only] if only == "-L" || only == "--list-gpus" => Ok(list(&devices)),
        [first, ..] => Err(Error::Invalid(format!(
            "`{first}` is not known to this simulated nvidia-smi; \
             use no option for the table, or -L for the list"
        ))),
    }
}

fn name(device: &GrantedDevice) -> &'static str {
    if device.simulated { "Simulated GPU" } else { "GPU" }
}

fn list(devices: &[GrantedDevice]) -> String {
    let line = |(at, device): (usize, &GrantedDevice)| {
        format!("GPU {at}: {} (UUID: {})\n", name(device), device.uuid)
    };
    devices.iter().enumerate().map(line).collect()
}

/// GPUs are counted from 0 as they are inside a container, whatever the node calls them.
fn table(devices: &[GrantedDevice]) -> String {
    let rule = format!("+{}+\n", "-".repeat(WIDTH));
    let mut text = rule.clone();
    let mut row = |cells: &str| {
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "| {cells:<width$} |", width = WIDTH - 2);
    };
    row("Elastane nvidia-smi       *** SIMULATED: these GPUs do not exist ***");
    row("");
    row("GPU  Name                              UUID");
    row("                                                   Memory-Usage   GPU-Util");
    if devices.is_empty() {
        row("No GPUs were granted to this run.");
    }
    for (at, device) in devices.iter().enumerate() {
        let memory = format!("0MiB / {}MiB", device.memory_bytes / MIB);
        row(&format!("{at:>3}  {:<32}  {}", name(device), device.uuid));
        row(&format!("{memory:>63}{:>11}", "0%"));
    }
    text.push_str(&rule);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: &str =
        r#"[{"index":2,"uuid":"GPU-sim-node-1-2","simulated":true,"memory_bytes":8589934592}]"#;

    fn print(args: &[&str], devices: Option<&str>) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        nvidia_smi(&args, |_| devices.map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_table_shows_the_share_and_says_simulated() {
        let text = print(&[], Some(HALF)).expect("a table");
        assert!(text.contains("0MiB / 8192MiB") && text.contains("SIMULATED"), "{text}");
        assert!(text.lines().all(|line| line.len() == WIDTH + 2), "{text}");
        assert!(print(&[], Some("[]")).expect("a table").contains("No GPUs were granted"));
    }

    #[test]
    fn the_list_counts_from_zero() {
        let line = "GPU 0: Simulated GPU (UUID: GPU-sim-node-1-2)\n";
        assert_eq!(print(&["-L"], Some(HALF)).as_deref(), Ok(line));
        assert_eq!(print(&["--list-gpus"], Some(HALF)).as_deref(), Ok(line));
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        assert!(print(&["--query-gpu=name"], Some(HALF)).expect_err("unknown").contains("-L"));
        assert!(print(&[], None).expect_err("outside").contains("inside one"));
        assert!(print(&[], Some("{")).expect_err("broken").contains(DEVICES_VARIABLE));
    }
}
