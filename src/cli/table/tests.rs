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
