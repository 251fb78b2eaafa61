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
mod tests;
