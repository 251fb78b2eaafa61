//! The parts of the service beside chat: what they cost and what they did, through bursar, on the
//! sandbox's real routes.

mod comparison;
mod every_operation;
mod flows;
mod openai_audio;
mod runs;
mod runs_kept;
mod speech;
mod stage;
