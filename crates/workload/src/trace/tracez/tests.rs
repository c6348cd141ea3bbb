//! Packed files against their text, and against every kind of damage.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::faults::TraceFaults;
use super::super::header::TraceHeader;
use super::super::labels::Labels;
use super::super::layout::TraceLayout;
use super::super::source::CtaFile;
use super::super::survey::KernelSurvey;
use super::*;
use durawarp_kernel::traced::{CtaSource as _, WarpTrace};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/packed")).join(name)
}

/// Surveys bytes as a packed file, which lasts as long as its folder; what is wrong with them, without its folder.
fn surveyed(bytes: &[u8]) -> Result<(TempDir, KernelSurvey), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.tracez");
    std::fs::write(&path, bytes).unwrap();
    match KernelSurvey::of(&path, &Labels::default()) {
        Ok(survey) => Ok((folder, survey)),
        Err(faults) => Err(faults.to_string().replace(&format!("{}/", folder.path().display()), "")),
    }
}

/// What every CTA executes, asked for in this order.
fn executed(survey: KernelSurvey, order: impl Fn(u64) -> Vec<u64>) -> Vec<Vec<WarpTrace>> {
    let labels = Arc::new(Labels::default());
    let layout = Arc::new(TraceLayout::new(&survey.touched, &labels, false).unwrap());
    let source = CtaFile::new(Arc::new(survey), labels, layout);
    let mut warps: Vec<_> = order(source.ctas()).into_iter().map(|cta| (cta, source.warps(cta).unwrap())).collect();
    warps.sort_by_key(|(cta, _)| *cta);
    warps.into_iter().map(|(_, warps)| warps).collect()
}

/// Where in a file numbers and parts are.
struct PackedParts {
    sizes: usize,
    dictionary: usize,
    first_warp: usize,
    index: usize,
}

fn parts(bytes: &[u8]) -> PackedParts {
    let sizes = bytes.iter().position(|&byte| byte == 0).unwrap() + 1;
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let index = number(bytes.len() - 8);
    PackedParts { sizes, dictionary: sizes + 8, first_warp: sizes + 8 + number(sizes), index }
}

/// What is told of a file with some bytes replaced.
fn told(bytes: &[u8], at: usize, by: &[u8]) -> String {
    let mut changed = bytes.to_vec();
    changed[at..at + by.len()].copy_from_slice(by);
    surveyed(&changed).map(drop).expect_err("it is damaged")
}

#[test]
fn a_packed_file_is_what_its_text_is_in_any_order_of_ctas() {
    for name in ["kernel-1", "kernel-2"] {
        let labels = Labels::default();
        let of = |end: &str| KernelSurvey::of(&fixture(&format!("{name}.{end}")), &labels).unwrap();
        let (packed, text) = (of("tracez"), of("traceg.xz"));
        assert_eq!((&packed.header, &packed.ctas, &packed.code), (&text.header, &text.ctas, &text.code));
        assert_eq!(
            (packed.instructions, packed.added.empty, 1),
            (text.instructions, text.added.empty, text.added.empty)
        );
        assert!(packed.touched == text.touched && packed.kernel.hazards == text.kernel.hazards);
        let expected = executed(text, |ctas| (0..ctas).collect());
        assert_eq!(executed(packed, |ctas| (0..ctas).rev().collect()), expected);
    }
}

#[test]
fn a_wrong_line_has_the_number_that_it_has_when_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel-1.traceg.xz");
    std::fs::copy(fixture("kernel-1.traceg.xz"), &path).unwrap();
    let mut text = TraceLines::open(&path).unwrap();
    let mut packed = PackedTrace::open(&fixture("kernel-1.tracez")).unwrap();
    let mut ours = (0..packed.ctas.len() as u64).flat_map(|cta| {
        let cta = packed.cta(cta).unwrap().unwrap();
        cta.lines().map(|(number, line)| (number, line.to_vec())).collect::<Vec<_>>()
    });
    let mut compared = 0;
    while let Some((number, line)) = text.next().unwrap() {
        if line.starts_with(b"-") || line.starts_with(b"#") {
            continue;
        }
        assert_eq!(ours.next(), Some((number, line.to_vec())));
        compared += 1;
    }
    assert!(ours.next().is_none() && compared > 300, "{compared}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    let bytes = std::fs::read(fixture("kernel-1.tracez")).unwrap();
    let PackedParts { sizes, dictionary, first_warp, index } = parts(&bytes);
    let far = u64::MAX.to_le_bytes();
    let huge = u32::MAX.to_le_bytes();
    for (fault, expected) in [
        (told(&bytes, sizes, &huge), format!("its dictionary of 4294967295 bytes, which begins at byte {dictionary}")),
        (told(&bytes, dictionary, b"x"), format!("its dictionary at byte {dictionary}: it does not begin as a")),
        (told(&bytes, dictionary + 8, &[0xff; 40]), format!("its dictionary at byte {dictionary}: it is broken")),
        (told(&bytes, dictionary + 4, &[1]), "it is no frame of zstd".to_owned()),
        (
            told(&bytes, bytes.len() - 8, &far),
            "its last 8 bytes say that the index is at byte 18446744073709".to_owned(),
        ),
        (told(&bytes, index, &huge), "within CTA 4".to_owned()),
        (told(&bytes, index, &[3, 0, 0, 0]), "its index has 3 CTAs, and ".to_owned()),
        (told(&bytes, index + 44, &huge), "warp 4 of CTA 0: it is at byte 0, and warps are".to_owned()),
        (told(&bytes, index + 48, &[1]), "warp 0 of CTA 0: it has 1 instructions, and its frames 26".to_owned()),
        (
            told(&bytes, index + 56, &far),
            format!("it is at byte {}, and warps are at {first_warp} to {index}", u64::MAX),
        ),
        (told(&bytes, index + 56, &[first_warp as u8 + 1]), format!("warp 0 of CTA 0,0,0 at byte {}", first_warp + 1)),
        (told(&bytes, first_warp, &[9]), "there are 9 instructions in 2 frames, and its index says 26".to_owned()),
        (told(&bytes, first_warp + 8, &huge), "go beyond the index".to_owned()),
        (told(&bytes, first_warp + 12, &[0]), format!("at byte {}: it is no frame of zstd", first_warp + 12)),
        (
            told(&bytes, index + 4, &[9]),
            "k.tracez:19:1: expected `thread block = X,Y,Z` within the grid (5,1,1)".to_owned(),
        ),
    ] {
        assert!(fault.starts_with("k.tracez:") && fault.contains(&expected), "{expected}: {fault}");
    }
    let ends = |length: usize| surveyed(&bytes[..length]).map(drop).unwrap_err();
    assert!(ends(sizes - 1).contains("have no NUL, which ends the text of the header"));
    assert!(ends(sizes + 3).contains("it ends within the sizes after its header"));
    assert!(ends(dictionary + 3).contains("it ends within its dictionary"));
    assert!(ends(bytes.len() - 1).contains("its last 8 bytes say"));
}

#[test]
fn a_damaged_file_is_read_or_refused_and_never_a_panic() {
    // A short file at every byte, a long one at some of each part.
    for (name, step) in [("kernel-2.tracez", 1), ("kernel-1.tracez", 307)] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        for at in (0..bytes.len()).step_by(step) {
            assert!(surveyed(&bytes[..at]).is_err(), "{name} cut at byte {at}");
            let mut changed = bytes.clone();
            for bit in [0, 3, 7] {
                changed[at] = bytes[at] ^ 1 << bit;
                // Not every bit matters, such as those of cluster numbers. What is read must also run.
                if let Ok((_folder, survey)) = surveyed(&changed) {
                    executed(survey, |ctas| (0..ctas).collect());
                }
            }
        }
    }
}

#[test]
fn a_frame_of_more_text_than_a_cta_may_have_is_refused_before_it_is_all_there() {
    // A block of one byte, 128 KiB times: a text of zeros behind a header without a size.
    let block = |last: u32| ((128 << 10) << 3 | 1 << 1 | last).to_le_bytes()[..3].to_vec();
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x38][..], &block(0), b"x", &block(1), b"x"].concat();
    let mut frames = FrameReader::new(&[]).unwrap();
    assert_eq!(frames.text(&frame, 256 << 10).map(|text| text.len()), Ok(256 << 10));
    assert_eq!(frames.text(&frame, (256 << 10) - 1), Err("it has over 262143 bytes of text".to_owned()));
    assert_eq!(frames.text(&[&frame[..], b"1"].concat(), 256 << 10), Err("1 bytes are after its end".to_owned()));
    let window = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8][..], &block(1), b"x"].concat();
    assert!(frames.text(&window, 256 << 10).unwrap_err().contains("no frame of zstd"), "a window of 2 TiB");
}

#[test]
fn no_fault_is_pushed_for_a_header_without_a_line_of_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.tracez");
    let bytes = std::fs::read(fixture("kernel-2.tracez")).unwrap();
    let at = bytes.windows(8).position(|part| part == b"#traces ").unwrap();
    let mut changed = bytes.clone();
    // A key that is not known, in place of the line that ends the header of a text.
    changed[at..at + 8].copy_from_slice(b"-traces ");
    std::fs::write(&path, changed).unwrap();
    let mut faults = TraceFaults::new("k.tracez");
    TraceHeader::read(&mut PackedTrace::open(&path).unwrap().header(), &mut faults, &Labels::default());
    assert!(faults.is_empty(), "{:?}", faults.first());
}
