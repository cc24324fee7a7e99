//! Event files of TensorBoard.
//!
//! The format is that of TensorFlow's `tensorflow/core/util/event.proto` in records of
//! `tensorflow/core/lib/io/record_writer.h`: the length (8 bytes, little endian), its masked CRC-32C, the
//! message, its masked CRC-32C. Of the messages only what scalars need is written, by hand.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bilinear::Summary;
use crate::train::observer::{HeldOutRow, ScoreRow, StepRow};
use crate::train::updates::UpdateRow;

/// Writes scalars to an event file, which TensorBoard shows while it grows: `tensorboard --logdir FOLDER`.
///
/// # Examples
/// ```
/// use wqk::train::TensorBoard;
///
/// let folder = tempfile::tempdir()?;
/// let mut board = TensorBoard::create(folder.path(), 0)?;
/// board.scalar("train/loss", 1, 4.6)?;
/// board.flush()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: BufWriter<File>,
}

/// The version of the format.
const VERSION: &str = "brain.Event:2";

impl TensorBoard {
    /// Begins an event file in a folder, for a run of which `done` updates are done.
    ///
    /// A run that goes on writes a new file. It tells TensorBoard to forget what older files hold of later
    /// steps, which the run does again.
    ///
    /// # Errors
    /// Where the file cannot be made or written.
    pub fn create(folder: &Path, done: usize) -> io::Result<Self> {
        let (path, file) = new_file(folder)?;
        let mut board = Self {
            path,
            file: BufWriter::new(file),
        };
        board.event(now(), 0, &bytes_field(3, VERSION.as_bytes()))?;
        if done > 0 {
            // A session that starts here: SessionLog { status: START }.
            board.event(now(), done + 1, &bytes_field(7, &varint_field(1, 1)))?;
        }
        board.flush()?;
        Ok(board)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a value. Tags with a common part before `/` are shown together.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn scalar(&mut self, tag: &str, step: usize, value: f64) -> io::Result<()> {
        self.event(now(), step, &scalar(tag, value))
    }

    /// Writes an update: `train/loss`, `train/learning_rate` and `train/gradient_norm`.
    ///
    /// # Errors
    /// As [`scalar`](Self::scalar).
    pub fn step(&mut self, row: &StepRow) -> io::Result<()> {
        self.scalar("train/loss", row.step, row.loss)?;
        self.scalar("train/learning_rate", row.step, row.learning_rate)?;
        self.scalar("train/gradient_norm", row.step, row.gradient_norm)
    }

    /// Writes an evaluation, what it has of `held_out/loss`, `held_out/accuracy` and the same of averaged
    /// weights.
    ///
    /// # Errors
    /// As [`scalar`](Self::scalar).
    pub fn evaluation(&mut self, row: &HeldOutRow) -> io::Result<()> {
        for (tag, value) in [
            ("held_out/loss", Some(row.loss)),
            ("held_out/accuracy", row.accuracy),
            ("held_out/averaged_loss", row.averaged_loss),
            ("held_out/averaged_accuracy", row.averaged_accuracy),
        ] {
            if let Some(value) = value {
                self.scalar(tag, row.step, value)?;
            }
        }
        Ok(())
    }

    /// Writes the rows of a scoring: `symmetry` and `directionality_excess`, each layer and the median.
    ///
    /// # Errors
    /// As [`scalar`](Self::scalar).
    pub fn scores(&mut self, rows: &[ScoreRow]) -> io::Result<()> {
        let place = |row: &ScoreRow| (row.step, row.layer);
        self.layers("symmetry", rows, place, |row| row.scores.symmetry)?;
        self.layers("directionality_excess", rows, place, |row| {
            Some(row.scores.directionality.excess)
        })
    }

    /// Writes the rows of an update that was taken apart: `update_symmetry` and `update_cosine`, that with the update of
    /// plain gradient descent, each layer and the median.
    ///
    /// # Errors
    /// As [`scalar`](Self::scalar).
    pub fn updates(&mut self, rows: &[UpdateRow]) -> io::Result<()> {
        let place = |row: &UpdateRow| (row.step, row.layer);
        self.layers("update_symmetry", rows, place, |row| row.update_symmetry)?;
        self.layers("update_cosine", rows, place, |row| row.first_order_cosine)
    }

    /// Writes a value of all layers at one step, by their step and layer, and the median.
    fn layers<R>(
        &mut self,
        name: &str,
        rows: &[R],
        place: impl Fn(&R) -> (usize, usize),
        of: impl Fn(&R) -> Option<f64>,
    ) -> io::Result<()> {
        for row in rows {
            let (step, layer) = place(row);
            if let Some(value) = of(row) {
                self.scalar(&format!("{name}/layer_{layer:02}"), step, value)?;
            }
        }
        match (rows.first(), Summary::of(rows.iter().filter_map(of))) {
            (Some(first), Some(summary)) => {
                self.scalar(&format!("{name}/median"), place(first).0, summary.median)
            }
            _ => Ok(()),
        }
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn event(&mut self, time: f64, step: usize, what: &[u8]) -> io::Result<()> {
        self.file.write_all(&record(&event(time, step, what)))
    }
}

/// Event { wall_time, step, and what it is about }.
fn event(time: f64, step: usize, what: &[u8]) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(time.to_le_bytes());
    if step > 0 {
        event.extend(varint_field(2, step as u64));
    }
    event.extend(what);
    event
}

/// The part of an event that is a scalar: summary { value { tag, simple_value } }.
fn scalar(tag: &str, value: f64) -> Vec<u8> {
    let mut scalar = bytes_field(1, tag.as_bytes());
    // A fixed field of 4 bytes.
    scalar.push(2 << 3 | 5);
    scalar.extend((value as f32).to_le_bytes());
    bytes_field(5, &bytes_field(1, &scalar))
}

fn record(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked(crc32c(&length)).to_le_bytes());
    record.extend(message);
    record.extend(masked(crc32c(message)).to_le_bytes());
    record
}

fn bytes_field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    varint(&mut field, content.len() as u64);
    field.extend(content);
    field
}

fn varint_field(number: u8, value: u64) -> Vec<u8> {
    let mut field = vec![number << 3];
    varint(&mut field, value);
    field
}

fn varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// The mask keeps a checksum over data that hold checksums from being weak.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bytes by a table.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes
        .iter()
        .fold(!0, |crc, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

const fn table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// A file whose name TensorBoard knows, and sorts after older ones.
fn new_file(folder: &Path) -> io::Result<(PathBuf, File)> {
    std::fs::create_dir_all(folder)?;
    let seconds = now() as u64;
    let mut number = 0;
    loop {
        let name = format!(
            "events.out.tfevents.{seconds:010}.wqk.{}.{number}",
            std::process::id()
        );
        let path = folder.join(name);
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|file| (path, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4, and the check value of the catalogues of CRCs.
    #[test]
    fn checksums() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    /// What tensorboard 2.21's own `RecordWriter` and `event_pb2` write for these three events.
    #[test]
    fn the_bytes_of_tensorboards_own_writer() {
        const THEIRS: &str = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c\
            100000000000000095fbfe1809000000000000044010ad023a0208019daf86af\
            2100000000000000017becf6090000000000000a4010ac022a130a110a0a747261696e2f6c6f737315000094409c7882eb";
        let ours = [
            record(&event(1.5, 0, &bytes_field(3, VERSION.as_bytes()))),
            record(&event(2.5, 301, &bytes_field(7, &varint_field(1, 1)))),
            record(&event(3.25, 300, &scalar("train/loss", 4.625))),
        ];
        let hexadecimal: String = ours.concat().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hexadecimal, THEIRS);
    }

    #[test]
    fn files_are_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = TensorBoard::create(folder.path(), 0).unwrap();
        first.scalar("train/loss", 1, 4.0).unwrap();
        first.flush().unwrap();
        let length = std::fs::metadata(first.path()).unwrap().len();
        // The version, and one scalar: 16 bytes of framing each.
        assert_eq!(length, 16 + 24 + 16 + 32);
        let second = TensorBoard::create(folder.path(), 1).unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!(std::fs::metadata(first.path()).unwrap().len(), length);
    }
}
