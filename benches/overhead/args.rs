//! What can be asked of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

use crate::rows::Row;

/// How to run it by hand.
pub const USAGE: &str = "\
cargo bench --bench overhead -- [OPTIONS]     (or: make bench ARGS='[OPTIONS]')
  --quick                fewer rows and pairs: no verdict
  --repetitions N        pairs, default 9, quick 3
  --seconds S            of each row, default 2, quick 1
  --rows A,B             of idle W3r W4a W4b W1b-fresh burst W1b W1a W1o rate rate-high W2a W2b W3
                         metered free metered-stream free-stream; default all
  --targets A,B          of direct, nginx, haproxy, BP, bursar and names of --binary; default all
  --binary NAME=PATH     another bursar, in the same run
  --durability WORD      of bursar's ledger, default power
  --pass-through PATH    the bare pingora proxy (benches/pass-through)
  --nginx PATH           without one of these three its columns are not measured
  --haproxy PATH
  --daemon PATH          the packaged program: its size and its start
  --directory DIR        where ledgers and the fdatasync test are written
  --json FILE            every figure of every repetition
  --from FILE            measure nothing, report on what --json wrote
  --document FILE        write the tables there, between its marks
  --baseline FILE        write the ratios there
  --compare FILE         say what moved since that baseline
  --soak MINUTES         a mixed load for that long, and nothing else; of --seconds each, for a trial
  --full-state DIR       the same again on this ledger; it is written to";

#[derive(Clone, Debug)]
pub struct Args {
    pub mode: Mode,
    pub is_quick: bool,
    pub repetitions: Option<usize>,
    pub span: Option<Duration>,
    pub rows: Vec<String>,
    pub targets: Vec<String>,
    pub binaries: Vec<(String, PathBuf)>,
    pub durability: String,
    pub pass_through: Option<PathBuf>,
    pub nginx: Option<PathBuf>,
    pub haproxy: Option<PathBuf>,
    pub daemon: Option<PathBuf>,
    pub directory: PathBuf,
    pub json: Option<PathBuf>,
    pub from: Option<PathBuf>,
    pub document: Option<PathBuf>,
    pub baseline: Option<PathBuf>,
    pub compare: Option<PathBuf>,
    pub soak_minutes: Option<u32>,
    pub full_state: Option<PathBuf>,
}

/// What this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Started by `cargo test --all-targets`.
    Nothing,
    Measure,
    /// The far end.
    Echo,
    /// Appends with fdatasync for this long.
    Disk(Duration),
}

impl Args {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            mode: Mode::Nothing,
            is_quick: false,
            repetitions: None,
            span: None,
            rows: Vec::new(),
            targets: Vec::new(),
            binaries: Vec::new(),
            durability: "power".to_owned(),
            pass_through: None,
            nginx: None,
            haproxy: None,
            daemon: None,
            directory: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
            json: None,
            from: None,
            document: None,
            baseline: None,
            compare: None,
            soak_minutes: None,
            full_state: None,
        };
        let mut arguments = arguments;
        while let Some(flag) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{flag} needs a value"))
            };
            match flag.as_str() {
                "--bench" => args.mode = Mode::Measure,
                "--echo" => args.mode = Mode::Echo,
                "--disk-ms" => {
                    args.mode = Mode::Disk(Duration::from_millis(number(&flag, &value()?)?));
                }
                "--quick" => args.is_quick = true,
                "--repetitions" => args.repetitions = Some(number(&flag, &value()?)?),
                "--seconds" => {
                    args.span = Some(Duration::from_secs(number(&flag, &value()?)?));
                }
                "--rows" => args.rows = list(&value()?),
                "--targets" => args.targets = list(&value()?),
                "--binary" => args.binaries.push(binary(&value()?)?),
                "--durability" => args.durability = value()?,
                "--pass-through" => args.pass_through = Some(value()?.into()),
                "--nginx" => args.nginx = Some(value()?.into()),
                "--haproxy" => args.haproxy = Some(value()?.into()),
                "--daemon" => args.daemon = Some(value()?.into()),
                "--directory" => args.directory = value()?.into(),
                "--json" => args.json = Some(value()?.into()),
                "--from" => args.from = Some(value()?.into()),
                "--document" => args.document = Some(value()?.into()),
                "--baseline" => args.baseline = Some(value()?.into()),
                "--compare" => args.compare = Some(value()?.into()),
                "--soak" => args.soak_minutes = Some(number(&flag, &value()?)?),
                "--full-state" => args.full_state = Some(value()?.into()),
                _ => return Err(format!("unknown argument {flag}\n{USAGE}")),
            }
        }
        let unknown = args.rows.iter().find(|name| Row::named(name).is_none());
        if let Some(name) = unknown {
            return Err(format!("no row is named {name}\n{USAGE}"));
        }
        Ok(args)
    }

    pub fn repetitions(&self) -> usize {
        self.repetitions
            .unwrap_or(if self.is_quick { 3 } else { 9 })
    }

    pub fn span(&self) -> Duration {
        let usual = Duration::from_secs(if self.is_quick { 1 } else { 2 });
        self.span.unwrap_or(usual)
    }

    /// Rows in the order of measuring.
    pub fn rows(&self) -> Vec<Row> {
        let wanted = |row: &Row| match self.rows.is_empty() {
            true => row.is_quick() || !self.is_quick,
            false => self.rows.iter().any(|name| name == row.name()),
        };
        Row::ALL.into_iter().filter(wanted).collect()
    }

    /// What decides the figures, as it would be written again; no path of this machine.
    pub fn shown(&self) -> String {
        let mut words = Vec::new();
        if self.is_quick {
            words.push("--quick".to_owned());
        }
        words.push(format!("--repetitions {}", self.repetitions()));
        words.push(format!("--seconds {}", self.span().as_secs()));
        for (flag, names) in [("--rows", &self.rows), ("--targets", &self.targets)] {
            if !names.is_empty() {
                words.push(format!("{flag} {}", names.join(",")));
            }
        }
        words.push(format!("--durability {}", self.durability));
        words.join(" ")
    }

    pub fn has_target(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|named| named == name)
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
