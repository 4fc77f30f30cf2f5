//! What a device holds that is no volume of SFS, by the marks that other formats put on it.

use isotherm_fs::device::Device;
use std::io;

/// Where a format has its mark, and what the mark is.
struct Signature {
    name: &'static str,
    offset: u64,
    mark: &'static [u8],
}

const fn at(offset: u64, mark: &'static [u8], name: &'static str) -> Signature {
    Signature { name, offset, mark }
}

/// A partition table of the old kind comes last: several formats begin with what looks like one.
const SIGNATURES: &[Signature] = &[
    at(1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    at(0, b"XFSB", "an XFS file system"),
    at(0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    at(1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    at(1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    at(0, b"hsqs", "a squashfs file system"),
    at(3, b"NTFS    ", "an NTFS file system"),
    at(3, b"EXFAT   ", "an exFAT file system"),
    at(54, b"FAT1", "a FAT file system"),
    at(82, b"FAT32   ", "a FAT file system"),
    at(32_769, b"CD001", "an ISO 9660 file system"),
    at(4086, b"SWAPSPACE2", "swap space"),
    at(4086, b"SWAP-SPACE", "swap space"),
    at(0, b"LUKS\xba\xbe", "an encrypted device (LUKS)"),
    at(512, b"LABELONE", "a physical volume of LVM"),
    at(4096, b"\xfc\x4e\x2b\xa9", "a part of a RAID (md)"),
    at(0, b"QFI\xfb", "a qcow2 image"),
    at(0, b"isotherm flash\r\n", "an image of a simulated drive"),
    at(512, b"EFI PART", "a partition table (GPT)"),
    at(4096, b"EFI PART", "a partition table (GPT)"),
    at(510, b"\x55\xaa", "a partition table or a boot sector"),
];

fn is_there(device: &dyn Device, signature: &Signature) -> io::Result<bool> {
    let end = signature.offset + signature.mark.len() as u64;
    if end > device.length() {
        return Ok(false);
    }
    let mut found = vec![0; signature.mark.len()];
    device.read(signature.offset, &mut found)?;
    Ok(found == signature.mark)
}

/// What the device holds, as far as that is known.
pub fn held(device: &dyn Device) -> io::Result<Option<&'static str>> {
    for signature in SIGNATURES {
        if is_there(device, signature)? {
            return Ok(Some(signature.name));
        }
    }
    Ok(None)
}

/// Takes the marks away, so that nobody takes the device for what it was.
pub fn wipe(device: &dyn Device) -> io::Result<()> {
    for signature in SIGNATURES {
        if is_there(device, signature)? {
            device.write(signature.offset, &vec![0; signature.mark.len()])?;
        }
    }
    Ok(())
}
