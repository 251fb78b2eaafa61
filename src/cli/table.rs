//! Tables: columns that line up, numbers to the right, no frame.
//!
//! A table that is wider than its screen becomes narrower by itself: columns that can be missed go, from the right;
//! then long forms of columns give way to short ones; then text is cut, and ends in `…`. What still does not fit is
//! printed as a paragraph for each row, one value a line.
//!
//! Promise: one row, one line, whatever stands in a cell: what a model name from an app could do to a
//! terminal is shown by its number ([`crate::screen`]). No number is cut, and no text of a column that says so.

use std::fmt;

use super::look::{Ink, Look};
use crate::screen::{columns, cut, shown};

/// A table that is filled row by row.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<TableColumn>,
    titles: Vec<String>,
    rows: Vec<TableRow>,
    is_headless: bool,
}

#[derive(Clone, Debug)]
enum TableRow {
    Cells(Ink, Vec<String>),
    /// A line under the rows so far, as before a sum.
    Rule,
}

#[derive(Clone, Copy, Debug)]
struct TableColumn {
    content: ColumnContent,
    place: ColumnPlace,
    width_min: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnContent {
    Numbers,
    Text,
    /// Text that is of no use when it is cut: ids, times.
    Whole,
}

/// In which forms of its table a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnPlace {
    Always,
    /// Where there is room for it.
    Extra,
    /// Where there is room, in place of the short ones.
    Long,
    Short,
}

const GAP: &str = "  ";

/// Text is not cut to less.
const TEXT_MIN: usize = 6;

// === impl TextTable ===

impl TextTable {
    /// `titles`: with bars between them. Before a title, in any order: `>` a column of numbers, `=` one of text that is
    /// not cut, `~` one that can be missed, `+` one in its long form, `^` one in its short form.
    pub fn new(titles: &str) -> Self {
        let columns = titles.split('|').map(TableColumn::of);
        let titles = titles
            .split('|')
            .map(|title| title.trim_start_matches(MARKS).to_owned());
        Self {
            columns: columns.collect(),
            titles: titles.collect(),
            rows: Vec::new(),
            is_headless: false,
        }
    }

    /// Without the titles, for lines that come one by one: columns of a given width line up over
    /// several tables as long as the cells fit.
    #[must_use]
    pub fn headless(mut self, widths_min: &[usize]) -> Self {
        self.is_headless = true;
        for (column, width_min) in self.columns.iter_mut().zip(widths_min) {
            column.width_min = *width_min;
        }
        self
    }

    /// Adds a row; cells that are missing are empty, cells past the last column are not shown.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.row_in(Ink::Plain, cells);
    }

    /// The same in a colour.
    pub fn row_in<S: AsRef<str>>(&mut self, ink: Ink, cells: impl IntoIterator<Item = S>) {
        let mut cells: Vec<String> = cells
            .into_iter()
            .map(|cell| shown(cell.as_ref()).into_owned())
            .collect();
        cells.resize(self.columns.len(), String::new());
        self.rows.push(TableRow::Cells(ink, cells));
    }

    pub fn rule(&mut self) {
        self.rows.push(TableRow::Rule);
    }

    /// Only the head is there.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as it fits.
    pub fn laid_out(&self, look: &Look) -> String {
        let lines = match self.fitted(look.width()) {
            Some(fitted) => self.lines(&fitted, look),
            None => self.paragraphs(look),
        };
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The columns that are shown, each with its width. `None`: they do not fit.
    fn fitted(&self, width: Option<usize>) -> Option<Vec<(usize, usize)>> {
        let widths = self.widths();
        let Some(width) = width else {
            return Some(self.in_form(true, &widths));
        };
        // Lines that come one by one agree on their columns before any cell is known.
        let planned: Vec<usize> = self.columns.iter().map(|column| column.width_min).collect();
        let planned = if self.is_headless { &planned } else { &widths };
        let mut chosen = self.without_extras(true, planned, width);
        if needed(&chosen) > width {
            chosen = self.without_extras(false, planned, width);
        }
        for (at, chosen) in &mut chosen {
            *chosen = widths.get(*at).copied().unwrap_or(0);
        }
        while needed(&chosen) > width {
            let text = chosen
                .iter_mut()
                .filter(|(at, _)| self.content(*at) == ColumnContent::Text);
            let widest = text.max_by_key(|(_, width)| *width);
            let (_, widest) = widest.filter(|(_, width)| *width > TEXT_MIN)?;
            *widest -= 1;
        }
        Some(chosen)
    }

    /// The columns of a form, each with its width.
    fn in_form(&self, is_long: bool, widths: &[usize]) -> Vec<(usize, usize)> {
        let places = self.columns.iter().map(|column| column.place);
        let columns = places.zip(widths).enumerate();
        let columns = columns.filter(|(_, (place, _))| match place {
            ColumnPlace::Always | ColumnPlace::Extra => true,
            ColumnPlace::Long => is_long,
            ColumnPlace::Short => !is_long,
        });
        columns.map(|(at, (_, width))| (at, *width)).collect()
    }

    /// The same without as many of those that can be missed as must go.
    fn without_extras(&self, is_long: bool, widths: &[usize], width: usize) -> Vec<(usize, usize)> {
        let mut chosen = self.in_form(is_long, widths);
        while needed(&chosen) > width {
            let is_extra = |(at, _): &(usize, usize)| {
                let column = self.columns.get(*at);
                column.is_some_and(|column| column.place == ColumnPlace::Extra)
            };
            match chosen.iter().rposition(is_extra) {
                Some(last) => chosen.remove(last),
                None => break,
            };
        }
        chosen
    }

    fn content(&self, at: usize) -> ColumnContent {
        let column = self.columns.get(at);
        column.map_or(ColumnContent::Text, |column| column.content)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.width_min).collect();
        let titles = (!self.is_headless).then_some(&self.titles);
        let cells = self.rows.iter().filter_map(|row| match row {
            TableRow::Cells(_, cells) => Some(cells),
            TableRow::Rule => None,
        });
        for row in titles.into_iter().chain(cells) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        widths
    }

    fn lines(&self, fitted: &[(usize, usize)], look: &Look) -> Vec<String> {
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        if !self.is_headless {
            lines.push(look.inked(Ink::Bold, self.line(&self.titles, fitted)));
        }
        for row in &self.rows {
            lines.push(match row {
                TableRow::Rule => {
                    let dashes = fitted.iter().map(|(_, width)| "-".repeat(*width));
                    dashes.collect::<Vec<_>>().join(GAP)
                }
                TableRow::Cells(ink, cells) => look.inked(*ink, self.line(cells, fitted)),
            });
        }
        lines
    }

    fn line(&self, cells: &[String], fitted: &[(usize, usize)]) -> String {
        let cells = fitted.iter().map(|(at, width)| {
            let cell = cells.get(*at).map_or("", String::as_str);
            if self.content(*at) == ColumnContent::Numbers {
                return format!("{cell:>width$}");
            }
            let cell = cut(cell, *width);
            let gap = width.saturating_sub(columns(&cell));
            format!("{cell}{:gap$}", "")
        });
        let line = cells.collect::<Vec<String>>().join(GAP);
        line.trim_end().to_owned()
    }

    /// A paragraph for each row.
    fn paragraphs(&self, look: &Look) -> Vec<String> {
        let label = self.titles.iter().map(|title| title.chars().count()).max();
        let label = label.unwrap_or(0) + GAP.len();
        let mut lines = Vec::new();
        for row in &self.rows {
            let TableRow::Cells(ink, cells) = row else {
                continue;
            };
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for ((title, cell), column) in self.titles.iter().zip(cells).zip(&self.columns) {
                if column.place != ColumnPlace::Short && !cell.is_empty() {
                    let line = look.wrapped(&format!("{title:<label$}{cell}"), label);
                    lines.push(look.inked(*ink, line));
                }
            }
        }
        lines
    }
}

/// The columns and the gaps between them.
fn needed(columns: &[(usize, usize)]) -> usize {
    let gaps = columns.len().saturating_sub(1) * GAP.len();
    columns.iter().map(|(_, width)| width).sum::<usize>() + gaps
}

impl fmt::Display for TextTable {
    /// With all columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.laid_out(&Look::unlimited()))
    }
}

// === impl TableColumn ===

const MARKS: [char; 5] = ['>', '=', '~', '+', '^'];

impl TableColumn {
    fn of(title: &str) -> Self {
        let name = title.trim_start_matches(MARKS);
        let marks = title.strip_suffix(name).unwrap_or_default();
        Self {
            content: match marks {
                marks if marks.contains('>') => ColumnContent::Numbers,
                marks if marks.contains('=') => ColumnContent::Whole,
                _ => ColumnContent::Text,
            },
            place: match marks {
                marks if marks.contains('~') => ColumnPlace::Extra,
                marks if marks.contains('+') => ColumnPlace::Long,
                marks if marks.contains('^') => ColumnPlace::Short,
                _ => ColumnPlace::Always,
            },
            width_min: 0,
        }
    }
}

#[cfg(test)]
mod tests;
