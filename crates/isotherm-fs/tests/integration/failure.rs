//! What a volume says when its device fails.

use crate::support::failing::Failing;
use crate::support::sample::{Sample, sample};
use isotherm_fs::log::LogSettings;
use isotherm_fs::store::StoreError;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, NewNode, ROOT, Time};
use std::sync::Arc;

/// The thread that makes checkpoints now and then tells nobody what it met: whoever closes the volume is told.
/// Whoever changes something meanwhile is told that it is no use.
#[test]
fn whoever_closes_a_volume_is_told_what_failed_before() {
    let Sample { device, .. } = sample(true);
    let failing = Arc::new(Failing::after(u64::MAX, u64::MAX, device));
    let volume = Volume::open(failing.clone(), LogSettings::default(), Time::default).expect("the device works").0;
    let node = NewNode { kind: FileKind::Directory, permissions: 0o755, umask: 0, device: 0 };
    volume.make_node(Caller::default(), ROOT, b"new", node).expect("nothing is written yet");
    failing.stop_writes();
    let gone = StoreError::Device("the device is gone".into());
    assert_eq!(volume.checkpoint_if_changed(), Err(gone.clone()));
    let refused = volume.make_node(Caller::default(), ROOT, b"newer", node).map(|_| ());
    assert_eq!((refused, volume.close()), (Err(Errno::IO), Err(gone)));
}
