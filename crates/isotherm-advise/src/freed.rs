//! As if discarded at once: what no file holds when the trace ends is discarded after the trace's last use of it.
//!
//! A map that is taken at the end of a trace says which pages files hold then. All other pages are taken for deleted, and the last
//! request that reads or writes one for the last that its file saw. That frees too much where something that is in no map needs
//! its pages (metadata of the file system, its journal, files that were left out), and too little where a page was deleted and
//! given to another file within the trace: an estimate. Costs one pass over the trace and 8 bytes a touched page.

use crate::files::FileMap;
use isotherm::request::Op;
use isotherm_eval::{EvalError, TouchedPages, TraceSource};

/// What is discarded, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Freed {
    /// In the order of the requests.
    discards: Vec<Discard>,
    /// Pages of all of them.
    pub pages: u64,
}

/// One discard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discard {
    /// Number of the request of the trace that it follows.
    pub after: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Freed {
    /// What `map` leaves free of the pages that the trace touches; none where it holds them all.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn of(
        trace: &TraceSource,
        touched: &TouchedPages,
        page_bytes: u64,
        map: &FileMap,
    ) -> Result<Option<Self>, EvalError> {
        let mut last_use = vec![0u64; touched.count() as usize];
        let mut number = 0;
        trace.for_each(|batch| {
            for request in batch.iter() {
                if matches!(request.op, Op::Read | Op::Write) && request.length > 0 {
                    // Pages of one request are neighbours among the touched ones too.
                    let first = touched.rank(request.offset / page_bytes) as usize;
                    let pages = (request.offset + request.length).div_ceil(page_bytes) - request.offset / page_bytes;
                    last_use[first..first + pages as usize].fill(number);
                }
                number += 1;
            }
            Ok(())
        })?;
        let mut discards: Vec<Discard> = Vec::new();
        for (page, after) in touched.pages().zip(last_use) {
            let offset = page * page_bytes;
            if !map.is_free(offset..offset + page_bytes) {
                continue;
            }
            match discards.last_mut() {
                Some(last) if last.after == after && last.offset + last.length == offset => last.length += page_bytes,
                _ => discards.push(Discard { after, offset, length: page_bytes }),
            }
        }
        discards.sort_by_key(|discard| discard.after);
        let pages = discards.iter().map(|discard| discard.length / page_bytes).sum();
        Ok((pages > 0).then_some(Self { discards, pages }))
    }

    /// The discards from a number on that follow this request, where all before have been made.
    pub fn after(&self, from: usize, request: u64) -> &[Discard] {
        let left = &self.discards[from..];
        &left[..left.iter().take_while(|discard| discard.after <= request).count()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_eval::SurveyKey;

    #[test]
    fn what_no_file_holds_is_discarded_after_its_last_use() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Pages 8 and 9 are read last, page 1 is a file's, page 3 is half a file's, page 5 is not touched.
        let rows = "ts_ns,op,offset,length\n0,W,0,16384\n1,W,32768,8192\n2,W,0,4096\n3,R,32768,8192\n4,W,16384,4096\n5,W,4096,4096\n";
        std::fs::write(file.path(), rows).unwrap();
        let trace = TraceSource::new(file.path().to_str().unwrap());
        let survey = SurveyKey { trace: trace.clone(), page_bytes: 4096, touched: true }.survey().unwrap();
        let map = "File size of a is 6144 (12 blocks of 512 bytes)\n0: 0..7: 8..15: 8:\n1: 8..11: 28..31: 4:\n";
        let map = FileMap::parse(map, 0).unwrap();
        let touched = survey.touched.unwrap();
        let freed = Freed::of(&trace, &touched, 4096, &map).unwrap().unwrap();
        let discard = |after, page: u64, pages: u64| Discard { after, offset: page * 4096, length: pages * 4096 };
        assert_eq!(freed.discards, [discard(0, 2, 1), discard(2, 0, 1), discard(3, 8, 2), discard(4, 4, 1)]);
        assert_eq!((freed.pages, freed.after(1, 1).len(), freed.after(1, 3).len()), (5, 0, 2));
        let all = FileMap::parse("File size of a is 1 (1 block of 65536 bytes)\n0: 0..0: 0..0: 1:\n", 0).unwrap();
        assert_eq!(Freed::of(&trace, &touched, 4096, &all).unwrap(), None);
    }
}
