//! Where files lie, as a volume tells it: what lies there is what a read finds, after an unmount and after a crash.

use crate::support::sample::{Sample, mount, sample};
use isotherm_fs::device::Device;
use isotherm_fs::volume::{EXTENTS_XATTR, Volume, parse_extents};
use isotherm_vfs::{Errno, FileSystem, Handle, Ino};

fn told(volume: &Volume, ino: Ino, from: &str) -> Result<String, Errno> {
    let text = volume.xattr(ino, format!("{EXTENTS_XATTR}{from}").as_bytes())?;
    Ok(String::from_utf8(text).expect("it is text"))
}

#[test]
fn what_lies_where_a_file_is_said_to_lie_is_the_file() {
    for closes in [true, false] {
        let Sample { device, large, with_xattrs, inner, .. } = sample(closes);
        let volume = mount(device.clone(), true);
        let text = told(&volume, large, "0").expect("it is a file");
        let extents = parse_extents(&text).expect("it is a list of extents");
        let blocks: Vec<u64> = extents.iter().flat_map(|at| at.block..at.block + at.count).collect();
        assert_eq!(blocks, (0..700).step_by(3).collect::<Vec<_>>());
        for at in &extents {
            for i in 0..at.count {
                let (mut lies, mut read) = ([0; 4096], Vec::new());
                device.read((u64::from(at.position) + i) * 4096, &mut lies).expect("it is within the device");
                let block = at.block + i;
                volume.read(large, Handle::default(), block * 4096, 4096, &mut read).expect("it can be read");
                assert!(lies[..] == read[..], "block {block}, closed: {closes}");
            }
        }
        // From a block on, and behind the last.
        assert_eq!(told(&volume, large, "600"), Ok(text.lines().skip(200).map(|line| format!("{line}\n")).collect()));
        assert_eq!(told(&volume, large, "700"), Ok(String::new()));
        // What is set aside lies nowhere.
        assert_eq!(told(&volume, with_xattrs, "0"), Ok(String::new()));
        assert_eq!(told(&volume, inner, "0"), Err(Errno::ISDIR));
        assert_eq!(told(&volume, large, "x"), Err(Errno::NODATA));
    }
    assert_eq!(parse_extents("1 2\n"), None);
}
