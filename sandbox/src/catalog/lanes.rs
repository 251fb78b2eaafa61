//! What the service can do besides the tasks it scores, and what it cannot do at all.
//!
//! Interface, Task match result: `capability` has the "keys id, label, category, category_id, desc". Which
//! lanes there are is not shown. Assumed (capabilities): these, one per kind of route or router category.
//! Promise: every capability is a route or category that this service really has.

use serde::Serialize;

/// A lane that serves a request though no task scores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    pub id: &'static str,
    pub label: &'static str,
    pub category: &'static str,
    pub category_id: &'static str,
    pub desc: &'static str,
    /// Other words for it; read by the matcher alone.
    #[serde(skip)]
    pub words: &'static [&'static str],
}

/// Something no lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    pub label: &'static str,
    pub words: &'static [&'static str],
}

#[rustfmt::skip]
const CAPABILITIES: &[Capability] = &[
    Capability { id: "general-chat", label: "General chat", category: "Text", category_id: "text",
        desc: "Conversation, ideas, advice and free writing.",
        words: &["chat with me", "brainstorm names", "conversational assistant", "small talk", "give me advice", "write a letter", "poem", "story", "explain a subject", "general knowledge", "slogan", "creative writing", "ideas"] },
    Capability { id: "coding", label: "Coding", category: "Text", category_id: "text",
        desc: "Writing, fixing and explaining program code in any language.",
        words: &["refactor code", "fix a bug", "explain code", "code review", "code base", "debug a program", "typescript", "javascript", "rust", "java", "shell script", "compile error", "regular expression"] },
    Capability { id: "extraction", label: "Structured extraction", category: "Text", category_id: "text",
        desc: "Answers as JSON in a schema of the caller's own.",
        words: &["extract fields as json", "json schema", "structured output", "parse text into records"] },
    Capability { id: "summarization", label: "Summarization", category: "Text", category_id: "text",
        desc: "Shortening texts of any kind.",
        words: &["summarize a text", "shorten", "condense", "key points of a report", "book summary"] },
    Capability { id: "vision", label: "Vision", category: "Images", category_id: "images",
        desc: "Saying what a picture shows.",
        words: &["describe a photo", "describe an image", "caption images", "what is in this picture", "image description", "alt text", "blind users", "recognize objects", "screenshot"] },
    Capability { id: "agent", label: "Agent turns", category: "Agents", category_id: "agents",
        desc: "Tool loops over many turns with function calling.",
        words: &["agent", "calls tools", "tool loop", "function calling", "many turns", "autonomous workflow", "tool use"] },
    Capability { id: "embeddings", label: "Embeddings", category: "Search", category_id: "search",
        desc: "Vectors of texts, near each other when the texts mean the same.",
        words: &["embed sentences", "vectors", "vector representations", "semantic similarity", "clustering", "nearest neighbours", "deduplicate texts"] },
    Capability { id: "rerank", label: "Rerank", category: "Search", category_id: "search",
        desc: "Putting documents in order for a query at serving time.",
        words: &["rerank endpoint", "rerank api", "cross encoder"] },
    Capability { id: "image-generation", label: "Image generation", category: "Images", category_id: "images",
        desc: "Pictures made from a text.",
        words: &["create an image", "generate pictures", "generate an image", "text to image", "draw", "illustration", "logo design", "poster artwork", "paint"] },
    Capability { id: "image-editing", label: "Image editing", category: "Images", category_id: "images",
        desc: "Changing a picture that is given.",
        words: &["edit a photo", "remove the background", "retouch pictures", "inpaint", "masked part", "upscale an image", "crop", "colorize"] },
    Capability { id: "speech-synthesis", label: "Speech synthesis", category: "Speech", category_id: "speech",
        desc: "A text read by a voice.",
        words: &["text to speech", "read text aloud", "natural voice", "audiobook", "voice over", "narrate as audio", "spoken version", "voice for an app", "speak", "announcement"] },
];

#[rustfmt::skip]
const BEYOND: &[Beyond] = &[
    Beyond { label: "video generation", words: &["generate a video", "video clip", "animate", "animation", "film", "movie", "video editing", "footage", "deepfake"] },
    Beyond { label: "payments", words: &["take payments", "credit card payments", "charge a card", "transfer money", "bank account", "wire money", "checkout", "payout", "payroll", "invest money"] },
    Beyond { label: "music", words: &["compose a song", "music", "pop song", "drums and vocals", "melody", "background music", "beats", "sing", "soundtrack"] },
    Beyond { label: "training models", words: &["fine-tune a model", "finetune", "fine-tuning llama", "model weights", "train a model", "train a neural network", "own training data", "lora", "pretraining"] },
    Beyond { label: "bookings and purchases", words: &["book a flight", "book a hotel", "reserve a table", "buy tickets", "order food", "rent a car", "make an appointment"] },
    Beyond { label: "sending messages", words: &["send emails", "send a message", "newsletter to subscribers", "post on social media", "sms", "make a phone call", "call customers", "mailing"] },
    Beyond { label: "3D models", words: &["3d model", "cad", "mesh", "3d printing", "sculpt", "render a scene"] },
    Beyond { label: "live facts from the web", words: &["live prices", "stock prices right now", "current weather", "browse the web", "crawl websites", "scrape pages", "today's scores", "real time traffic"] },
    Beyond { label: "rented machines", words: &["rent gpu servers", "gpu by the hour", "virtual machine", "host a website", "web hosting", "database hosting", "deploy a container", "storage bucket"] },
    Beyond { label: "robots and devices", words: &["control a robot", "drone", "drive a car", "smart home", "unlock the door", "turn on the lights"] },
];

pub fn capabilities() -> &'static [Capability] {
    CAPABILITIES
}

pub fn beyond() -> &'static [Beyond] {
    BEYOND
}

pub fn capability(id: &str) -> Option<&'static Capability> {
    CAPABILITIES.iter().find(|one| one.id == id)
}
