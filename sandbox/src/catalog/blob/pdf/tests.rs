use super::*;

#[test]
fn the_cross_reference_table_points_at_every_object() {
    let file = String::from_utf8(page(&["Total (net): 5", "a \\ b"]).unwrap()).unwrap();

    let (_, start) = file.split_once("startxref\n").unwrap();
    let start: usize = start.lines().next().unwrap().parse().unwrap();
    let table: Vec<&str> = file[start..].lines().skip(3).take(5).collect();
    for (at, row) in table.iter().enumerate() {
        let offset: usize = row[..10].parse().unwrap();
        assert!(file[offset..].starts_with(&format!("{} 0 obj\n", at + 1)));
        assert_eq!(row.len() + 1, 20, "a row has 20 bytes with its newline");
    }
    assert!(file.contains("(Total \\(net\\): 5) Tj"));
    assert!(file.contains("(a \\\\ b) Tj"));
}

#[test]
fn the_announced_length_is_that_of_the_stream() {
    let file = String::from_utf8(page(&["one", "two"]).unwrap()).unwrap();

    let (_, rest) = file.split_once("/Length ").unwrap();
    let length: usize = rest[..rest.find(' ').unwrap()].parse().unwrap();
    let (_, rest) = rest.split_once("stream\n").unwrap();
    assert_eq!(rest.find("\nendstream").unwrap(), length);
}

#[test]
fn a_character_without_a_glyph_is_refused() {
    assert!(page(&["Zürich"]).is_err());
}
