//! A hub of one model, on this machine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};

pub const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// How files are answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Manner {
    /// As the hub does.
    Well,
    /// By sending to a store under another name, as the hub does with large files.
    Redirecting,
    /// Every second answer is a 503, and every body ends after half of it.
    Badly,
    /// With whole files, whatever was asked for.
    Whole,
    /// With another part than was asked for.
    Elsewhere,
    /// With this status.
    Status(u16),
}

#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub range: Option<Range<u64>>,
    pub token: Option<String>,
    pub host: String,
}

pub struct Server {
    pub endpoint: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Answers until the test ends.
    pub fn start(files: BTreeMap<String, Vec<u8>>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, files) = (asked.clone(), Arc::new(files));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, files) = (log.clone(), files.clone());
                std::thread::spawn(move || answer(stream, &files, manner, &log, port));
            }
        });
        Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            asked,
        }
    }

    /// What was asked of files.
    pub fn files_asked(&self) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|asked| !asked.path.starts_with("/api/"))
            .cloned()
            .collect()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(
    stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    manner: Manner,
    log: &Mutex<Vec<Asked>>,
    port: u16,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let range = headers.get("range").map(|range| {
        let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        start.parse().unwrap()..end.parse::<u64>().unwrap() + 1
    });
    let count = {
        let mut log = log.lock().unwrap();
        log.push(Asked {
            path: path.clone(),
            range: range.clone(),
            token: headers.get("authorization").cloned(),
            host: headers.get("host").cloned().unwrap_or_default(),
        });
        log.len()
    };
    let send = |status: u16, extra: String, body: &[u8], length: usize| {
        let head =
            format!("HTTP/1.1 {status} Some\r\nContent-Length: {length}\r\nConnection: close\r\n{extra}\r\n");
        (&stream).write_all(head.as_bytes()).ok()?;
        (&stream).write_all(body).ok()
    };
    let plain = |status: u16, body: &[u8]| send(status, String::new(), body, body.len());
    if let Some(model) = path.strip_prefix("/api/models/") {
        if model != "org/name/revision/main" {
            return plain(404, b"");
        }
        let names: Vec<_> = files
            .keys()
            .map(|name| serde_json::json!({ "rfilename": name }))
            .collect();
        let listing = serde_json::json!({ "sha": SHA, "siblings": names, "private": false });
        return plain(200, listing.to_string().as_bytes());
    }
    if let Manner::Status(status) = manner {
        return plain(status, b"");
    }
    let file = path.strip_prefix(&format!("/org/name/resolve/{SHA}/"));
    let stored = path.strip_prefix("/storage/");
    if let (Manner::Redirecting, Some(name), true) = (manner, file, path.ends_with(".safetensors")) {
        let place = format!("Location: http://localhost:{port}/storage/{name}\r\n");
        return send(302, place, b"", 0);
    }
    let Some(bytes) = file.or(stored).and_then(|name| files.get(name)) else {
        return plain(404, b"");
    };
    let Some(range) = range.filter(|_| manner != Manner::Whole) else {
        return plain(200, bytes);
    };
    if manner == Manner::Badly && count % 2 == 0 {
        return plain(503, b"");
    }
    if range.start >= bytes.len() as u64 {
        return plain(416, b"");
    }
    let end = range.end.min(bytes.len() as u64);
    let part = &bytes[range.start as usize..end as usize];
    let start = range.start + u64::from(manner == Manner::Elsewhere);
    let place = format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, bytes.len());
    let sent = if manner == Manner::Badly {
        part.len().div_ceil(2)
    } else {
        part.len()
    };
    send(206, place, &part[..sent], part.len())
}
