use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::data::{CorpusSpec, OnBad};

/// Everything that a file gives: its documents, and the error that ended it.
fn read(name: &str, content: &[u8]) -> (Vec<Document>, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    read_path(&path)
}

fn read_path(path: &Path) -> (Vec<Document>, Option<String>) {
    let mut documents = Vec::new();
    let opened = match Documents::open(path) {
        Ok(opened) => opened,
        Err(error) => return (documents, Some(error.to_string())),
    };
    for document in opened {
        match document {
            Ok(document) => documents.push(document),
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with(&path.display().to_string()), "{error}");
                assert!(!error.contains('\n'), "{error}");
                return (documents, Some(error));
            }
        }
    }
    (documents, None)
}

fn texts(documents: &[Document]) -> Vec<&str> {
    documents.iter().map(|document| document.text.as_str()).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn bz2(content: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn utf16(text: &str, big: bool) -> Vec<u8> {
    let units = text.encode_utf16();
    units
        .flat_map(|unit| {
            if big {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        })
        .collect()
}

/// Text that does not compress, so that a cut falls into the data.
fn noise(lines: usize) -> String {
    use rand::RngExt;
    let mut rng = crate::random::stream(1, ["noise"]);
    let mut line = |_| format!("{:x}\n\n", rng.random::<u128>());
    (0..lines).map(&mut line).collect()
}

fn page(title: &str, namespace: u32, text: &str) -> String {
    format!(
        "<page><title>{title}</title><ns>{namespace}</ns><revision><text>{text}</text></revision></page>\n"
    )
}

fn dump(pages: &[String]) -> String {
    format!(
        "<mediawiki>\n<siteinfo><namespaces><namespace key=\"6\">Bild</namespace></namespaces></siteinfo>\n{}</mediawiki>\n",
        pages.concat()
    )
}

#[test]
fn blank_lines_part_documents() {
    let (documents, error) = read("a.txt", b"\n\nTitle\r\nline  \r\n \t\r\nother\n\n\n  last");
    assert_eq!(texts(&documents), ["Title\nline", "other", "  last"]);
    assert_eq!(error, None);
}

#[test]
fn every_encoding_and_compression() {
    let text = "Zürich 𝄞\nline\n\nother";
    let expected = ["Zürich 𝄞\nline", "other"];
    let marked = format!("\u{feff}{text}");
    let multi = [gzip(&text.as_bytes()[..7]), gzip(&text.as_bytes()[7..])].concat();
    let multi_bz2 = [bz2(&text.as_bytes()[..7]), bz2(&text.as_bytes()[7..])].concat();
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for (name, content) in [
        ("utf-8", text.as_bytes().to_vec()),
        ("utf-8 with a mark", marked.as_bytes().to_vec()),
        ("utf-16 little", utf16(&marked, false)),
        ("utf-16 big", utf16(&marked, true)),
        ("gzip of utf-16", gzip(&utf16(&marked, false))),
        ("gzip in two members", multi),
        ("bzip2 in two streams", multi_bz2),
        ("zstd", zstd.clone()),
        (
            "zstd in two frames",
            [
                zstd::encode_all(&text.as_bytes()[..7], 3).unwrap(),
                zstd::encode_all(&text.as_bytes()[7..], 3).unwrap(),
            ]
            .concat(),
        ),
        ("plain under another name.gz", text.as_bytes().to_vec()),
    ] {
        let (documents, error) = read(name, &content);
        assert_eq!(error, None, "{name}");
        assert_eq!(texts(&documents), expected, "{name}");
    }
}

#[test]
fn damaged_files_say_where() {
    let text = noise(3000);
    let xz_magic = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4, 1, 2, 3, 4];
    for (name, format, content) in [
        ("a.gz", "gzip", gzip(text.as_bytes())),
        ("a.bz2", "bzip2", bz2(text.as_bytes())),
        ("a.zst", "zstd", zstd::encode_all(text.as_bytes(), 3).unwrap()),
        ("a.xz", "xz", xz_magic.repeat(2)),
    ] {
        let (_, error) = read(name, &content[..content.len() / 2]);
        let error = error.unwrap_or_else(|| panic!("{name} was read as whole"));
        assert!(error.contains(&format!("damaged {format} data")), "{error}");
        assert!(error.contains("fetch it again"), "{error}");
    }
    // A byte changed in the middle is caught too.
    for (name, mut content) in [("b.gz", gzip(text.as_bytes())), ("b.bz2", bz2(text.as_bytes()))] {
        let middle = content.len() / 2;
        content[middle] ^= 0xff;
        let (_, error) = read(name, &content);
        assert!(error.is_some_and(|error| error.contains("damaged")), "{name}");
    }
}

#[test]
fn invalid_text_names_line_and_byte() {
    // The bytes before: "good\n" and "ba".
    for (content, line, byte, problem) in [
        (b"good\nba\xffd\n".to_vec(), 2, 7, "not UTF-8"),
        (b"good\nba\0d\n".to_vec(), 2, 7, "NUL"),
        (b"\xef\xbb\xbfgood\nba\xc3".to_vec(), 2, 10, "not UTF-8"),
        (
            [utf16("\u{feff}a\nb", false), vec![0x00, 0xdc]].concat(),
            2,
            8,
            "surrogate",
        ),
        (
            [utf16("\u{feff}a\nb", true), vec![0xd8]].concat(),
            2,
            8,
            "middle of a UTF-16 character",
        ),
    ] {
        let (_, error) = read("bad.txt", &content);
        let error = error.expect("an error");
        assert!(
            error.contains(&format!("line {line}, byte {byte} ")) && error.contains(problem),
            "{error}"
        );
        assert!(error.contains("convert the file to UTF-8"), "{error}");
    }
}

#[test]
fn empty_corpora_say_what_was_read() {
    let (_, error) = read("empty.txt", b"");
    assert!(error.expect("an error").contains("no text in 0 bytes"));
    let (_, error) = read("blank.txt", b" \n\t\n\n");
    assert!(error.expect("an error").contains("no text in 5 bytes"));
    let only = dump(&[
        page("A", 1, "talk"),
        page("B", 0, "#REDIRECT [[A]]"),
        page("C", 0, "{{x}}"),
    ]);
    let (_, error) = read("empty.xml", only.as_bytes());
    let error = error.expect("an error");
    assert!(
        error.contains("3 pages, of which 1 redirects and 1 outside the main namespace"),
        "{error}"
    );
}

/// Under `skip` every fault is passed over, counted and named; what stands around it is read.
#[test]
fn faults_are_passed_over_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let text = noise(3000);
    let cut = gzip(text.as_bytes());
    for (name, content) in [
        ("a.txt", &b"first\n\nbad\xff\nof bad\n\nsecond\n\nnul\0"[..]),
        (
            "b.jsonl",
            b"{\"text\": \"third\"}\n{\"text\": 3}\n{\"text\": \" \"}\n",
        ),
        ("c.txt", b""),
        ("d.jsonl", b"[{\"text\": \"x\"}]"),
        ("e.txt.gz", &cut[..cut.len() / 2]),
        ("f.csv", b"text\nlast\n"),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let spec = |on_bad| CorpusSpec {
        on_bad,
        ..CorpusSpec::new(["."])
    };
    let mut documents = spec(OnBad::Skip).documents(folder.path()).unwrap();
    let read: Vec<Document> = documents.by_ref().collect::<Result<_, _>>().unwrap();
    let texts = texts(&read);
    assert_eq!(texts[..3], ["first", "second", "third"]);
    assert_eq!(texts.last(), Some(&"last"));
    let report = documents.report();
    assert_eq!((report.files, report.documents), (6, texts.len() as u64));
    assert_eq!((report.empty, report.bad_records, report.bad_files), (1, 3, 3));
    for (reason, said) in report.reasons.iter().zip([
        "a.txt: line 3, byte 10 of the text: not UTF-8",
        "a.txt: line 8, byte 31 of the text: a NUL byte",
        "b.jsonl: line 2: the field `text` is a number",
        "c.txt: no text in 0 bytes",
        "d.jsonl: is a JSON array",
        "e.txt.gz: damaged gzip data",
    ]) {
        assert!(reason.contains(said), "{reason}");
    }
    assert!(report.reasons[5].contains("documents before it were read"));
    assert!(
        report
            .to_string()
            .contains("passed over 3 bad records and 3 bad files")
    );

    // Without `skip` the first of them stops the reading.
    let read: Vec<_> = spec(OnBad::Error).documents(folder.path()).unwrap().collect();
    assert_eq!(read.len(), 2);
    assert!(matches!(read[1], Err(DataError::Encoding { line: 3, .. })));

    let nothing = CorpusSpec {
        on_bad: OnBad::Skip,
        ..CorpusSpec::new(["c.txt", "d.jsonl"])
    };
    let read: Vec<_> = nothing.documents(folder.path()).unwrap().collect();
    let [Err(error)] = &read[..] else {
        panic!("{read:?}")
    };
    let error = error.to_string();
    assert!(
        error.starts_with("no document could be read: 0 documents from 2 files"),
        "{error}"
    );
}

#[test]
fn no_file_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let (_, error) = read_path(folder.path());
    assert!(error.expect("an error").contains("is a folder: give a text file"));
    let (_, error) = read_path(&folder.path().join("none.txt"));
    assert!(error.expect("an error").contains("cannot be read"));
    for (magic, kind) in [(&b"PAR1...."[..], "Parquet"), (b"PK\x03\x04....", "zip")] {
        let (_, error) = read("file", magic);
        assert!(error.expect("an error").contains(kind));
    }
}

#[test]
fn articles_of_a_dump() {
    let content = dump(&[
        page("A &amp; B", 0, "First &lt;ref&gt;x&lt;/ref&gt;[[Bild:x.png]]&amp;ndash; [[one]]&#33;"),
        page("Talk:A", 1, "talk"),
        "<page><title>R</title><ns>0</ns><redirect title=\"A\" /><revision><text>x</text></revision></page>".to_owned(),
        "<page><title>Two</title><ns>0</ns><revision><text>old</text></revision><revision><text>new</text></revision></page>".to_owned(),
        "<page><title>Gone</title><ns>0</ns><revision><text /></revision></page>".to_owned(),
    ]);
    let expected = [("A & B", "First – one!"), ("Two", "new")];
    let declared = format!("<?xml version=\"1.0\" encoding=\"UTF-16\"?>{content}");
    let in_streams = [bz2(&content.as_bytes()[..100]), bz2(&content.as_bytes()[100..])].concat();
    for (name, content) in [
        ("d.xml", content.as_bytes().to_vec()),
        ("d.xml.bz2", in_streams),
        ("utf-16.xml", utf16(&format!("\u{feff}{declared}"), false)),
        ("utf-16 without a mark.xml", utf16(&content, true)),
    ] {
        let (documents, error) = read(name, &content);
        assert_eq!(error, None, "{name}");
        let got: Vec<_> = documents
            .iter()
            .map(|d| (d.title.as_str(), d.text.as_str()))
            .collect();
        assert_eq!(got, expected, "{name}");
    }
}

/// Wherever a dump is cut, what was whole is given, and then the cut is reported.
#[test]
fn a_dump_cut_off_anywhere() {
    let content = dump(&[page("A", 0, "first &amp; more"), page("B", 0, "second")]);
    let first_ends = content.find("</page>").unwrap() + "</page>".len();
    for cut in "<mediawiki>".len()..content.trim_end().len() {
        let (documents, error) = read("cut.xml", &content.as_bytes()[..cut]);
        let error = error.unwrap_or_else(|| panic!("cut at {cut} went unnoticed"));
        assert!(error.contains("fetch the dump again"), "{error}");
        assert_eq!(!documents.is_empty(), cut >= first_ends, "cut at {cut}");
    }
    let in_b = content.find("second").unwrap();
    let (_, error) = read("cut.xml", &content.as_bytes()[..in_b]);
    let error = error.expect("an error");
    assert!(
        error.contains("in page 'B'") && error.contains(&format!("byte {in_b} ")),
        "{error}"
    );
}

#[test]
fn the_hash_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abc");
    fs::write(&path, "abc").unwrap();
    // FIPS 180-2, appendix B.1.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256(&path).unwrap(), expected);
    assert!(matches!(sha256(folder.path()), Err(DataError::Folder { .. })));
}

/// The shared data, where it is at hand.
fn shared() -> Option<PathBuf> {
    let root = std::env::var_os("WQK_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let path = root.join("data/wikipedia");
    if !path.is_dir() {
        eprintln!("skipped: no shared data at {}", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn shared_dumps() {
    let Some(shared) = shared() else { return };
    for (name, articles) in [
        (
            "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
            106,
        ),
        ("enwiki-table-markup.xml.bz2", 5),
        ("bgwiki-latest-pages-articles-shortened.xml.bz2", 1),
    ] {
        let (documents, error) = read_path(&shared.join("raw").join(name));
        assert_eq!(error, None, "{name}");
        assert_eq!(documents.len(), articles, "{name}");
    }
}

/// Reads a broken file of the shared data twice: it must stop with an error that says `error`, and under
/// `skip` give `documents` documents (0: an error that says it again) and count what it passed over.
fn bad(name: &str, error: &str, documents: u64, bad_records: u64, bad_files: u64) {
    let Some(shared) = shared() else { return };
    let folder = shared.join("bad");
    let spec = |on_bad| CorpusSpec {
        on_bad,
        ..CorpusSpec::new([name])
    };
    let strict: Vec<_> = spec(OnBad::Error).documents(&folder).unwrap().collect();
    let Some(Err(said)) = strict.last() else {
        panic!("{name} was read as whole")
    };
    let said = said.to_string();
    assert!(
        said.contains(error) && said.contains(name) && !said.contains('\n'),
        "{said}"
    );

    let mut skipping = spec(OnBad::Skip).documents(&folder).unwrap();
    let read: Result<Vec<_>, _> = skipping.by_ref().collect();
    let report = skipping.report();
    assert_eq!(
        (report.documents, report.bad_records, report.bad_files),
        (documents, bad_records, bad_files),
        "{report}"
    );
    assert!(report.reasons[0].contains(error), "{report}");
    match read {
        Ok(read) => assert_eq!(read.len() as u64, documents),
        Err(said) => {
            assert_eq!(documents, 0);
            assert!(said.to_string().contains(error), "{said}");
        }
    }
}

/// One test for each broken file. The counts are those of Python's json and zlib and of pyarrow.
macro_rules! bad_files {
    ($($test:ident: $name:literal, $error:literal, $documents:literal, $records:literal, $files:literal;)*) => {$(
        #[test]
        fn $test() {
            bad($name, $error, $documents, $records, $files);
        }
    )*};
}

bad_files! {
    bad_broken_line: "broken-line.jsonl", "line 5: not a JSON object", 9, 1, 0;
    bad_corrupt_middle: "corrupt-middle.parquet", "damaged (", 234, 100, 0;
    bad_empty_jsonl: "empty.jsonl", "no text in 0 bytes", 0, 0, 1;
    bad_empty_gz: "empty.jsonl.gz", "no text in 0 bytes", 0, 0, 1;
    bad_empty_parquet: "empty.parquet", "no text in 0 bytes", 0, 0, 1;
    bad_empty_text: "empty.txt", "no text in 0 bytes", 0, 0, 1;
    bad_plain_gz: "gz-extension-but-plain.jsonl.gz", "line 1: not a JSON object (EOF", 0, 1, 0;
    bad_utf8: "invalid-utf8.txt", "byte 10000 of the text: not UTF-8", 0, 1, 0;
    bad_array: "json-array.json", "is a JSON array", 0, 0, 1;
    bad_fields: "missing-or-nonstring-text.jsonl", "line 4: no field `text`", 7, 3, 0;
    bad_no_column: "no-text-column.parquet", "no column `text`", 0, 0, 1;
    bad_no_parquet: "not-a-parquet.parquet", "not readable as Parquet", 0, 0, 1;
    bad_nul: "nul-bytes.txt", "byte 3000 of the text: a NUL byte", 0, 1, 0;
    bad_nulls: "null-text-rows.parquet", "the text is null", 15, 5, 0;
    bad_integers: "text-is-int.parquet", "holds INT64, not strings", 0, 0, 1;
    bad_cut_gz: "truncated.jsonl.gz", "damaged gzip data", 54, 0, 1;
    bad_cut_zst: "truncated.jsonl.zst", "damaged zstd data", 30, 0, 1;
    bad_cut_parquet: "truncated.parquet", "not readable as Parquet", 0, 0, 1;
    bad_blank: "whitespace-only.txt", "no text in 9 bytes", 0, 0, 1;
    bad_no_rows: "zero-rows.parquet", "a table of 0 rows", 0, 0, 1;
}

/// Files that look odd and are whole.
#[test]
fn shared_odd_files() {
    let Some(shared) = shared() else { return };
    for (name, characters) in [
        ("bom-crlf.txt", 19_999),
        ("utf16.txt", 5_000),
        ("one-huge-line.txt", 1_500_000),
    ] {
        let (documents, error) = read_path(&shared.join("bad").join(name));
        assert_eq!(error, None, "{name}");
        let sum: usize = documents.iter().map(|d| d.text.chars().count()).sum();
        assert!(sum.abs_diff(characters) <= 400, "{name}: {sum} characters");
    }
    let (documents, error) = read_path(&shared.join("bad/no-final-newline-and-blank-lines.jsonl"));
    assert_eq!((documents.len(), error), (3, None));
}

/// Every sample gives the documents that `expected.json` counts, their texts to the last byte.
#[test]
fn shared_samples() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("samples");
    let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&expected).unwrap();
    assert_eq!(expected.len(), 13);
    for (name, expected) in expected {
        let spec = CorpusSpec {
            // Plain text has its titles in the text.
            title: (!name.ends_with(".txt")).then(|| "title".to_owned()),
            ..CorpusSpec::new([name.as_str()])
        };
        let documents: Vec<Document> = spec
            .documents(&folder)
            .and_then(Iterator::collect)
            .unwrap_or_else(|error| panic!("{error}"));
        let parted: Vec<(&str, &str)> = documents
            .iter()
            .map(|document| match document.title.as_str() {
                "" => document.text.split_once('\n').unwrap(),
                title => (title, document.text.as_str()),
            })
            .collect();
        assert_eq!(parted.len() as u64, expected["docs"], "{name}");
        assert_eq!(parted[0].0, expected["first_title"], "{name}");
        let characters: usize = parted.iter().map(|(_, text)| text.chars().count()).sum();
        assert_eq!(characters as u64, expected["chars"], "{name}");
        let texts: Vec<&str> = parted.iter().map(|(_, text)| *text).collect();
        let digest = Sha256::digest(texts.join("\0"));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected["sha256_of_joined_text"], "{name}");
    }
    let shards = CorpusSpec::new(["shards/*.parquet"]).documents(&folder).unwrap();
    assert_eq!(shards.count(), 334);
}
