//! A checkpoint as a file.
//!
//! ```text
//!   "durawarp checkpoint 1\n" | length of the head: u32 | head: JSON | state: zlib | BLAKE3 of all that
//! ```
//! The head has the keys of the recipe, so that the same experiment can be built again, and a hash of what
//! that came to: files that a recipe names may have changed since. Numbers are little-endian. Invariant: what
//! is read is what was written, by the same sources of the simulator; all else is an error.

use std::io::{self, Read as _, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use super::Checkpoint;
use crate::run::recipe::Recipe;

/// How every file begins; the last word is the version of the format.
const MAGIC: &[u8] = b"durawarp checkpoint 1\n";

/// The part of it that every version has.
const KIND: &[u8] = b"durawarp checkpoint ";

const CHECKSUM_BYTES: usize = blake3::OUT_LEN;

/// A hash of the simulator's sources: the state fits them and no others.
const SOURCES: &str = env!("DURAWARP_SOURCES");

/// What a file says before the state.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: String,
    sources: String,
    /// As [`Recipe::keys`].
    keys: Vec<(String, String)>,
    persistent: bool,
    /// Arguments of a program of CPUs beside those of its manifest.
    args: Vec<String>,
    cycle: u64,
    line_writes: bool,
    experiment: String,
    state_bytes: usize,
}

impl Checkpoint {
    /// Writes it with the recipe of its experiment.
    ///
    /// # Errors
    /// Those of `out`; parts of the recipe are given as values and have no names.
    pub fn write(&self, recipe: &Recipe, out: &mut dyn Write) -> io::Result<()> {
        let keys = recipe.keys();
        if let Some((key, _)) = keys.iter().find(|(_, value)| value == "...") {
            return Err(io::Error::other(format!("the {key} is given as a value and has no name")));
        }
        let head = Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sources: SOURCES.to_owned(),
            keys,
            persistent: recipe.choice.persistent,
            args: recipe.choice.args.clone(),
            cycle: self.cycle,
            line_writes: self.line_writes,
            experiment: self.experiment.clone(),
            state_bytes: self.state.len(),
        };
        let head = serde_json::to_vec(&head)?;
        let mut bytes = [MAGIC, &(head.len() as u32).to_le_bytes(), &head].concat();
        let mut packed = ZlibEncoder::new(&mut bytes, Compression::fast());
        packed.write_all(&self.state)?;
        packed.finish()?;
        out.write_all(&bytes)?;
        out.write_all(blake3::hash(&bytes).as_bytes())
    }

    /// Reads a file: the recipe of its experiment, and the checkpoint.
    ///
    /// # Errors
    /// In a sentence: it is no checkpoint, damaged, or of other sources of the simulator.
    pub fn read(bytes: &[u8]) -> Result<(Recipe, Checkpoint), String> {
        if !bytes.starts_with(KIND) {
            return Err("is no checkpoint of durawarp".to_owned());
        }
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err("is a checkpoint in a format of another version of durawarp".to_owned());
        };
        let damaged = |what: &str| format!("is damaged: {what}");
        // The checksum comes first: what a damaged file says of itself means nothing.
        let body_bytes = bytes.len().checked_sub(CHECKSUM_BYTES).filter(|length| *length >= MAGIC.len());
        let (body, checksum) = bytes.split_at(body_bytes.ok_or_else(|| damaged("it is cut short"))?);
        if blake3::hash(body).as_bytes() != checksum {
            return Err(damaged("its checksum is that of other bytes"));
        }
        let rest = &rest[..rest.len() - CHECKSUM_BYTES];
        let (length, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it has no head"))?;
        let (head, state) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(|| damaged("it has no head"))?;
        let head: Head = serde_json::from_slice(head).map_err(|fault| damaged(&fault.to_string()))?;
        if head.sources != SOURCES {
            let version = &head.version;
            return Err(format!(
                "was written by another build of durawarp ({version}): it fits the build that wrote it"
            ));
        }
        let mut unpacked = Vec::new();
        let most = (head.state_bytes as u64).saturating_add(1);
        let read = ZlibDecoder::new(state).take(most).read_to_end(&mut unpacked);
        read.map_err(|fault| damaged(&fault.to_string()))?;
        if unpacked.len() != head.state_bytes {
            return Err(damaged("its state has another length"));
        }
        let empty = Recipe::of("").persistent(head.persistent).args(head.args);
        let recipe = head.keys.iter().fold(empty, |recipe, (key, value)| recipe.set(key, value));
        let Head { cycle, line_writes, experiment, .. } = head;
        Ok((recipe, Checkpoint { cycle, line_writes, experiment, state: Arc::new(unpacked) }))
    }
}
