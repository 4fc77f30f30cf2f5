//! The header of an image: what it is, and the specification that its device is built from. It is written once; a copy follows it.

use super::disk::Disk;
use super::layout::{HEADER_BYTES, u32_at};
use super::{ImageError, Problem};
use isotherm::build::Environment;
use isotherm::spec::DeviceSpec;

const MAGIC: [u8; 16] = *b"isotherm flash\r\n";
/// Rises when images are no longer read as before.
pub const VERSION: u32 = 1;
/// Bytes before the text.
const TEXT_AT: usize = 32;

/// What a drive was created as.
#[derive(Clone, Debug)]
pub struct Header {
    /// The specification.
    pub spec: DeviceSpec,
    /// Seed of its policies.
    pub seed: u64,
}

impl Header {
    /// What the device depends on beside its specification.
    pub(crate) fn environment(&self) -> Environment {
        Environment { logical_bytes: 0, seed: self.seed, ..Environment::default() }
    }

    /// The bytes of the header: magic, version, length of the text, checksum of all else, and the text.
    fn encode(&self) -> Result<Vec<u8>, ImageError> {
        let text = format!("seed = {}\n\n{}", self.seed, self.spec.to_toml());
        if TEXT_AT + text.len() > HEADER_BYTES as usize {
            return Err(ImageError::new(
                Problem::Specification,
                "the specification is too long for the image's header",
                "shorten its lists",
            ));
        }
        let mut bytes = vec![0; HEADER_BYTES as usize];
        bytes[..16].copy_from_slice(&MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[20..24].copy_from_slice(&(text.len() as u32).to_le_bytes());
        bytes[TEXT_AT..TEXT_AT + text.len()].copy_from_slice(text.as_bytes());
        let check = check_of(&bytes);
        bytes[24..28].copy_from_slice(&check.to_le_bytes());
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self, ImageError> {
        if bytes[..16] != MAGIC {
            return Err(ImageError::new(
                Problem::Foreign,
                "it is no flash image",
                "create one with isotherm drive create",
            ));
        }
        let version = u32_at(bytes, 16);
        let damaged = |problem: String| ImageError::new(Problem::Damaged, problem, "restore the image from a copy");
        if u32_at(bytes, 24) != check_of(bytes) {
            return Err(damaged("its header is damaged, and the header's copy too".to_owned()));
        }
        if version != VERSION {
            return Err(ImageError::new(
                Problem::Version,
                format!("it has version {version}, this program reads version {VERSION}"),
                "use the program that made it",
            ));
        }
        let text = bytes.get(TEXT_AT..TEXT_AT + u32_at(bytes, 20) as usize);
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let (seed, spec) = text
            .and_then(|text| text.strip_prefix("seed = ")?.split_once('\n'))
            .ok_or_else(|| damaged("its header holds no specification".to_owned()))?;
        let seed = seed.parse().map_err(|_| damaged("its header holds no seed".to_owned()))?;
        let spec = DeviceSpec::from_toml(spec, &[])
            .map_err(|error| damaged(format!("the specification in its header cannot be read: {error}")))?;
        Ok(Self { spec, seed })
    }

    pub(crate) fn write(&self, disk: &impl Disk) -> Result<(), ImageError> {
        let bytes = self.encode()?;
        disk.write(0, &bytes)?;
        disk.write(HEADER_BYTES, &bytes)?;
        Ok(())
    }

    /// Reads the header, or its copy where it is damaged.
    pub(crate) fn read(disk: &impl Disk) -> Result<Self, ImageError> {
        if disk.length()? < 2 * HEADER_BYTES {
            return Err(ImageError::new(
                Problem::Foreign,
                "it is too short for a flash image",
                "create one with isotherm drive create",
            ));
        }
        let mut bytes = vec![0; 2 * HEADER_BYTES as usize];
        disk.read(0, &mut bytes)?;
        let (first, second) = bytes.split_at(HEADER_BYTES as usize);
        match (Self::decode(first), Self::decode(second)) {
            (Ok(header), _) => Ok(header),
            (Err(_), Ok(copy)) => Ok(copy),
            (Err(error), Err(other)) => {
                Err(if error.problem == Problem::Foreign && other.problem != Problem::Foreign { other } else { error })
            }
        }
    }
}

/// The checksum of a header, but for the place where it stands.
fn check_of(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..24]);
    hasher.update(&bytes[28..]);
    hasher.finalize()
}
