//! Apache Parquet: the text in a column of strings.

use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::records::{Fault, Fields, Records, listed};
use super::{DataError, Document};
use crate::files;

/// Rows that are decoded together.
const ROWS: usize = 64;

/// The documents of a Parquet file, one a row. Pages are read one at a time.
pub(super) struct ParquetDocuments {
    path: PathBuf,
    file: SerializedFileReader<File>,
    text: usize,
    title: Option<usize>,
    /// The row group that is read next, and the one that is being read.
    next_group: usize,
    group: Option<Group>,
    /// Rows decoded and not given yet.
    rows: VecDeque<(Option<ByteArray>, Option<ByteArray>)>,
    /// The row that is given next, counted from 1.
    row: u64,
}

/// A row group that is being read.
struct Group {
    text: Column,
    title: Option<Column>,
    /// Rows that are not decoded yet.
    left: u64,
}

/// One column of a row group.
struct Column {
    reader: ColumnReaderImpl<ByteArrayType>,
    levels: Vec<i16>,
    values: Vec<ByteArray>,
    /// The definition level of a value; lower ones are nulls.
    defined: i16,
}

impl ParquetDocuments {
    pub(super) fn open(path: &Path, fields: &Fields) -> Result<Self, DataError> {
        let wrong = |message: String| DataError::Parquet {
            path: path.to_owned(),
            message,
        };
        let file = files::open(path).map_err(|source| DataError::io(path, source, "Parquet file"))?;
        let size = file.metadata().map_or(0, |meta| meta.len());
        if size == 0 {
            return Err(DataError::Empty {
                path: path.to_owned(),
                bytes: 0,
                pages: "no Parquet footer".to_owned(),
            });
        }
        let file = guarded(|| SerializedFileReader::new(file))
            .map_err(|said| wrong(format!("not readable as Parquet ({said}): fetch the file again")))?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let names: Vec<String> = schema
            .columns()
            .iter()
            .map(|column| column.path().string())
            .collect();
        let position = |wanted: &String| names.iter().position(|name| name == wanted);
        let missing = |wanted: String| DataError::NoField {
            path: path.to_owned(),
            wanted,
            have: listed(&names),
        };
        let text = fields
            .text
            .iter()
            .find_map(position)
            .ok_or_else(|| missing(fields.wanted()))?;
        let title = match &fields.title {
            Some(title) => Some(position(title).ok_or_else(|| missing(format!("`{title}`")))?),
            None => None,
        };
        for column in [Some(text), title].into_iter().flatten() {
            let kind = schema.column(column).physical_type();
            if kind != Type::BYTE_ARRAY || schema.column(column).max_rep_level() > 0 {
                let list = if schema.column(column).max_rep_level() > 0 {
                    "lists of "
                } else {
                    ""
                };
                return Err(wrong(format!(
                    "the column `{}` holds {list}{kind}, not strings: name the column with `field`",
                    names[column]
                )));
            }
        }
        if file.metadata().file_metadata().num_rows() <= 0 {
            return Err(DataError::Empty {
                path: path.to_owned(),
                bytes: size,
                pages: "a table of 0 rows".to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            text,
            title,
            next_group: 0,
            group: None,
            rows: VecDeque::new(),
            row: 1,
        })
    }

    /// Opens the next row group; false past the last.
    fn begin(&mut self) -> Result<bool, Fault> {
        let meta = self.file.metadata();
        if self.next_group == meta.num_row_groups() {
            return Ok(false);
        }
        let left = u64::try_from(meta.row_group(self.next_group).num_rows()).unwrap_or(0);
        let opened = guarded(|| {
            let group = self.file.get_row_group(self.next_group)?;
            let column = |number| {
                let column = meta.file_metadata().schema_descr().column(number);
                match group.get_column_reader(number)? {
                    ColumnReader::ByteArrayColumnReader(reader) => Ok(Column {
                        reader,
                        levels: Vec::new(),
                        values: Vec::new(),
                        defined: column.max_def_level(),
                    }),
                    _ => Err(ParquetError::General("a column of another type".to_owned())),
                }
            };
            Ok(Group {
                text: column(self.text)?,
                title: self.title.map(column).transpose()?,
                left,
            })
        });
        self.next_group += 1;
        match opened {
            Ok(group) => {
                self.group = Some(group);
                Ok(true)
            }
            Err(said) => Err(self.lost(&said, left)),
        }
    }

    /// Decodes the next rows of the open row group; what fails takes the rest of the group with it.
    fn fill(&mut self, mut group: Group) -> Result<(), Fault> {
        let rows = guarded(|| {
            let texts = group.text.read(group.left)?;
            let titles = match &mut group.title {
                Some(title) => title.read(texts.len() as u64)?,
                None => vec![None; texts.len()],
            };
            if texts.is_empty() || titles.len() != texts.len() {
                return Err(ParquetError::EOF("the row group ends early".to_owned()));
            }
            Ok(texts.into_iter().zip(titles))
        });
        match rows {
            Ok(rows) => {
                group.left = group.left.saturating_sub(rows.len() as u64);
                self.rows.extend(rows);
                self.group = Some(group);
                Ok(())
            }
            Err(said) => Err(self.lost(&said, group.left)),
        }
    }

    fn lost(&mut self, said: &str, rows: u64) -> Fault {
        let fault = Fault::Records(
            DataError::Record {
                path: self.path.clone(),
                place: format!(
                    "row {}, in row group {} of {}",
                    self.row,
                    self.next_group,
                    self.file.metadata().num_row_groups()
                ),
                problem: format!("damaged ({said}), so that {rows} rows are lost"),
            },
            rows,
        );
        self.row += rows;
        fault
    }

    fn bad(&self, problem: String) -> Fault {
        Fault::record(DataError::Record {
            path: self.path.clone(),
            place: format!("row {}", self.row),
            problem,
        })
    }
}

impl Records for ParquetDocuments {
    fn document(&mut self) -> Result<Option<Document>, Fault> {
        while self.rows.is_empty() {
            match self.group.take() {
                Some(group) if group.left > 0 => self.fill(group)?,
                _ => {
                    if !self.begin()? {
                        return Ok(None);
                    }
                }
            }
        }
        let Some((text, title)) = self.rows.pop_front() else {
            return Ok(None);
        };
        let document = match text {
            None => Err(self.bad("the text is null".to_owned())),
            Some(text) => match std::str::from_utf8(text.data()) {
                Ok(text) => Ok(Some(Document {
                    title: title
                        .map(|title| String::from_utf8_lossy(title.data()).into_owned())
                        .unwrap_or_default(),
                    text: text.to_owned(),
                })),
                Err(error) => Err(self.bad(format!(
                    "the text is not UTF-8 from its byte {} on",
                    error.valid_up_to()
                ))),
            },
        };
        self.row += 1;
        document
    }
}

impl Column {
    /// The next rows, at most `most`, nulls as `None`.
    fn read(&mut self, most: u64) -> Result<Vec<Option<ByteArray>>, ParquetError> {
        self.levels.clear();
        self.values.clear();
        let most = most.min(ROWS as u64) as usize;
        let (rows, _, _) = self
            .reader
            .read_records(most, Some(&mut self.levels), None, &mut self.values)?;
        let mut values = self.values.drain(..);
        if self.defined == 0 {
            return Ok(values.map(Some).collect());
        }
        self.levels
            .iter()
            .take(rows)
            .map(|&level| {
                if level < self.defined {
                    return Ok(None);
                }
                values
                    .next()
                    .map(Some)
                    .ok_or_else(|| ParquetError::EOF("fewer values than rows".to_owned()))
            })
            .collect()
    }
}

/// Runs a part of the decoder; what it says, and any panic of it on damaged pages, in one line.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let said = error.to_string();
            let said = said.strip_prefix("Parquet error: ").unwrap_or(&said);
            Err(said.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        Err(_) => Err("the decoder gave up".to_owned()),
    }
}

#[cfg(test)]
mod tests;
