//! `POST /v1/images/generations` and `POST /v1/images/edits`: the routes exist in the interface; their shapes
//! are not shown.
//!
//! Assumed (images): OpenAI's shapes and the limits below; every picture is a PNG; `X-Service-Billed` on the
//! answer.
//! Promise: the pictures are computed from the prompt and, for edits, from the picture that was sent.

mod png;

use super::keyed::Job;
use crate::{
    error::{RouteResult, ServiceError},
    fields::{Fields, mistyped},
    form::Form,
    inbound::Inbound,
    money::MicroUsd,
    purchase::{Keeps, Rules, purchase},
    state::State,
};
use axum::{Extension, extract::State as Shared};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bursar_models::drawing::{self, Drawing, Motif};
use http::HeaderMap;
use image::{
    RgbaImage,
    imageops::{self, FilterType},
};
use png::{SIDE_MAX, SIDE_MIN};
use serde_json::{Value, json};
use std::sync::Arc;

/// Assumed (images): the price of a picture of up to 1024 x 1024 pixels, in micro-USD, and of a larger one.
const PRICE: u64 = 40_000;
const PRICE_LARGE: u64 = 80_000;
const PIXELS_USUAL: u64 = 1024 * 1024;

const PICTURES_MAX: usize = 10;
const PROMPT_CHARS_MAX: usize = 4_000;
const USER_CHARS_MAX: usize = 256;
const SIDE_DEFAULT: u32 = 1_024;
/// Of all pictures of one request together.
const PIXELS_MAX: u64 = 16 * 1024 * 1024;

/// The request to either route, checked.
struct ImagesRequest {
    prompt: String,
    user: String,
    count: usize,
    /// `None`: the default, or that of the picture that was sent.
    size: Option<(u32, u32)>,
}

/// The members both routes share, as text, before they are checked.
struct Said<'a> {
    prompt: Option<&'a str>,
    user: Option<&'a str>,
    count: Option<usize>,
    size: Option<&'a str>,
    response_format: Option<&'a str>,
    output_format: Option<&'a str>,
}

pub async fn generations(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let form = async {
        let fields = Fields::parse(&inbound.body)?;
        fields.text("model")?;
        if fields.yes_or_no("stream")? == Some(true) {
            return Err(mistyped("stream", "false on this route"));
        }
        let wanted = ImagesRequest::read(
            |name| fields.text(name),
            fields.whole("n", 1..=PICTURES_MAX)?,
        )?;
        let (width, height) = wanted.size.unwrap_or((SIDE_DEFAULT, SIDE_DEFAULT));
        wanted.check_pixels(width, height)?;
        let created = state.clock.unix_s();
        let job = Job {
            price: price(wanted.count, width, height)?,
            keeps: Keeps::Pictures,
            assumed: "images",
            work: move || {
                answer(created, wanted.count, |number| {
                    Ok(drawing::generate(&wanted.order(number), width, height))
                })
            },
        };
        Ok(job.order(inbound.fingerprint()))
    };
    purchase(&state, inbound.clone(), Rules::Inference, form).await
}

pub async fn edits(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> RouteResult {
    let order = async {
        let form = Form::read(&headers, inbound.body.clone(), "images").await?;
        let fingerprint = inbound.form_fingerprint(form.parts());
        let wanted =
            ImagesRequest::read(|name| form.text(name), form.whole("n", 1..=PICTURES_MAX)?)?;
        if form.text("stream")?.is_some_and(|stream| stream != "false") {
            return Err(mistyped("stream", "false on this route"));
        }
        let image = form.optional_file(&["image", "image[]"])?.cloned();
        let image = image.ok_or_else(|| ServiceError::invalid("image is required"))?;
        let mask = form.optional_file(&["mask"])?.cloned();
        // The price depends on the size, and so on the head of the picture.
        let came = png::size(&image, "image")?;
        if let Some(mask) = &mask
            && png::size(mask, "mask")? != came
        {
            return Err(ServiceError::BadRequest(
                "mask must have the size of image".to_owned(),
            ));
        }
        let (width, height) = wanted.size.unwrap_or(came);
        wanted.check_pixels(width, height)?;
        let created = state.clock.unix_s();
        let job = Job {
            price: price(wanted.count, width, height)?,
            keeps: Keeps::Pictures,
            assumed: "images",
            work: move || {
                let before = fitted(png::pixels(&image, "image")?, (width, height));
                let mask = mask
                    .map(|mask| {
                        let pixels = png::pixels(&mask, "mask")?;
                        if !drawing::edit::is_open(&pixels) {
                            return Err(ServiceError::BadRequest(
                                "mask has no transparent area, so nothing could change".to_owned(),
                            ));
                        }
                        Ok(fitted(pixels, (width, height)))
                    })
                    .transpose()?;
                answer(created, wanted.count, |number| {
                    let order = wanted.order(number);
                    Ok(drawing::edit::edit(&before, mask.as_ref(), &order))
                })
            },
        };
        Ok(job.order(fingerprint))
    };
    purchase(&state, inbound.clone(), Rules::Inference, order).await
}

/// One picture after the other, so that only two are in memory as pixels. An edit that draws nothing gives
/// equal pictures, which are packed once.
fn answer(
    created: i64,
    count: usize,
    picture: impl Fn(usize) -> Result<Drawing, ServiceError>,
) -> Result<Value, ServiceError> {
    let mut entries: Vec<Value> = Vec::new();
    let mut before: Option<RgbaImage> = None;
    for number in 0..count {
        let Drawing { image, description } = picture(number)?;
        let entry = match entries.last() {
            Some(entry) if before.as_ref() == Some(&image) => entry.clone(),
            _ => {
                let bytes = drawing::png(&image).map_err(|error| {
                    tracing::error!(%error, "a picture failed");
                    ServiceError::Internal
                })?;
                json!({"b64_json": STANDARD.encode(bytes), "revised_prompt": description})
            }
        };
        entries.push(entry);
        before = Some(image);
    }
    Ok(json!({"created": created, "data": entries}))
}

/// The picture in the requested size.
fn fitted(image: RgbaImage, (width, height): (u32, u32)) -> RgbaImage {
    if image.dimensions() == (width, height) {
        return image;
    }
    imageops::resize(&image, width, height, FilterType::Triangle)
}

fn price(count: usize, width: u32, height: u32) -> Result<MicroUsd, ServiceError> {
    let each = if u64::from(width) * u64::from(height) > PIXELS_USUAL {
        PRICE_LARGE
    } else {
        PRICE
    };
    MicroUsd::new(each * count as u64).ok_or(ServiceError::Internal)
}

// === impl ImagesRequest ===

impl ImagesRequest {
    /// The members both routes share; `text` finds one in the JSON or in the form.
    fn read<'a>(
        text: impl Fn(&'static str) -> Result<Option<&'a str>, ServiceError>,
        count: Option<usize>,
    ) -> Result<Self, ServiceError> {
        Self::check(&Said {
            prompt: text("prompt")?,
            user: text("user")?,
            count,
            size: text("size")?,
            response_format: text("response_format")?,
            output_format: text("output_format")?,
        })
    }

    fn check(said: &Said<'_>) -> Result<Self, ServiceError> {
        let prompt = said
            .prompt
            .ok_or_else(|| ServiceError::invalid("prompt is required"))?;
        if prompt.trim().is_empty() {
            return Err(ServiceError::invalid("prompt is empty"));
        }
        at_most("prompt", prompt, PROMPT_CHARS_MAX)?;
        let user = said.user.unwrap_or_default();
        at_most("user", user, USER_CHARS_MAX)?;
        match said.response_format {
            None | Some("b64_json") => {}
            // Assumed (images): nothing here outlives its answer, so there is nothing to point at.
            Some("url") => {
                return Err(ServiceError::BadRequest(
                    "response_format url is not served; ask for b64_json".to_owned(),
                ));
            }
            Some(_) => return Err(mistyped("response_format", "b64_json")),
        }
        if said.output_format.is_some_and(|format| format != "png") {
            return Err(mistyped("output_format", "png"));
        }
        Ok(Self {
            prompt: prompt.to_owned(),
            user: user.to_owned(),
            count: said.count.unwrap_or(1),
            size: said.size.map(size).transpose()?.flatten(),
        })
    }

    fn check_pixels(&self, width: u32, height: u32) -> Result<(), ServiceError> {
        if u64::from(width) * u64::from(height) * self.count as u64 > PIXELS_MAX {
            return Err(ServiceError::invalid(format!(
                "n pictures of this size are over {PIXELS_MAX} pixels in all"
            )));
        }
        Ok(())
    }

    fn order(&self, number: usize) -> Motif {
        Motif {
            prompt: self.prompt.clone(),
            number,
            user: self.user.clone(),
        }
    }
}

fn at_most(name: &str, text: &str, most: usize) -> Result<(), ServiceError> {
    if text.chars().count() > most {
        return Err(ServiceError::invalid(format!(
            "{name} is over {most} characters"
        )));
    }
    Ok(())
}

/// `auto` leaves it to the route.
fn size(text: &str) -> Result<Option<(u32, u32)>, ServiceError> {
    if text == "auto" {
        return Ok(None);
    }
    let side = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>()
            .ok()
            .filter(|side| digits && (SIDE_MIN..=SIDE_MAX).contains(side))
    };
    let sides = text.split_once('x').and_then(|(width, height)| {
        let (width, height) = (side(width)?, side(height)?);
        Some(Some((width, height)))
    });
    sides.ok_or_else(|| {
        mistyped(
            "size",
            "auto or WIDTHxHEIGHT, each from 16 to 2048, as 1024x1024",
        )
    })
}
