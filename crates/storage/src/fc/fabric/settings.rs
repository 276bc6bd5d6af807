//! Settings of a fabric.

use wire::fc::{FcId, Wwn};

/// A domain that no switch may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("domain {0} is none of a switch: 1 to 239 would be right")]
pub struct WrongDomain(pub u8);

/// Settings of a fabric. The defaults of times are those of FC-FS-2 and of Linux's libfc.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Domain of all addresses: 1 to 239 (FC-SW-2).
    domain: u8,
    /// Name of the fabric, which hosts see as the node name of their fabric login.
    pub fabric: Wwn,
    /// Name of the F_Ports and of the servers' ports.
    pub port: Wwn,
    /// Frames that an attached port may send before the fabric has taken one (BB_Credit).
    pub buffer_credits: u16,
    /// Longest payload, bytes: 256 to 2112.
    pub receive_bytes: u16,
    /// R_A_TOV, ms.
    pub r_a_tov_ms: u32,
    /// E_D_TOV, ms.
    pub e_d_tov_ms: u32,
    /// Addresses that one attached port may have, the first included (NPIV).
    pub addresses_per_port: usize,
}

impl Settings {
    /// Settings of a fabric with a name and a domain; everything else as usual.
    ///
    /// # Errors
    /// The domain is 0 or above 239.
    pub fn new(fabric: Wwn, domain: u8) -> Result<Settings, WrongDomain> {
        if !(1..=239).contains(&domain) {
            return Err(WrongDomain(domain));
        }
        Ok(Settings {
            domain,
            fabric,
            port: Wwn(fabric.0 ^ (1 << 60)),
            buffer_credits: 16,
            receive_bytes: 2112,
            r_a_tov_ms: 10_000,
            e_d_tov_ms: 2_000,
            addresses_per_port: 256,
        })
    }

    /// True for an address that [`Settings::address`] gives for some number.
    pub(super) fn gives(&self, id: FcId) -> bool {
        id.domain() == self.domain && id.area() > 0
    }

    /// True for an address of this fabric's domain.
    pub(super) fn has(&self, id: FcId) -> bool {
        id.domain() == self.domain
    }

    /// The address of number `n` from 0 on; None when the domain is full. Area 0 is left out: some hosts take an
    /// address that ends in 0000 for none.
    pub(super) fn address(&self, n: u32) -> Option<FcId> {
        let low = n.checked_add(0x100)?;
        (low <= 0xffff).then(|| FcId::new(u32::from(self.domain) << 16 | low))
    }
}
