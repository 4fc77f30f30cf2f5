//! Random operations.

use proptest::prelude::*;

/// Numbers choose among what is there.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Make { directory: u8, name: u8, kind: u8, permissions: u16, gid: u8 },
    Symlink { directory: u8, name: u8, length: u16 },
    Link { node: u8, directory: u8, name: u8 },
    Unlink { directory: u8, name: u8 },
    RemoveDirectory { directory: u8, name: u8 },
    Rename { from: (u8, u8), to: (u8, u8), mode: u8 },
    Write { file: u8, at: Position, length: u16, append: bool, byte: u8 },
    Truncate { file: u8, at: Position },
    Allocate { file: u8, at: Position, length: u32, how: u8 },
    Copy { from: (u8, Position), to: (u8, Position), length: u16 },
    Change { node: u8, permissions: Option<u16>, owner: Option<u8>, modified: bool },
    SetXattr { node: u8, name: u8, length: u32, how: u8 },
    RemoveXattr { node: u8, name: u8 },
    Open { node: u8 },
    Release { node: u8 },
    WriteOut { which: u8 },
    Settle { node: u8 },
    Reopen,
}

/// A place in a file: near one of those where the map changes its shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    near: u8,
    by: i16,
}

impl Position {
    pub(super) fn bytes(self) -> u64 {
        const NEAR: [u64; 8] = [0, 1, 4, 8, 9, 8 + 255, 8 + 255 * 1020, (1 << 32) - 3];
        (NEAR[usize::from(self.near) % 8] * 4096).saturating_add_signed(i64::from(self.by))
    }
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let position =
        || (0..8_u8, -5000..9000_i16).prop_map(|(near, by)| Position { near: near * u8::from(by % 3 != 0), by });
    let name = || 0..5_u8;
    prop_oneof![
        6 => (any::<u8>(), name(), any::<u8>(), 0..0o10_000_u16, 0..3_u8)
            .prop_map(|(directory, name, kind, permissions, gid)| O::Make { directory, name, kind, permissions, gid }),
        1 => (any::<u8>(), name(), 1..4096_u16).prop_map(|(directory, name, length)| O::Symlink { directory, name, length }),
        2 => (any::<u8>(), any::<u8>(), name()).prop_map(|(node, directory, name)| O::Link { node, directory, name }),
        3 => (any::<u8>(), name()).prop_map(|(directory, name)| O::Unlink { directory, name }),
        1 => (any::<u8>(), name()).prop_map(|(directory, name)| O::RemoveDirectory { directory, name }),
        4 => ((any::<u8>(), name()), (any::<u8>(), name()), 0..6_u8).prop_map(|(from, to, mode)| O::Rename { from, to, mode }),
        8 => (any::<u8>(), position(), 0..20_000_u16, any::<bool>(), any::<u8>())
            .prop_map(|(file, at, length, append, byte)| O::Write { file, at, length, append, byte }),
        4 => (any::<u8>(), position()).prop_map(|(file, at)| O::Truncate { file, at }),
        4 => (any::<u8>(), position(), 0..200_000_u32, 0..5_u8)
            .prop_map(|(file, at, length, how)| O::Allocate { file, at, length, how }),
        2 => ((any::<u8>(), position()), (any::<u8>(), position()), any::<u16>())
            .prop_map(|(from, to, length)| O::Copy { from, to, length }),
        2 => (any::<u8>(), prop::option::of(0..0o10_000_u16), prop::option::of(0..3_u8), any::<bool>())
            .prop_map(|(node, permissions, owner, modified)| O::Change { node, permissions, owner, modified }),
        2 => (any::<u8>(), name(), 0..65_536_u32, 0..3_u8)
            .prop_map(|(node, name, length, how)| O::SetXattr { node, name, length, how }),
        1 => (any::<u8>(), name()).prop_map(|(node, name)| O::RemoveXattr { node, name }),
        2 => any::<u8>().prop_map(|node| O::Open { node }),
        2 => any::<u8>().prop_map(|node| O::Release { node }),
        2 => any::<u8>().prop_map(|which| O::WriteOut { which }),
        1 => any::<u8>().prop_map(|node| O::Settle { node }),
        1 => Just(O::Reopen),
    ]
}
