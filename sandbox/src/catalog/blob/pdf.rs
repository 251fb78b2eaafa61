//! One page of text as a PDF.
//!
//! PDF 1.4 with a built-in font and an uncompressed page, so that any reader opens it and its text can be
//! found in its bytes. Promise: the cross-reference table points at every object.

use std::fmt::Write as _;

const FONT_SIZE: u32 = 11;
const LEADING: u32 = 16;
/// A4 in points.
const PAGE: (u32, u32) = (595, 842);
const MARGIN: u32 = 60;

/// Fails on a character the built-in font's encoding does not have.
pub fn page(lines: &[&str]) -> Result<Vec<u8>, String> {
    let mut text = format!(
        "BT /F1 {FONT_SIZE} Tf {LEADING} TL {MARGIN} {} Td\n",
        PAGE.1 - MARGIN
    );
    for line in lines {
        if let Some(odd) = line.chars().find(|c| !(' '..='~').contains(c)) {
            return Err(format!("no {odd:?} in the font"));
        }
        let escaped = line
            .replace('\\', "\\\\")
            .replace('(', "\\(")
            .replace(')', "\\)");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "({escaped}) Tj T*");
    }
    text.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
            PAGE.0, PAGE.1
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let start = file.len();
    let _ = write!(
        file,
        "{table}trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    );
    Ok(file.into_bytes())
}

#[cfg(test)]
mod tests {
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
}
