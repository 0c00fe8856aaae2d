//! The command line of elastic training jobs, and the parts of such a job.

fn main() -> std::process::ExitCode {
    elasticdl::main(std::env::args_os().collect())
}
