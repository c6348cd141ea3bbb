//! Cells of CSV that no spreadsheet takes for a formula. Tables of sweeps and data of figures are written so.

use std::borrow::Cow;

/// A cell as a spreadsheet shows it and does not work it out: text that begins like a formula gets a quote
/// before it. Numbers stay numbers. Source: OWASP, "CSV Injection".
pub fn inert(text: &str) -> Cow<'_, str> {
    let like_formula = text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    match like_formula && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn text_is_no_formula_and_a_number_stays_one() {
        for text in ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        for text in ["", "-", "-1.5", "+3", "-1e-9", "base", "store+clwb", "a=b", "'=1"] {
            assert_eq!(inert(text), text);
        }
    }
}
