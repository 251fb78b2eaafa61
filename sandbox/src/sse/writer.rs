//! Writes the events of a stream as a fault wants them.
//!
//! Promise: after a cut or a departure it only keeps the time, so that its work runs to the end; a cut never
//! loses what was written before it.

use super::FrameSender;
use crate::{
    clock::Clock,
    fault::{Fault, Holds},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};

pub struct EventWriter {
    fault: Fault,
    frames: Option<FrameSender>,
    events: u64,
    bytes: u64,
    aborted: bool,
    clock: Clock,
    holds: Arc<Holds>,
}

// === impl EventWriter ===

impl EventWriter {
    pub fn new(fault: Fault, frames: FrameSender, clock: Clock, holds: Arc<Holds>) -> Self {
        Self {
            fault,
            frames: Some(frames),
            events: 0,
            bytes: 0,
            aborted: false,
            clock,
            holds,
        }
    }

    /// One event: its lines, and the empty line that ends it. Each counts as a chunk for the faults.
    pub async fn event(&mut self, event: &[String]) {
        let pause_ms = match self.events {
            0 => self.fault.slow_first_chunk_ms,
            _ => self.fault.chunk_delay_ms,
        };
        if pause_ms > 0 {
            self.clock.sleep(Duration::from_millis(pause_ms)).await;
        }
        let mut lines: Vec<String> = self
            .fault
            .extra_comments
            .iter()
            .map(|text| format!(": {text}"))
            .collect();
        lines.extend_from_slice(event);
        lines.push(String::new());
        if self.fault.cut_after_chunks == Some(self.events) {
            self.cut().await;
        }
        self.lines(&lines).await;
        self.events += 1;
        if self.fault.hold_after_chunks == Some(self.events) {
            let name = self.fault.hold_chunks_name.clone().unwrap_or_default();
            self.holds.wait(&name).await;
        }
    }

    /// Whether a fault has cut the stream, or will before the end of this event.
    pub fn cuts(&self, event: &[String]) -> bool {
        let line_end = if self.fault.crlf { 2 } else { 1 };
        let comments = self.fault.extra_comments.iter().map(|text| text.len() + 2);
        let lines = comments.chain(event.iter().map(String::len)).chain([0]);
        let length = lines.map(|line| line + line_end).sum::<usize>() as u64;
        let all = self.bytes.saturating_add(length);
        let (chunks, bytes) = (self.fault.cut_after_chunks, self.fault.cut_after_bytes);
        chunks.is_some_and(|most| self.events >= most) || bytes.is_some_and(|most| all > most)
    }

    /// Ends the connection; later writes have no receiver.
    pub async fn cut(&mut self) {
        self.aborted = true;
        if let Some(frames) = self.frames.take() {
            frames.cut().await;
        }
    }

    /// Whether the client received less than was written. It may have left without a failed write.
    pub fn aborted(&mut self) -> bool {
        if self.frames.as_ref().is_some_and(FrameSender::is_closed) {
            self.frames = None;
            self.aborted = true;
        }
        self.aborted
    }

    /// Writes lines, each with its line end, as one frame that is no chunk for the faults.
    pub async fn lines(&mut self, lines: &[String]) {
        let end = if self.fault.crlf { "\r\n" } else { "\n" };
        let mut text: String = lines.iter().flat_map(|line| [line.as_str(), end]).collect();
        let left = self
            .fault
            .cut_after_bytes
            .map(|most| usize::try_from(most.saturating_sub(self.bytes)).unwrap_or(usize::MAX));
        let cut_at = left.filter(|left| text.len() >= *left);
        if let Some(at) = cut_at {
            text.truncate(text.floor_char_boundary(at));
        }
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if let Some(frames) = &self.frames
            && !text.is_empty()
            && !frames.send(Bytes::from(text)).await
        {
            self.frames = None;
            self.aborted = true;
        }
        if cut_at.is_some() {
            self.cut().await;
        }
    }
}
