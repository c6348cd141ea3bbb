//! Files that a process wrote, in an outcome: how long, which, and small ones whole.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use durawarp_riscv::syscalls::File;

/// The longest content that stands in an outcome, and the most of all together, in order of paths.
const CONTENT_MAX_BYTES: usize = 64 << 10;
const ALL_MAX_BYTES: usize = 1 << 20;

/// A file that the process made or changed, as it left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOutcome {
    /// Its path, as the process named it.
    pub path: String,
    pub bytes: u64,
    /// BLAKE3 of its content, in hexadecimal.
    pub blake3: String,
    /// Its content, where that is short and UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its content, where that is short and no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl FileOutcome {
    /// What an outcome has of these files.
    pub(crate) fn of_all(files: &[File]) -> Vec<FileOutcome> {
        let mut left = ALL_MAX_BYTES;
        let of = |file: &File| {
            let content = file.content.as_slice();
            let whole = content.len() <= CONTENT_MAX_BYTES.min(left);
            left -= if whole { content.len() } else { 0 };
            let text = std::str::from_utf8(content).ok();
            FileOutcome {
                path: file.path.clone(),
                bytes: content.len() as u64,
                blake3: blake3::hash(content).to_hex().to_string(),
                text: text.filter(|_| whole).map(str::to_owned),
                base64: (whole && text.is_none()).then(|| base64(content)),
            }
        };
        files.iter().map(of).collect()
    }
}

/// Base64 of RFC 4648, section 4: with padding.
fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn short_files_stand_in_an_outcome_and_long_ones_by_their_hash() {
        let file = |path: &str, content: Vec<u8>| File { path: path.to_owned(), content: Arc::new(content) };
        let long = CONTENT_MAX_BYTES + 1;
        let files = [file("a", b"text".to_vec()), file("b", vec![0xff]), file("c", vec![b'x'; long])];
        let told = FileOutcome::of_all(&files);
        let content = |at: usize| (told[at].bytes, told[at].text.as_deref(), told[at].base64.as_deref());
        assert_eq!(content(0), (4, Some("text"), None));
        assert_eq!(content(1), (1, None, Some("/w==")));
        assert_eq!(content(2), (long as u64, None, None));
        assert_eq!(told[2].blake3, blake3::hash(&vec![b'x'; long]).to_hex().to_string());
        // All together are bounded, too.
        let many: Vec<File> = (0..17).map(|at| file(&format!("{at:02}"), vec![b'x'; CONTENT_MAX_BYTES])).collect();
        assert_eq!(FileOutcome::of_all(&many).iter().filter(|file| file.text.is_some()).count(), 16);
    }
}
