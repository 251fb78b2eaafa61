//! The Responses dialect (`POST /v1/responses`): translated to one chat completion and back.
