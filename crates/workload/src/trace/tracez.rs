//! A kernel's file as Accel-Sim 2.0 packs it (`.tracez`): the text of each warp in frames of zstd, behind
//! them an index of CTAs.
//!
//! ```text
//!   header, as text                          ends with NUL
//!   u32 bytes of the dictionary, u32 instructions of a frame (of which nothing depends)
//!   dictionary of zstd
//!   of each warp: u32 instructions, u32 frames, then of each frame: u32 bytes, frame
//!   index: u32 CTAs
//!     of each CTA: u32 id x y z, cluster x y z, place in the cluster x y z, rank, u32 warps
//!       of each warp: u32 instructions, u32 frames, u64 its place in the file, u32 instructions of each frame
//!   u64 place of the index                   the last 8 bytes
//! ```
//! All numbers are little-endian. A frame holds lines of instructions with an end of line between two of
//! them. Source: accel-sim-framework (2.0), `tracez_format.h`, its writer `post-traces-processing.cpp` and
//! its reader `warp_trace_stream.h`.
//!
//! CTAs are read one by one, in any order; in memory are the index and one CTA. Lines have the numbers of the
//! `.traceg` that Accel-Sim's `traceDsm` writes of the file. A dictionary without the magic number of zstd,
//! which the writer never makes, is refused.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::cta::CtaText;
use super::frames::FrameReader;
use super::lines::{TraceLines, regular};

/// Most bytes of a header's text; those of the tracer have less than 1 KB. Chosen.
const HEADER_BYTES: u64 = 1 << 20;

/// Numbers of a CTA in the index before those of its warps.
const CTA_WORDS: usize = 11;

/// Lines that `traceDsm` writes of a CTA before its first warp, before the instructions of a warp, and after
/// the last warp.
const CTA_LINES: u64 = 7;
const WARP_LINES: u64 = 3;
const END_LINES: u64 = 2;

/// A packed file, ready to be read.
pub(crate) struct PackedTrace {
    file: File,
    /// The first byte of the index, where the text of warps ends.
    data_end: u64,
    header: Vec<u8>,
    frames: FrameReader,
    /// As it is in the file, and of each CTA: where in it, and how many lines are before.
    index: Vec<u8>,
    ctas: Vec<(usize, u64)>,
}

impl std::fmt::Debug for PackedTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedTrace").field("ctas", &self.ctas.len()).finish_non_exhaustive()
    }
}

/// What is wrong with the content of a file.
fn wrong(message: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message)
}

/// The numbers of an index.
struct IndexBytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl IndexBytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let found = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*found)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// A warp in the index.
struct PackedWarp {
    instructions: u32,
    frames: u32,
    place: u64,
    /// Instructions of each frame.
    counts: Vec<u32>,
}

/// The next warp of an index; none where it ends.
fn warp(words: &mut IndexBytes<'_>) -> Option<PackedWarp> {
    let (instructions, frames, place) = (words.u32()?, words.u32()?, words.u64()?);
    // No more is set aside than the index has.
    if words.bytes.len() - words.at < (frames as usize).checked_mul(4)? {
        return None;
    }
    let counts = (0..frames).map(|_| words.u32()).collect::<Option<_>>()?;
    Some(PackedWarp { instructions, frames, place, counts })
}

impl PackedTrace {
    /// The file is packed, by its name.
    pub(crate) fn is_packed(path: &Path) -> bool {
        path.extension().is_some_and(|end| end == "tracez")
    }

    /// Opens a file, and reads all of it but the text of its warps.
    ///
    /// # Errors
    /// It cannot be read, or its parts do not fit together.
    pub(crate) fn open(path: &Path) -> io::Result<PackedTrace> {
        let mut file = regular(path)?;
        let length = file.metadata()?.len();
        let mut header = Vec::new();
        BufReader::new(&file).take(HEADER_BYTES).read_until(0, &mut header)?;
        if header.pop() != Some(0) {
            let most = length.min(HEADER_BYTES);
            return Err(wrong(format!("its first {most} bytes have no NUL, which ends the text of the header")));
        }
        // What comes first says where the rest may be: a file that is cut short is found out part by part.
        let sizes = header.len() as u64 + 1;
        let cut =
            |what: &str, at: u64| wrong(format!("it ends within {what}, which begins at byte {at}: it is cut short"));
        let mut start = [0; 8];
        file.seek(SeekFrom::Start(sizes))?;
        file.read_exact(&mut start).map_err(|_| cut("the sizes after its header", sizes))?;
        let dictionary_bytes = u64::from(u32::from_le_bytes([start[0], start[1], start[2], start[3]]));
        let data = sizes + 8 + dictionary_bytes;
        if data + 8 > length {
            return Err(cut(&format!("its dictionary of {dictionary_bytes} bytes"), sizes + 8));
        }
        let mut dictionary = vec![0; dictionary_bytes as usize];
        file.read_exact(&mut dictionary)?;
        let frames = FrameReader::new(&dictionary)
            .map_err(|why| wrong(format!("its dictionary at byte {}: {why}", sizes + 8)))?;
        // The index is found from the end, and lies between the dictionary and the last 8 bytes.
        let mut last = [0; 8];
        file.seek(SeekFrom::Start(length - 8))?;
        file.read_exact(&mut last)?;
        let data_end = u64::from_le_bytes(last);
        if data_end < data || data_end > length - 8 {
            let message = format!(
                "its last 8 bytes say that the index is at byte {data_end}, and it can be at {data} to {}: it is cut \
                 short, or not packed by Accel-Sim",
                length - 8
            );
            return Err(wrong(message));
        }
        let mut index = vec![0; (length - 8 - data_end) as usize];
        file.seek(SeekFrom::Start(data_end))?;
        file.read_exact(&mut index)?;
        let header_lines = header.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let ctas = Self::ctas_of(&index, data..data_end, header_lines).map_err(wrong)?;
        Ok(PackedTrace { file, data_end, header, frames, index, ctas })
    }

    /// Where each CTA is in an index, and the number of lines before it. Warps are at places of `data`.
    fn ctas_of(index: &[u8], data: std::ops::Range<u64>, mut lines: u64) -> Result<Vec<(usize, u64)>, String> {
        let mut words = IndexBytes { bytes: index, at: 0 };
        let ends = |at: usize, cta: u32| format!("its index ends at byte {}, within CTA {cta}", data.end + at as u64);
        let count = words.u32().ok_or_else(|| ends(0, 0))?;
        let mut ctas = Vec::new();
        for cta in 0..count {
            ctas.push((words.at, lines));
            // Of a CTA's numbers the last says how many warps follow.
            let head: Option<Vec<u32>> = (0..CTA_WORDS).map(|_| words.u32()).collect();
            let warps = head.ok_or_else(|| ends(index.len(), cta))?[CTA_WORDS - 1];
            lines = lines.saturating_add(CTA_LINES + END_LINES);
            for number in 0..warps {
                let at = data.end + words.at as u64;
                let warp = warp(&mut words).ok_or_else(|| ends(index.len(), cta))?;
                let place = |what: String| format!("its index at byte {at}, warp {number} of CTA {cta}: {what}");
                if !data.contains(&warp.place) {
                    let (first, last) = (data.start, data.end);
                    return Err(place(format!("it is at byte {}, and warps are at {first} to {last}", warp.place)));
                }
                let sum: u64 = warp.counts.iter().map(|&count| u64::from(count)).sum();
                if sum != u64::from(warp.instructions) {
                    return Err(place(format!("it has {} instructions, and its frames {sum}", warp.instructions)));
                }
                lines = lines.saturating_add(WARP_LINES + sum);
            }
        }
        match index.len() - words.at {
            0 => Ok(ctas),
            more => Err(format!("its index has {count} CTAs, and {more} bytes after them")),
        }
    }

    /// The text of the header, which needs no `#` to end it.
    pub(crate) fn header(&self) -> TraceLines {
        TraceLines::of_text([&self.header[..], b"\n#\n"].concat())
    }

    /// The text of a CTA as an unpacked file has it; none beyond the last.
    ///
    /// # Errors
    /// The file cannot be read, or a frame is broken.
    pub(crate) fn cta(&mut self, cta: u64) -> io::Result<Option<CtaText>> {
        let Some(&(at, before)) = self.ctas.get(cta as usize) else { return Ok(None) };
        // The index was read whole when the file was opened.
        let mut words = IndexBytes { bytes: &self.index, at };
        let head: Vec<u32> = (0..CTA_WORDS).filter_map(|_| words.u32()).collect();
        let [x, y, z] = [head[0], head[1], head[2]];
        let index = |at: usize| format!("{},{},{}", head[at], head[at + 1], head[at + 2]);
        let in_cluster = [
            format!("cluster id = {}", index(3)),
            format!("cluster cta = {}", index(6)),
            format!("cluster rank = {}", head[9]),
        ];
        let warps: Vec<PackedWarp> = (0..head[CTA_WORDS - 1]).filter_map(|_| warp(&mut words)).collect();
        let mut text = CtaText::default();
        // Blank lines are numbered and not there.
        let mut number = before + 4;
        let line_of = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        text.push(line_of(number), format!("thread block = {x},{y},{z}").as_bytes());
        for line in in_cluster {
            number += 1;
            text.push(line_of(number), line.as_bytes());
        }
        number = before + CTA_LINES;
        for (at, warp) in warps.iter().enumerate() {
            text.push(line_of(number + 2), format!("warp = {at}").as_bytes());
            text.push(line_of(number + 3), format!("insts = {}", warp.instructions).as_bytes());
            number += WARP_LINES;
            let placed = |error: io::Error| {
                let of = format!("warp {at} of CTA {x},{y},{z} at byte {}", warp.place);
                io::Error::new(error.kind(), format!("{of}: {error}"))
            };
            let mut place = warp.place;
            let says = [self.word(&mut place).map_err(placed)?, self.word(&mut place).map_err(placed)?];
            if says != [warp.instructions, warp.frames] {
                let [of_file, of_index] = [says, [warp.instructions, warp.frames]]
                    .map(|[instructions, frames]| format!("{instructions} instructions in {frames} frames"));
                return Err(placed(wrong(format!("there are {of_file}, and its index says {of_index}"))));
            }
            for &count in &warp.counts {
                let bytes = self.word(&mut place).map_err(placed)?;
                let frame = self.bytes(place, bytes).map_err(placed)?;
                let most = text.bytes_left();
                let lines = self.frames.text(&frame, most);
                let lines =
                    lines.map_err(|why| placed(wrong(format!("the frame of {bytes} bytes at byte {place}: {why}"))))?;
                place += u64::from(bytes);
                let mut seen = 0;
                for line in lines.split_inclusive(|&byte| byte == b'\n') {
                    seen += 1;
                    number += 1;
                    text.push(line_of(number), line.trim_ascii_end());
                }
                if seen != count {
                    return Err(placed(wrong(format!("the frame has {seen} lines, and its index says {count}"))));
                }
            }
        }
        Ok(Some(text))
    }

    /// The number at a place of the file's data, after which the place is.
    fn word(&mut self, place: &mut u64) -> io::Result<u32> {
        let bytes = self.bytes(*place, 4)?;
        *place += 4;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Bytes at a place of the file's data.
    fn bytes(&mut self, place: u64, count: u32) -> io::Result<Vec<u8>> {
        if self.data_end.saturating_sub(place) < u64::from(count) {
            let message = format!("{count} bytes at byte {place} go beyond the index at byte {}", self.data_end);
            return Err(wrong(message));
        }
        let mut bytes = vec![0; count as usize];
        self.file.seek(SeekFrom::Start(place))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
