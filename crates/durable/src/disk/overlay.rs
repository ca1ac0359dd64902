//! An overlay: reads come from a file, and all writes stay in memory.
//!
//! redb recovers a file when it opens it, and repairs it during a verification. A check must not change the file, so
//! redb gets this overlay instead.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

const BLOCK: u64 = 4096;

#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    length: u64,
    /// Bytes of the file beyond this were truncated.
    valid: u64,
    /// The written blocks, by number.
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let state = State { length, valid: length, blocks: BTreeMap::new() };
        Ok(Overlay { file, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current contents of a block.
    fn block(&self, state: &State, number: u64) -> io::Result<Vec<u8>> {
        if let Some(block) = state.blocks.get(&number) {
            return Ok(block.clone());
        }
        let (start, mut block) = (number * BLOCK, vec![0; BLOCK as usize]);
        let there = state.valid.saturating_sub(start).min(BLOCK) as usize;
        self.file.read_exact_at(&mut block[..there], start)?;
        Ok(block)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        if offset.saturating_add(out.len() as u64) > state.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let block = self.block(&state, at / BLOCK)?;
            let from = &block[(at % BLOCK) as usize..];
            let count = from.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state();
        state.length = length;
        state.valid = state.valid.min(length);
        state.blocks.split_off(&length.div_ceil(BLOCK));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let mut block = self.block(&state, at / BLOCK)?;
            let begin = (at % BLOCK) as usize;
            let count = (block.len() - begin).min(data.len() - done);
            block[begin..begin + count].copy_from_slice(&data[done..done + count]);
            state.blocks.insert(at / BLOCK, block);
            done += count;
        }
        Ok(())
    }
}
