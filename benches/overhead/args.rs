//! What can be asked of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

/// How to run it by hand.
pub const USAGE: &str = "\
cargo bench --bench overhead -- [OPTIONS]     (or: make bench ARGS='[OPTIONS]')
  --json FILE            every figure of every repetition
  --repetitions N        default 3; the tables show medians
  --seconds S            length of the measured part of W1 and W2, default 2
  --workloads A,B        of idle, W3r, W1a, W1b, W2b; default all
  --targets A,B          of direct, nginx, power, process; default all
  --binary NAME=PATH     another bursar to compare with, under both durabilities
  --directory DIR        where ledgers and the fdatasync test are written
  --nginx PATH           nginx's program; without it the comparison is left out";

#[derive(Clone, Debug)]
pub struct Args {
    /// Be the far end.
    pub echo: bool,
    /// Started by `cargo bench` or by hand, not by `cargo test --all-targets`.
    pub bench: bool,
    pub json: Option<PathBuf>,
    pub repetitions: usize,
    pub span: Duration,
    pub workloads: Vec<String>,
    pub targets: Vec<String>,
    pub binaries: Vec<(String, PathBuf)>,
    pub directory: PathBuf,
    pub nginx: Option<PathBuf>,
}

impl Args {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            echo: false,
            bench: false,
            json: None,
            repetitions: 3,
            span: Duration::from_secs(2),
            workloads: Vec::new(),
            targets: Vec::new(),
            binaries: Vec::new(),
            directory: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
            nginx: None,
        };
        let mut arguments = arguments;
        while let Some(flag) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{flag} needs a value"))
            };
            match flag.as_str() {
                "--echo" => args.echo = true,
                "--bench" => args.bench = true,
                "--json" => args.json = Some(value()?.into()),
                "--repetitions" => args.repetitions = number(&flag, &value()?)?,
                "--seconds" => args.span = Duration::from_secs(number(&flag, &value()?)?),
                "--workloads" => args.workloads = list(&value()?),
                "--targets" => args.targets = list(&value()?),
                "--binary" => args.binaries.push(binary(&value()?)?),
                "--nginx" => args.nginx = Some(value()?.into()),
                "--directory" => args.directory = value()?.into(),
                _ => return Err(format!("unknown argument {flag}\n{USAGE}")),
            }
        }
        Ok(args)
    }

    pub fn runs(&self, workload: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|named| named == workload)
    }

    pub fn has_target(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|named| named == target)
    }
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{flag} needs a number, not {text:?}"))
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn binary(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("--binary needs NAME=PATH")?;
    Ok((name.to_owned(), path.into()))
}
