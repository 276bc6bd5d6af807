//! The place of a logical block: zones, spares, slips, remaps, skews (DiskSim's layout g1).
//!
//! A **slip** is a bad sector that is passed over: all blocks behind it lie one further. A **remap** is a bad sector
//! whose block lies elsewhere. A **spare** holds no block until it is needed.

/// Angles are parts of a revolution in units of 1 / 60 x 10^9: a drive of r rpm turns by r of them in a ns, exactly.
pub const REVOLUTION: u64 = 60_000_000_000;

/// The scheme of spares (DiskSim's numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sparing {
    /// 0: none.
    None,
    /// 1: whole tracks at the end of the zone; slips and remaps are of tracks.
    Tracks,
    /// 2: sectors at the end of each cylinder.
    Cylinder,
    /// 3: sectors at the end of each track.
    Track,
    /// 4: as 2, and a slip moves all blocks to the end of the zone.
    CylinderSlipToEnd,
    /// 5: sectors at the front of each cylinder.
    CylinderFront,
    /// 6: as 5, and a slip moves all blocks to the end of the zone.
    CylinderFrontSlipToEnd,
    /// 7: sectors at the end of the zone, each slip moving all blocks behind it.
    AtEnd,
    /// 8: sectors at the end of each range of cylinders.
    Range,
    /// 9: sectors at the end of the zone.
    Zone,
    /// 10: as 9, slips counted apart from spares.
    ZoneSlipToEnd,
}

/// In which order the surfaces of a cylinder are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// 0: always from the first.
    Normal,
    /// 1: every other cylinder of a zone from the last.
    Serpentine,
    /// 2: every odd cylinder of the drive from the last.
    SerpentineOdd,
}

/// Cylinders with the same number of sectors per track.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors per track.
    pub sectors: u32,
    /// Angle of the zone's first sector.
    pub offset: u64,
    /// Angle from a track's first sector to the next track's, in a cylinder.
    pub track_skew: u64,
    /// The same from a cylinder's last track to the next cylinder's first.
    pub cylinder_skew: u64,
    /// Sectors at the front that hold no block.
    pub unused: u64,
    /// Spares: per zone, cylinder, track or range, as the sparing has it.
    pub spares: u64,
    /// Slipped sectors (or tracks), counted from the front of the zone, ascending.
    pub slips: Vec<u64>,
    /// (bad sector or track, where it lies instead), ascending.
    pub remaps: Vec<(u64, u64)>,
}

/// A sector on its track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SectorPosition {
    /// Index of the zone.
    pub zone: usize,
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub head: u32,
    /// Sector on the track, from 0.
    pub sector: u32,
}

/// Consecutive blocks on one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Place of the first.
    pub place: SectorPosition,
    /// Blocks.
    pub blocks: u64,
    /// First and one past the last block of the track.
    pub track: (u64, u64),
    /// True if the blocks are also consecutive sectors.
    pub even: bool,
}

/// The layout of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    surfaces: u32,
    mapping: Mapping,
    sparing: Sparing,
    /// Cylinders of a range.
    range: u64,
    zones: Vec<Zone>,
    /// First block of each zone, and one past the last.
    starts: Vec<u64>,
    /// Per zone, each slip less the slips before it: these rise too, so that slips are counted by bisection.
    slipped: Vec<Vec<u64>>,
}

impl Layout {
    /// Checks what a file says and counts the blocks of each zone.
    ///
    /// # Errors
    /// Zones, spares or remaps that do not fit together.
    pub fn new(
        surfaces: u32,
        mapping: Mapping,
        sparing: Sparing,
        range: u64,
        zones: Vec<Zone>,
    ) -> Result<Layout, String> {
        if surfaces == 0 || zones.is_empty() || range == 0 {
            return Err("a drive has at least one surface, one zone and a range of one cylinder".to_owned());
        }
        let mut layout = Layout { surfaces, mapping, sparing, range, zones, starts: vec![0], slipped: vec![] };
        for (index, zone) in layout.zones.iter().enumerate() {
            let wrong = |text: &str| Err(format!("zone {index} (cylinders {}..): {text}", zone.first_cylinder));
            if zone.last_cylinder < zone.first_cylinder || zone.sectors == 0 {
                return wrong("it has no cylinder or no sector");
            }
            if index > 0 && zone.first_cylinder <= layout.zones[index - 1].last_cylinder {
                return wrong("it begins before the zone before it ends");
            }
            let Some(blocks) = layout.blocks_of(zone).filter(|&blocks| blocks > 0) else {
                return wrong("spares and slips leave no block");
            };
            if !zone.slips.windows(2).all(|pair| pair[0] < pair[1]) || !zone.remaps.windows(2).all(|p| p[0].0 < p[1].0)
            {
                return wrong("slips and defects must ascend");
            }
            layout.starts.push(layout.starts[index] + blocks);
            layout.slipped.push(zone.slips.iter().zip(0..).map(|(slip, before)| slip - before).collect());
        }
        Ok(layout)
    }

    /// Blocks in all.
    pub fn blocks(&self) -> u64 {
        *self.starts.last().unwrap_or(&0)
    }

    /// Zones, outermost first.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Surfaces.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    fn cylinder_sectors(&self, zone: &Zone) -> u64 {
        u64::from(zone.sectors) * u64::from(self.surfaces)
    }

    fn blocks_of(&self, zone: &Zone) -> Option<u64> {
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder) + 1;
        let all = cylinders * self.cylinder_sectors(zone);
        let slips = zone.slips.len() as u64;
        let surfaces = u64::from(self.surfaces);
        let each = |units: u64| zone.spares.checked_mul(units);
        let gone = match self.sparing {
            Sparing::None => 0,
            Sparing::Tracks => each(u64::from(zone.sectors))?,
            Sparing::Track => each(cylinders * surfaces)?,
            Sparing::AtEnd => slips,
            Sparing::Zone => zone.spares,
            Sparing::ZoneSlipToEnd => zone.spares + slips,
            Sparing::Cylinder | Sparing::CylinderFront => each(cylinders)?,
            Sparing::CylinderSlipToEnd | Sparing::CylinderFrontSlipToEnd => each(cylinders)? + slips,
            Sparing::Range => each(cylinders / self.range)?,
        };
        all.checked_sub(gone)?.checked_sub(zone.unused)
    }

    fn zone_of(&self, block: u64) -> usize {
        // Few zones (some ten): a walk is as fast as a search.
        let mut zone = 0;
        while zone + 1 < self.zones.len() && block >= self.starts[zone + 1] {
            zone += 1;
        }
        zone
    }

    /// Sector of a block of a zone, counted from the zone's front, slips passed over and remaps not.
    fn sector_in_zone(&self, index: usize, block: u64) -> u64 {
        let (zone, slipped) = (&self.zones[index], &self.slipped[index]);
        let block = block + zone.unused;
        let (track, cylinder) = (u64::from(zone.sectors), self.cylinder_sectors(zone));
        // Slips at or before a sector, counted from the sector `from`, push it on; each push may bring it to the next
        // slip.
        let pushed = |from: u64, sector: u64| {
            let first = if from == 0 { 0 } else { zone.slips.partition_point(|&slip| slip < from) };
            sector + slipped[first..].partition_point(|&slip| slip + first as u64 <= sector) as u64
        };
        match self.sparing {
            Sparing::None => block,
            Sparing::Zone | Sparing::ZoneSlipToEnd => pushed(0, block),
            Sparing::Tracks => pushed(0, block / track) * track + block % track,
            Sparing::Track => {
                let usable = track.saturating_sub(zone.spares).max(1);
                let front = block / usable * track;
                pushed(front, front + block % usable)
            }
            Sparing::Range => {
                let range = cylinder * self.range;
                let usable = range.saturating_sub(zone.spares).max(1);
                let front = block / usable * range;
                pushed(front, front + block % usable)
            }
            Sparing::Cylinder | Sparing::CylinderFront => {
                let usable = cylinder.saturating_sub(zone.spares).max(1);
                let front = block / usable * cylinder;
                let at = if self.sparing == Sparing::CylinderFront { zone.spares } else { 0 };
                pushed(front, front + at + block % usable)
            }
            Sparing::CylinderSlipToEnd | Sparing::CylinderFrontSlipToEnd | Sparing::AtEnd => {
                // A slip anywhere before moves the block on, over cylinders too: found by as many steps as there are
                // slips.
                let spares = if self.sparing == Sparing::AtEnd { 0 } else { zone.spares };
                let usable = cylinder.saturating_sub(spares).max(1);
                let at = if self.sparing == Sparing::CylinderFrontSlipToEnd { spares } else { 0 };
                let place = |block: u64| block / usable * cylinder + at + block % usable;
                let mut slips = 0;
                while zone.slips.get(slips as usize).is_some_and(|&slip| slip <= place(block + slips)) {
                    slips += 1;
                }
                place(block + slips)
            }
        }
    }

    fn place(&self, index: usize, sector: u64) -> SectorPosition {
        let zone = &self.zones[index];
        let cylinder_sectors = self.cylinder_sectors(zone);
        let cylinder = zone.first_cylinder + (sector / cylinder_sectors) as u32;
        let within = (sector % cylinder_sectors) as u32;
        let head = self.surface(zone, cylinder, within / zone.sectors);
        SectorPosition { zone: index, cylinder, head, sector: within % zone.sectors }
    }

    /// The surface that is the `turn`-th of a cylinder; and, as it is its own inverse, the turn of a surface.
    fn surface(&self, zone: &Zone, cylinder: u32, turn: u32) -> u32 {
        let back = match self.mapping {
            Mapping::Normal => false,
            Mapping::Serpentine => (cylinder - zone.first_cylinder) % 2 == 1,
            Mapping::SerpentineOdd => cylinder % 2 == 1,
        };
        if back {
            self.surfaces - 1 - turn
        } else {
            turn
        }
    }

    fn remapped(&self, zone: &Zone, sector: u64) -> Option<u64> {
        if zone.remaps.is_empty() {
            return None;
        }
        let unit = if self.sparing == Sparing::Tracks { u64::from(zone.sectors) } else { 1 };
        let found = zone.remaps.binary_search_by_key(&(sector / unit), |remap| remap.0).ok()?;
        Some(zone.remaps[found].1 * unit + sector % unit)
    }

    /// Returns the place of a block; blocks beyond the drive have that of the last.
    pub fn locate(&self, block: u64) -> SectorPosition {
        let block = block.min(self.blocks() - 1);
        let index = self.zone_of(block);
        let sector = self.sector_in_zone(index, block - self.starts[index]);
        let sector = self.remapped(&self.zones[index], sector).unwrap_or(sector);
        self.place(index, sector)
    }

    /// The run of blocks from `block` on its track; one block where it is remapped.
    pub fn run(&self, block: u64) -> Run {
        let block = block.min(self.blocks() - 1);
        let index = self.zone_of(block);
        let (zone, start, end) = (&self.zones[index], self.starts[index], self.starts[index + 1]);
        let sectors = u64::from(zone.sectors);
        let sector = self.sector_in_zone(index, block - start);
        if let Some(elsewhere) = self.remapped(zone, sector) {
            let place = self.place(index, elsewhere);
            return Run { place, blocks: 1, track: (block, block + 1), even: true };
        }
        let track = sector / sectors;
        let on_track = |block: u64| self.sector_in_zone(index, block - start) / sectors == track;
        // Blocks are in the order of their sectors, so that a track's are found at its ends, and only near slips by
        // search.
        let mut last = (block + sectors - 1 - sector % sectors).min(end - 1);
        while !on_track(last) {
            last -= 1;
        }
        let mut first = block.saturating_sub(sector % sectors).max(start);
        while !on_track(first) {
            first += 1;
        }
        if let Some(next) = zone.remaps.iter().find(|remap| self.sparing != Sparing::Tracks && remap.0 > sector) {
            while last > block && self.sector_in_zone(index, last - start) >= next.0 {
                last -= 1;
            }
        }
        let spread = self.sector_in_zone(index, last - start) - sector;
        let blocks = last - block + 1;
        Run { place: self.place(index, sector), blocks, track: (first, last + 1), even: spread + 1 == blocks }
    }

    /// Angle of the beginning of a sector.
    pub fn angle(&self, place: SectorPosition) -> u64 {
        let zone = &self.zones[place.zone];
        let cylinder = u64::from(place.cylinder - zone.first_cylinder);
        let turn = u64::from(self.surface(zone, place.cylinder, place.head));
        // At most 2.6 x 10^8 tracks of less than 6 x 10^10 each (the reader's bounds): below 2^64.
        let switches = turn + u64::from(self.surfaces - 1) * cylinder;
        let skew = (switches % REVOLUTION) * zone.track_skew % REVOLUTION + cylinder * zone.cylinder_skew % REVOLUTION;
        let slips = match self.sparing {
            // Here a slip also turns what lies behind it: the servo counts sectors, not angles.
            Sparing::Track | Sparing::Cylinder | Sparing::CylinderFront => self.slips_before(zone, cylinder, turn),
            Sparing::CylinderSlipToEnd | Sparing::CylinderFrontSlipToEnd => self.slips_before(zone, cylinder, turn),
            _ => 0,
        };
        let sector = (u64::from(place.sector) + slips) * REVOLUTION / u64::from(zone.sectors);
        (zone.offset + skew + sector) % REVOLUTION
    }

    fn slips_before(&self, zone: &Zone, cylinder: u64, turn: u64) -> u64 {
        let tracks = cylinder * u64::from(self.surfaces) + if self.sparing == Sparing::Track { turn } else { 0 };
        let cut = tracks * u64::from(zone.sectors);
        zone.slips.partition_point(|&slip| slip < cut) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Sparing; 11] = [
        Sparing::None,
        Sparing::Tracks,
        Sparing::Cylinder,
        Sparing::Track,
        Sparing::CylinderSlipToEnd,
        Sparing::CylinderFront,
        Sparing::CylinderFrontSlipToEnd,
        Sparing::AtEnd,
        Sparing::Range,
        Sparing::Zone,
        Sparing::ZoneSlipToEnd,
    ];

    fn zone(first: u32, last: u32, sectors: u32) -> Zone {
        Zone {
            first_cylinder: first,
            last_cylinder: last,
            sectors,
            offset: 0,
            track_skew: REVOLUTION / 5,
            cylinder_skew: REVOLUTION / 7,
            unused: 0,
            spares: 2,
            slips: vec![],
            remaps: vec![],
        }
    }

    #[test]
    fn zones_spares_slips_and_remaps_lie_where_they_should() {
        // 2 surfaces, 3 cylinders of 10 sectors: 60 sectors, 2 spares at the end; 5 and 6 slipped, 25 remapped to 58.
        let outer = Zone { slips: vec![5, 6], remaps: vec![(25, 58)], ..zone(0, 2, 10) };
        let layout = Layout::new(2, Mapping::Normal, Sparing::Zone, 1, vec![outer, zone(4, 4, 8)]).unwrap();
        assert_eq!(layout.blocks(), 58 + 14);
        let at = |block| {
            let place = layout.locate(block);
            (place.cylinder, place.head, place.sector)
        };
        assert_eq!((at(0), at(4), at(5), at(7)), ((0, 0, 0), (0, 0, 4), (0, 0, 7), (0, 0, 9)));
        assert_eq!((at(8), at(18), at(23)), ((0, 1, 0), (1, 0, 0), (2, 1, 8)));
        assert_eq!((at(58), at(71)), ((4, 0, 0), (4, 1, 5)));
        let run = layout.run(3);
        assert_eq!((run.blocks, run.track, run.even), (5, (0, 8), false));
        // Up to the remapped sector, the sector itself, and what is behind it.
        assert_eq!((layout.run(18).blocks, layout.run(23).blocks, layout.run(24).blocks), (5, 1, 4));
    }

    #[test]
    fn skews_add_up_along_tracks_and_cylinders() {
        let layout = Layout::new(2, Mapping::Normal, Sparing::Zone, 1, vec![zone(0, 2, 10)]).unwrap();
        let angle = |block| layout.angle(layout.locate(block));
        assert_eq!(angle(1) - angle(0), REVOLUTION / 10);
        assert_eq!(angle(10), REVOLUTION / 5);
        assert_eq!(angle(20), REVOLUTION / 5 + REVOLUTION / 7);
    }

    #[test]
    fn what_does_not_fit_together_is_an_error() {
        let spares = Zone { spares: 600, ..zone(0, 2, 10) };
        let error = Layout::new(2, Mapping::Normal, Sparing::Zone, 1, vec![spares]).unwrap_err();
        assert!(error.contains("leave no block"), "{error}");
        let error = Layout::new(2, Mapping::Normal, Sparing::Zone, 1, vec![zone(0, 2, 10), zone(2, 3, 9)]).unwrap_err();
        assert!(error.contains("zone 1") && error.contains("begins before"), "{error}");
    }

    proptest! {
        #[test]
        fn blocks_never_share_a_sector_and_runs_tile_the_drive(
            which in 0usize..11,
            mapping in prop::sample::select(vec![Mapping::Normal, Mapping::Serpentine, Mapping::SerpentineOdd]),
            slips in prop::collection::btree_set(0u64..40, 0..2),
        ) {
            let mut zones = vec![zone(0, 4, 12), zone(6, 9, 9)];
            zones[0].slips = slips.into_iter().map(|s| if which == 1 { s / 8 } else { s }).collect();
            zones[0].slips.dedup();
            let layout = Layout::new(2, mapping, ALL[which], 1, zones).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for block in 0..layout.blocks() {
                let place = layout.locate(block);
                prop_assert!(seen.insert((place.cylinder, place.head, place.sector)), "{block} {place:?}");
            }
            let mut block = 0;
            while block < layout.blocks() {
                let run = layout.run(block);
                prop_assert!(run.blocks > 0 && run.track.0 <= block && block + run.blocks <= run.track.1);
                let last = layout.locate(block + run.blocks - 1);
                prop_assert_eq!((last.cylinder, last.head), (run.place.cylinder, run.place.head));
                block += run.blocks;
            }
            prop_assert_eq!(block, layout.blocks());
        }
    }
}
