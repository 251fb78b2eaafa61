//! A question about tables as one SQL query.
//!
//! Tables and columns are those the prompt lists (`name(column, column)`); which of them a question means is
//! told by words in common. Promise: one SELECT that names only tables and columns that were listed.

mod tables;

use super::{facts::pattern, given::Given, skill::Skills};
use regex::Regex;
use std::sync::LazyLock;
use tables::{Asked, Table, tables};

static COMPARED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(more than|over|above|greater than|at least|less than|fewer than|under|below|at most)\s+[$€£]?(\d[\d,]*(?:\.\d+)?)(?:\s+(\w+))?",
    )
});
static WHEN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(before|after|since|in|during|until)\s+((?:19|20)\d{2})\b"));
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"\b(?:in|from|by|called|named|of)\s+["']?(\p{Lu}[\p{L}'-]*(?: \p{Lu}[\p{L}'-]*)*)["']?"#,
    )
});
static FIRST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:top|first|last|the)?\s*(\d+|two|three|four|five|six|seven|eight|nine|ten)\s+(?:most|least|best|largest|biggest|highest|lowest|cheapest|oldest|newest|longest|latest)\b|\b(?:top|first|last)\s+(\d+|two|three|four|five|six|seven|eight|nine|ten)\b",
    )
});

const NUMBERS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];

/// The query; `None` where no table is listed.
pub fn write(given: &Given, skills: Skills) -> Option<String> {
    let tables = tables(
        given
            .value(&["tables", "schema", "ddl"])
            .unwrap_or(&given.text),
    );
    let question = given.question();
    let asked = Asked::of(&question);
    // The table whose rows are asked for: named first, else with most columns in the question.
    let main = tables
        .iter()
        .filter_map(|table| Some((asked.place(&table.name)?, table)))
        .min_by_key(|(place, _)| *place)
        .map(|(_, table)| table)
        .or_else(|| {
            tables.iter().max_by_key(|table| {
                table
                    .columns
                    .iter()
                    .filter(|column| asked.place(column).is_some())
                    .count()
            })
        })?;
    let other = tables
        .iter()
        .filter(|table| skills.relations && table.name != main.name)
        .filter(|table| table.key_of(main).is_some() || main.key_of(table).is_some())
        .find(|table| needed(table, main, &asked));
    Some(
        Query {
            main,
            other,
            asked: &asked,
            question: &question,
        }
        .write(),
    )
}

/// Whether the question speaks of something only the other table has.
fn needed(table: &Table, main: &Table, asked: &Asked) -> bool {
    let own = |column: &&String| {
        let is_key = *column == "id" || column.ends_with("_id");
        !main.columns.contains(column) && !is_key && asked.place(column).is_some()
    };
    let counted = asked.has(&["never", "most", "least", "spend", "spent", "often"]);
    asked.place(&table.name).is_some() || table.columns.iter().any(|column| own(&column)) || counted
}

struct Query<'a> {
    main: &'a Table,
    other: Option<&'a Table>,
    asked: &'a Asked,
    question: &'a str,
}

// === impl Query ===

impl Query<'_> {
    fn write(&self) -> String {
        let asked = self.asked;
        let never = asked.has(&["never", "without", "no"]) && self.other.is_some();
        let grouped = !never
            && (asked.has(&["each", "per", "every"])
                || self.other.is_some() && asked.has(&["most", "least", "many"]) && !self.counts());
        let label = self
            .main
            .label()
            .map_or("*".to_owned(), |label| self.name(self.main, label));
        let measure = self.measure(grouped);
        let mut filters = self.filters();
        let select = match &measure {
            Some(measure) if grouped => format!("{label}, {measure}"),
            Some(measure) => measure.clone(),
            None if self.other.is_some() && !never => format!("DISTINCT {label}"),
            None => self.columns(&label, &filters),
        };
        let mut sql = format!("SELECT {select} FROM {}", self.source(self.main));
        if let Some(other) = self.other {
            let join = if never { "LEFT JOIN" } else { "JOIN" };
            let on = match (other.key_of(self.main), self.main.key_of(other)) {
                (Some(key), _) => format!("{}.{key} = {}.id", other.alias, self.main.alias),
                (None, Some(key)) => format!("{}.id = {}.{key}", other.alias, self.main.alias),
                (None, None) => String::new(),
            };
            sql.push_str(&format!(" {join} {} ON {on}", self.source(other)));
            if never {
                filters = vec![format!("{}.id IS NULL", other.alias)];
            }
        }
        if !filters.is_empty() {
            sql.push_str(&format!(" WHERE {}", filters.join(" AND ")));
        }
        if grouped {
            let id = self.main.column(&["id"]).map(|id| self.name(self.main, id));
            let by: Vec<String> = id.into_iter().chain([label.clone()]).collect();
            sql.push_str(&format!(" GROUP BY {}", by.join(", ")));
        }
        sql.push_str(&self.order(measure.as_deref(), grouped));
        sql
    }

    fn counts(&self) -> bool {
        self.question.to_lowercase().contains("how many") || self.asked.has(&["count", "number"])
    }

    fn source(&self, table: &Table) -> String {
        match self.other {
            Some(_) => format!("{} {}", table.name, table.alias),
            None => table.name.clone(),
        }
    }

    fn name(&self, table: &Table, column: &str) -> String {
        match self.other {
            Some(_) => format!("{}.{column}", table.alias),
            None => column.to_owned(),
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        std::iter::once(self.main).chain(self.other)
    }

    /// A column with numbers that the question speaks of, else one that is summed usually.
    fn number_column(&self) -> Option<String> {
        let is_number = |column: &str| {
            [
                "total", "amount", "price", "cost", "sum", "km", "year", "age", "quantity",
                "salary", "balance", "score", "copies", "size", "weight", "duration",
            ]
            .contains(&column)
                || column.contains("_kg")
                || column.contains("_km")
                || column.contains("amount")
                || column.contains("price")
        };
        let named = self.tables().find_map(|table| {
            let column = table.columns.iter().find(|column| {
                *column != "id"
                    && !column.ends_with("_id")
                    && !column.ends_with("_on")
                    && !column.ends_with("_at")
                    && self.asked.place(column).is_some()
                    && (is_number(column) || self.other.is_none())
                    && Some(*column) != table.label()
            })?;
            Some(self.name(table, column))
        });
        named.or_else(|| {
            self.tables().find_map(|table| {
                let column = table.columns.iter().find(|column| is_number(column))?;
                Some(self.name(table, column))
            })
        })
    }

    /// COUNT, AVG, SUM, MAX or MIN, where the question asks for a figure.
    fn measure(&self, grouped: bool) -> Option<String> {
        let asked = self.asked;
        if self.counts() {
            return Some("COUNT(*)".to_owned());
        }
        let of = |function: &str| Some(format!("{function}({})", self.number_column()?));
        if asked.has(&["average", "mean", "avg"]) {
            return of("AVG");
        }
        if asked.has(&[
            "sum",
            "sums",
            "total",
            "spend",
            "spent",
            "earn",
            "earned",
            "revenue",
            "altogether",
        ]) {
            return of("SUM").map(|sum| {
                if grouped {
                    format!("{sum} AS total")
                } else {
                    sum
                }
            });
        }
        if grouped && asked.has(&["most", "least", "often"]) {
            return Some("COUNT(*) AS n".to_owned());
        }
        if asked.has(&["maximum", "max"]) {
            return of("MAX");
        }
        if asked.has(&["minimum", "min"]) {
            return of("MIN");
        }
        None
    }

    /// The columns that are asked for by name, with the label first; what only limits the rows is not shown.
    fn columns(&self, label: &str, filters: &[String]) -> String {
        let before_filter = self
            .question
            .split(" with ")
            .next()
            .unwrap_or("")
            .split(" where ")
            .next()
            .unwrap_or("");
        let listed = Asked::of(before_filter);
        let mut columns = vec![label.to_owned()];
        for column in &self.main.columns {
            let name = self.name(self.main, column);
            if column != "id"
                && !column.ends_with("_id")
                && listed.place(column).is_some()
                && !columns.contains(&name)
                && !filters.iter().any(|filter| filter.contains(&name))
            {
                columns.push(name);
            }
        }
        columns.join(", ")
    }

    fn filters(&self) -> Vec<String> {
        let mut filters = Vec::new();
        if let Some(caps) = PLACE.captures(self.question)
            && let Some(value) = caps.get(1)
        {
            let column = self.tables().find_map(|table| {
                let column = table.column(&[
                    "city",
                    "country",
                    "location",
                    "place",
                    "town",
                    "region",
                    "author",
                    "category",
                    "department",
                    "state",
                ])?;
                Some(self.name(table, column))
            });
            filters.extend(
                column.map(|column| format!("{column} = '{}'", value.as_str().replace('\'', "''"))),
            );
        }
        for caps in COMPARED.captures_iter(self.question) {
            let sign = match caps
                .get(1)
                .map_or(String::new(), |one| one.as_str().to_lowercase())
                .as_str()
            {
                "at least" => ">=",
                "at most" => "<=",
                "less than" | "fewer than" | "under" | "below" => "<",
                _ => ">",
            };
            let value = caps.get(2).map_or("", |one| one.as_str()).replace(',', "");
            let named = caps.get(3).and_then(|word| {
                let of = Asked::of(word.as_str());
                self.tables().find_map(|table| {
                    let column = table
                        .columns
                        .iter()
                        .find(|column| of.place(column).is_some())?;
                    Some(self.name(table, column))
                })
            });
            if let Some(column) = named.or_else(|| self.number_column()) {
                filters.push(format!("{column} {sign} {value}"));
            }
        }
        for caps in WHEN.captures_iter(self.question) {
            filters.extend(self.when(&caps));
        }
        let open = ["currently", "moment", "still", "now", "open", "out"];
        if self.asked.has(&open) {
            let ended = self.tables().find_map(|table| {
                let column = table.column(&[
                    "returned_on",
                    "returned_at",
                    "ended_at",
                    "ended_on",
                    "closed_at",
                    "closed_on",
                    "end_date",
                    "finished_at",
                    "paid_on",
                ])?;
                Some(self.name(table, column))
            });
            filters.extend(ended.map(|column| format!("{column} IS NULL")));
        }
        filters
    }

    fn when(&self, caps: &regex::Captures<'_>) -> Option<String> {
        let word = caps.get(1)?.as_str().to_lowercase();
        let year: u32 = caps.get(2)?.as_str().parse().ok()?;
        let asked_day = self.tables().find_map(|table| {
            let column = table.columns.iter().find(|column| {
                (column.ends_with("_on") || column.ends_with("_at"))
                    && self.asked.place(column).is_some()
            })?;
            Some(self.name(table, column))
        });
        let any_day = || {
            self.tables()
                .filter(|table| self.other.is_none_or(|other| other.name == table.name))
                .find_map(|table| Some(self.name(table, table.day()?)))
        };
        let Some(column) = asked_day.or_else(any_day) else {
            let sign = match word.as_str() {
                "before" | "until" => "<",
                "after" => ">",
                "since" => ">=",
                _ => "=",
            };
            let table = self
                .tables()
                .find(|table| table.column(&["year"]).is_some())?;
            return Some(format!("{} {sign} {year}", self.name(table, "year")));
        };
        Some(match word.as_str() {
            "before" | "until" => format!("{column} < DATE '{year}-01-01'"),
            "after" => format!("{column} >= DATE '{}-01-01'", year + 1),
            "since" => format!("{column} >= DATE '{year}-01-01'"),
            _ => format!(
                "{column} >= DATE '{year}-01-01' AND {column} < DATE '{}-01-01'",
                year + 1
            ),
        })
    }

    fn order(&self, measure: Option<&str>, grouped: bool) -> String {
        let asked = self.asked;
        let down = asked.has(&[
            "most",
            "highest",
            "largest",
            "biggest",
            "newest",
            "latest",
            "longest",
            "top",
            "descending",
        ]);
        let up = asked.has(&[
            "least",
            "lowest",
            "smallest",
            "oldest",
            "cheapest",
            "shortest",
            "fewest",
            "earliest",
            "ascending",
        ]);
        let by = match measure {
            Some(measure) if grouped => measure
                .rsplit_once(" AS ")
                .map_or(measure, |(_, name)| name)
                .to_owned(),
            Some(_) => return String::new(),
            None if asked.has(&["oldest", "newest", "latest", "earliest"]) => {
                match self.main.day() {
                    Some(day) => self.name(self.main, day),
                    None => return String::new(),
                }
            }
            None => match self.number_column() {
                Some(column) => column,
                None => return String::new(),
            },
        };
        if !down && !up {
            return String::new();
        }
        let direction = if down { " DESC" } else { "" };
        let first = FIRST.captures(self.question).and_then(|caps| {
            let n = caps.get(1).or(caps.get(2))?.as_str().to_lowercase();
            n.parse()
                .ok()
                .or_else(|| NUMBERS.iter().position(|name| *name == n))
        });
        let limit = first.map_or(String::new(), |n| format!(" FETCH FIRST {n} ROWS ONLY"));
        format!(" ORDER BY {by}{direction}{limit}")
    }
}

#[cfg(test)]
mod tests;
