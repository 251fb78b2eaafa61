//! Markup of the pages: text that is escaped, tables, lists, and the frame around them.
//!
//! Promise: what is not markup of this room passes through [`Escaped`]: text of apps, of the service and of the
//! system cannot become markup, and no character of it is unseen. On a narrow screen each row of a table becomes a
//! block in which every number has its title, and no number is broken.

use std::fmt::{self, Display, Write};

use crate::admin::cells;
use crate::ledger::entry::EntryId;
use crate::screen::shown;

/// Text in a page: what [`crate::screen`] writes out, and what HTML takes for its own.
pub struct Escaped<'a>(pub &'a str);

/// A document in the making.
#[derive(Debug, Default)]
pub struct Html(String);

/// What stands in a field of a table.
#[derive(Clone, Debug)]
pub enum Field {
    Text(String),
    /// Amounts, counts and times: on one line, to the right.
    Number(String),
    /// A number with a remark under it.
    Noted(String, String),
    /// A link to an entry's page.
    Entry(EntryId),
    /// Text behind a square in the colour that the chart has for it.
    Coloured(usize, String),
}

/// The style of both pages, in the page itself: nothing is loaded.
pub const STYLE: &str = include_str!("style.css");

// === impl Escaped ===

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in shown(self.0).chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

// === impl Html ===

impl Html {
    /// Up to the beginning of the body.
    pub fn titled(title: &str) -> Self {
        let mut html = Self::default();
        html.line(format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <link rel=\"icon\" href=\"/favicon.ico\" type=\"image/svg+xml\">\n<style>{STYLE}</style>\n</head>\n<body>",
            Escaped(title)
        ));
        html
    }

    pub fn finish(mut self) -> String {
        self.line("</body>\n</html>");
        self.0
    }

    /// Adds markup.
    pub fn line(&mut self, markup: impl Display) {
        // Writing to a String cannot fail.
        let written = writeln!(self.0, "{markup}");
        debug_assert!(written.is_ok(), "writing to a String");
    }

    /// A part of the page with its heading; `name` is its own in the page.
    pub fn section(&mut self, name: &str, heading: &str, content: impl FnOnce(&mut Self)) {
        self.line(format_args!(
            "<section aria-labelledby=\"{name}\">\n<h2 id=\"{name}\">{}</h2>",
            Escaped(heading)
        ));
        content(self);
        self.line("</section>");
    }

    pub fn paragraph(&mut self, class: &str, text: &str) {
        self.line(format_args!("<p class=\"{class}\">{}</p>", Escaped(text)));
    }

    /// A table of entries: on a narrow screen its fields follow each other without their titles.
    pub fn entries(
        &mut self,
        section: &str,
        titles: &str,
        rows: impl IntoIterator<Item = Vec<Field>>,
    ) {
        self.rows("entries", section, titles, rows);
    }

    pub fn table(
        &mut self,
        section: &str,
        titles: &str,
        rows: impl IntoIterator<Item = Vec<Field>>,
    ) {
        self.rows("figures", section, titles, rows);
    }

    /// `titles`: with bars between them, and `>` before that of a column of numbers. The first field of a row is its
    /// heading. The roles are those of the elements; a narrow screen's layout would take them away.
    fn rows(
        &mut self,
        class: &str,
        section: &str,
        titles: &str,
        rows: impl IntoIterator<Item = Vec<Field>>,
    ) {
        let titles: Vec<&str> = titles.split('|').collect();
        self.line(format_args!(
            "<table role=\"table\" class=\"{class}\" aria-labelledby=\"{section}\">\n<thead role=\"rowgroup\"><tr role=\"row\">"
        ));
        for title in &titles {
            let class = if title.starts_with('>') {
                "number"
            } else {
                "text"
            };
            self.line(format_args!(
                "<th role=\"columnheader\" scope=\"col\" class=\"{class}\">{}</th>",
                Escaped(title.trim_start_matches('>'))
            ));
        }
        self.line("</tr></thead>\n<tbody role=\"rowgroup\">");
        for row in rows {
            self.line("<tr role=\"row\">");
            for (at, (title, field)) in titles.iter().zip(row).enumerate() {
                let title = Escaped(title.trim_start_matches('>'));
                let class = field.class();
                let body = field.markup(section);
                self.line(match at {
                    0 => format!(
                        "<th role=\"rowheader\" scope=\"row\" class=\"{class}\">{body}</th>"
                    ),
                    _ => format!(
                        "<td role=\"cell\" class=\"{class}\" data-title=\"{title}\">{body}</td>"
                    ),
                });
            }
            self.line("</tr>");
        }
        self.line("</tbody></table>");
    }

    /// Names with what they are.
    pub fn list(&mut self, pairs: impl IntoIterator<Item = (&'static str, Field)>) {
        self.line("<dl>");
        for (name, field) in pairs {
            let (class, body) = (field.class(), field.markup(""));
            self.line(format_args!(
                "<div><dt>{}</dt><dd class=\"{class}\">{body}</dd></div>",
                Escaped(name)
            ));
        }
        self.line("</dl>");
    }
}

// === impl Field ===

impl Field {
    pub fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    pub fn number(number: impl Display) -> Self {
        Self::Number(number.to_string())
    }

    const fn class(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Coloured(..) => "text",
            Self::Number(_) | Self::Noted(..) => "number",
            Self::Entry(_) => "text entry",
        }
    }

    /// A link's id is its own in the page, so that the focus stays on it when the figures are swapped.
    fn markup(&self, section: &str) -> String {
        match self {
            Self::Text(text) | Self::Number(text) => Escaped(text).to_string(),
            Self::Noted(number, note) => {
                format!("{}<small>{}</small>", Escaped(number), Escaped(note))
            }
            Self::Entry(id) => {
                let tail = cells::tail(id);
                format!("<a href=\"/explain/{id}\" id=\"{section}-{id}\">{tail}</a>")
            }
            Self::Coloured(colour, text) => format!(
                "<svg class=\"square\" viewBox=\"0 0 8 8\" aria-hidden=\"true\"><rect class=\"c{colour}\" width=\"8\" \
                 height=\"8\"/></svg>{}",
                Escaped(text)
            ),
        }
    }
}
