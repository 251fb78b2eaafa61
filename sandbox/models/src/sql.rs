//! A question about tables as one SQL query.
//!
//! Tables and columns are those that the prompt lists (`name(column, column)`); which of them a question means is
//! decided by words in common. Promise: one SELECT that names only tables and columns that were listed.

use super::{
    facts::patterns,
    given::Given,
    prompt,
    skill::{Pass, Skills},
};
use rust_stemmers::{Algorithm, Stemmer};

const TABLES_MAX: usize = 50;

patterns! {
    TABLE = r"(?i)(?:create table\s+)?\b([a-z_]\w*)\s*\(([^()]*)\)";
    COMPARED = r"(?i)\b(more than|over|above|at least|less than|fewer than|under|below|at most)\s+[$€£]?(\d[\d,]*)(?:\s+(\w+))?";
    WHEN = r"(?i)\b(before|after|since|in|during)\s+((?:19|20)\d{2})\b";
    PLACE = r"\b(?:in|from|by|named)\s+(\p{Lu}[\p{L}-]*(?: \p{Lu}[\p{L}-]*)*)";
    FIRST = r"(?i)\b(?:top\s+)?(\d+|two|three|four|five|six|seven|eight|nine|ten)\b\s*(?:most|least|\w+est)?\b";
}
const NUMBERS: [&str; 9] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];
/// Columns by what they hold.
const LABELS: &str = "name title plate label email code number";
const PLACES: &str = "city town country location place region author category department state";
const ENDS: &str = "returned_on returned_at ended_at ended_on closed_at closed_on end_date paid_on";
const FIGURES: &str = "total amount price cost sum km year age quantity salary balance score copies size weight \
    duration load_kg stock";

struct Table {
    name: String,
    alias: String,
    columns: Vec<String>,
}

/// The query; `None` where no table is listed.
pub fn write(given: &Given, skills: Skills) -> Option<String> {
    let listed = given.value(&["tables", "schema", "ddl"]);
    let tables = tables(listed.unwrap_or(&given.text));
    let question = given.question();
    let words = prompt::words(&question);
    let asked = Asked {
        stems: words.iter().map(|word| stem(word)).collect(),
        words,
    };
    // The table whose rows are asked for: named first, else with most columns in the question.
    let named = tables
        .iter()
        .filter(|table| asked.place(&table.name).is_some());
    let spoken = |table: &&Table| {
        table
            .columns
            .iter()
            .filter(|one| asked.place(one).is_some())
            .count()
    };
    let main = named
        .min_by_key(|table| asked.place(&table.name))
        .or_else(|| tables.iter().max_by_key(spoken))?;
    let needed = |table: &&Table| {
        let own = |column: &String| {
            !is_key(column) && !main.columns.contains(column) && asked.place(column).is_some()
        };
        asked.place(&table.name).is_some()
            || table.columns.iter().any(own)
            || asked.has("never most least spend spent often")
    };
    let mut joined = tables.iter().filter(|table| {
        skills.has(Pass::Relations)
            && table.name != main.name
            && (table.key_of(main).is_some() || main.key_of(table).is_some())
    });
    let query = Query {
        main,
        other: joined.find(needed),
        asked: &asked,
        question: &question,
    };
    Some(query.write())
}

fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for caps in TABLE.captures_iter(text).take(TABLES_MAX) {
        let part = |at| caps.get(at).map_or("", |part| part.as_str());
        let columns = part(2)
            .split(',')
            .filter_map(|column| column.split_whitespace().next());
        let columns: Vec<String> = columns
            .filter(|column| column.chars().all(|c| c.is_alphanumeric() || c == '_'))
            .map(str::to_owned)
            .collect();
        let name = part(1).to_owned();
        let initial: String = name.to_lowercase().chars().take(1).collect();
        let taken = tables.iter().any(|table| table.alias == initial);
        let alias = if taken {
            name.chars().take(2).collect()
        } else {
            initial
        };
        if !columns.is_empty() {
            tables.push(Table {
                name,
                alias,
                columns,
            });
        }
    }
    tables
}

fn stem(word: &str) -> String {
    let stemmer = Stemmer::create(Algorithm::English);
    stemmer.stem(&word.to_lowercase()).into_owned()
}

fn is_key(column: &str) -> bool {
    column == "id" || column.ends_with("_id")
}

fn is_day(column: &str) -> bool {
    column.ends_with("_on") || column.ends_with("_at") || column.contains("date")
}

// === impl Table ===

impl Table {
    fn column(&self, list: &str) -> Option<&String> {
        let found = |name: &str| self.columns.iter().find(|column| *column == name);
        list.split(' ').find_map(found)
    }

    /// The column that people know a row by.
    fn label(&self) -> Option<&String> {
        let other = || self.columns.iter().find(|column| !is_key(column));
        self.column(LABELS).or_else(other)
    }

    /// The column that names rows of the other table.
    fn key_of(&self, other: &Table) -> Option<&String> {
        self.columns.iter().find(|column| {
            let one = column.strip_suffix("_id");
            one.is_some_and(|one| stem(one) == stem(&other.name))
        })
    }
}

/// The words that a question asks with.
struct Asked {
    words: Vec<String>,
    stems: Vec<String>,
}

// === impl Asked ===

impl Asked {
    fn has(&self, list: &str) -> bool {
        prompt::has_any(&self.words, list)
    }

    /// Where the question speaks of a name, the earliest.
    fn place(&self, name: &str) -> Option<usize> {
        let parts = name
            .split('_')
            .filter(|part| !prompt::listed(part, "id on at date time by"));
        let parts: Vec<String> = parts.map(stem).collect();
        self.stems.iter().position(|stem| parts.contains(stem))
    }
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
        let counts = self.question.to_lowercase().contains("how many") || asked.has("count number");
        let never = asked.has("never without no") && self.other.is_some();
        let most = asked.has("most least often");
        let grouped =
            !never && (asked.has("each per every") || self.other.is_some() && most && !counts);
        let label = self
            .main
            .label()
            .map_or("*".to_owned(), |label| self.name(self.main, label));
        let measured = |function: &str| Some(format!("{function}({})", self.figure()?));
        let measure = if counts {
            Some("COUNT(*)".to_owned())
        } else if asked.has("average mean avg") {
            measured("AVG")
        } else if asked.has("sum sums total spend spent earn earned revenue altogether") {
            measured("SUM")
        } else if grouped && most {
            Some("COUNT(*)".to_owned())
        } else {
            None
        };
        let select = match &measure {
            Some(measure) if grouped => format!("{label}, {measure} AS n"),
            Some(measure) => measure.clone(),
            None if self.other.is_some() && !never => format!("DISTINCT {label}"),
            None => label.clone(),
        };
        let mut sql = format!("SELECT {select} FROM {}", self.source(self.main));
        let mut filters = self.filters();
        if let Some(other) = self.other {
            let join = if never { "LEFT JOIN" } else { "JOIN" };
            let (theirs, own) = match (other.key_of(self.main), self.main.key_of(other)) {
                (Some(key), _) => (key.as_str(), "id"),
                (None, key) => ("id", key.map_or("id", String::as_str)),
            };
            let on = format!(
                "{} = {}",
                self.name(other, theirs),
                self.name(self.main, own)
            );
            sql.push_str(&format!(" {join} {} ON {on}", self.source(other)));
            if never {
                filters = vec![format!("{} IS NULL", self.name(other, "id"))];
            }
        }
        if !filters.is_empty() {
            sql.push_str(&format!(" WHERE {}", filters.join(" AND ")));
        }
        if grouped {
            let id = self.main.column("id").map(|id| self.name(self.main, id));
            let by: Vec<String> = id.into_iter().chain([label]).collect();
            sql.push_str(&format!(" GROUP BY {}", by.join(", ")));
        }
        let by = if grouped {
            measure.map(|_| "n".to_owned())
        } else {
            self.figure().filter(|_| measure.is_none())
        };
        sql + &by.map_or(String::new(), |by| self.order(&by))
    }

    /// `ORDER BY … FETCH FIRST`, where the question asks for the highest or the lowest.
    fn order(&self, by: &str) -> String {
        let up = self
            .asked
            .has("least lowest smallest cheapest shortest fewest ascending");
        if !up
            && !self
                .asked
                .has("most highest largest biggest longest top descending")
        {
            return String::new();
        }
        let first = FIRST.captures_iter(self.question).find_map(|caps| {
            let n = caps.get(1)?.as_str().to_lowercase();
            let named = NUMBERS.iter().position(|name| *name == n).map(|at| at + 2);
            named.or_else(|| n.parse().ok().filter(|n| *n < 1_000))
        });
        let first = first.map_or(String::new(), |n| format!(" FETCH FIRST {n} ROWS ONLY"));
        format!(" ORDER BY {by}{}{first}", if up { "" } else { " DESC" })
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

    /// A column of the query's tables.
    fn column(&self, fits: impl Fn(&Table, &str) -> bool) -> Option<String> {
        [Some(self.main), self.other]
            .into_iter()
            .flatten()
            .find_map(|table| {
                let column = table.columns.iter().find(|column| fits(table, column))?;
                Some(self.name(table, column))
            })
    }

    /// A column with numbers that the question speaks of, else one that is summed usually.
    fn figure(&self) -> Option<String> {
        let is_figure = |column: &str| prompt::listed(column, FIGURES);
        self.column(|_, column| is_figure(column) && self.asked.place(column).is_some())
            .or_else(|| {
                self.column(|table, column| {
                    let is_label = table.label().is_some_and(|label| label == column);
                    let plain = !is_key(column) && !is_day(column) && !is_label;
                    plain && self.other.is_none() && self.asked.place(column).is_some()
                })
            })
            .or_else(|| self.column(|_, column| is_figure(column)))
    }

    fn filters(&self) -> Vec<String> {
        let mut filters = Vec::new();
        if let Some(place) = PLACE.captures(self.question).and_then(|caps| caps.get(1)) {
            let column = self.column(|_, column| prompt::listed(column, PLACES));
            filters.extend(column.map(|column| format!("{column} = '{}'", place.as_str())));
        }
        for caps in COMPARED.captures_iter(self.question) {
            let part = |at| caps.get(at).map_or("", |part| part.as_str());
            let sign = match part(1).to_lowercase().as_str() {
                "at least" => ">=",
                "at most" => "<=",
                "more than" | "over" | "above" => ">",
                _ => "<",
            };
            let named = self.column(|_, column| {
                !part(3).is_empty() && column.split('_').any(|one| one == part(3))
            });
            let column = named.or_else(|| self.figure());
            filters.extend(
                column.map(|column| format!("{column} {sign} {}", part(2).replace(',', ""))),
            );
        }
        for caps in WHEN.captures_iter(self.question) {
            let part = |at| caps.get(at).map_or("", |part| part.as_str());
            let Ok(year) = part(2).parse::<u32>() else {
                continue;
            };
            // The day that is spoken of; else that of the joined rows.
            let day = self
                .column(|_, column| is_day(column) && self.asked.place(column).is_some())
                .or_else(|| {
                    let of = self.other.unwrap_or(self.main);
                    self.column(|table, column| table.name == of.name && is_day(column))
                });
            let Some(day) = day else { continue };
            let from = |year: u32| format!("{day} >= DATE '{year}-01-01'");
            let until = |year: u32| format!("{day} < DATE '{year}-01-01'");
            filters.push(match part(1).to_lowercase().as_str() {
                "before" => until(year),
                "after" => from(year + 1),
                "since" => from(year),
                _ => format!("{} AND {}", from(year), until(year + 1)),
            });
        }
        if self.asked.has("currently moment still now open out") {
            let ended = self.column(|_, column| prompt::listed(column, ENDS));
            filters.extend(ended.map(|column| format!("{column} IS NULL")));
        }
        filters
    }
}

#[cfg(test)]
mod tests;
