//! The text and the tokenizer that travel in the program.
//!
//! The text is an extract of a real dump of the English Wikipedia of 2016: 206 pages, of which 106 are
//! articles, from "Anarchism" on, about 2.8 million characters once the markup is stripped. It is under
//! CC BY-SA 3.0, its authors are the contributors of Wikipedia; `assets/wikipedia/README.md` has the
//! details. It is read by the same code as any other dump.
//!
//! # Examples
//! ```
//! use wqk::data::bundled;
//!
//! let first = bundled::documents()?.next().unwrap()?;
//! assert_eq!(first.title, "Anarchism");
//! assert_eq!(bundled::tokenizer()?.vocabulary().size, 4096);
//! # Ok::<(), wqk::data::DataError>(())
//! ```

use super::{DataError, Documents, Tokenizer};

/// The name of the bundled dump, as it stands in messages and reports.
pub const NAME: &str = "bundled enwiki-2016-extract.xml.bz2";

/// The SHA-256 of the bundled dump, in hexadecimal.
pub const SHA256: &str = "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d";

static DUMP: &[u8] = include_bytes!("../../assets/wikipedia/enwiki-2016-extract.xml.bz2");
static PIECES: &[u8] = include_bytes!("../../assets/wikipedia/vocab.txt");

/// The articles of the bundled dump.
///
/// # Errors
/// None that is known: the dump is complete, and a test reads it.
pub fn documents() -> Result<Documents, DataError> {
    Documents::from_content(NAME, DUMP)
}

/// 4,096 lower-case word pieces, trained on the bundled text.
///
/// # Errors
/// None that is known, as [`documents`].
pub fn tokenizer() -> Result<Tokenizer, DataError> {
    Tokenizer::from_content("bundled vocab.txt", PIECES)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_dump_is_the_published_one() {
        let digest: String = Sha256::digest(DUMP)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(digest, SHA256);
    }

    #[test]
    fn every_article_is_read_and_free_of_markup() {
        let articles: Vec<_> = documents().unwrap().collect::<Result<_, _>>().unwrap();
        // 206 pages, of which 100 are redirects.
        assert_eq!(articles.len(), 106);
        for article in &articles {
            for markup in [
                "{{", "}}", "[[", "]]", "<ref", "'''", "\n\n", "&nbsp;", "()", "( )", " ,",
            ] {
                assert!(
                    !article.text.contains(markup),
                    "{markup:?} in {}: {:?}",
                    article.title,
                    article.text.lines().find(|line| line.contains(markup))
                );
            }
        }
    }

    #[test]
    fn the_tokenizer_knows_the_text() {
        let tokenizer = tokenizer().unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!(vocabulary.size, 4096);
        assert_eq!(vocabulary.special_tokens(), [0, 1, 2, 3, 4]);
        let text = "anarchism is a political philosophy.";
        let tokens = tokenizer.encode(text).unwrap();
        assert_eq!(tokenizer.decode(&tokens).unwrap(), text);
        let mut unknown = 0;
        let mut all = 0;
        for article in documents().unwrap() {
            let tokens = tokenizer.encode(&article.unwrap().text).unwrap();
            unknown += tokens
                .iter()
                .filter(|&&token| Some(token) == vocabulary.unk)
                .count();
            all += tokens.len();
        }
        // Greek, Arabic and other quotations, words of rare letters.
        assert!(unknown * 100 < all, "{unknown} of {all} unknown");
    }
}
