//! Frames of zstd with a dictionary that many of them share, each decoded by itself.
//!
//! Source: RFC 8878, by the crate `ruzstd`. What a frame may take is bounded before it is decoded: its
//! window, and the text that comes of it. Checksums of frames are not compared: Accel-Sim writes none.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, Dictionary, FrameDecoder};

/// Most bytes of a window: what zstd itself accepts (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`, 27).
const WINDOW_BYTES: u64 = 1 << 27;

/// Bytes that are decoded before it is looked how many there are.
const STEP_BYTES: usize = 1 << 20;

/// The first bytes of a dictionary.
const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// Decodes frames.
pub(crate) struct FrameReader {
    decoder: FrameDecoder,
    dictionary: Option<u32>,
}

impl FrameReader {
    /// With a dictionary, or without one where it has no bytes.
    ///
    /// # Errors
    /// The dictionary is none of zstd's.
    pub(crate) fn new(dictionary: &[u8]) -> Result<FrameReader, String> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES);
        if dictionary.is_empty() {
            return Ok(FrameReader { decoder, dictionary: None });
        }
        if !dictionary.starts_with(&MAGIC) {
            return Err("it does not begin as a dictionary of zstd does".to_owned());
        }
        let read = Dictionary::decode_dict(dictionary).map_err(|error| format!("it is broken: {error}"))?;
        let id = read.id;
        decoder.add_dict(read).map_err(|error| format!("it is broken: {error}"))?;
        Ok(FrameReader { decoder, dictionary: Some(id) })
    }

    /// The text of a frame, of `most` bytes.
    ///
    /// # Errors
    /// The bytes are not one frame, need another dictionary, or come to more text.
    pub(crate) fn text(&mut self, frame: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let broken = |error: &dyn std::fmt::Display| format!("it is no frame of zstd: {error}");
        let mut source = frame;
        self.decoder.reset(&mut source).map_err(|error| broken(&error))?;
        // The two lowest bits of the frame's fifth byte say how long the number of its dictionary is.
        let names_none = frame.get(4).is_some_and(|descriptor| descriptor & 3 == 0);
        if let (Some(id), true) = (self.dictionary, names_none) {
            self.decoder.force_dict(id).map_err(|error| broken(&error))?;
        }
        let mut text = Vec::new();
        let mut finished = false;
        while !finished {
            let step = BlockDecodingStrategy::UptoBytes(STEP_BYTES);
            finished = self.decoder.decode_blocks(&mut source, step).map_err(|error| broken(&error))?;
            self.decoder
                .by_ref()
                .take((most - text.len()) as u64 + 1)
                .read_to_end(&mut text)
                .map_err(|error| broken(&error))?;
            if text.len() > most {
                return Err(format!("it has over {most} bytes of text"));
            }
        }
        if !source.is_empty() {
            return Err(format!("{} bytes are after its end", source.len()));
        }
        Ok(text)
    }
}
