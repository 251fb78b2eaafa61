use super::*;

#[test]
fn columns_line_up_and_numbers_stand_to_the_right() {
    let mut table = TextTable::new("app|>billed");
    table.row(["default", "$0.001234"]);
    table.row(["ci", "$12.000000"]);
    table.rule();
    table.row(["all", "$12.001234"]);

    assert_eq!(
        table.to_string(),
        "app          billed\n\
         default   $0.001234\n\
         ci       $12.000000\n\
         -------  ----------\n\
         all      $12.001234\n"
    );
}

#[test]
fn a_cell_cannot_move_the_cursor_or_add_a_line() {
    let mut table = TextTable::new("model");
    table.row(["\u{1b}[2Jauto\nx\u{202e}\u{2028}"]);

    assert_eq!(
        table.to_string(),
        "model\n\\u{1b}[2Jauto\\nx\\u{202e}\\u{2028}\n"
    );
}

#[test]
fn a_short_row_is_filled_and_leaves_no_space_at_the_line_end() {
    let mut table = TextTable::new("a|b");
    table.row(["x"]);

    assert_eq!(table.to_string(), "a  b\nx\n");
}

#[test]
fn lines_that_come_one_by_one_line_up() {
    let line = |cells: [&str; 2]| {
        let mut table = TextTable::new("|>").headless(&[5, 6]);
        table.row(cells);
        table.to_string()
    };

    assert_eq!(
        line(["a", "1"]) + &line(["bcd", "22"]),
        "a           1\nbcd        22\n"
    );
}

/// As a listing has it: a long and a short form of the time, and two columns that can be missed.
fn listing() -> TextTable {
    let mut table = TextTable::new("=+time|=^time|app|model|~by|>~tokens|>billed");
    for (ink, app, billed) in [
        (Ink::Plain, "default", "$0.001234"),
        (Ink::Red, "ci", "unknown"),
    ] {
        let time = "2026-05-09 00:00:00";
        let cells = [
            time,
            &time[5..],
            app,
            "a-model-with-a-long-name",
            "special",
            "12+34",
            billed,
        ];
        table.row_in(ink, cells);
    }
    table
}

/// A wide character of a model's name takes two columns of a terminal.
#[test]
fn a_line_with_wide_characters_is_no_longer_than_its_screen_and_lines_up() {
    let mut table = TextTable::new("model|>billed");
    table.row(["名前モデル".repeat(12).as_str(), "$0.000001"]);
    table.row(["auto", "$0.000002"]);
    for width in [80, 41] {
        let text = table.laid_out(&Look::of_width(width));
        let wide = |line: &str| {
            line.chars()
                .filter(|letter| ('\u{3000}'..'\u{a000}').contains(letter))
                .count()
        };
        for line in text.lines() {
            assert!(
                line.chars().count() + wide(line) <= width,
                "{width}\n{text}"
            );
            assert!(
                line.ends_with("billed") || line.contains("$0.00000"),
                "{text}"
            );
        }
        let ends: Vec<usize> = text
            .lines()
            .map(|line| line.chars().count() + wide(line))
            .collect();
        assert!(
            ends.windows(2).all(|two| two[0] == two[1]),
            "{ends:?}\n{text}"
        );
    }
}

#[test]
fn a_table_becomes_as_narrow_as_its_screen_and_no_number_is_cut() {
    let rows = [
        (
            120,
            "time                 app      model                     by       tokens     billed",
        ),
        (
            80,
            "time                 app      model                     by          billed",
        ),
        (
            66,
            "time                 app      model                        billed",
        ),
        (
            62,
            "time            app      model                        billed",
        ),
        (50, "time            app      model              billed"),
        (44, "time            app      model        billed"),
        (41, "time            app     model      billed"),
    ];
    for (width, title) in rows {
        let text = listing().laid_out(&Look::of_width(width));
        let first = text.lines().next().unwrap();
        assert_eq!(first.trim_end(), title, "{width}\n{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}\n{text}");
        }
        assert!(
            text.contains("$0.001234") && text.contains("unknown"),
            "{text}"
        );
    }
    let wide = listing().laid_out(&Look::of_width(40).wide());
    assert_eq!(wide, listing().to_string());
    assert!(wide.contains("a-model-with-a-long-name"), "{wide}");
}

#[test]
fn what_fits_no_table_is_a_paragraph_for_each_row() {
    let mut table = TextTable::new("app|>one|>two|>three");
    let amount = "$123456789.123456";
    table.row(["default", amount, amount, amount]);
    table.rule();
    table.row(["all", amount, amount, amount]);

    let text = table.laid_out(&Look::of_width(40));

    let paragraph =
        |app: &str| format!("app    {app}\none    {amount}\ntwo    {amount}\nthree  {amount}\n");
    assert_eq!(text, [paragraph("default"), paragraph("all")].join("\n"));
}

#[test]
fn lines_that_come_one_by_one_have_the_same_columns() {
    let line = |model: &str| {
        let mut table = TextTable::new("time|model|~by|>billed").headless(&[10, 12, 20, 9]);
        table.row(["2026-05-09", model, "special", "$0.001234"]);
        table.laid_out(&Look::of_width(40))
    };

    assert_eq!(line("auto"), "2026-05-09  auto          $0.001234\n");
    assert_eq!(
        line("a-model-of-17-chr"),
        "2026-05-09  a-model-of-17-chr  $0.001234\n"
    );
    assert_eq!(
        line("a-model-with-a-long-name"),
        "2026-05-09  a-model-with-a-l…  $0.001234\n"
    );
}

#[test]
fn colours_do_not_move_columns() {
    let plain = listing().to_string();
    let coloured = Look::unlimited().with_colours();
    let text = listing().laid_out(&coloured);
    assert!(text.contains("\u{1b}[31m"), "{text:?}");
    let codes = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[0m"];
    let stripped = codes.iter().fold(text, |text, code| text.replace(code, ""));
    assert_eq!(stripped, plain);
}
