//! Requests to the hub: what a model holds, and parts of its files.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use super::{HubError, HubModel};

/// How often in a row a part of a file is asked for in vain, each time for what is still missing.
const ATTEMPTS: u32 = 5;

/// The longest list of files that is read.
const LONGEST_LISTING: u64 = 100_000_000;

pub(super) struct Client {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
    /// Before the second attempt; twice as long before each further one.
    pause: Duration,
}

/// A model at one commit.
#[derive(Debug, Deserialize)]
pub(super) struct Listing {
    pub sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Listing {
    pub fn holds(&self, file: &str) -> bool {
        self.siblings.iter().any(|sibling| sibling.rfilename == file)
    }
}

/// A part of a file, and how long the file is.
#[derive(Debug)]
pub(super) struct Part {
    pub bytes: Vec<u8>,
    pub length: u64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub fn new(endpoint: &str, token: Option<String>) -> Self {
        let seconds = |s| Some(Duration::from_secs(s));
        let agent = Agent::config_builder()
            .user_agent(concat!("wqk/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            // The token is for the hub, not for the storage that it sends us to.
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_connect(seconds(20))
            .timeout_recv_response(seconds(60))
            .timeout_per_read(seconds(60))
            .build()
            .into();
        let local = endpoint.starts_with("http://127.0.0.1");
        Self {
            agent,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token,
            pause: Duration::from_millis(if local { 1 } else { 500 }),
        }
    }

    /// What a model holds at its revision, and which commit that is.
    pub fn listing(&self, model: &HubModel) -> Result<Listing, HubError> {
        let url = format!(
            "{}/api/models/{}/revision/{}",
            self.endpoint,
            model.repository,
            escaped(&model.revision)
        );
        let response = self.ask(&url, None)?;
        check(model, &url, response.status())?;
        let mut text = Vec::new();
        response
            .into_body()
            .into_reader()
            .take(LONGEST_LISTING)
            .read_to_end(&mut text)
            .map_err(|error| connection(&url, error))?;
        let listing: Listing = serde_json::from_slice(&text).map_err(|_| HubError::Answer {
            url: url.clone(),
            what: "the server's answer does not describe a model".into(),
        })?;
        let is_commit = listing.sha.len() == 40 && listing.sha.chars().all(|c| c.is_ascii_hexdigit());
        if is_commit {
            Ok(listing)
        } else {
            Err(HubError::Answer {
                url,
                what: "the server names no commit".into(),
            })
        }
    }

    /// A part of a file at a commit; less than was asked for where the file ends earlier.
    pub fn part(
        &self,
        model: &HubModel,
        commit: &str,
        file: &str,
        range: Range<u64>,
    ) -> Result<Part, HubError> {
        let url = format!(
            "{}/{}/resolve/{commit}/{}",
            self.endpoint,
            model.repository,
            escaped(file)
        );
        let mut part = Part {
            bytes: Vec::new(),
            length: 0,
        };
        let mut wanted = range.clone();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (last, pause) = (attempt == ATTEMPTS, self.pause * 2u32.pow(attempt - 1));
            match self.ask(&url, Some(&wanted)) {
                Ok(response) if is_busy(response.status()) && !last => {}
                Ok(response) => {
                    check(model, &url, response.status())?;
                    part.length = read(&url, response, &wanted, &mut part.bytes)?;
                    wanted.end = wanted.end.min(part.length);
                }
                Err(error) if last => return Err(error),
                Err(_) => {}
            }
            let start = range.start + part.bytes.len() as u64;
            if start > wanted.start {
                attempt = 0;
            }
            wanted.start = start;
            if part.length > 0 && wanted.start >= wanted.end {
                return Ok(part);
            }
            if attempt == ATTEMPTS {
                let left = wanted.end.saturating_sub(wanted.start);
                return Err(connection(
                    &url,
                    format!("the connection ends {left} bytes too early"),
                ));
            }
            std::thread::sleep(pause);
        }
    }

    fn ask(&self, url: &str, range: Option<&Range<u64>>) -> Result<Response<Body>, HubError> {
        let mut request = self.agent.get(url);
        if let Some(range) = range {
            request = request
                .header("Range", format!("bytes={}-{}", range.start, range.end - 1))
                // Ranges are of the bytes as they are stored.
                .header("Accept-Encoding", "identity");
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.call().map_err(|error| connection(url, error))
    }
}

/// Adds what the response holds, as far as it gets, and gives the length of the file.
fn read(
    url: &str,
    response: Response<Body>,
    wanted: &Range<u64>,
    bytes: &mut Vec<u8>,
) -> Result<u64, HubError> {
    let answer = |what: String| HubError::Answer {
        url: url.to_owned(),
        what,
    };
    let length = match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let header = response.headers().get("content-range");
            let stated = header.and_then(|value| content_range(value.to_str().ok()?));
            let (start, length) = stated
                .ok_or_else(|| answer("the server does not say which part of the file it sends".into()))?;
            if start != wanted.start {
                let what = format!(
                    "the server sends bytes from {start} on, not from {}",
                    wanted.start
                );
                return Err(answer(what));
            }
            length
        }
        // The whole file: good enough if its beginning was wanted, of which no more than that is read.
        StatusCode::OK if wanted.start == 0 => {
            let header = response.headers().get("content-length");
            header
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .ok_or_else(|| answer("the server does not say how long the file is".into()))?
        }
        StatusCode::OK => return Err(answer("the server sends whole files only, not parts".into())),
        status => {
            return Err(HubError::Status {
                status: status.as_u16(),
                url: url.to_owned(),
            });
        }
    };
    let take = wanted.end.min(length).saturating_sub(wanted.start);
    // Kept even where the connection ends early: the next attempt goes on from there.
    let _ = response.into_body().into_reader().take(take).read_to_end(bytes);
    Ok(length)
}

/// `bytes START-END/LENGTH`.
fn content_range(header: &str) -> Option<(u64, u64)> {
    let (range, length) = header.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, length.trim().parse().ok()?))
}

/// Whether the same question may be answered a little later.
fn is_busy(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

fn check(model: &HubModel, url: &str, status: StatusCode) -> Result<(), HubError> {
    let (model, url) = (model.clone(), url.to_owned());
    match status.as_u16() {
        200 | 206 => Ok(()),
        status @ (401 | 403) => Err(HubError::Refused { model, status, url }),
        404 => Err(HubError::NotFound { model, url }),
        status => Err(HubError::Status { status, url }),
    }
}

fn connection(url: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HubError {
    HubError::Connection {
        url: url.to_owned(),
        source: source.into(),
    }
}

/// A revision or file name as a part of a path: what is not plain is escaped, the slash too.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
