//! HTML character references.

use std::borrow::Cow;

use quick_xml::escape::resolve_html5_entity;

/// The longest reference that is looked for, such as `&CounterClockwiseContourIntegral;`.
const LONGEST: usize = 40;

/// The characters that the reference at the start of `text` stands for, and its length; `None` where the
/// ampersand is only an ampersand.
pub(super) fn decode(text: &str) -> Option<(Cow<'static, str>, usize)> {
    let inner = text.strip_prefix('&')?;
    let end = inner.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let name = &inner[..end];
    let decoded = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            Cow::Owned(char::from_u32(code.ok()?)?.to_string())
        }
        None => Cow::Borrowed(resolve_html5_entity(name)?),
    };
    Some((decoded, end + 2))
}
