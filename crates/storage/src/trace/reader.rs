//! The one reader interface: requests in the order of their arrival, whatever the format.

use super::blkparse::Blkparse;
use super::delimited::{Delimited, ALIBABA, FIU, SYSTOR, TENCENT};
use super::detect::{detect, HEAD_BYTES};
use super::disksim::{Disksim, Validation};
use super::error::{TraceError, TracePosition};
use super::fio::Fio;
use super::format::Format;
use super::lines::Lines;
use super::mqsim::Mqsim;
use super::msr::Msr;
use super::order::Reorder;
use super::request::Request;
use super::spc::Spc;
use super::srt::Srt;
use std::io::{BufRead, Chain, Cursor, Read};

/// A reader per format. (The sizes differ by a line's buffer; there is one reader per trace.)
enum Source {
    Blkparse(Lines<Blkparse>),
    Delimited(Box<Lines<Delimited>>),
    Disksim(Lines<Disksim>),
    Validation(Lines<Validation>),
    Fio(Lines<Fio>),
    Srt(Srt),
    Mqsim(Lines<Mqsim>),
    Msr(Lines<Msr>),
    Spc(Lines<Spc>),
}

/// Reads requests one by one, in constant memory; ends after the first error.
pub struct TraceReader<R> {
    name: String,
    format: Format,
    from: Chain<Cursor<Vec<u8>>, R>,
    source: Source,
    /// Present if the format is only nearly in order.
    reorder: Option<Reorder>,
    ended: bool,
    failed: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// A reader; `format` None: told by the content. `name` is what errors call the trace.
    ///
    /// # Errors
    /// [`TraceError`] when the first bytes cannot be read or tell no format.
    pub fn new(name: &str, format: Option<Format>, mut from: R) -> Result<TraceReader<R>, TraceError> {
        let name = name.to_owned();
        let mut head = Vec::new();
        let format = match format {
            Some(format) => format,
            None => {
                if let Err(source) = from.by_ref().take(HEAD_BYTES).read_to_end(&mut head) {
                    return Err(TraceError::Read { name, place: TracePosition::Byte(head.len() as u64), source });
                }
                detect(&name, &head)?
            }
        };
        let delimited = |map| Source::Delimited(Box::new(Lines::new(Delimited::new(map))));
        let source = match format {
            Format::Alibaba => delimited(ALIBABA),
            Format::Columns(map) => delimited(map),
            Format::Fiu => delimited(FIU),
            Format::Systor => delimited(SYSTOR),
            Format::Tencent => delimited(TENCENT),
            Format::Blkparse => Source::Blkparse(Lines::new(Blkparse::default())),
            Format::Disksim => Source::Disksim(Lines::new(Disksim::default())),
            Format::DisksimValidate => Source::Validation(Lines::new(Validation::default())),
            Format::Fio => Source::Fio(Lines::new(Fio::default())),
            Format::HpSrt => Source::Srt(Srt::default()),
            Format::Mqsim => Source::Mqsim(Lines::new(Mqsim::default())),
            Format::Msr => Source::Msr(Lines::new(Msr::default())),
            Format::Spc => Source::Spc(Lines::new(Spc::default())),
        };
        let nearly_ordered = matches!(source, Source::Blkparse(_) | Source::Delimited(_) | Source::Msr(_));
        let reorder = nearly_ordered.then(Reorder::default);
        Ok(TraceReader {
            name,
            format,
            from: Cursor::new(head).chain(from),
            source,
            reorder,
            ended: false,
            failed: false,
        })
    }

    /// The format, as asked for or as told by the content.
    pub fn format(&self) -> Format {
        self.format
    }

    fn raw(&mut self) -> Option<Result<Request, TraceError>> {
        let (name, from) = (self.name.as_str(), &mut self.from);
        match &mut self.source {
            Source::Blkparse(lines) => lines.next(name, from),
            Source::Delimited(lines) => lines.next(name, from),
            Source::Disksim(lines) => lines.next(name, from),
            Source::Validation(lines) => lines.next(name, from),
            Source::Fio(lines) => lines.next(name, from),
            Source::Srt(srt) => srt.next(name, from),
            Source::Mqsim(lines) => lines.next(name, from),
            Source::Msr(lines) => lines.next(name, from),
            Source::Spc(lines) => lines.next(name, from),
        }
    }

    fn line(&self) -> u64 {
        match &self.source {
            Source::Blkparse(lines) => lines.line(),
            Source::Delimited(lines) => lines.line(),
            Source::Msr(lines) => lines.line(),
            // The others are in order, line by line, and never come here.
            _ => 0,
        }
    }

    fn ordered(&mut self) -> Option<Result<Request, TraceError>> {
        if self.reorder.is_none() {
            return self.raw();
        }
        while !self.ended {
            let request = match self.raw() {
                None => {
                    self.ended = true;
                    break;
                }
                Some(Ok(request)) => request,
                Some(Err(error)) => return Some(Err(error)),
            };
            let line = self.line();
            let reorder = self.reorder.as_mut()?;
            match reorder.put(request) {
                Ok(false) => {}
                Ok(true) => return reorder.take().map(Ok),
                Err(expected) => {
                    let (name, place) = (self.name.clone(), TracePosition::Line(line));
                    return Some(Err(TraceError::Content { name, place, text: None, expected, read: 0 }));
                }
            }
        }
        self.reorder.as_mut()?.take().map(Ok)
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.ordered();
        self.failed = matches!(next, None | Some(Err(_)));
        next
    }
}
