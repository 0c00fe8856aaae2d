//! A stand-in for `nvidia-smi` inside runs on simulated GPUs. Owns: its options, the table that
//! people know, the list and the comma-separated values; each says that the GPUs are simulated.
//! Does not know about: real GPUs, whose driver brings the real one.

use std::fmt::Write as _;

use engine::Error;
use engine::environment::{DEVICES_VARIABLE, GrantedDevice};
use gpu::{Snapshot, SnapshotGpu};

const MIB: u64 = 1 << 20;
const WIDTH: usize = 89;

/// Output of `nvidia-smi` in a run: the answers of its simulated driver, if it has one; otherwise
/// the GPUs of the grant, with nothing in use. `variable` looks up an environment variable.
///
/// # Errors
/// An unknown option, a driver that does not answer, or a process outside a run.
pub fn nvidia_smi(
    args: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    let driver = gpu::simulated_driver().map_err(Error::Invalid)?;
    answer(args, driver, variable)
}

fn answer(
    args: &[String],
    driver: Option<Snapshot>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    let snapshot = match driver {
        Some(snapshot) => snapshot,
        None => granted(variable(DEVICES_VARIABLE))?,
    };
    match args {
        [] => Ok(table(&snapshot)),
        [only] if only == "-L" || only == "--list-gpus" => Ok(list(&snapshot.gpus)),
        args => Query::parse(args)?.values(&snapshot),
    }
}

fn granted(devices: Option<String>) -> Result<Snapshot, Error> {
    let devices = devices.ok_or_else(|| {
        Error::Invalid(
            "this nvidia-smi shows the simulated GPUs of a run; run it inside one".into(),
        )
    })?;
    let devices: Vec<GrantedDevice> = serde_json::from_str(&devices)
        .map_err(|error| Error::Invalid(format!("{DEVICES_VARIABLE} is not readable: {error}")))?;
    let gpu = |device: GrantedDevice| SnapshotGpu {
        name: if device.simulated { "Simulated GPU" } else { "GPU" }.to_owned(),
        uuid: device.uuid,
        total_bytes: device.memory_bytes,
        busy_per_cent: Some(0),
        ..SnapshotGpu::default()
    };
    let gpus = devices.into_iter().map(gpu).collect();
    Ok(Snapshot { driver: "none".to_owned(), cuda: "none".to_owned(), gpus })
}

/// GPUs are counted from 0 as they are inside a container, whatever the node calls them.
fn list(gpus: &[SnapshotGpu]) -> String {
    let line =
        |(at, gpu): (usize, &SnapshotGpu)| format!("GPU {at}: {} (UUID: {})\n", gpu.name, gpu.uuid);
    gpus.iter().enumerate().map(line).collect()
}

/// A value in its unit, or what stands for none.
fn or_none(value: Option<u32>, divisor: u32, unit: &str) -> String {
    value.map_or("N/A".to_owned(), |value| format!("{}{unit}", value / divisor))
}

fn table(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |line: std::fmt::Arguments<'_>| {
        let _infallible = writeln!(text, "{line}");
    };
    let whole = "-".repeat(WIDTH);
    let columns = format!("{}+{}+{}", "-".repeat(41), "-".repeat(24), "-".repeat(22));
    line(format_args!("+{whole}+"));
    let about = format!("Driver Version: {}", snapshot.driver);
    let cuda = format!("CUDA Version: {}", snapshot.cuda);
    line(format_args!("| {:<30}{about:<39}{cuda:<19}|", "Elastane nvidia-smi"));
    line(format_args!("| {:<88}|", "*** SIMULATED: these GPUs do not exist ***"));
    line(format_args!("+{columns}+"));
    let (first, second, third) = ("GPU  Name", "Bus-Id", "");
    line(format_args!("| {first:<40}| {second:<23}| {third:<21}|"));
    let (first, second, third) = ("Temp   Pwr:Usage", "Memory-Usage", "GPU-Util");
    line(format_args!("| {first:<40}| {second:>22} | {third:>20} |"));
    line(format_args!("|{}|", columns.replace('-', "=")));
    if snapshot.gpus.is_empty() {
        line(format_args!("| {:<88}|", "No GPUs were granted to this run."));
    }
    for (at, gpu) in snapshot.gpus.iter().enumerate() {
        let bus = gpu.bus_id.as_deref().unwrap_or("N/A");
        line(format_args!("| {at:>3}  {:<35}| {bus:>22} | {:<21}|", gpu.name, ""));
        let (celsius, watts) = (or_none(gpu.celsius, 1, "C"), or_none(gpu.milliwatts, 1000, "W"));
        let memory = format!("{}MiB / {}MiB", gpu.used_bytes / MIB, gpu.total_bytes / MIB);
        let busy = or_none(gpu.busy_per_cent, 1, "%");
        line(format_args!("| {celsius:<7}{watts:<33}| {memory:>22} | {busy:>20} |"));
    }
    line(format_args!("+{columns}+"));
    line(format_args!(""));
    line(format_args!("+{whole}+"));
    line(format_args!("| {:<88}|", "Processes:"));
    line(format_args!(
        "| {:>4} {:>11}   {:<52}{:>16} |",
        "GPU", "PID", "Process name", "GPU Memory"
    ));
    line(format_args!("|{}|", "=".repeat(WIDTH)));
    let processes: Vec<_> = processes(&snapshot.gpus).collect();
    if processes.is_empty() {
        line(format_args!("| {:<88}|", " No running processes found"));
    }
    for (gpu, pid, bytes) in processes {
        let (name, memory) = (process_name(pid), format!("{}MiB", bytes / MIB));
        line(format_args!("| {gpu:>4} {pid:>11}   {name:<52.52}{memory:>16} |"));
    }
    line(format_args!("+{whole}+"));
    text
}

fn processes(gpus: &[SnapshotGpu]) -> impl Iterator<Item = (usize, u32, u64)> {
    let of = |(at, gpu): (usize, &SnapshotGpu)| {
        let processes = gpu.processes.clone().into_iter();
        processes.map(move |(pid, bytes)| (at, pid, bytes)).collect::<Vec<_>>()
    };
    gpus.iter().enumerate().flat_map(of)
}

/// The program of a process, as far as this account may know.
fn process_name(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let program: String = String::from_utf8_lossy(program)
        .chars()
        .map(|c| if c.is_control() || c == ',' { '?' } else { c })
        .collect();
    if program.is_empty() { "[Not Found]".to_owned() } else { program }
}

/// Fields of `--query-gpu`, each with its unit.
const GPU_FIELDS: [(&str, &str); 12] = [
    ("index", ""),
    ("name", ""),
    ("uuid", ""),
    ("count", ""),
    ("driver_version", ""),
    ("pci.bus_id", ""),
    ("memory.total", "MiB"),
    ("memory.used", "MiB"),
    ("memory.free", "MiB"),
    ("utilization.gpu", "%"),
    ("temperature.gpu", ""),
    ("power.draw", "W"),
];

/// Fields of `--query-compute-apps`, each with its unit.
const PROCESS_FIELDS: [(&str, &str); 4] =
    [("gpu_uuid", ""), ("pid", ""), ("process_name", ""), ("used_memory", "MiB")];

/// A query and its output format.
struct Query<'a> {
    processes: bool,
    fields: Vec<&'a str>,
    header: bool,
    units: bool,
}

impl<'a> Query<'a> {
    fn parse(args: &'a [String]) -> Result<Self, Error> {
        let (mut asked, mut format) = (None, None);
        for arg in args {
            if let Some(fields) = arg.strip_prefix("--query-gpu=") {
                asked = Some((false, fields));
            } else if let Some(fields) = arg.strip_prefix("--query-compute-apps=") {
                asked = Some((true, fields));
            } else if let Some(form) = arg.strip_prefix("--format=") {
                format = Some(form);
            } else {
                return Err(Error::Invalid(format!(
                    "`{arg}` is not known to this simulated nvidia-smi; use no option for the \
                     table, -L for the list, or --query-gpu=FIELDS or --query-compute-apps=FIELDS \
                     with --format=csv[,noheader][,nounits]"
                )));
            }
        }
        let (Some((processes, fields)), Some(format)) = (asked, format) else {
            return Err(Error::Invalid(
                "--query-gpu=FIELDS and --query-compute-apps=FIELDS need --format=csv, and \
                 --format=csv needs one of them"
                    .into(),
            ));
        };
        let mut forms: Vec<&str> = format.split(',').map(str::trim).collect();
        let mut take = |form: &str| {
            let before = forms.len();
            forms.retain(|one| *one != form);
            forms.len() < before
        };
        let (csv, header, units) = (take("csv"), !take("noheader"), !take("nounits"));
        if !csv || !forms.is_empty() {
            return Err(Error::Invalid(format!(
                "`{format}` is not a form; use csv, and after a comma noheader or nounits"
            )));
        }
        Ok(Self { processes, fields: fields.split(',').map(str::trim).collect(), header, units })
    }

    fn values(&self, snapshot: &Snapshot) -> Result<String, Error> {
        let known: &[(&str, &str)] = if self.processes { &PROCESS_FIELDS } else { &GPU_FIELDS };
        let field = |name: &&str| {
            // `gpu_name` and the like are other names of the same.
            let plain = if self.processes { name } else { name.trim_start_matches("gpu_") };
            known.iter().find(|(field, _)| *field == plain).copied().ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                Error::Invalid(format!("`{name}` is not a field; use {}", names.join(", ")))
            })
        };
        let fields = self.fields.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let mut text = String::new();
        let mut row = |values: Vec<String>| {
            text.push_str(&values.join(", "));
            text.push('\n');
        };
        if self.header {
            let titles = self.fields.iter().zip(&fields);
            row(titles.map(|(typed, (_, unit))| with_unit(typed, unit, "[]")).collect());
        }
        let value = |unit: &str, value: Option<String>| match value {
            Some(value) if self.units => with_unit(&value, unit, ""),
            Some(value) => value,
            None => "[N/A]".to_owned(),
        };
        if self.processes {
            for (at, pid, bytes) in processes(&snapshot.gpus) {
                let of = |name: &str| match name {
                    "gpu_uuid" => snapshot.gpus.get(at).map(|gpu| gpu.uuid.clone()),
                    "pid" => Some(pid.to_string()),
                    "process_name" => Some(process_name(pid)),
                    _ => Some((bytes / MIB).to_string()),
                };
                row(fields.iter().map(|(name, unit)| value(unit, of(name))).collect());
            }
        } else {
            for at in 0..snapshot.gpus.len() {
                row(fields
                    .iter()
                    .map(|(name, u)| value(u, gpu_value(snapshot, at, name)))
                    .collect());
            }
        }
        Ok(text)
    }
}

fn with_unit(text: &str, unit: &str, brackets: &str) -> String {
    match (unit, brackets) {
        ("", _) => text.to_owned(),
        (unit, "") => format!("{text} {unit}"),
        (unit, _) => format!("{text} [{unit}]"),
    }
}

fn gpu_value(snapshot: &Snapshot, at: usize, field: &str) -> Option<String> {
    let gpu = snapshot.gpus.get(at)?;
    match field {
        "index" => Some(at.to_string()),
        "name" => Some(gpu.name.clone()),
        "uuid" => Some(gpu.uuid.clone()),
        "count" => Some(snapshot.gpus.len().to_string()),
        "driver_version" => Some(snapshot.driver.clone()),
        "pci.bus_id" => gpu.bus_id.clone(),
        "memory.total" => Some((gpu.total_bytes / MIB).to_string()),
        "memory.used" => Some((gpu.used_bytes / MIB).to_string()),
        "memory.free" => Some((gpu.total_bytes.saturating_sub(gpu.used_bytes) / MIB).to_string()),
        "utilization.gpu" => gpu.busy_per_cent.map(|busy| busy.to_string()),
        "temperature.gpu" => gpu.celsius.map(|celsius| celsius.to_string()),
        "power.draw" => gpu.milliwatts.map(|mw| format!("{}.{:02}", mw / 1000, mw % 1000 / 10)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};

    use super::*;

    const HALF: &str =
        r#"[{"index":2,"uuid":"GPU-sim-node-1-2","simulated":true,"memory_bytes":8589934592}]"#;

    fn print(args: &[&str], devices: Option<&str>) -> Result<String, String> {
        print_with(args, None, devices)
    }

    fn print_with(
        args: &[&str],
        driver: Option<Snapshot>,
        devices: Option<&str>,
    ) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        answer(&args, driver, |_| devices.map(str::to_owned)).map_err(|e| e.to_string())
    }

    fn driver() -> Snapshot {
        let idle = SnapshotGpu {
            name: "Elastane Simulated GPU".to_owned(),
            uuid: "GPU-01010101-0101-0101-0101-010101010101".to_owned(),
            bus_id: Some("00000000:01:00.0".to_owned()),
            total_bytes: 4096 * MIB,
            busy_per_cent: Some(0),
            ..SnapshotGpu::default()
        };
        let busy = SnapshotGpu {
            used_bytes: 1324 * MIB,
            busy_per_cent: Some(97),
            celsius: Some(41),
            milliwatts: Some(71_234),
            processes: vec![(u32::MAX, 1324 * MIB)],
            ..idle.clone()
        };
        let driver = "580.65.06-simulated".to_owned();
        Snapshot { driver, cuda: "13.0".to_owned(), gpus: vec![idle, busy] }
    }

    #[test]
    fn the_table_is_the_one_that_people_know() {
        let text = print_with(&[], Some(driver()), None).expect("a table");
        assert!(text.lines().all(|l| l.is_empty() || l.len() == WIDTH + 2), "{text}");
        expect_file!["smi.txt"].assert_eq(&text);
    }

    #[test]
    fn without_a_driver_the_table_shows_the_share() {
        let text = print(&[], Some(HALF)).expect("a table");
        assert!(text.contains("0MiB / 8192MiB") && text.contains("SIMULATED"), "{text}");
        assert!(text.lines().all(|l| l.is_empty() || l.len() == WIDTH + 2), "{text}");
        assert!(print(&[], Some("[]")).expect("a table").contains("No GPUs were granted"));
    }

    #[test]
    fn the_list_counts_from_zero() {
        let line = "GPU 0: Simulated GPU (UUID: GPU-sim-node-1-2)\n";
        assert_eq!(print(&["-L"], Some(HALF)).as_deref(), Ok(line));
        assert_eq!(print(&["--list-gpus"], Some(HALF)).as_deref(), Ok(line));
    }

    #[test]
    fn fields_are_printed_as_comma_separated_values() {
        let ask = |args: &[&str]| print_with(args, Some(driver()), None).expect("values");
        expect![[r#"
            index, gpu_name, memory.total [MiB], utilization.gpu [%]
            0, Elastane Simulated GPU, 4096 MiB, 0 %
            1, Elastane Simulated GPU, 4096 MiB, 97 %
        "#]]
        .assert_eq(&ask(&[
            "--query-gpu=index,gpu_name,memory.total,utilization.gpu",
            "--format=csv",
        ]));
        expect![[r#"
            2, 580.65.06-simulated, 00000000:01:00.0, [N/A], [N/A], 0, 4096
            2, 580.65.06-simulated, 00000000:01:00.0, 41, 71.23, 1324, 2772
        "#]]
        .assert_eq(&ask(&[
            "--query-gpu=count,driver_version,pci.bus_id,temperature.gpu,power.draw,memory.used,\
             memory.free",
            "--format=csv,noheader,nounits",
        ]));
        expect![[r#"
            pid, process_name, used_memory [MiB]
            4294967295, [Not Found], 1324 MiB
        "#]]
        .assert_eq(&ask(&["--format=csv", "--query-compute-apps=pid,process_name,used_memory"]));
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        let refused = |args: &[&str]| print(args, Some(HALF)).expect_err("refused");
        assert!(refused(&["-q"]).contains("-L"));
        assert!(refused(&["--query-gpu=name"]).contains("--format=csv"));
        assert!(refused(&["--format=csv"]).contains("--query-gpu"));
        assert!(refused(&["--query-gpu=name", "--format=xml"]).contains("use csv"));
        assert!(refused(&["--query-gpu=fan", "--format=csv"]).contains("memory.total"));
        assert!(print(&[], None).expect_err("outside").contains("inside one"));
        assert!(print(&[], Some("{")).expect_err("broken").contains(DEVICES_VARIABLE));
    }
}
