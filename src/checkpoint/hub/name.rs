use std::fmt;
use std::str::FromStr;

/// A model of a hub and its revision: `org/name`, `org/name@revision`, either also after `hf://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubModel {
    pub(super) repository: String,
    pub(super) revision: String,
}

impl HubModel {
    /// The scheme by which a name is known for one of a hub.
    pub const SCHEME: &'static str = "hf://";

    /// Whether a text could be the name of a model, as well as a path.
    pub fn is_like(text: &str) -> bool {
        text.contains('/') && text.parse::<Self>().is_ok()
    }

    /// `org/name`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The branch, tag or commit; `main` where none was given.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

impl FromStr for HubModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix(Self::SCHEME).unwrap_or(text);
        let (repository, revision) = name.split_once('@').unwrap_or((name, "main"));
        let parts: Vec<&str> = repository.split('/').collect();
        // The characters of names on the hub. Neither may lead out of a folder that is called by them.
        let is_name = |part: &&str| {
            part.len() <= 96
                && !part.starts_with('.')
                && !part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let is_revision = !revision.is_empty()
            && revision.len() <= 255
            && !revision.contains("..")
            && revision
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./+".contains(c));
        if (1..=2).contains(&parts.len()) && parts.iter().all(is_name) && is_revision {
            return Ok(Self {
                repository: repository.to_owned(),
                revision: revision.to_owned(),
            });
        }
        Err(format!(
            "'{text}' is no name of a model on a hub: give org/name or org/name@revision"
        ))
    }
}

impl fmt::Display for HubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision.as_str() {
            "main" => f.write_str(&self.repository),
            revision => write!(f, "{}@{revision}", self.repository),
        }
    }
}
