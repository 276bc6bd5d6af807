//! A map in the kernel, by its number.

use crate::error::{Error, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// A map that stays while this lives, also when its programs have gone.
#[derive(Debug)]
pub struct Map {
    id: u32,
    map: MapHandle,
}

impl Map {
    /// Opens the map with the number `id`.
    pub fn open(id: u32) -> Result<Map> {
        let map = MapHandle::from_map_id(id).map_err(|error| Error::call(format!("open BPF map {id}"), &error))?;
        Ok(Map { id, map })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Sets the value of a key, in one system call. Errors: key or value have another size than the map's, or the
    /// kernel's word.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<()> {
        for (what, given, room) in [("the key", key, self.map.key_size()), ("the value", value, self.map.value_size())]
        {
            if given.len() != room as usize {
                return Err(Error::Size { what: what.to_owned(), bytes: given.len(), room: room as usize });
            }
        }
        self.map.update(key, value, MapFlags::ANY).map_err(|error| Error::call("write into a BPF map", &error))
    }

    /// Returns keys and values of a map that nobody changes meanwhile.
    pub fn entries(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut found = vec![];
        for key in self.map.keys() {
            let value = self.map.lookup(&key, MapFlags::ANY).map_err(|error| Error::call("read a BPF map", &error))?;
            found.extend(value.map(|value| (key, value)));
        }
        Ok(found)
    }
}
