//! The ratios of a run without a failure, kept in the repository, and what has moved since.
//!
//! Promise: a difference is named only when it is larger than the spread of both runs. Where one of the two does
//! not count, because the pass-through is not what it was when the goals were set, that is said first.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::numbers::{Quartiles, show_spread};
use crate::report::{bursars, ratios};
use crate::run::Run;
use crate::verdict::unfit;

#[derive(Serialize, Deserialize)]
struct Baseline {
    date: String,
    cpu: String,
    /// Why that run does not count; empty when it does.
    unfit: Vec<String>,
    ratios: BTreeMap<String, Quartiles>,
}

/// Of the first bursar of the run.
fn of(run: &Run) -> Baseline {
    let name = bursars(run).first().copied().unwrap_or_default();
    Baseline {
        date: run.setting.date.clone(),
        cpu: run.setting.cpu.clone(),
        unfit: unfit(run),
        ratios: ratios(run, name).into_iter().collect(),
    }
}

pub fn write(path: &Path, run: &Run) -> io::Result<()> {
    let text = serde_json::to_string_pretty(&of(run))?;
    fs::write(path, text + "\n")
}

/// What moved, as Markdown.
pub fn compare(path: &Path, run: &Run) -> io::Result<String> {
    let text = fs::read(path);
    let text = text.map_err(|why| io::Error::other(format!("{}: {why}", path.display())))?;
    let before: Baseline = serde_json::from_slice(&text)?;
    let now = of(run);
    let mut out = format!("### Against the baseline of {}\n\n", before.date);
    for (when, unfit) in [("The baseline", &before.unfit), ("This run", &now.unfit)] {
        if !unfit.is_empty() {
            let _ = writeln!(out, "**{when} does not count:** {}.\n", unfit.join("; "));
        }
    }
    let mut has_moved = false;
    for (name, ratio) in &now.ratios {
        let Some(old) = before.ratios.get(name) else {
            let _ = writeln!(out, "- {name}: new");
            continue;
        };
        if ratio.differs_from(old) {
            has_moved = true;
            let _ = writeln!(
                out,
                "- {name}: {} before, {} now",
                show_spread(Some(*old)),
                show_spread(Some(*ratio))
            );
        }
    }
    for name in before.ratios.keys() {
        if !now.ratios.contains_key(name) {
            let _ = writeln!(out, "- {name}: not measured now");
        }
    }
    if !has_moved {
        let _ = writeln!(out, "- nothing moved beyond the spread");
    }
    Ok(out)
}
