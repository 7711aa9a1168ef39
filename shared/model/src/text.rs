//! Text that is shown to people and holds words of others: what a controller says, how an object or a finalizer is named.

/// What stands for the rest of a text that is cut.
const REST: char = '…';

/// On one line: gaps and control characters become one space. What turns the direction of writing goes: it shows words in
/// another order than they are in.
#[must_use]
pub fn one_line(text: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    text.replace(turns, "").split(is_gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Unicode's `Bidi_Control`.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cut between two characters where it is longer than `most`, `length` being that of one character; `most` has room for a
/// sign that something is missing, of 3 bytes.
#[must_use]
pub fn cut(text: &str, most: usize, length: impl Fn(char) -> usize) -> String {
    if text.chars().map(&length).sum::<usize>() <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(length(REST));
    let fits = |c: &char| room.checked_sub(length(*c)).map(|rest| room = rest).is_some();
    text.chars().take_while(fits).chain([REST]).collect()
}

/// [`one_line`], of at most so many bytes.
#[must_use]
pub fn shown(text: &str, most: usize) -> String {
    cut(&one_line(text), most, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_of_others_stay_on_one_line_and_in_their_order() {
        assert_eq!(one_line(" a\n\tb\u{0}\u{2028}c\u{2029}d\u{1b}[31m\u{85}\r\n"), "a b c d [31m");
        assert_eq!(one_line("on\u{202e}gpj.exe\u{202c} \u{2066}is\u{2069}"), "ongpj.exe is");
        assert_eq!(one_line("\u{202e} \u{0}"), "");
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters_and_says_so() {
        assert_eq!(shown(&"a".repeat(10), 10), "a".repeat(10));
        assert_eq!(shown(&"a".repeat(11), 10), "aaaaaaa…");
        assert_eq!(shown(&"é".repeat(6), 10), "ééé…");
    }

    proptest! {
        #[test]
        fn whatever_others_write_is_fit_to_be_shown(text in "(?s)[\u{0}-\u{a0}\u{61c}\u{2000}-\u{2070}é😀 a]{0,40}", most in 3_usize..60) {
            let shown = shown(&text, most);
            prop_assert!(shown.len() <= most, "{} bytes", shown.len());
            let is_unfit = |c: char| c.is_control() || turns(c) || matches!(c, '\u{2028}' | '\u{2029}');
            prop_assert!(!shown.contains(is_unfit), "{shown:?}");
            prop_assert_eq!(super::shown(&shown, most), shown, "what is fit stays as it is");
        }
    }
}
