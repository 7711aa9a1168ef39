//! What a JSON text may cost in memory once it is a tree and the rules have worked on it.
//!
//! The text's length says little: `[{"":0},{"":0},…` grows a hundredfold. So its parts are counted before anything is
//! built, in one pass over the bytes.

/// An object: a map's first node holds eleven members whatever it needs (about 640 bytes), in the request's pod, in
/// the draft and in the patch.
const OBJECT_BYTES: usize = 2048;

/// A member or an item: its slot and a small string, three times.
const VALUE_BYTES: usize = 256;

/// A byte of text: three copies, and the answer's base64.
const BYTE_BYTES: usize = 4;

/// An upper estimate, in bytes, of what the valid JSON `text` takes while it is judged.
#[must_use]
pub fn estimate(text: &[u8]) -> usize {
    let (mut objects, mut values) = (0usize, 1usize);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' => objects += 1,
            b',' | b'[' => values += 1,
            _ => {}
        }
    }
    (objects.saturating_mul(OBJECT_BYTES))
        .saturating_add(values.saturating_mul(VALUE_BYTES))
        .saturating_add(text.len().saturating_mul(BYTE_BYTES))
}

/// Goes on behind the closing quote.
fn skip_string<'a>(bytes: &mut impl Iterator<Item = &'a u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_cost_much_and_text_costs_little() {
        let objects = format!("[{}]", vec![r#"{"":0}"#; 1000].join(","));
        let text = format!("[\"{}\"]", "x".repeat(objects.len() - 4));
        assert_eq!(objects.len(), text.len());
        assert!(estimate(&objects.into_bytes()) > 50 * estimate(&text.into_bytes()));
    }

    #[test]
    fn brackets_inside_strings_are_text() {
        let quoted = br#"["{{{{,,,,", "\"{{{{", "\\"]"#;
        assert_eq!(estimate(quoted), 4 * VALUE_BYTES + quoted.len() * BYTE_BYTES);
    }

    #[test]
    fn a_string_that_never_ends_is_no_trap() {
        assert_eq!(estimate(br#""\"#), VALUE_BYTES + 2 * BYTE_BYTES);
    }
}
