//! Login at the target: stages, CHAP, new sessions, further connections, reinstatement (RFC 7143, sections 6 and 12).

use super::connection::{Connection, Phase};
use super::connection_id::ConnectionId;
use super::login_state::{ChapState, Login};
use super::session::Session;
use super::Target;
use crate::iscsi::chap::{self, Algorithm, CHALLENGE_BYTES};
use crate::iscsi::settings::{Negotiated, Negotiation};
use std::collections::BTreeMap;
use wire::iscsi::{login_status, Header, LoginRequest, LoginResponse, Pdu, Text, MAX_TEXT_BYTES};

const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL: u8 = 3;
/// Most text of one PDU while the login goes on (RFC 7143, 13.12).
const LOGIN_BYTES: usize = 8192;

/// Portal group of every portal: all of them reach all sessions.
const PORTAL_GROUP: &str = "1";

/// Reason for which a login ends, with its status.
type LoginFailure = ((u8, u8), String);

fn refuse<T>(status: (u8, u8), why: impl Into<String>) -> Result<T, LoginFailure> {
    Err((status, why.into()))
}

impl Target {
    pub(super) fn login(&mut self, id: ConnectionId, pdu: Pdu) {
        let Header::LoginRequest(request) = pdu.header else {
            return self.fail(id, format!("{} before the login was done: LoginRequest is needed", pdu.header.name()));
        };
        match self.login_step(id, &request, &pdu.data.to_bytes()) {
            Ok(response) => self.send(id, response),
            Err((status, why)) => {
                let (status_class, status_detail) = status;
                let response = LoginResponse {
                    csg: request.csg,
                    isid: request.isid,
                    tsih: request.tsih,
                    itt: request.itt,
                    status_class,
                    status_detail,
                    ..LoginResponse::default()
                };
                self.send(id, Pdu::new(response));
                self.fail(id, format!("login refused: {why}"));
            }
        }
    }

    fn login_step(&mut self, id: ConnectionId, request: &LoginRequest, data: &[u8]) -> Result<Pdu, LoginFailure> {
        let mut login = match self.connections.get_mut(&id).map(|connection| &mut connection.phase) {
            Some(Phase::Login(login)) => std::mem::take(login),
            _ => return refuse(login_status::INITIATOR_ERROR, "no login is under way"),
        };
        let stepped = self.login_stage(id, &mut login, request, data);
        // A login that is done has put the connection into full feature phase meanwhile.
        if let Some(connection) = self.connections.get_mut(&id) {
            if let Phase::Login(place) = &mut connection.phase {
                *place = login;
            }
        }
        stepped
    }

    fn login_stage(
        &mut self,
        id: ConnectionId,
        login: &mut Login,
        request: &LoginRequest,
        data: &[u8],
    ) -> Result<Pdu, LoginFailure> {
        let mut response = LoginResponse {
            csg: request.csg,
            isid: request.isid,
            tsih: request.tsih,
            itt: request.itt,
            ..LoginResponse::default()
        };
        if request.version_min > 0 {
            return refuse(login_status::VERSION, format!("version {} at least, 0 is known", request.version_min));
        }
        if login.text.len() + data.len() > MAX_TEXT_BYTES {
            return refuse(login_status::INITIATOR_ERROR, format!("a text of more than {MAX_TEXT_BYTES} bytes"));
        }
        login.text.extend_from_slice(data);
        if !login.began {
            // The target's numbers begin where the initiator expects them.
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.stat_sn = request.exp_stat_sn;
                connection.cid = request.cid;
            }
            login.cmd_sn = request.cmd_sn;
            (login.isid, login.tsih, login.stage) = (request.isid, request.tsih, request.csg);
        }
        if request.cont {
            return Ok(Pdu::new(response));
        }
        let text = std::mem::take(&mut login.text);
        let text = Text::parse(&text).map_err(|error| (login_status::INITIATOR_ERROR, error.to_string()))?;
        let mut answer = Text::default();
        if !login.began {
            self.login_begin(login, &text, &mut answer)?;
            login.began = true;
        }
        if request.csg != login.stage || request.isid != login.isid {
            let why = format!("stage {} where {} is, or another ISID", request.csg, login.stage);
            return refuse(login_status::INITIATOR_ERROR, why);
        }
        let mut keys = Text::default();
        match login.stage {
            SECURITY => self.security(id, login, &text, &mut answer)?,
            OPERATIONAL if self.config.chap.is_some() && login.proof != ChapState::Done => {
                return refuse(login_status::AUTHENTICATION, "AuthMethod=CHAP is needed, in the security stage");
            }
            OPERATIONAL => {
                self.reserve_unsolicited(login);
                keys = text;
            }
            stage => return refuse(login_status::INITIATOR_ERROR, format!("stage {stage}: 0 or 1 would be right")),
        }
        self.operational(login, &keys, &mut answer)?;
        let answer = answer.emit();
        if answer.len() > LOGIN_BYTES {
            let why = format!("keys whose answers take {} bytes: {LOGIN_BYTES} go into a PDU of a login", answer.len());
            return refuse(login_status::INITIATOR_ERROR, why);
        }
        let trusted = self.config.chap.is_none() || login.proof == ChapState::Done;
        if request.transit && trusted {
            if request.nsg <= login.stage || request.nsg == 2 {
                let why = format!("from stage {} to {}: 1 or 3 would be right", login.stage, request.nsg);
                return refuse(login_status::INITIATOR_ERROR, why);
            }
            (response.transit, response.nsg) = (true, request.nsg);
            login.stage = request.nsg;
            if request.nsg == FULL {
                response.tsih = self.login_end(id, login, request)?;
            }
        }
        Ok(Pdu::with(response, answer))
    }

    fn login_begin(&mut self, login: &mut Login, text: &Text, answer: &mut Text) -> Result<(), LoginFailure> {
        let Some(initiator) = text.get("InitiatorName").filter(|name| !name.is_empty() && name.len() <= 223) else {
            return refuse(login_status::MISSING_PARAMETER, "InitiatorName of 1 to 223 bytes is needed");
        };
        login.initiator = initiator.to_owned();
        login.discovery = match text.get("SessionType") {
            None | Some("Normal") => false,
            Some("Discovery") => true,
            Some(other) => {
                return refuse(login_status::SESSION_TYPE, format!("SessionType={other}: Normal or Discovery"));
            }
        };
        if !login.discovery {
            match text.get("TargetName") {
                Some(name) if name.eq_ignore_ascii_case(&self.config.name) => {}
                Some(name) => return refuse(login_status::NOT_FOUND, format!("there is no target {name}")),
                None => return refuse(login_status::MISSING_PARAMETER, "TargetName is needed"),
            }
            answer.push("TargetPortalGroupTag", PORTAL_GROUP);
            if !self.config.alias.is_empty() {
                answer.push("TargetAlias", &self.config.alias);
            }
        }
        login.negotiation = Some(if login.tsih == 0 {
            Negotiation::new(self.config.settings, login.discovery)
        } else {
            let session = self.joined(login)?;
            Negotiation::joining(self.config.settings, &session.negotiated)
        });
        Ok(())
    }

    /// The session that a further connection belongs to.
    fn joined(&self, login: &Login) -> Result<&Session, LoginFailure> {
        let same = |s: &&Session| s.initiator == login.initiator && s.isid == login.isid && !s.discovery;
        match self.sessions.get(&login.tsih).filter(same) {
            Some(session) => Ok(session),
            None => refuse(login_status::NO_SESSION, format!("there is no session {}", login.tsih)),
        }
    }

    fn security(
        &mut self,
        id: ConnectionId,
        login: &mut Login,
        text: &Text,
        answer: &mut Text,
    ) -> Result<(), LoginFailure> {
        let methods = text.get("AuthMethod");
        let Some(credentials) = self.config.chap.clone() else {
            return match methods {
                Some(offered) if !offered.split(',').any(|method| method == "None") => {
                    refuse(login_status::AUTHENTICATION, "no secret is set here: AuthMethod=None would be right")
                }
                Some(_) => {
                    answer.push("AuthMethod", "None");
                    Ok(())
                }
                None => Ok(()),
            };
        };
        let failed = |why: &str| refuse(login_status::AUTHENTICATION, why);
        match login.proof {
            ChapState::Nothing => match methods {
                Some(offered) if offered.split(',').any(|method| method == "CHAP") => {
                    answer.push("AuthMethod", "CHAP");
                    login.proof = ChapState::Method;
                    Ok(())
                }
                Some(_) => failed("AuthMethod=CHAP is needed"),
                None => Ok(()),
            },
            ChapState::Method => {
                let offered = text.get("CHAP_A").unwrap_or_default();
                let Some(algorithm) = Algorithm::of_offer(offered) else {
                    return failed("CHAP_A=5 (MD5) or 7 (SHA-256) is needed");
                };
                let entropy = self.connections.get(&id).map(|connection| connection.entropy).unwrap_or_default();
                answer.push("CHAP_A", algorithm.number());
                answer.push("CHAP_I", &entropy[CHALLENGE_BYTES].to_string());
                answer.push("CHAP_C", &chap::to_text(&entropy[..CHALLENGE_BYTES]));
                login.proof = ChapState::Challenged(algorithm);
                Ok(())
            }
            ChapState::Challenged(algorithm) => {
                let entropy = self.connections.get(&id).map(|connection| connection.entropy).unwrap_or_default();
                let (challenge, identifier) = (&entropy[..CHALLENGE_BYTES], entropy[CHALLENGE_BYTES]);
                let own = algorithm.response(identifier, &credentials.initiator.secret, challenge);
                let shown = text.get("CHAP_R").and_then(chap::from_text).unwrap_or_default();
                if text.get("CHAP_N") != Some(&credentials.initiator.name) || !chap::same(&own, &shown) {
                    return failed("CHAP_N and CHAP_R do not go with the secret");
                }
                login.proof = ChapState::Done;
                let Some(theirs) = text.get("CHAP_C") else { return Ok(()) };
                let Some(secret) = credentials.target else {
                    return failed("the initiator asks who the target is, and no secret is set for that");
                };
                let identifier = text.get("CHAP_I").and_then(|text| text.parse().ok());
                match (identifier, chap::from_text(theirs)) {
                    // One's own challenge sent back would make the target answer for the initiator.
                    (Some(identifier), Some(theirs)) if theirs != challenge && !theirs.is_empty() => {
                        answer.push("CHAP_N", &secret.name);
                        let response = algorithm.response(identifier, &secret.secret, &theirs);
                        answer.push("CHAP_R", &chap::to_text(&response));
                        Ok(())
                    }
                    _ => failed("CHAP_I from 0 to 255 and a challenge CHAP_C of one's own are needed"),
                }
            }
            ChapState::Done => Ok(()),
        }
    }

    /// Reserves memory for the data that may come unsolicited, and offers no more than there is. Only for those who
    /// have shown who they are.
    fn reserve_unsolicited(&mut self, login: &mut Login) {
        if self.memory.is_unlimited() || login.tsih != 0 || login.discovery || login.reserved.is_some() {
            return;
        }
        let Some(negotiation) = login.negotiation.as_mut() else { return };
        let each = self.memory.reserve(self.config.window, negotiation.first_burst_bytes());
        negotiation.limit_unsolicited(each);
        login.reserved = Some(u64::from(each) * u64::from(self.config.window));
    }

    fn operational(&mut self, login: &mut Login, text: &Text, answer: &mut Text) -> Result<(), LoginFailure> {
        let Some(negotiation) = &mut login.negotiation else { return Ok(()) };
        for (key, value) in text.pairs() {
            if Negotiation::knows(key) {
                let answers = negotiation.handle(key, value).map_err(|why| (login_status::INITIATOR_ERROR, why))?;
                answers.iter().for_each(|(key, value)| answer.push(key, value));
                continue;
            }
            match key {
                "InitiatorName" | "InitiatorAlias" | "SessionType" | "TargetName" => {}
                "AuthMethod" => answer.push(key, "Reject"),
                "TaskReporting" => answer.push(key, "RFC3720"),
                _ => answer.push(key, "NotUnderstood"),
            }
        }
        Ok(())
    }

    /// The last step: the connection becomes part of a session. The session's handle.
    fn login_end(&mut self, id: ConnectionId, login: &mut Login, request: &LoginRequest) -> Result<u16, LoginFailure> {
        let Some(negotiation) = &login.negotiation else {
            return refuse(login_status::INITIATOR_ERROR, "the login did not begin");
        };
        if let Some(key) = negotiation.lacks().filter(|_| !login.discovery) {
            return refuse(login_status::INITIATOR_ERROR, format!("{key}=CRC32C is needed here"));
        }
        let negotiated = negotiation.negotiated();
        let tsih = if login.tsih == 0 {
            self.new_session(id, login, request, negotiated)?
        } else {
            let most = self.joined(login)?.negotiated.max_connections as usize;
            let session = self.joined(login)?;
            match session.connections.get(&request.cid).copied() {
                // The same connection anew: the old one is gone, whether it knows or not (RFC 7143, 6.3.4).
                Some(old) => {
                    // The new one keeps the session alive meanwhile.
                    if let Some(session) = self.sessions.get_mut(&login.tsih) {
                        session.connections.insert(request.cid, id);
                    }
                    self.leave_session(login.tsih, old);
                    self.fail(old, "the initiator made the connection anew".to_owned());
                }
                None if session.connections.len() >= most => {
                    let why = format!("the session has {most} connections already");
                    return refuse(login_status::TOO_MANY_CONNECTIONS, why);
                }
                None => {
                    self.has_place(id)?;
                    if let Some(session) = self.sessions.get_mut(&login.tsih) {
                        session.connections.insert(request.cid, id);
                    }
                }
            }
            login.tsih
        };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.negotiated = negotiated;
            connection.framing_in.header_digest = negotiated.header_digest;
            connection.framing_in.data_digest = negotiated.data_digest;
            connection.framing_in.max_data_bytes = negotiated.max_recv_bytes;
            connection.phase = Phase::Full { tsih };
        }
        Ok(tsih)
    }

    /// Returns whether one more connection, `id`, may be in full feature phase.
    fn has_place(&self, id: ConnectionId) -> Result<(), LoginFailure> {
        let full = |connection: &&Connection| matches!(connection.phase, Phase::Full { .. });
        let logged_in = || self.connections.values().filter(|c| c.closing.is_none()).filter(full);
        let count = logged_in().count();
        if self.config.max_connections.is_some_and(|most| count >= most) {
            return refuse(login_status::OUT_OF_RESOURCES, format!("{count} connections are logged in"));
        }
        let Some(peer) = self.connections.get(&id).and_then(|connection| connection.peer) else { return Ok(()) };
        let from_there = logged_in().filter(|connection| connection.peer == Some(peer)).count();
        if self.config.max_connections_per_address.is_some_and(|most| from_there >= most) {
            let why = format!("{from_there} connections from {peer} are logged in, as many as an address may have");
            return refuse(login_status::OUT_OF_RESOURCES, why);
        }
        Ok(())
    }

    /// Returns the most commands that a session may have under way, and the memory reserved for unsolicited data with
    /// them. What was not negotiated may be more than what was offered, or less; one command always may come.
    fn session_window(&mut self, login: &mut Login, negotiated: &Negotiated) -> Result<(u32, u64), LoginFailure> {
        let (most, each) = (self.config.window, negotiated.unsolicited_bytes(self.config.settings.max_recv_bytes));
        if self.memory.is_unlimited() || login.discovery || each == 0 {
            self.memory.unreserve(login.reserved.take().unwrap_or(0));
            return Ok((most, 0));
        }
        let reserved = match login.reserved {
            Some(reserved) => reserved,
            // A login without an operational stage.
            None => u64::from(self.memory.reserve(most, each)) * u64::from(most),
        };
        login.reserved = Some(reserved);
        let each = u64::from(each);
        if each > self.memory.unsolicited(reserved) {
            return refuse(login_status::OUT_OF_RESOURCES, "there is no memory for the data of its commands");
        }
        let window = u64::from(most).min(reserved / each).max(1);
        let kept = reserved.min(window * each);
        self.memory.unreserve(reserved - kept);
        login.reserved = None;
        Ok((window as u32, kept))
    }

    fn new_session(
        &mut self,
        id: ConnectionId,
        login: &mut Login,
        request: &LoginRequest,
        negotiated: Negotiated,
    ) -> Result<u16, LoginFailure> {
        // The same initiator port again: its session starts anew (RFC 7143, 6.3.5).
        let same = |s: &Session| s.initiator == login.initiator && s.isid == login.isid && !login.discovery;
        let old = self.sessions.iter().find(|(_, s)| same(s) && !s.discovery).map(|(tsih, _)| *tsih);
        if let Some(old) = old {
            self.end_session(old, None, "the initiator started its session anew");
        }
        if self.sessions.len() >= self.config.max_sessions {
            return refuse(login_status::OUT_OF_RESOURCES, format!("{} sessions are open", self.sessions.len()));
        }
        self.has_place(id)?;
        let (window, reserved) = self.session_window(login, &negotiated)?;
        while self.next_tsih == 0 || self.sessions.contains_key(&self.next_tsih) {
            self.next_tsih = self.next_tsih.wrapping_add(1);
        }
        let tsih = self.next_tsih;
        self.next_tsih = self.next_tsih.wrapping_add(1);
        let isid: String = login.isid.iter().map(|byte| format!("{byte:02x}")).collect();
        let session = Session {
            nexus: format!("{},i,0x{isid}", login.initiator).into(),
            initiator: login.initiator.clone(),
            isid: login.isid,
            discovery: login.discovery,
            negotiated,
            connections: BTreeMap::from([(request.cid, id)]),
            exp_cmd_sn: request.cmd_sn,
            max_cmd_sn: request.cmd_sn.wrapping_sub(1),
            early: BTreeMap::new(),
            tasks: BTreeMap::new(),
            waiting: Vec::new(),
            texts: BTreeMap::new(),
            window,
            reserved,
            unsolicited: 0,
        };
        if !login.discovery {
            self.device.attach(&session.nexus);
        }
        self.sessions.insert(tsih, session);
        Ok(tsih)
    }
}
