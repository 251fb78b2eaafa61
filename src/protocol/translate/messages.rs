//! The Messages dialect (`POST /v1/messages`): translated to one chat completion and back.
