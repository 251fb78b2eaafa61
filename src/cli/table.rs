//! Plain tables: columns that line up, numbers to the right, no colour, no frame.
//!
//! Promise: one row, one line, whatever stands in a cell: what a model name from an app could do to a
//! terminal is shown by its number ([`crate::screen`]).

use std::fmt;

use crate::screen::shown;

/// Which side of its column a cell stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table that is filled row by row.
#[derive(Clone, Debug)]
pub struct TextTable {
    aligns: Vec<Align>,
    /// Narrowest each column may be.
    widths_min: Vec<usize>,
    rows: Vec<TableRow>,
}

#[derive(Clone, Debug)]
enum TableRow {
    Cells(Vec<String>),
    /// A line under the rows so far, as before a sum.
    Rule,
}

const GAP: &str = "  ";

// === impl TextTable ===

impl TextTable {
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            widths_min: vec![0; columns.len()],
            rows: vec![TableRow::Cells(
                columns
                    .iter()
                    .map(|(title, _)| shown(title).into_owned())
                    .collect(),
            )],
        }
    }

    /// Without titles, for lines that come one by one: columns of a given width line up over
    /// several tables as long as the cells fit.
    pub fn headless(columns: &[(usize, Align)]) -> Self {
        Self {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            widths_min: columns.iter().map(|(width, _)| *width).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells that are missing are empty, cells past the last column are not shown.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut cells: Vec<String> = cells
            .into_iter()
            .map(|cell| shown(cell.as_ref()).into_owned())
            .collect();
        cells.resize(self.aligns.len(), String::new());
        self.rows.push(TableRow::Cells(cells));
    }

    pub fn rule(&mut self) {
        self.rows.push(TableRow::Rule);
    }

    /// Only the head is there.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = self.widths_min.clone();
        for row in &self.rows {
            if let TableRow::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        widths
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells: Vec<String> = match row {
                TableRow::Rule => widths.iter().map(|width| "-".repeat(*width)).collect(),
                TableRow::Cells(cells) => cells
                    .iter()
                    .zip(&widths)
                    .zip(&self.aligns)
                    .map(|((cell, width), align)| match align {
                        Align::Left => format!("{cell:<width$}"),
                        Align::Right => format!("{cell:>width$}"),
                    })
                    .collect(),
            };
            writeln!(f, "{}", cells.join(GAP).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
