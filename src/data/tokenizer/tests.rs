use super::*;

fn from(content: &str) -> Result<Tokenizer, DataError> {
    Tokenizer::from_content("vocab.txt", content.as_bytes())
}

const UNCASED: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nthe\n.\nmask\n[\n]\n";

#[test]
fn bytes_round_trip() {
    let tokenizer = Tokenizer::bytes();
    let text = "Zürich [MASK] 東京\n";
    let tokens = tokenizer.encode(text).unwrap();
    assert_eq!(tokens.len(), text.len());
    assert_eq!(tokens[0], u32::from(b'Z') + 5);
    assert_eq!(tokenizer.decode(&tokens).unwrap(), text);
    assert_eq!(tokenizer.decode(&[4, 70, 9999]).unwrap(), "[MASK]A");
}

#[test]
fn characters_by_frequency() {
    // b three times, then a and c twice each, in the order of their code points.
    let texts = ["bca", "bac", "b", "z"].map(Ok::<_, DataError>);
    let tokenizer = Tokenizer::characters(texts, 3).unwrap();
    assert_eq!(tokenizer.vocabulary().size, 8);
    let tokens = tokenizer.encode("abcz").unwrap();
    assert_eq!(tokens, [6, 5, 7, 1]);
    assert_eq!(tokenizer.decode(&tokens).unwrap(), "abc[UNK]");
    assert!(matches!(
        Tokenizer::characters(["a"].map(Ok::<_, DataError>), 0),
        Err(DataError::Alphabet(0))
    ));
    let failing = [Ok("a"), Err(DataError::BatchSize)];
    assert!(matches!(
        Tokenizer::characters(failing, 3),
        Err(DataError::BatchSize)
    ));
}

/// BERT's own example, by hand: the longest piece first.
#[test]
fn word_pieces_of_a_vocab_txt() {
    let tokenizer = from(UNCASED).unwrap();
    assert_eq!(tokenizer.encode("The Unaffable.").unwrap(), [8, 5, 6, 7, 9]);
    assert_eq!(tokenizer.encode("thé qqq").unwrap(), [8, 1]);
    assert_eq!(tokenizer.decode(&[8, 5, 6, 7]).unwrap(), "the unaffable");
    // Text that reads like a special token is text.
    assert_eq!(tokenizer.encode("[MASK]").unwrap(), [11, 10, 12]);
    let mathematical = from(&(UNCASED.to_owned() + "ℝ\n")).unwrap();
    assert_eq!(mathematical.encode("The").unwrap(), [8]);
    let cased = from(&UNCASED.replace("the", "The")).unwrap();
    assert_eq!(cased.encode("The the").unwrap(), [8, 1]);
}

#[test]
fn json_round_trip() {
    let text = "The unaffable.";
    for tokenizer in [
        Tokenizer::bytes(),
        Tokenizer::characters([Ok::<_, DataError>(text)], 100).unwrap(),
        from(UNCASED).unwrap(),
    ] {
        let json = tokenizer.to_json().unwrap();
        let again = from(&json).unwrap();
        assert_eq!(again.vocabulary(), tokenizer.vocabulary(), "{json}");
        assert_eq!(again.encode(text).unwrap(), tokenizer.encode(text).unwrap());
    }
}

/// A published tokenizer may cut to 128 tokens and pad to it; ours must do neither.
#[test]
fn truncation_and_padding_of_a_file_are_off() {
    let json = from(UNCASED).unwrap().to_json().unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    value["truncation"] =
        serde_json::json!({"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0});
    value["padding"] = serde_json::json!({"strategy":{"Fixed":8},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"});
    let tokenizer = from(&value.to_string()).unwrap();
    assert_eq!(tokenizer.encode("the the the").unwrap(), [8, 8, 8]);
    assert_eq!(tokenizer.encode("the").unwrap(), [8]);
}

#[test]
fn unusable_files() {
    let message = |content: &str| from(content).unwrap_err().to_string();
    for (content, problem) in [
        ("", "none of its 0 lines is [UNK]"),
        ("the\nof\n", "none of its 2 lines is [UNK]"),
        ("[UNK]\nthe\nthe\n", "1 of its lines are repeated"),
        ("{\"model\": 1}", "not a usable tokenizer"),
        ("{\"wqk_tokenizer\":\"characters\",\"alphabet\":\"aba\"}", "twice"),
    ] {
        let message = message(content);
        assert!(message.starts_with("vocab.txt: "), "{message}");
        assert!(message.contains(problem), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Tokenizer::from_file(folder.path()),
        Err(DataError::Folder { .. })
    ));
    let missing = folder.path().join("none.json");
    assert!(matches!(
        Tokenizer::from_file(missing),
        Err(DataError::Unreadable { .. })
    ));
}

#[test]
fn a_vocabulary_larger_than_the_model() {
    let tokenizer = from(UNCASED).unwrap();
    assert!(tokenizer.check_fits(13).is_ok());
    let message = tokenizer.check_fits(12).unwrap_err().to_string();
    assert!(
        message.contains("13 tokens") && message.contains("vocabulary 12"),
        "{message}"
    );
}

/// BERT's own two files, which say the same in two ways.
#[test]
fn shared_vocab_and_json_agree() {
    let root = std::env::var_os("WQK_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = root.join("data/tokenizers/bert-base-uncased");
    if !folder.is_dir() {
        eprintln!("skipped: no tokenizer at {}", folder.display());
        return;
    }
    let json = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    let vocab = Tokenizer::from_file(folder.join("vocab.txt")).unwrap();
    assert_eq!(json.vocabulary(), vocab.vocabulary());
    let text = "GAI (Arabidopsis thaliana), Élan vital; 東京 & ℝ: unaffable!";
    let tokens = json.encode(text).unwrap();
    assert_eq!(vocab.encode(text).unwrap(), tokens);
    assert!(!tokens.contains(&json.vocabulary().unk.unwrap()));
}
