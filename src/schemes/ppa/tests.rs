//! What a core's handler does, event by event.
