//! From DiskSim's parameter files (.parv, .diskspecs, .model, .seek) to a drive.

use super::layout::{Layout, Mapping, Sparing, Zone, REVOLUTION};
use super::param::{Block, Document, ParamError, ParamKind, Value};
use super::schedule::Scheduler;
use super::seek::{read_curve, SeekSpec};
use super::spec::{Buffer, Control, DriveSpec, ExtraDisconnect, Mechanics, ReadAhead};

/// Cylinders and surfaces beyond any drive (of 2026: half a million, and 22); tracks times an angle stay below 2^64.
const CYLINDERS_MAX: i64 = 1_000_000;
const SURFACES_MAX: i64 = 256;
const BLOCKS_MAX: i64 = 1 << 40;
const SETTLING: &str = "Add. write settling delay";

/// The drive of a document; `open` as in [`super::param::parse`]. Where several kinds of drive are instantiated,
/// `wanted` names one.
///
/// # Errors
/// A value that is missing, out of range or not modelled, with file and line.
pub fn drive(
    document: &Document,
    wanted: Option<&str>,
    open: &mut super::param::Open<'_>,
) -> Result<DriveSpec, ParamError> {
    let disk = chosen(document, wanted)?;
    let model = disk.need("Model")?;
    let model = match &model.what {
        // A model may be a block of its own, named here.
        ParamKind::Word(name) => {
            document.named(name).ok_or_else(|| model.wrong("Model", "a model, or the name of one"))?
        }
        _ => model.block("Model")?,
    };
    let layout = layout(model)?;
    let mechanics = mechanics(model, &layout, open)?;
    let control = control(disk, bus(document, disk)?)?;
    Ok(DriveSpec {
        name: disk.name.clone().unwrap_or_default(),
        layout,
        mechanics,
        control,
        buffer: buffer(disk)?,
        scheduler: scheduler(document, disk)?,
    })
}

fn chosen<'a>(document: &'a Document, wanted: Option<&str>) -> Result<&'a Block, ParamError> {
    let disks: Vec<&Block> = document.blocks.iter().filter(|block| block.kind == "disksim_disk").collect();
    let named = |names: &[&Block]| names.iter().filter_map(|d| d.name.as_deref()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let found = disks.iter().find(|disk| disk.name.as_deref() == Some(wanted));
        return found.copied().ok_or_else(|| ParamError(format!("no drive {wanted:?}; there are: {}", named(&disks))));
    }
    let used: Vec<&Block> = disks
        .iter()
        .filter(|disk| document.instances.iter().any(|(_, kind)| Some(kind.as_str()) == disk.name.as_deref()))
        .copied()
        .collect();
    match (if used.is_empty() { &disks } else { &used })[..] {
        [one] => Ok(one),
        [] => {
            Err(ParamError("no drive (a block of type disksim_disk) in it: name a .parv or .diskspecs file".to_owned()))
        }
        _ => Err(ParamError(format!("several drives; name one of: {}", named(&disks)))),
    }
}

fn layout(model: &Block) -> Result<Layout, ParamError> {
    let surfaces = model.need("Number of data surfaces")?.whole("Number of data surfaces", 1, SURFACES_MAX)? as u32;
    let name = "Layout Model";
    let block = model.need(name)?.block(name)?;
    if block.kind != "dm_layout_g1" {
        let text = format!("{}: layout {} is not modelled: dm_layout_g1 is", block.place, block.kind);
        return Err(ParamError(text));
    }
    let mapping = match block.need("LBN-to-PBN mapping scheme")?.whole("LBN-to-PBN mapping scheme", 0, 2)? {
        0 => Mapping::Normal,
        1 => Mapping::Serpentine,
        _ => Mapping::SerpentineOdd,
    };
    let sparing = match block.need("Sparing scheme used")?.whole("Sparing scheme used", 0, 10)? {
        0 => Sparing::None,
        1 => Sparing::Tracks,
        2 => Sparing::Cylinder,
        3 => Sparing::Track,
        4 => Sparing::CylinderSlipToEnd,
        5 => Sparing::CylinderFront,
        6 => Sparing::CylinderFrontSlipToEnd,
        7 => Sparing::AtEnd,
        8 => Sparing::Range,
        9 => Sparing::Zone,
        _ => Sparing::ZoneSlipToEnd,
    };
    let range =
        block.get("Rangesize for sparing").map_or(Ok(1), |v| v.whole("Rangesize for sparing", 1, CYLINDERS_MAX))?;
    let units = skew_units(block)?.unwrap_or(false);
    let zones = block.need("Zones")?.list("Zones")?;
    let zones = zones.iter().map(|value| zone(value.block("Zones")?, units)).collect::<Result<Vec<_>, _>>()?;
    let layout = Layout::new(surfaces, mapping, sparing, range as u64, zones);
    layout.map_err(|reason| ParamError(format!("{}: {reason}", block.place)))
}

/// Returns whether skews are parts of a revolution (else sectors).
fn skew_units(block: &Block) -> Result<Option<bool>, ParamError> {
    let Some(value) = block.get("Skew units") else { return Ok(None) };
    match value.word("Skew units")? {
        "revolutions" => Ok(Some(true)),
        "sectors" => Ok(Some(false)),
        _ => Err(value.wrong("Skew units", "revolutions or sectors")),
    }
}

fn zone(block: &Block, revolutions: bool) -> Result<Zone, ParamError> {
    let whole = |name: &str, least: i64, most: i64| block.need(name)?.whole(name, least, most);
    let sectors = whole("Blocks per track", 1, 1 << 20)?;
    let revolutions = skew_units(block)?.unwrap_or(revolutions);
    let angle = |name: &str| {
        let value = block.need(name)?;
        let number = value.real(name)?;
        if !(0.0..1e9).contains(&number) {
            return Err(value.wrong(name, "a number from 0"));
        }
        Ok(if revolutions {
            (number.fract() * REVOLUTION as f64).round() as u64 % REVOLUTION
        } else {
            // DiskSim cuts skews to whole sectors.
            (number as u64 % sectors as u64) * REVOLUTION / sectors as u64
        })
    };
    let numbers = |name: &str| {
        let values = block.get(name).map_or(Ok(&[][..]), |value| value.list(name))?;
        values.iter().map(|value| Ok(value.whole(name, 0, BLOCKS_MAX)? as u64)).collect::<Result<Vec<_>, ParamError>>()
    };
    let mut slips = numbers("slips")?;
    slips.sort_unstable();
    slips.dedup();
    let defects = numbers("defects")?;
    if defects.len() % 2 == 1 {
        return Err(ParamError(format!("{}: defects: expected pairs of sector and replacement", block.place)));
    }
    let mut remaps: Vec<(u64, u64)> = defects.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    remaps.sort_unstable();
    remaps.dedup_by_key(|remap| remap.0);
    Ok(Zone {
        first_cylinder: whole("First cylinder number", 0, CYLINDERS_MAX)? as u32,
        last_cylinder: whole("Last cylinder number", 0, CYLINDERS_MAX)? as u32,
        sectors: sectors as u32,
        offset: angle("Offset of first block")?,
        track_skew: angle("Skew for track switch")?,
        cylinder_skew: angle("Skew for cylinder switch")?,
        unused: whole("Empty space at zone front", 0, BLOCKS_MAX)? as u64,
        spares: whole("Number of spares", 0, BLOCKS_MAX)? as u64,
        slips,
        remaps,
    })
}

fn mechanics(model: &Block, layout: &Layout, open: &mut super::param::Open<'_>) -> Result<Mechanics, ParamError> {
    let name = "Mechanical Model";
    let block = model.need(name)?.block(name)?;
    let access = block.need("Access time type")?;
    let average_rotation = match access.word("Access time type")? {
        "trackSwitchPlusRotation" => false,
        "averageRotation" => true,
        _ => return Err(access.wrong("Access time type", "trackSwitchPlusRotation or averageRotation")),
    };
    let last = layout.zones().iter().map(|zone| zone.last_cylinder).max().unwrap_or(0);
    let declared =
        model.get("Number of cylinders").map_or(Ok(1), |v| v.whole("Number of cylinders", 1, CYLINDERS_MAX))?;
    let seek = seek(block, open)?;
    Ok(Mechanics {
        rpm: block.need("Rotation speed (in rpms)")?.whole("Rotation speed (in rpms)", 1, 1_000_000)? as u64,
        seek_ns: seek.table((declared as u32).max(last + 1)),
        head_switch_ns: block.need("Head switch time")?.ms("Head switch time")?,
        settle_ns: block.get(SETTLING).map_or(Ok(0), |value| value.ms_signed(SETTLING))?,
        average_rotation,
    })
}

fn seek(block: &Block, open: &mut super::param::Open<'_>) -> Result<SeekSpec, ParamError> {
    let kind = block.need("Seek type")?;
    let real = |name: &str| block.need(name)?.real(name);
    let reals = |name: &str| {
        let values = block.need(name)?.list(name)?;
        values.iter().map(|value| value.real(name)).collect::<Result<Vec<f64>, ParamError>>()
    };
    // DiskSim takes the measured curve wherever one is named, whatever the type says.
    if let Some(value) = block.get("Full seek curve") {
        let file = value.word("Full seek curve")?;
        let from = value.place.rsplit_once(", line").map_or(value.place.as_str(), |(file, _)| file).to_owned();
        let wrong = |reason: String| ParamError(format!("{}: Full seek curve = {file}: {reason}", value.place));
        let (name, text) = open(file, &from).map_err(wrong)?;
        return Ok(SeekSpec::Measured(read_curve(&name, &text).map_err(ParamError)?));
    }
    let three = || {
        Ok::<_, ParamError>((
            real("Single cylinder seek time")?,
            real("Average seek time")?,
            real("Full strobe seek time")?,
        ))
    };
    match kind.word("Seek type")? {
        "constant" => Ok(SeekSpec::Constant(real("Constant seek time").or_else(|_| real("Average seek time"))?)),
        "linear" => three().map(|(one, average, full)| SeekSpec::Linear { one, average, full }),
        "curve" => three().map(|(one, average, full)| SeekSpec::Curve { one, average, full }),
        word @ ("hpl" | "hplplus10") => {
            let name = "HPL seek equation values";
            let values = reals(name)?;
            let [division, v2, v3, v4, v5, v6] = values[..] else {
                return Err(block.need(name)?.wrong(name, "six numbers"));
            };
            let first = if word == "hplplus10" { reals("First ten seek times")? } else { vec![] };
            let one = (v6 >= 0.0).then_some(v6);
            Ok(SeekSpec::RootThenLine {
                division: division.clamp(0.0, 1e9) as u32,
                root: (v2, v3),
                line: (v4, v5),
                one,
                first,
            })
        }
        _ => Err(kind.wrong("Seek type", "constant, linear, curve, hpl, hplplus10 or extracted")),
    }
}

fn control(disk: &Block, bus_ns: (u64, u64)) -> Result<Control, ParamError> {
    let scale = disk.get("Time scale for overheads").map_or(Ok(1.0), |v| v.real("Time scale for overheads"))?;
    let ms = |name: &str| -> Result<u64, ParamError> { disk.get(name).map_or(Ok(0), |value| value.ms(name)) };
    let over = |name: &str| Ok::<u64, ParamError>((ms(name)? as f64 * scale.max(0.0)).round() as u64);
    let pair = |read: &str, write: &str| Ok::<_, ParamError>((over(read)?, over(write)?));
    let extra = flag(disk, "Extra write disconnect")?;
    Ok(Control {
        block_ns: {
            let own = ms("Bulk sector transfer time")?;
            (own.max(bus_ns.0), own.max(bus_ns.1))
        },
        request_ns: over("Per-request overhead time")?,
        read_hit_ns: pair("Read hit over. after read", "Read hit over. after write")?,
        read_miss_ns: pair("Read miss over. after read", "Read miss over. after write")?,
        write_hit_ns: pair("Write hit over. after read", "Write hit over. after write")?,
        write_miss_ns: pair("Write miss over. after read", "Write miss over. after write")?,
        read_complete_ns: over("Read completion overhead")?,
        write_complete_ns: over("Write completion overhead")?,
        prepare_ns: over("Data preparation overhead")?,
        reselect_ns: pair("First reselect overhead", "Other reselect overhead")?,
        read_disconnect_ns: pair("Read disconnect afterread", "Read disconnect afterwrite")?,
        write_disconnect_ns: over("Write disconnect overhead")?,
        hold_read: flag(disk, "Hold bus entire read xfer")?,
        hold_write: flag(disk, "Hold bus entire write xfer")?,
        never_disconnect: flag(disk, "Never disconnect")?,
        extra_disconnect: if extra {
            Some(ExtraDisconnect {
                command_ns: over("Extradisc command overhead")?,
                disconnect_ns: over("Extradisc disconnect overhead")?,
                between_ns: over("Extradisc inter-disconnect delay")?,
                again_ns: over("Extradisc 2nd disconnect overhead")?,
                seek_delta_ns: over("Extradisc seek delta")?,
            })
        } else {
            None
        },
        least_write_seek_ns: over("Minimum seek delay")?,
    })
}

fn flag(disk: &Block, name: &str) -> Result<bool, ParamError> {
    Ok(disk.get(name).map_or(Ok(0), |value| value.whole(name, 0, 1))? == 1)
}

fn buffer(disk: &Block) -> Result<Buffer, ParamError> {
    let whole = |name: &str, least: i64, most: i64| disk.need(name)?.whole(name, least, most);
    let segments = whole("Number of buffer segments", 1, 1 << 16)? as usize;
    let write_segment = flag(disk, "Use separate write segment")?;
    if write_segment && segments == 1 {
        let text = "Use separate write segment: a single segment is for reads and writes alike";
        return Err(ParamError(format!("{}: {text}", disk.place)));
    }
    let share = |name: &str| {
        let Some(value) = disk.get(name) else { return Ok(0) };
        let share = value.real(name)?;
        if !(0.0..=1.0).contains(&share) {
            return Err(value.wrong(name, "a share from 0 to 1"));
        }
        Ok((share * 1e6).round() as u64)
    };
    // DiskSim takes 0 to 2, and 2 as 1: it asks whether the value is 0.
    let enabled = whole("Enable caching in buffer", 0, 2)? > 0;
    let read_ahead = match whole("Buffer continuous read", 0, 4)? {
        0 => ReadAhead::No,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::TrackThenNext,
    };
    let name = "Read-ahead over requested";
    let over = disk.get(name).map_or(Ok(1), |value| value.whole(name, -1, 1))?;
    let most =
        disk.get("Maximum read-ahead (blks)").map_or(Ok(0), |v| v.whole("Maximum read-ahead (blks)", 0, BLOCKS_MAX))?;
    Ok(Buffer {
        segments,
        blocks: whole("Segment size (in blks)", 1, BLOCKS_MAX)? as u64,
        write_segment,
        enabled,
        read_ahead: if enabled { read_ahead } else { ReadAhead::No },
        ahead_max: most as u64,
        ahead_counts_request: over == 0,
        forget_read: over == -1,
        ahead_on_hit: flag(disk, "Read-ahead on idle hit")?,
        write_back: disk.get("Fast write level").map_or(Ok(0), |v| v.whole("Fast write level", 0, 2))? > 0,
        combine_writes: flag(disk, "Combine seq writes")?,
        hit_on_written: flag(disk, "Allow read hits on write data")?,
        almost_hit: flag(disk, "Allow almost read hits")?,
        free_blocks: flag(disk, "Read any free blocks")?,
        partial_at_once: flag(disk, "Immed transfer partial hit")?,
        sneaky: flag(disk, "Allow sneaky full read hits")?,
        stop_in_sector: flag(disk, "Stop prefetch in sector")?,
        read_watermark_e6: share("High (read) water mark")?,
        watermark_of_request: flag(disk, "Set watermark by reqsize")?,
    })
}

/// Transfer times per block, ns, of the bus on which the drive hangs: (reads, writes); zero where the document has no
/// topology.
fn bus(document: &Document, disk: &Block) -> Result<(u64, u64), ParamError> {
    let mine = |instance: &str| {
        document.instances.iter().any(|(name, kind)| name == instance && Some(kind.as_str()) == disk.name.as_deref())
    };
    let Some(name) = document.topology.iter().find_map(|root| bus_above(root, None, &mine)) else { return Ok((0, 0)) };
    let kind =
        document.instances.iter().find(|(instance, _)| *instance == name).map_or(name.as_str(), |(_, kind)| kind);
    let Some(block) = document.named(kind) else { return Ok((0, 0)) };
    let time = |name: &str| block.get(name).map_or(Ok(0), |value| value.ms(name));
    Ok((time("Read block transfer time")?, time("Write block transfer time")?))
}

fn bus_above(node: &Value, bus: Option<&str>, mine: &dyn Fn(&str) -> bool) -> Option<String> {
    let ParamKind::Node(kind, name, below) = &node.what else { return None };
    if mine(name) {
        return bus.map(str::to_owned);
    }
    let bus = if kind == "disksim_bus" { Some(name.as_str()) } else { bus };
    below.iter().find_map(|node| bus_above(node, bus, mine))
}

/// The host's order of requests where the document has a driver, else the drive's.
fn scheduler(document: &Document, disk: &Block) -> Result<Scheduler, ParamError> {
    let driver = document.blocks.iter().find(|block| block.kind == "disksim_iodriver");
    for block in driver.into_iter().chain([disk]) {
        if let Some(value) = block.get("Scheduler") {
            let policy = value.block("Scheduler")?.need("Scheduling policy")?;
            let number = policy.whole("Scheduling policy", 1, 64)?;
            let known = "1 (FCFS), 2 or 5 (LOOK), 3 or 6 (C-LOOK), 4 or 7 (SSTF), 8 to 10 (SPTF)";
            return Scheduler::of_disksim(number).ok_or_else(|| policy.wrong("Scheduling policy", known));
        }
    }
    Ok(Scheduler::Fcfs)
}
