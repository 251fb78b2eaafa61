//! Content blocks that the chat form has parts for: texts and images, and what can be written as a text.
//!
//! Promise: no word of a block is lost. What is neither text nor image (PDF, files) is refused.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::super::json;
use super::super::members::{self, Members, Place};
use crate::protocol::translate::{Dropped, Untranslatable};

/// Texts as the request spells them, which become one string.
pub type Texts<'a> = Vec<Cow<'a, str>>;

/// A part of a message.
#[derive(Debug)]
pub enum Part<'a> {
    Text(Texts<'a>),
    Image(Picture<'a>),
}

/// Where an image is, as the request spells it.
#[derive(Debug)]
pub enum Picture<'a> {
    Address(&'a str),
    Inline { media_type: String, data: &'a str },
}

/// A block's content: one text, or blocks.
pub enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Members<'a>>),
}

/// Adds the parts of a block whose `type` was taken already.
pub fn read_block<'a>(
    kind: &str,
    mut block: Members<'a>,
    place: &Place<'_>,
    dropped: &mut Dropped,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Untranslatable> {
    match kind {
        "text" => {
            let text = block.required_string("text", place)?;
            parts.push(Part::Text(vec![text.into()]));
        }
        "image" => {
            let source = block.required("source", place)?;
            parts.push(Part::Image(picture(
                source,
                &place.member("source"),
                dropped,
            )?));
        }
        "document" => read_document(&mut block, place, dropped, parts)?,
        "search_result" => {
            let mut texts: Texts<'_> = Vec::new();
            texts.extend(block.string("title", place)?.map(Into::into));
            texts.extend(block.string("source", place)?.map(Into::into));
            let inside = block.required("content", place)?;
            let place = place.member("content");
            texts.extend(read_texts(inside, &place, dropped)?);
            parts.push(Part::Text(texts));
        }
        // Tools whose loading is deferred are all sent, so the name is all that it says.
        "tool_reference" => {
            let name = block.required_string("tool_name", place)?;
            parts.push(Part::Text(vec![format!("tool_reference: {name}").into()]));
        }
        _ => return Err(unknown_kind(place)),
    }
    block.leave_out(dropped);
    Ok(())
}

pub fn unknown_kind(place: &Place<'_>) -> Untranslatable {
    let message = "Content of this type cannot be sent here; the service takes texts, images, tool calls and their results.";
    place.member("type").refuse(message)
}

/// A content that is one text or a list of blocks.
pub fn content<'a>(value: &'a RawValue, place: &Place<'_>) -> Result<Content<'a>, Untranslatable> {
    match json::inside(value) {
        Some(text) => Ok(Content::Text(text)),
        None if value.get().starts_with('[') => members::objects(value, place).map(Content::Blocks),
        None => Err(place.refuse("It must be a string or a list of blocks.")),
    }
}

/// A content in which there are texts only.
pub fn read_texts<'a>(
    value: &'a RawValue,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<Texts<'a>, Untranslatable> {
    let blocks = match content(value, place)? {
        Content::Text(text) => return Ok(vec![text.into()]),
        Content::Blocks(blocks) => blocks,
    };
    let mut texts = Vec::with_capacity(blocks.len());
    for (index, mut block) in blocks.into_iter().enumerate() {
        let place = place.element(index);
        let kind = block.kind();
        texts.push(read_text(&kind, block, &place, dropped)?);
    }
    Ok(texts)
}

/// The text of a block whose `type` was taken already, where nothing but text can stand.
pub fn read_text<'a>(
    kind: &str,
    mut block: Members<'a>,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<Cow<'a, str>, Untranslatable> {
    if kind != "text" {
        let message = "Only text blocks can stand here.";
        return Err(place.member("type").refuse(message));
    }
    let text = block.required_string("text", place)?;
    block.leave_out(dropped);
    Ok(text.into())
}

/// Writes a part as the chat form has it.
pub fn push_part(out: &mut Vec<u8>, part: &Part<'_>) {
    match part {
        Part::Text(texts) => {
            json::push(out, &["{\"type\":\"text\",\"text\":"]);
            json::push_joined(out, texts);
            out.push(b'}');
        }
        Part::Image(picture) => {
            json::push(out, &["{\"type\":\"image_url\",\"image_url\":{\"url\":\""]);
            match picture {
                Picture::Address(url) => json::push(out, &[url]),
                Picture::Inline { media_type, data } => {
                    json::push(out, &["data:", media_type, ";base64,", data]);
                }
            }
            json::push(out, &["\"}}"]);
        }
    }
}

fn picture<'a>(
    source: &'a RawValue,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<Picture<'a>, Untranslatable> {
    let mut source = Members::read(source, place)?;
    let picture = match source.kind().as_str() {
        "base64" => {
            let media_type = source.required("media_type", place)?;
            let media_type = json::text(media_type).filter(|media_type| is_image(media_type));
            let place_of_type = place.member("media_type");
            let refused = || place_of_type.refuse("It must be a type of images: image/png.");
            Picture::Inline {
                media_type: media_type.ok_or_else(refused)?,
                data: source.required_string("data", place)?,
            }
        }
        "url" => Picture::Address(source.required_string("url", place)?),
        _ => {
            let message = "The service holds no files; send the image as base64 or url.";
            return Err(place.member("type").refuse(message));
        }
    };
    source.leave_out(dropped);
    Ok(picture)
}

/// Whether this may stand in a `data:` address.
fn is_image(media_type: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-');
    let kind = media_type.strip_prefix("image/");
    kind.is_some_and(|kind| !kind.is_empty() && kind.bytes().all(is_plain))
}

/// A document that is text, or texts and images.
fn read_document<'a>(
    block: &mut Members<'a>,
    place: &Place<'_>,
    dropped: &mut Dropped,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Untranslatable> {
    let mut texts: Texts<'_> = Vec::new();
    texts.extend(block.string("title", place)?.map(Into::into));
    texts.extend(block.string("context", place)?.map(Into::into));
    let source = block.required("source", place)?;
    let place = place.member("source");
    let mut source = Members::read(source, &place)?;
    match source.kind().as_str() {
        "text" => {
            source.take("media_type");
            texts.push(source.required_string("data", &place)?.into());
            parts.push(Part::Text(texts));
        }
        "content" => {
            let inside = source.required("content", &place)?;
            let place = place.member("content");
            let blocks = match content(inside, &place)? {
                Content::Text(text) => {
                    texts.push(text.into());
                    Vec::new()
                }
                Content::Blocks(blocks) => blocks,
            };
            if !texts.is_empty() {
                parts.push(Part::Text(texts));
            }
            for (index, mut block) in blocks.into_iter().enumerate() {
                let place = place.element(index);
                match block.kind().as_str() {
                    kind @ ("text" | "image") => read_block(kind, block, &place, dropped, parts)?,
                    _ => return Err(unknown_kind(&place)),
                }
            }
        }
        _ => {
            let message = "The service takes no PDF and holds no files; send the document's text, or its pages as images.";
            return Err(place.member("type").refuse(message));
        }
    }
    source.leave_out(dropped);
    Ok(())
}
