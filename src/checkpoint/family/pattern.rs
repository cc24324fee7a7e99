//! Parameter names with the layer's number left open.

/// A name with `{l}` (and perhaps `{m}`) in place of layer numbers. Any prefix that ends in a dot may stand
/// before it, and `.weight` after it is understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern<'a>(&'a str);

/// Where a pattern was found: what stood before it, and the numbers of the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place<'a> {
    pub prefix: &'a str,
    pub layer: usize,
    pub inner: usize,
}

impl<'a> Pattern<'a> {
    pub fn new(text: &'a str) -> Self {
        Self(text.strip_suffix(".weight").unwrap_or(text))
    }

    /// Where `name` follows the pattern.
    pub fn find<'n>(&self, name: &'n str) -> Option<Place<'n>> {
        let mut rest = name.strip_suffix(self.suffix())?;
        let mut pattern = self.0;
        let (mut layer, mut inner) = (0, 0);
        // From the end, so that the prefix is what remains.
        while let Some(open) = pattern.rfind('{') {
            let close = open + pattern[open..].find('}')?;
            rest = rest.strip_suffix(&pattern[close + 1..])?;
            let digits = rest.len() - rest.bytes().rev().take_while(u8::is_ascii_digit).count();
            let number: u32 = rest[digits..].parse().ok()?;
            match &pattern[open + 1..close] {
                "l" => layer = number as usize,
                "m" => inner = number as usize,
                _ => return None,
            }
            (rest, pattern) = (&rest[..digits], &pattern[..open]);
        }
        let prefix = rest.strip_suffix(pattern)?;
        (prefix.is_empty() || prefix.ends_with('.')).then_some(Place { prefix, layer, inner })
    }

    /// The name at a place; `None` where it needs a layer before the first.
    pub fn at(&self, place: Place<'_>) -> Option<String> {
        let mut name = self
            .0
            .replace("{l}", &place.layer.to_string())
            .replace("{m}", &place.inner.to_string());
        for (before, number) in [("{l-1}", place.layer), ("{m-1}", place.inner)] {
            if name.contains(before) {
                name = name.replace(before, &number.checked_sub(1)?.to_string());
            }
        }
        Some(format!("{}{name}{}", place.prefix, self.suffix()))
    }

    /// `in_proj_weight` and its like carry their own ending.
    fn suffix(&self) -> &'static str {
        if self.0.ends_with("_weight") {
            ""
        } else {
            ".weight"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_its_names_under_any_prefix() {
        let pattern = Pattern::new("layer.{l}.attention.query");
        let place = |prefix, layer| {
            Some(Place {
                prefix,
                layer,
                inner: 0,
            })
        };
        assert_eq!(pattern.find("layer.0.attention.query.weight"), place("", 0));
        assert_eq!(
            pattern.find("bert.encoder.layer.11.attention.query.weight"),
            place("bert.encoder.", 11)
        );
        for other in [
            "layer.0.attention.query.bias",
            "layer.0.attention.query",
            "sublayer.0.attention.query.weight",
            "layer.x.attention.query.weight",
            "layer..attention.query.weight",
            "layer.99999999999999999999999.attention.query.weight",
        ] {
            assert_eq!(pattern.find(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_fill_a_pattern_again() {
        let place = Pattern::new("groups.{l}.layers.{m}.q")
            .find("x.groups.2.layers.10.q.weight")
            .unwrap();
        assert_eq!(
            place,
            Place {
                prefix: "x.",
                layer: 2,
                inner: 10
            }
        );
        assert_eq!(
            Pattern::new("groups.{l-1}.norm").at(place).as_deref(),
            Some("x.groups.1.norm.weight")
        );
        assert_eq!(Pattern::new("{l-1}.norm").at(Place { layer: 0, ..place }), None);
        assert_eq!(
            Pattern::new("{l}.in_proj_weight").at(place).as_deref(),
            Some("x.2.in_proj_weight")
        );
    }
}
