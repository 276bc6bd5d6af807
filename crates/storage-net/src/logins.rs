//! Bounds on connections of initiators that have not logged in.

use admission::Limits;
use units::Span;

/// Connections that have not logged in: they come on top of those that have, which the core limits. A session of 8
/// connections has 7 logins at once. The core itself ends late ones (`TargetConfig::login_timeout`).
pub(crate) const LOGINS: Limits = Limits { total: 64, per_address: 32, time: Span::from_secs(15) };

/// Most open connections, closing ones included.
pub(crate) fn max_open_connections(logged_in: usize) -> usize {
    logged_in + 2 * LOGINS.total
}
