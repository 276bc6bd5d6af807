//! The request `versions`: versions of a backup at this host, as the user.

use crate::copy::error;
use crate::error::AgentError;
use copy_net::VersionsRequest;
use serde::Deserialize;
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// Keys of the request.
#[derive(Deserialize)]
pub struct Versions {
    #[serde(flatten)]
    request: VersionsRequest,
}

impl Versions {
    /// Asks for the versions, or changes them, until `stop`.
    ///
    /// # Errors
    /// See `VersionsRequest::execute`.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, AgentError> {
        self.request.execute(stop).map_err(error)
    }
}
