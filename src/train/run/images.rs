//! What a run knows of its images.

use serde::{Deserialize, Serialize};

use crate::data::vision::Normalisation;

/// `images.json`: what other images need to be shown to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageInfo {
    /// Names of the classes, by their numbers.
    pub classes: Vec<String>,
    /// By what pixels are normalised.
    pub normalisation: Normalisation,
    /// To how many pixels the shorter side is scaled, before the middle is cut out.
    pub shorter_side: usize,
}

impl ImageInfo {
    /// The content of the file.
    pub fn to_json(&self) -> String {
        // Texts and numbers have a form in JSON, whatever they are.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
