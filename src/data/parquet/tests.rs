use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::Int32Type;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

const SCHEMA: &str = "message m { optional binary title (UTF8); required int32 id; optional binary text (UTF8); repeated binary tags (UTF8); }";

/// A file with row groups of the given texts, nulls among them.
fn write(groups: &[&[Option<&str>]], compression: Compression) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".parquet").tempfile().unwrap();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_data_page_row_count_limit(2)
        .build();
    let mut writer = SerializedFileWriter::new(file.reopen().unwrap(), schema, Arc::new(properties)).unwrap();
    for texts in groups {
        let mut group = writer.next_row_group().unwrap();
        let rows = texts.len();
        let strings = |texts: &[Option<&str>]| {
            let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
            let values: Vec<ByteArray> = texts.iter().flatten().map(|&text| text.into()).collect();
            (levels, values)
        };
        let (levels, values) = strings(&vec![Some("T"); rows]);
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&values, Some(&levels), None)
            .unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int32Type>()
            .write_batch(&vec![7; rows], None, None)
            .unwrap();
        column.close().unwrap();
        let (levels, values) = strings(texts);
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&values, Some(&levels), None)
            .unwrap();
        column.close().unwrap();
        let (levels, repeated) = (vec![0; rows], vec![0; rows]);
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&[], Some(&levels), Some(&repeated))
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

fn read(path: &Path, fields: &Fields) -> Vec<Result<Document, String>> {
    let mut documents = match ParquetDocuments::open(path, fields) {
        Ok(documents) => documents,
        Err(error) => return vec![Err(error.to_string())],
    };
    let mut all = Vec::new();
    loop {
        match documents.document() {
            Ok(Some(document)) => all.push(Ok(document)),
            Ok(None) => return all,
            Err(Fault::Records(error, records)) => all.push(Err(format!("{error} [{records}]"))),
            Err(Fault::File(error)) => {
                all.push(Err(error.to_string()));
                return all;
            }
        }
    }
}

const GROUPS: &[&[Option<&str>]] = &[
    &[Some("a"), None, Some("b\n\nb"), Some("")],
    &[Some("c"), Some("d")],
];

#[test]
fn rows_of_every_compression() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
    ] {
        let file = write(GROUPS, compression);
        let rows = read(file.path(), &Fields::new(None, Some("title")));
        let texts: Vec<String> = rows
            .iter()
            .map(|row| row.as_ref().map_or_else(Clone::clone, |d| d.text.clone()))
            .collect();
        assert_eq!(texts.len(), 6, "{texts:?}");
        assert!(texts[1].contains("row 2: the text is null"), "{}", texts[1]);
        assert_eq!(
            [&texts[0], &texts[2], &texts[3], &texts[4], &texts[5]],
            ["a", "b\n\nb", "", "c", "d"]
        );
        assert_eq!(rows[5].as_ref().unwrap().title, "T");
    }
}

#[test]
fn columns_that_hold_no_text() {
    let file = write(GROUPS, Compression::UNCOMPRESSED);
    for (field, said) in [
        ("id", "the column `id` holds INT32, not strings"),
        ("tags", "the column `tags` holds lists of BYTE_ARRAY, not strings"),
        ("body", "no column `body` (the columns are title, id, text, tags)"),
    ] {
        let rows = read(file.path(), &Fields::new(Some(field), None));
        let error = rows[0].as_ref().unwrap_err();
        assert!(error.contains(said) && error.contains("`field`"), "{error}");
    }
    let none = write(&[], Compression::UNCOMPRESSED);
    let rows = read(none.path(), &Fields::new(None, None));
    assert!(rows[0].as_ref().unwrap_err().contains("a table of 0 rows"));
}

/// Whatever byte is changed, the reader ends without a panic, and gives no more than the rows there are.
#[test]
fn damage_anywhere() {
    let file = write(GROUPS, Compression::SNAPPY);
    let whole = std::fs::read(file.path()).unwrap();
    let scratch = tempfile::NamedTempFile::new().unwrap();
    let mut faults = 0;
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut content = whole.clone();
            content[at] ^= change;
            std::fs::write(scratch.path(), &content).unwrap();
            let rows = read(scratch.path(), &Fields::new(None, None));
            assert!(rows.len() <= 6 + 2, "byte {at}: {} rows", rows.len());
            faults += usize::from(rows.iter().filter(|row| row.is_err()).count() > 1);
        }
    }
    assert!(
        faults > whole.len() / 10,
        "only {faults} of {} changes seen",
        3 * whole.len()
    );
    for length in 1..whole.len() {
        std::fs::write(scratch.path(), &whole[..length]).unwrap();
        let rows = read(scratch.path(), &Fields::new(None, None));
        assert!(
            rows[0]
                .as_ref()
                .is_err_and(|error| error.contains("not readable as Parquet")),
            "cut at {length}: {rows:?}"
        );
    }
}
