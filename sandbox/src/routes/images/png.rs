//! A PNG that a client sent.
//!
//! Promise: an incomplete or invalid PNG is 400 and the text names its part; a small file that unpacks to
//! a huge picture is refused by its head, before memory is allocated for it.

use crate::error::ServiceError;
use image::{ImageFormat, ImageReader, Limits, RgbaImage};
use std::io::Cursor;

/// Of a picture, in pixels.
pub const SIDE_MIN: u32 = 16;
pub const SIDE_MAX: u32 = 2_048;
/// For one picture while it is unpacked: 2048 x 2048 pixels of 8 bytes, and room to work.
const BYTES_MAX: u64 = 96 * 1024 * 1024;

pub fn size(bytes: &[u8], part: &str) -> Result<(u32, u32), ServiceError> {
    let (width, height) = reader(bytes).into_dimensions().map_err(|_| no_png(part))?;
    let sides = SIDE_MIN..=SIDE_MAX;
    if !sides.contains(&width) || !sides.contains(&height) {
        return Err(ServiceError::BadRequest(format!(
            "{part} must be from {SIDE_MIN} to {SIDE_MAX} pixels wide and high"
        )));
    }
    Ok((width, height))
}

pub fn pixels(bytes: &[u8], part: &str) -> Result<RgbaImage, ServiceError> {
    let image = reader(bytes).decode().map_err(|_| no_png(part))?;
    Ok(image.into_rgba8())
}

fn reader(bytes: &[u8]) -> ImageReader<Cursor<&[u8]>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(BYTES_MAX);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), ImageFormat::Png);
    reader.limits(limits);
    reader
}

fn no_png(part: &str) -> ServiceError {
    ServiceError::BadRequest(format!("{part} is not a whole PNG"))
}
