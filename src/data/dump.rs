//! MediaWiki dumps: the articles of an XML export, their markup stripped.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, Event};

use super::records::{Fault, Records};
use super::source::{Origin, Source};
use super::wikitext::{self, Namespaces};
use super::{DataError, Document};

/// The articles of a dump, in its order: pages of the main namespace that are no redirects and have text
/// left once the markup is stripped. Of a page with several revisions the last counts.
///
/// One page is in memory at a time.
pub(super) struct DumpDocuments {
    reader: Reader<Box<dyn BufRead + Send>>,
    origin: Origin,
    skipped: u64,
    depth: usize,
    namespaces: Namespaces,
    page: Page,
    seen: Seen,
}

/// The page that is being read.
#[derive(Default)]
struct Page {
    title: String,
    namespace: String,
    text: String,
    redirect: bool,
}

/// What was met so far.
#[derive(Default)]
struct Seen {
    pages: u64,
    redirects: u64,
    others: u64,
    documents: u64,
    last_title: String,
}

/// The element whose text is being gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Title,
    Namespace,
    Text,
    /// The name of a namespace of files or categories, in the language of the wiki.
    NamespaceName,
}

impl DumpDocuments {
    pub(super) fn new(source: Source) -> Self {
        Self {
            origin: source.origin(),
            skipped: source.skipped,
            reader: Reader::from_reader(source.reader),
            depth: 0,
            namespaces: Namespaces::default(),
            page: Page::default(),
            seen: Seen::default(),
        }
    }

    fn article(&mut self) -> Result<Option<Document>, DataError> {
        loop {
            if !self.page()? {
                break;
            }
            let page = std::mem::take(&mut self.page);
            self.seen.pages += 1;
            if page.redirect || wikitext::is_redirect(&page.text) {
                self.seen.redirects += 1;
            } else if !matches!(page.namespace.trim(), "" | "0") {
                self.seen.others += 1;
            } else {
                let text = wikitext::strip(&page.text, &self.namespaces);
                if !text.is_empty() {
                    self.seen.documents += 1;
                    self.seen.last_title.clone_from(&page.title);
                    return Ok(Some(Document {
                        title: page.title.trim().to_owned(),
                        text,
                    }));
                }
            }
            self.seen.last_title = page.title;
        }
        if self.seen.documents > 0 {
            return Ok(None);
        }
        let Seen {
            pages,
            redirects,
            others,
            ..
        } = self.seen;
        Err(DataError::Empty {
            path: self.origin.path(),
            bytes: self.origin.bytes(),
            pages: format!(
                "{pages} pages, of which {redirects} redirects and {others} outside the main namespace"
            ),
        })
    }

    /// Reads to the end of the next page; false at the end of the dump.
    fn page(&mut self) -> Result<bool, DataError> {
        let mut field = None;
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let event = match self.reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(error) => return Err(self.broken(error)),
            };
            match event {
                Event::Start(element) => {
                    field = match element.name().as_ref() {
                        "page" => {
                            self.page = Page::default();
                            None
                        }
                        "title" => Some(Field::Title),
                        "ns" => Some(Field::Namespace),
                        "text" => {
                            self.page.text.clear();
                            Some(Field::Text)
                        }
                        "namespace" => {
                            let key = element.try_get_attribute("key").ok().flatten();
                            key.is_some_and(|key| self.namespaces.begin(&key.value))
                                .then_some(Field::NamespaceName)
                        }
                        "redirect" => {
                            self.page.redirect = true;
                            None
                        }
                        _ => None,
                    };
                    self.depth += 1;
                }
                Event::Empty(element) => match element.name().as_ref() {
                    "redirect" => self.page.redirect = true,
                    "text" => self.page.text.clear(),
                    _ => {}
                },
                Event::Text(text) => self.gather(field, &text),
                Event::CData(text) => self.gather(field, &text),
                Event::GeneralRef(reference) => self.gather_reference(field, &reference),
                Event::End(element) => {
                    field = None;
                    self.depth -= 1;
                    if element.name().as_ref() == "page" {
                        return Ok(true);
                    }
                }
                Event::Eof if self.depth > 0 => {
                    return Err(self.cut_off());
                }
                Event::Eof => return Ok(false),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    fn gather(&mut self, field: Option<Field>, text: &str) {
        match field {
            Some(Field::Title) => self.page.title.push_str(text),
            Some(Field::Namespace) => self.page.namespace.push_str(text),
            Some(Field::Text) => self.page.text.push_str(text),
            Some(Field::NamespaceName) => self.namespaces.name(text),
            None => {}
        }
    }

    /// A reference such as `&lt;` or `&#160;`; one that XML does not know stays as it is written.
    fn gather_reference(&mut self, field: Option<Field>, reference: &BytesRef) {
        if field.is_none() {
            return;
        }
        let mut utf8 = [0; 4];
        let character = reference.resolve_char_ref().ok().flatten();
        let resolved = match character {
            Some(character) => Some(&*character.encode_utf8(&mut utf8)),
            None => resolve_xml_entity(reference),
        };
        match resolved {
            Some(text) => self.gather(field, text),
            None => self.gather(field, &format!("&{};", &**reference)),
        }
    }

    fn broken(&mut self, error: quick_xml::Error) -> DataError {
        if !matches!(error, quick_xml::Error::Io(_))
            && let Some(damage) = self.origin.damage(self.reader.get_mut())
        {
            return damage;
        }
        match error {
            quick_xml::Error::Io(error) => self.origin.error(&error),
            quick_xml::Error::Syntax(_) => self.cut_off(),
            error => self.wrong(self.reader.error_position(), error.to_string()),
        }
    }

    fn cut_off(&self) -> DataError {
        let message = "the dump is cut off in the middle".to_owned();
        self.wrong(self.reader.buffer_position(), message)
    }

    fn wrong(&self, byte: u64, message: String) -> DataError {
        let place = if !self.page.title.is_empty() {
            format!("in page '{}'", self.page.title)
        } else if !self.seen.last_title.is_empty() {
            format!("after page '{}'", self.seen.last_title)
        } else {
            "before the first page".to_owned()
        };
        DataError::Dump {
            path: self.origin.path(),
            byte: self.skipped + byte,
            place,
            message,
        }
    }
}

impl Records for DumpDocuments {
    fn document(&mut self) -> Result<Option<Document>, Fault> {
        Ok(self.article()?)
    }
}
