//! How strong the residual branches are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::config::{ModelError, invalid};

/// The factors on one kind of residual branch, a layer each: `α₁` of the attention or `α₂` of the feed-forward.
///
/// In text it is a number, `1/sqrt(L)` (or `0.5/sqrt(L)`) with L the number of layers, or a number for each layer:
/// in a recipe `attention_strength = 0.5`, `"1/sqrt(L)"` or `[1.0, 0.7]`, on the command line `0.5`, `1/sqrt(L)` or
/// `1.0,0.7`.
///
/// # Source
/// Propagation paper, section 3.2: with strengths of `1/√L` token representations stay apart at any depth, with
/// constant ones they align as depth grows.
///
/// # Examples
/// ```
/// use wqk::model::Strength;
/// let strength: Strength = "1/sqrt(L)".parse()?;
/// assert_eq!(strength.of_layers(4)?, [0.5; 4]);
/// assert_eq!("1,0.5".parse::<Strength>()?.of_layers(2)?, [1.0, 0.5]);
/// # Ok::<(), wqk::model::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Strength {
    /// The same in every layer.
    Constant(f64),
    /// This number over the square root of the number of layers, in every layer.
    OverSqrtDepth(f64),
    /// One for each layer, first to last.
    PerLayer(Vec<f64>),
}

impl Strength {
    /// The plain residual connection.
    pub const ONE: Self = Self::Constant(1.0);
    /// The propagation paper's remedy, `1/√L`.
    pub const SCALED: Self = Self::OverSqrtDepth(1.0);

    /// The factor of every layer.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] for factors that are negative or not finite, and for a list that is not of this depth.
    pub fn of_layers(&self, n_layers: usize) -> Result<Vec<f64>, ModelError> {
        self.check("strength", n_layers)?;
        Ok(match self {
            Self::Constant(alpha) => vec![*alpha; n_layers],
            Self::OverSqrtDepth(alpha) => vec![alpha / (n_layers as f64).sqrt(); n_layers],
            Self::PerLayer(alphas) => alphas.clone(),
        })
    }

    pub(super) fn check(&self, field: &'static str, n_layers: usize) -> Result<(), ModelError> {
        let factors = match self {
            Self::Constant(alpha) | Self::OverSqrtDepth(alpha) => std::slice::from_ref(alpha),
            Self::PerLayer(alphas) if alphas.len() != n_layers => {
                let must = format!("a number for each of the {n_layers} layers");
                return Err(invalid(field, format!("a list of {}", alphas.len()), &must));
            }
            Self::PerLayer(alphas) => alphas,
        };
        match factors.iter().find(|alpha| !alpha.is_finite() || **alpha < 0.0) {
            Some(alpha) => Err(invalid(field, alpha, "finite and not negative")),
            None => Ok(()),
        }
    }

    /// The factor of one layer, of a depth that was checked.
    pub(super) fn of_layer(&self, index: usize, n_layers: usize) -> f64 {
        match self {
            Self::Constant(alpha) => *alpha,
            Self::OverSqrtDepth(alpha) => alpha / (n_layers as f64).sqrt(),
            Self::PerLayer(alphas) => alphas[index],
        }
    }
}

impl From<f64> for Strength {
    fn from(alpha: f64) -> Self {
        Self::Constant(alpha)
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(alpha) => write!(f, "{alpha}"),
            Self::OverSqrtDepth(alpha) => write!(f, "{alpha}/sqrt(L)"),
            Self::PerLayer(alphas) => {
                let alphas: Vec<String> = alphas.iter().map(f64::to_string).collect();
                f.write_str(&alphas.join(","))
            }
        }
    }
}

impl FromStr for Strength {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let refuse = || {
            invalid(
                "strength",
                text,
                "a number, 1/sqrt(L), or a number for each layer",
            )
        };
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| refuse());
        let plain: String = text
            .to_lowercase()
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        for ending in ["/sqrt(l)", "/√l"] {
            if let Some(alpha) = plain.strip_suffix(ending) {
                return Ok(Self::OverSqrtDepth(number(alpha)?));
            }
        }
        if plain.contains(',') {
            return Ok(Self::PerLayer(
                plain.split(',').map(number).collect::<Result<_, _>>()?,
            ));
        }
        Ok(Self::Constant(number(&plain)?))
    }
}

/// What stands for a strength in JSON and TOML.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a number, \"1/sqrt(L)\", or a list with a number for each layer"
)]
enum Text {
    Number(f64),
    Words(String),
    List(Vec<f64>),
}

impl Serialize for Strength {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(alpha) => Text::Number(*alpha),
            Self::OverSqrtDepth(_) => Text::Words(self.to_string()),
            Self::PerLayer(alphas) => Text::List(alphas.clone()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Strength {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Text::deserialize(deserializer)? {
            Text::Number(alpha) => Ok(Self::Constant(alpha)),
            Text::Words(words) => words.parse().map_err(serde::de::Error::custom),
            Text::List(alphas) => Ok(Self::PerLayer(alphas)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_come_back() {
        for (text, strength) in [
            ("0.5", Strength::Constant(0.5)),
            ("1/sqrt(L)", Strength::SCALED),
            (" 0.25 / √L", Strength::OverSqrtDepth(0.25)),
            ("1, 0.5,0.25", Strength::PerLayer(vec![1.0, 0.5, 0.25])),
        ] {
            assert_eq!(text.parse::<Strength>().unwrap(), strength, "{text}");
            assert_eq!(strength.to_string().parse::<Strength>().unwrap(), strength);
            let json = serde_json::to_string(&strength).unwrap();
            assert_eq!(
                serde_json::from_str::<Strength>(&json).unwrap(),
                strength,
                "{json}"
            );
        }
        // A recipe may hold a whole number.
        #[derive(Deserialize)]
        struct Recipe {
            alpha: Strength,
        }
        let recipe: Recipe = toml::from_str("alpha = 1").unwrap();
        assert_eq!(recipe.alpha, Strength::ONE);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in ["", "strong", "1/sqrt(K)", "1,,2", "x/sqrt(L)"] {
            assert!(text.parse::<Strength>().is_err(), "{text}");
        }
        assert!(Strength::Constant(-1.0).of_layers(2).is_err());
        assert!(Strength::OverSqrtDepth(f64::NAN).of_layers(2).is_err());
        let error = Strength::PerLayer(vec![1.0; 3])
            .of_layers(4)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("list of 3") && error.contains("4 layers"),
            "{error}"
        );
    }
}
