//! Logins: addresses by link, links by address.

use super::output::PortKey;
use std::collections::{BTreeMap, BTreeSet};
use wire::fc::els::ChangeRegistration;
use wire::fc::{FcId, Wwn};

/// A logged-in address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    /// Its link.
    pub port: PortKey,
    /// Its name.
    pub name: Wwn,
    /// It wants to hear of changes.
    pub hears_of_changes: bool,
}

/// A link with logins.
#[derive(Clone, Debug)]
struct Link {
    ids: BTreeSet<FcId>,
    /// Longest payload that the port takes, bytes.
    receive_bytes: u16,
}

/// All logins.
#[derive(Clone, Debug, Default)]
pub(super) struct Logins {
    links: BTreeMap<PortKey, Link>,
    holders: BTreeMap<FcId, Holder>,
}

impl Logins {
    /// Adds an address of a link. The first of a link says how long payloads may be.
    pub fn add(&mut self, port: PortKey, id: FcId, name: Wwn, receive_bytes: u16) {
        let link = self.links.entry(port).or_insert_with(|| Link { ids: BTreeSet::new(), receive_bytes });
        link.ids.insert(id);
        self.holders.insert(id, Holder { port, name, hears_of_changes: false });
    }

    /// Takes an address away; None when nobody had it.
    pub fn remove(&mut self, id: FcId) -> Option<Holder> {
        let holder = self.holders.remove(&id)?;
        if let Some(link) = self.links.get_mut(&holder.port) {
            link.ids.remove(&id);
            if link.ids.is_empty() {
                self.links.remove(&holder.port);
            }
        }
        Some(holder)
    }

    /// The holder of an address.
    pub fn holder(&self, id: FcId) -> Option<&Holder> {
        self.holders.get(&id)
    }

    /// True when an address with the name is logged in.
    pub fn has_name(&self, name: Wwn) -> bool {
        self.holders.values().any(|holder| holder.name == name)
    }

    /// Addresses of a link.
    pub fn ids_of(&self, port: PortKey) -> Vec<FcId> {
        self.links.get(&port).map(|link| link.ids.iter().copied().collect()).unwrap_or_default()
    }

    /// Longest payload that a link takes, bytes; None without a login.
    pub fn receive_bytes(&self, port: PortKey) -> Option<u16> {
        self.links.get(&port).map(|link| link.receive_bytes)
    }

    /// Notes the changes that an address wants to hear of.
    pub fn register(&mut self, id: FcId, registration: ChangeRegistration) {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.hears_of_changes = matches!(registration, ChangeRegistration::Fabric | ChangeRegistration::Full);
        }
    }

    /// Addresses that want to hear of changes.
    pub fn listeners(&self) -> impl Iterator<Item = FcId> + '_ {
        self.holders.iter().filter(|(_, holder)| holder.hears_of_changes).map(|(id, _)| *id)
    }

    /// Number of addresses.
    pub fn len(&self) -> usize {
        self.holders.len()
    }
}
