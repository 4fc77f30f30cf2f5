//! Reading blocks and pages, from memory or from the device.

use super::Log;
use super::tables::{TablePage, exists, is_new};
use crate::device::Device;
use crate::format::checkpoint::TABLE_ENTRIES;
use crate::format::entry::{Entry, HOLE};
use crate::format::superblock::FEATURE_DATA_CHECKSUMS;
use crate::store::{BLOCK_BYTES, BlockReader, Page, PageId, StoreError};
use std::sync::Arc;

/// Reads blocks of the device without the lock of the log.
#[derive(Clone, Debug)]
pub struct DeviceReader {
    pub(super) device: Arc<dyn Device>,
}

impl BlockReader for DeviceReader {
    fn read_blocks(&self, position: u32, out: &mut [u8]) -> Result<(), StoreError> {
        let offset = u64::from(position) * BLOCK_BYTES as u64;
        self.device.read(offset, out).map_err(|error| StoreError::Device(error.to_string()))
    }
}

impl Log {
    /// Whether reads of file data verify checksums.
    pub fn verifies_data(&self) -> bool {
        self.superblock.features & FEATURE_DATA_CHECKSUMS != 0
    }

    /// The block at a position.
    pub(super) fn read_block(&self, position: u32, checksum: u32, verify: bool) -> Result<Arc<Page>, StoreError> {
        if let Some(content) = self.under_way.get(&position) {
            return Ok(content.clone());
        }
        let mut content: Arc<Page> = Arc::new([0; BLOCK_BYTES]);
        let bytes = Arc::get_mut(&mut content).expect("nobody else has it");
        let offset = u64::from(position) * BLOCK_BYTES as u64;
        self.device.read(offset, bytes).map_err(|error| StoreError::Device(error.to_string()))?;
        if verify && crc32c::crc32c(bytes) != checksum {
            return Err(StoreError::Damaged(format!("the checksum of block {position} is wrong")));
        }
        Ok(content)
    }

    /// The entry of a page: where it lies, how hot it is, its checksum.
    ///
    /// # Errors
    /// The device, damage.
    pub fn page_entry(&mut self, id: PageId) -> Result<Entry, StoreError> {
        let content = self.load_table(id / TABLE_ENTRIES)?.content.clone();
        let entry = Entry::at(&*content, (id % TABLE_ENTRIES) as usize);
        if entry.is_stored() && self.superblock.segment_of(entry.position).is_none() {
            return Err(StoreError::Damaged(format!("the entry of page {id} leads out of the volume")));
        }
        Ok(entry)
    }

    pub(super) fn load_table(&mut self, number: u32) -> Result<&mut TablePage, StoreError> {
        let (device, under_way, superblock) = (&self.device, &self.under_way, &self.superblock);
        self.tables.load(number, |root| {
            if superblock.segment_of(root.position).is_none() {
                return Err(StoreError::Damaged(format!("the root of table page {number} leads out of the volume")));
            }
            if let Some(content) = under_way.get(&root.position) {
                return Ok(content.clone());
            }
            let mut content: Arc<Page> = Arc::new([0; BLOCK_BYTES]);
            let bytes = Arc::get_mut(&mut content).expect("nobody else has it");
            let offset = u64::from(root.position) * BLOCK_BYTES as u64;
            device.read(offset, bytes).map_err(|error| StoreError::Device(error.to_string()))?;
            if crc32c::crc32c(bytes) != root.checksum {
                return Err(StoreError::Damaged(format!("the checksum of table page {number} is wrong")));
            }
            Ok(content)
        })
    }

    /// The first page that exists with this number or a higher one.
    pub(super) fn page_from(&mut self, from: PageId) -> Result<Option<PageId>, StoreError> {
        let mut id = u64::from(from);
        while id < self.tables.roots().len() as u64 * u64::from(TABLE_ENTRIES) {
            let number = id as u32 / TABLE_ENTRIES;
            let content = self.load_table(number)?.content.clone();
            let first = (id % u64::from(TABLE_ENTRIES)) as u32;
            if let Some(index) = (first..TABLE_ENTRIES).find(|index| exists(Entry::at(&*content, *index as usize))) {
                return Ok(Some(number * TABLE_ENTRIES + index));
            }
            id = (u64::from(number) + 1) * u64::from(TABLE_ENTRIES);
        }
        Ok(None)
    }

    /// A page, in memory from now on.
    pub(super) fn load_page(&mut self, id: PageId) -> Result<Arc<Page>, StoreError> {
        if self.is_freed(id) {
            return Err(StoreError::Damaged(format!("page {id} was freed, and is referred to")));
        }
        if let Some(cached) = self.cache.get(id) {
            return Ok(cached.content.clone());
        }
        let entry = self.page_entry(id)?;
        if !exists(entry) {
            return Err(StoreError::Damaged(format!("page {id} does not exist, and is referred to")));
        }
        let content = if is_new(entry) {
            Arc::new([0; BLOCK_BYTES])
        } else {
            self.read_block(entry.position, entry.checksum, true)?
        };
        let home = if is_new(entry) { HOLE } else { entry.position };
        self.cache.insert(id, content.clone(), entry.heat, home);
        Ok(content)
    }
}
