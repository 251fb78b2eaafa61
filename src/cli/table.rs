//! Plain tables: columns that line up, numbers to the right, no colour, no frame.
//!
//! Promise: one row, one line, whatever stands in a cell: what a model name from an app could do to a
//! terminal is shown by its number ([`crate::screen`]).

use std::fmt;

use crate::screen::shown;

/// A table that is filled row by row.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<TableColumn>,
    rows: Vec<TableRow>,
}

#[derive(Clone, Debug)]
enum TableRow {
    Cells(Vec<String>),
    /// A line under the rows so far, as before a sum.
    Rule,
}

#[derive(Clone, Copy, Debug)]
struct TableColumn {
    is_of_numbers: bool,
    width_min: usize,
}

const GAP: &str = "  ";

// === impl TextTable ===

impl TextTable {
    /// `titles`: with bars between them, and `>` before that of a column of numbers.
    pub fn new(titles: &str) -> Self {
        let column = |title: &str| TableColumn {
            is_of_numbers: title.starts_with('>'),
            width_min: 0,
        };
        let mut table = Self {
            columns: titles.split('|').map(column).collect(),
            rows: Vec::new(),
        };
        table.row(titles.split('|').map(|title| title.trim_start_matches('>')));
        table
    }

    /// Without the titles, for lines that come one by one: columns of a given width line up over
    /// several tables as long as the cells fit.
    #[must_use]
    pub fn headless(mut self, widths_min: &[usize]) -> Self {
        self.rows.clear();
        for (column, width_min) in self.columns.iter_mut().zip(widths_min) {
            column.width_min = *width_min;
        }
        self
    }

    /// Adds a row; cells that are missing are empty, cells past the last column are not shown.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut cells: Vec<String> = cells
            .into_iter()
            .map(|cell| shown(cell.as_ref()).into_owned())
            .collect();
        cells.resize(self.columns.len(), String::new());
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
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.width_min).collect();
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
                    .zip(&self.columns)
                    .map(|((cell, width), column)| match column.is_of_numbers {
                        true => format!("{cell:>width$}"),
                        false => format!("{cell:<width$}"),
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
