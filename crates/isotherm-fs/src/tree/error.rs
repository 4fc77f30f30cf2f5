//! What a request to the tree fails with.

use isotherm_vfs::Errno;

use crate::store::StoreError;

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// A rule of POSIX says so.
    #[error("{0}")]
    Refused(Errno),
    /// The layer below failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a request to the tree comes to.
pub type Result<T> = std::result::Result<T, TreeError>;

impl From<Errno> for TreeError {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

impl From<TreeError> for Errno {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Refused(errno) => errno,
            TreeError::Store(StoreError::NoSpace) => Errno::NOSPC,
            TreeError::Store(StoreError::ReadOnly) => Errno::ROFS,
            TreeError::Store(_) => Errno::IO,
        }
    }
}

/// Where no rule of POSIX can be broken, a refusal is a fault of what is on the volume.
impl From<TreeError> for StoreError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Refused(errno) => Self::Damaged(format!("a node cannot be settled: {errno}")),
            TreeError::Store(error) => error,
        }
    }
}

/// The content of a page cannot be right.
pub(super) fn damaged(text: impl Into<String>) -> TreeError {
    TreeError::Store(StoreError::Damaged(text.into()))
}
