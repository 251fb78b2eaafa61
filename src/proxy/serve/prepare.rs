//! What a request's body says, and the body as it is sent.
//!
//! Promise: a body is sent as it came but for a model alias (`[models] aliases`), with `[streams]
//! agent_receipts = "exact"` an agent turn's wish for a stream, and on a translated route as what it
//! was translated to, as a request in OpenAI's form of speech is (rule I8). The same request is prepared in the same way each time, so that its
//! retry has the same bytes (rule I6).

use std::cell::Cell;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE};
use pingora::http::RequestHeader;

use super::request::Request;
use crate::config::{AgentReceipts, ModelList, TranslatedStreams};
use crate::ledger::FingerprintParts;
use crate::ledger::fingerprint::Fingerprint;
use crate::protocol::body::{RequestPeek, replace_model, without_stream};
use crate::protocol::routes::BodyForm;
use crate::protocol::translate::audio::{AudioRequest, Offer, Unsent, speech, transcription};
use crate::protocol::translate::{Dropped, Untranslatable, models, translate};
use crate::protocol::{Dialect, Operation};
use crate::proxy::door::admit::{BODY_BYTES_MAX, form_type, slips};
use crate::proxy::door::buffer::RequestBody;
use crate::proxy::downstream::Downstream;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::relay::given::Given;
use crate::proxy::upstream::exchange::WHOLE_BYTES_MAX;
use crate::proxy::upstream::heads::HeadError;

/// The body as it is sent, and what was read of it.
pub struct Prepared {
    pub body: Bytes,
    /// Of the body in the service's form. `stream`: the app asked for one.
    pub peek: RequestPeek,
    /// The model that the app asked for, when it is not the interface's and no alias is set for it.
    pub foreign_model: Option<String>,
    /// What the app is given of the answer.
    pub given: Given,
    /// What a translation left out.
    pub dropped: Dropped,
    /// The app reads what an answer cost in its `usage`.
    pub shows_cost: bool,
    /// The app's request before it was translated, where it goes under the app's own key.
    pub asked: Option<Fingerprint>,
}

/// Largest turn that is made into a stream, or translated: the most that the interface names of any answer.
const REMADE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The same of speech, in base64: some ten minutes of plain samples.
/// Assumed: the interface names no largest answer of speech.
const SOUND_BYTES_MAX: usize = 48 * 1024 * 1024;

/// Reads what rules need from the body, and makes the edits that the config and the route ask for.
pub fn prepare(
    request: &Request<'_>,
    downstream: &Downstream,
    body: &mut RequestBody,
) -> Result<Prepared, Refusal> {
    let prepared = edited(request, downstream, body)?;
    if let Given::Translated(rendering) = &prepared.given {
        let gateway = request.gateway;
        let bytes = prepared.body.len().saturating_add(rendering.kept_bytes());
        let has_one_app = gateway.has_one_app();
        body.grows(bytes, &gateway.budget, has_one_app, &request.app.name)?;
    }
    // One copy is kept and covered by the budget: of an edited body the app's own goes.
    body.becomes(prepared.body.clone());
    Ok(prepared)
}

fn edited(
    request: &Request<'_>,
    downstream: &Downstream,
    body: &RequestBody,
) -> Result<Prepared, Refusal> {
    let route = &request.admitted.route;
    if let Some(audio) = audio(request, downstream, body) {
        return audio.map(of_audio);
    }
    if route.operation == Operation::Models {
        return Ok(Prepared {
            given: models(request, downstream),
            ..with_alias(request, body.bytes(), RequestPeek::default())
        });
    }
    let gateway = request.gateway;
    // A reference is short, and what it stands for may be long.
    let referred_bytes = Cell::new(0_u64);
    let earlier = |id: &str| {
        let items = gateway.given_earlier(&request.app, id)?;
        let bytes: usize = items.iter().map(|item| item.json().len()).sum();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        referred_bytes.update(|before| before.saturating_add(bytes));
        (referred_bytes.get() <= BODY_BYTES_MAX).then_some(items)
    };
    if let Some(translated) = translate(route.dialect(), body.bytes(), &earlier) {
        if referred_bytes.get() > BODY_BYTES_MAX {
            return Err(Code::BodyTooLarge.into());
        }
        let mut translated = translated.map_err(untranslatable)?;
        let has_own_key = request.admitted.own_key.is_some() && route.keyed;
        let asked = has_own_key.then(|| {
            gateway.ledger.fingerprint(&FingerprintParts {
                body: body.bytes(),
                ..request.admitted.without_body()
            })
        });
        if is_live(request) {
            translated.turn.goes_live(&mut translated.body);
        }
        let body = Bytes::from(translated.body);
        // What is referred to is sent as well.
        if u64::try_from(body.len()).is_ok_and(|bytes| bytes > BODY_BYTES_MAX) {
            return Err(Code::BodyTooLarge.into());
        }
        let peek = RequestPeek {
            stream: translated.wants_stream,
            ..RequestPeek::read(&body)
        };
        return Ok(Prepared {
            given: Given::Translated(translated.turn),
            dropped: translated.dropped,
            shows_cost: request.app.cost_in_usage.unwrap_or(true),
            asked,
            ..with_alias(request, &body, peek)
        });
    }
    let forms = [BodyForm::Json, BodyForm::JsonOrForm, BodyForm::Any];
    let reads = forms.contains(&route.body) && route.is_metered();
    let peek = if reads {
        body.peek()
    } else {
        RequestPeek::default()
    };
    slips::check_body(route, &peek, downstream)?;
    // A stream has its `usage` in a chunk of its own where the app asked for it.
    let has_usage = !peek.stream || peek.wants_usage;
    let is_chat = matches!(route.operation, Operation::Chat | Operation::AgentTurn);
    let prepared = Prepared {
        shows_cost: request.app.cost_in_usage == Some(true) && is_chat && has_usage,
        ..with_alias(request, body.bytes(), peek)
    };
    let whole = wants_price(request)
        .then(|| without_stream(&prepared.body))
        .flatten();
    Ok(match whole {
        Some(whole) => Prepared {
            body: Bytes::from(whole),
            given: Given::MadeStream,
            ..prepared
        },
        None => prepared,
    })
}

/// An agent turn is asked for whole, for the service names no amount of its streams.
fn wants_price(request: &Request<'_>) -> bool {
    let of_app = request.app.agent_receipts;
    let receipts = of_app.unwrap_or(request.settings.config.streams.agent_receipts);
    let is_turn = request.admitted.route.operation == Operation::AgentTurn;
    is_turn && receipts == AgentReceipts::Exact
}

/// A stream in another dialect is given while it comes.
fn is_live(request: &Request<'_>) -> bool {
    let of_app = request.app.translated;
    let streams = of_app.unwrap_or(request.settings.config.streams.translated);
    streams == TranslatedStreams::Live && !wants_price(request)
}

/// A request in OpenAI's form of speech. `None`: it is none.
fn audio(
    request: &Request<'_>,
    downstream: &Downstream,
    body: &RequestBody,
) -> Option<Result<AudioRequest, Refusal>> {
    let models = &request.settings.config.models;
    match request.admitted.route.operation {
        Operation::Transcription if models.translate => {
            let content_type = form_type(&downstream.head().headers)?;
            let bytes_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
            let heard = transcription(content_type, body.bytes().clone(), bytes_max);
            Some(heard.map_err(unsent))
        }
        Operation::Speech if models.translate => {
            let offer = Offer {
                voices: &models.voices,
                formats: &models.speech_formats,
            };
            Some(speech(body.bytes(), offer)?.map_err(untranslatable))
        }
        _ => None,
    }
}

fn of_audio(audio: AudioRequest) -> Prepared {
    Prepared {
        body: Bytes::from(audio.body),
        peek: RequestPeek {
            model: audio.model,
            ..RequestPeek::default()
        },
        foreign_model: None,
        given: Given::Audio(audio.turn),
        dropped: audio.dropped,
        shows_cost: false,
        asked: None,
    }
}

/// The list of models, as this app is given it.
fn models(request: &Request<'_>, downstream: &Downstream) -> Given {
    let admitted = request.admitted;
    let models = &request.settings.config.models;
    let aliases: Vec<_> = match models.list {
        ModelList::Service => Vec::new(),
        ModelList::Aliases => {
            let named = models.aliases.iter().filter(|(asked, _)| *asked != "*");
            named
                .map(|(asked, sent)| (asked.to_owned(), sent.to_owned()))
                .collect()
        }
    };
    let id = admitted.route.model_id(downstream.head().path());
    let dialect = downstream.dialect();
    if id.is_none() && aliases.is_empty() && dialect == Dialect::Chat {
        return Given::Served;
    }
    Given::Models(models::Asked {
        id,
        dialect,
        aliases,
    })
}

fn unsent(unsent: Unsent) -> Refusal {
    match unsent {
        Unsent::Untranslatable(found) => untranslatable(found),
        Unsent::TooLarge {
            file_bytes,
            file_bytes_max,
        } => slips::of_recording(Some(file_bytes), file_bytes_max),
    }
}

fn untranslatable(found: Untranslatable) -> Refusal {
    let Untranslatable { param, message } = found;
    Refusal::saying(Code::Untranslatable, message).about(param)
}

fn with_alias(request: &Request<'_>, body: &Bytes, peek: RequestPeek) -> Prepared {
    let aliases = &request.settings.config.models.aliases;
    let asked = peek
        .model
        .as_deref()
        .filter(|_| request.admitted.route.auto_model);
    let alias = asked.and_then(|model| aliases.target(model));
    let (body, foreign_model) = match (alias, peek.model_span.clone()) {
        (Some(alias), Some(span)) => (Bytes::from(replace_model(body, span, alias)), None),
        _ => {
            let foreign = asked.filter(|model| *model != "auto");
            (body.clone(), foreign.map(str::to_owned))
        }
    };
    Prepared {
        body,
        peek,
        foreign_model,
        given: Given::Served,
        dropped: Dropped::default(),
        shows_cost: false,
        asked: None,
    }
}

// === impl Prepared ===

impl Prepared {
    /// The head that goes with the body: a request for a whole turn does not take events alone.
    pub fn head(&self, mut head: RequestHeader) -> Result<RequestHeader, HeadError> {
        if let Some(accepted) = self.given.accepted() {
            head.insert_header(ACCEPT, HeaderValue::from_static(accepted))
                .map_err(|_| HeadError)?;
        }
        if matches!(self.given, Given::Audio(_)) {
            let json = HeaderValue::from_static("application/json");
            head.insert_header(CONTENT_TYPE, json)
                .map_err(|_| HeadError)?;
        }
        Ok(head)
    }

    /// How often an answer that is read whole stands in memory when it is given: as it came, and in what is made of it.
    pub fn whole_copies(&self) -> usize {
        self.given.copies()
    }

    /// An answer that is not a stream is read whole up to this size. One that is to become something else
    /// has to be.
    pub fn whole_bytes_max(&self) -> usize {
        match &self.given {
            Given::Audio(turn) if turn.is_sound() => SOUND_BYTES_MAX,
            given if given.is_remade() => REMADE_BYTES_MAX,
            _ => WHOLE_BYTES_MAX,
        }
    }
}
