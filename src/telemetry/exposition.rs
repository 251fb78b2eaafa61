//! Prometheus text, written by hand where a float would not do. The prometheus crate holds every
//! value as an `f64`; money and other numbers that must equal the ledger digit by digit are written
//! here from integers, after the crate's own families.
//!
//! Promise: the text format 0.0.4; a family has its HELP and TYPE once; label values are escaped.

use std::fmt::{self, Display, Write};

/// The content type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    Counter,
    Gauge,
}

/// Metric families as text, in the order they were begun.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// A family that has begun: samples are added to it.
#[derive(Debug)]
pub struct Family<'a> {
    name: &'a str,
    text: &'a mut String,
}

/// A number of milliseconds in seconds, exact to the millisecond: `1700000000.250`.
#[derive(Clone, Copy, Debug)]
pub struct MsAsSeconds(pub u64);

// === impl Exposition ===

impl Exposition {
    /// Continues a text that already holds whole families.
    pub fn after(text: String) -> Self {
        Self { text }
    }

    pub fn family<'a>(&'a mut self, kind: MetricType, name: &'a str, help: &str) -> Family<'a> {
        let kind = match kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
        };
        write_line(
            &mut self.text,
            format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"),
        );
        Family {
            name,
            text: &mut self.text,
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

// === impl Family ===

impl Family<'_> {
    /// Adds one sample. A family whose label set is not closed may get none: Prometheus takes that.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let name = self.name;
        if labels.is_empty() {
            write_line(self.text, format_args!("{name} {value}"));
        } else {
            write_line(
                self.text,
                format_args!("{name}{{{}}} {value}", LabelSet(labels)),
            );
        }
        self
    }
}

struct LabelSet<'a>(&'a [(&'a str, &'a str)]);

impl Display for LabelSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}=\"")?;
            for character in value.chars() {
                match character {
                    '\\' => f.write_str("\\\\")?,
                    '"' => f.write_str("\\\"")?,
                    '\n' => f.write_str("\\n")?,
                    other => f.write_char(other)?,
                }
            }
            f.write_char('"')?;
        }
        Ok(())
    }
}

fn write_line(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a String cannot fail; only a Display of ours could, and none does.
    let written = text.write_fmt(line);
    debug_assert!(written.is_ok(), "writing to a String");
    text.push('\n');
}

// === impl MsAsSeconds ===

impl Display for MsAsSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests;
