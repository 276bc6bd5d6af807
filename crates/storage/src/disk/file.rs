//! Disks by name or by file: the one place of the disk models that opens files.

use super::cheetah_9lp;
use super::disk::Device;
use super::disksim::drive;
use super::drive::Drive;
use super::flash::{Flash, FlashSpec};
use super::param::{parse, ParamError};
use super::schedule::Scheduler;
use super::spec::DriveSpec;
use std::path::{Path, PathBuf};

/// Names of the disks that are built in.
pub const NAMES: [&str; 2] = ["cheetah-9lp", "nvme"];

/// Bytes of a parameter file; those of DiskSim have some ten thousand.
const FILE_BYTES_MAX: u64 = 1 << 26;

/// The disk that is built in under a name.
pub fn named(name: &str) -> Option<Device> {
    match name {
        "cheetah-9lp" => Some(Device::Drive(Box::new(Drive::new(cheetah_9lp::spec())))),
        "nvme" => Some(Device::Flash(Box::new(Flash::new(FlashSpec::nvme())))),
        _ => None,
    }
}

/// The drive of a DiskSim file (.parv or .diskspecs, with the files that it names); `wanted` names one of several.
///
/// # Errors
/// A value that cannot be read, is missing, out of range or not modelled, with file and line.
pub fn from_disksim(path: &Path, wanted: Option<&str>) -> Result<DriveSpec, ParamError> {
    let mut open = |file: &str, from: &str| {
        let near = Path::new(from).parent().unwrap_or_else(|| Path::new("")).join(file);
        read(&near).map(|text| (near.display().to_string(), text))
    };
    let name = path.display().to_string();
    let text = read(path).map_err(|reason| ParamError(format!("{name}: {reason}")))?;
    from_disksim_text(&name, &text, wanted, &mut open)
}

/// As [`from_disksim`], of a text that is there; `open` gives the text of a file that another names: (its name as
/// written, the file that names it) to (the name for messages, text).
///
/// # Errors
/// As [`from_disksim`].
pub fn from_disksim_text(
    name: &str,
    text: &str,
    wanted: Option<&str>,
    open: &mut super::param::Open<'_>,
) -> Result<DriveSpec, ParamError> {
    let document = parse(name, text, open)?;
    drive(&document, wanted, open).map_err(|error| {
        // An error of the file as a whole has no place of its own.
        if error.0.contains(", line ") {
            error
        } else {
            ParamError(format!("{name}: {error}"))
        }
    })
}

/// A disk by what a user calls it: a name of [`NAMES`], or a DiskSim file, after which `:NAME` chooses one of several
/// drives.
///
/// # Errors
/// As [`from_disksim`]; for what is neither, the names.
pub fn device(text: &str) -> Result<Device, ParamError> {
    if let Some(device) = named(text) {
        return Ok(device);
    }
    let (mut path, mut wanted) = (PathBuf::from(text), None);
    if !path.exists() {
        if let Some((file, drive)) = text.rsplit_once(':') {
            (path, wanted) = (PathBuf::from(file), Some(drive));
        }
    }
    if !path.exists() {
        let names = NAMES.join(", ");
        return Err(ParamError(format!(
            "disk {text:?}: expected one of {names}, or a .parv or .diskspecs file of DiskSim"
        )));
    }
    from_disksim(&path, wanted).map(|spec| Device::Drive(Box::new(Drive::new(spec))))
}

/// The order of requests that a user asks for; None: the one of the disk's description.
///
/// # Errors
/// The names of those that there are.
pub fn scheduler(text: Option<&str>, device: &Device) -> Result<Scheduler, String> {
    text.map_or(Ok(device.scheduler()), str::parse)
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = user_files::read(path, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
