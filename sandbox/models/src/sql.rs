//! A question about a table as one SQL query.
//!
//! Tables and columns are those that the prompt lists (`name(column, column)`); which of them a question means is
//! decided by words in common. Tables are not joined, but for rows that have none in another table.
//! Promise: one SELECT that names only tables and columns that were listed.

use super::{
    given::PromptParts,
    skill::{Skill, Skills},
    text::{self, captured, group, has_any, listed, patterns, stem},
};

const TABLES_MAX: usize = 50;

patterns! {
    TABLE = r"(?i)(?:create table\s+)?\b([a-z_]\w*)\s*\(([^()]*)\)";
    COMPARED = r"(?i)\b(more than|over|above|at least|less than|fewer than|under|below|at most)\s+[$€£]?(\d[\d,]*)(?:\s+(\w+))?";
    WHEN = r"(?i)\b(before|after|since|in|during)\s+((?:19|20)\d{2})\b";
    PLACE = r"\b(?:in|from|by|named)\s+(\p{Lu}[\p{L}-]*(?: \p{Lu}[\p{L}-]*)*)";
}
/// Columns by what they hold.
const LABELS: &str = "name title plate label email code number";
const PLACES: &str = "city town country location place region author category department state";
const ENDS: &str = "returned_on returned_at ended_at ended_on closed_at closed_on end_date paid_on";
const FIGURES: &str = "total amount price cost sum km year age quantity salary balance score copies size weight \
    duration load_kg stock";

struct ListedTable {
    name: String,
    columns: Vec<String>,
}

/// The query; `None` where no table is listed.
pub fn write(given: &PromptParts, skills: Skills) -> Option<String> {
    let tables = tables(
        given
            .value(&["tables", "schema", "ddl"])
            .unwrap_or(&given.text),
    );
    let question = given.question();
    let asked = SqlQuestion {
        words: text::words(&question),
        question: &question,
    };
    // The table whose rows are asked for: named first, else with most columns in the question.
    let named = tables
        .iter()
        .filter(|table| asked.place(&table.name).is_some());
    let columns =
        |table: &&ListedTable| table.columns.iter().filter(|one| asked.names(one)).count();
    let main = named
        .min_by_key(|table| asked.place(&table.name))
        .or_else(|| tables.iter().max_by_key(columns))?;
    let key = |table: &ListedTable| {
        table
            .columns
            .iter()
            .find(|column| is_key_of(column, main))
            .cloned()
    };
    let others = tables
        .iter()
        .filter(|table| skills.has(Skill::Relations) && asked.names(&table.name));
    let absent = others
        .filter_map(|table| Some((&table.name, key(table)?)))
        .next();
    match absent.filter(|_| asked.has("never without no")) {
        Some((other, key)) => Some(format!(
            "SELECT {} FROM {} WHERE id NOT IN (SELECT {key} FROM {other})",
            main.label(),
            main.name
        )),
        None => Some(asked.query(main)),
    }
}

fn tables(text: &str) -> Vec<ListedTable> {
    let table = |caps: regex::Captures<'_>| {
        let is_name = |column: &&str| column.chars().all(|c| c.is_alphanumeric() || c == '_');
        let columns = group(&caps, 2)
            .split(',')
            .filter_map(|one| one.split_whitespace().next());
        ListedTable {
            name: group(&caps, 1).to_owned(),
            columns: columns.filter(is_name).map(str::to_owned).collect(),
        }
    };
    let tables = TABLE.captures_iter(text).take(TABLES_MAX).map(table);
    tables.filter(|table| !table.columns.is_empty()).collect()
}

fn is_key(column: &str) -> bool {
    column == "id" || column.ends_with("_id")
}

/// Whether a column names rows of the table.
fn is_key_of(column: &str, table: &ListedTable) -> bool {
    column
        .strip_suffix("_id")
        .is_some_and(|name| stem(name) == stem(&table.name))
}

fn is_day(column: &str) -> bool {
    column.ends_with("_on") || column.ends_with("_at") || column.contains("date")
}

// === impl ListedTable ===

impl ListedTable {
    fn column(&self, fits: impl Fn(&str) -> bool) -> Option<&str> {
        self.columns
            .iter()
            .map(String::as_str)
            .find(|column| fits(column))
    }

    /// The column that people know a row by.
    fn label(&self) -> &str {
        let known = LABELS
            .split(' ')
            .find_map(|name| self.column(|column| column == name));
        known
            .or_else(|| self.column(|column| !is_key(column)))
            .unwrap_or("*")
    }
}

/// A question, and the words that it asks with.
struct SqlQuestion<'a> {
    question: &'a str,
    words: Vec<String>,
}

// === impl SqlQuestion ===

impl SqlQuestion<'_> {
    fn has(&self, list: &str) -> bool {
        has_any(&self.words, list)
    }

    /// The first word that speaks of a table or a column.
    fn place(&self, name: &str) -> Option<usize> {
        let parts = name
            .split('_')
            .filter(|part| !listed(part, "id on at date time by"));
        let parts: Vec<String> = parts.map(stem).collect();
        self.words
            .iter()
            .position(|word| parts.contains(&stem(word)))
    }

    fn names(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    fn query(&self, table: &ListedTable) -> String {
        let counts = self.question.to_lowercase().contains("how many") || self.has("count number");
        let figure = self.figure(table);
        let measured = |function: &str| Some(format!("{function}({})", figure?));
        let measure = if counts {
            Some("COUNT(*)".to_owned())
        } else if self.has("average mean avg") {
            measured("AVG")
        } else if self.has("sum sums total spend spent earn earned revenue altogether") {
            measured("SUM")
        } else {
            None
        };
        let by = self.has("each per every").then(|| self.group_column(table));
        let columns = [
            by.or(measure.is_none().then(|| table.label())),
            measure.as_deref(),
        ];
        let columns: Vec<&str> = columns.into_iter().flatten().collect();
        let mut sql = format!("SELECT {} FROM {}", columns.join(", "), table.name);
        let filters = self.filters(table);
        if !filters.is_empty() {
            sql += &format!(" WHERE {}", filters.join(" AND "));
        }
        if let (Some(by), Some(_)) = (by, &measure) {
            sql += &format!(" GROUP BY {by}");
        }
        sql + &figure
            .filter(|_| measure.is_none())
            .map_or(String::new(), |by| self.order(by))
    }

    /// What rows are put together by: a column that the question names, else what a row is known by.
    fn group_column<'a>(&self, table: &'a ListedTable) -> &'a str {
        let is_named = |column: &str| !listed(column, FIGURES) && self.names(column);
        table.column(is_named).unwrap_or_else(|| table.label())
    }

    /// `ORDER BY … FETCH FIRST`, where the question asks for the highest or the lowest.
    fn order(&self, by: &str) -> String {
        let up = self.has("least lowest smallest cheapest shortest fewest ascending");
        if !up && !self.has("most highest largest biggest longest top descending") {
            return String::new();
        }
        let mut counts = self.words.iter().filter_map(|word| text::count(word));
        let first = counts.find(|n| (2..1_000).contains(n));
        let first = first.map_or(String::new(), |n| format!(" FETCH FIRST {n} ROWS ONLY"));
        format!(" ORDER BY {by}{}{first}", if up { "" } else { " DESC" })
    }

    /// A column with numbers that the question speaks of, else one that is summed usually.
    fn figure<'a>(&self, table: &'a ListedTable) -> Option<&'a str> {
        let is_figure = |column: &str| listed(column, FIGURES);
        let named = table.column(|column| is_figure(column) && self.names(column));
        let is_plain = |column: &str| !is_key(column) && !is_day(column) && column != table.label();
        named
            .or_else(|| table.column(|column| is_plain(column) && self.names(column)))
            .or_else(|| table.column(is_figure))
    }

    fn filters(&self, table: &ListedTable) -> Vec<String> {
        let mut filters = Vec::new();
        if let Some(place) = captured(&PLACE, self.question) {
            let column = table.column(|column| listed(column, PLACES));
            filters.extend(column.map(|column| format!("{column} = '{place}'")));
        }
        for caps in COMPARED.captures_iter(self.question) {
            let sign = match group(&caps, 1).to_lowercase().as_str() {
                "at least" => ">=",
                "at most" => "<=",
                "more than" | "over" | "above" => ">",
                _ => "<",
            };
            let named = table.column(|column| column.split('_').any(|one| one == group(&caps, 3)));
            let number = group(&caps, 2).replace(',', "");
            let column = named.or_else(|| self.figure(table));
            filters.extend(column.map(|column| format!("{column} {sign} {number}")));
        }
        let day = table.column(|column| is_day(column) && self.names(column));
        let day = day.or_else(|| table.column(is_day));
        for caps in WHEN.captures_iter(self.question) {
            let (Some(day), Ok(year)) = (day, group(&caps, 2).parse::<u32>()) else {
                continue;
            };
            let from = |year: u32| format!("{day} >= DATE '{year}-01-01'");
            let until = |year: u32| format!("{day} < DATE '{year}-01-01'");
            filters.push(match group(&caps, 1).to_lowercase().as_str() {
                "before" => until(year),
                "after" => from(year + 1),
                "since" => from(year),
                _ => format!("{} AND {}", from(year), until(year + 1)),
            });
        }
        if self.has("currently moment still now open out") {
            let ended = table.column(|column| listed(column, ENDS));
            filters.extend(ended.map(|column| format!("{column} IS NULL")));
        }
        filters
    }
}

#[cfg(test)]
mod tests;
