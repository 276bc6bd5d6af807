//! Login at the initiator.

use super::connection::{Phase, QueuedPdu};
use super::login_state::{ChapState, Login};
use super::{Event, Initiator, SessionState};
use crate::iscsi::chap::{self, Algorithm, CHALLENGE_BYTES};
use crate::iscsi::settings::Negotiation;
use units::Time;
use wire::iscsi::{LoginRequest, LoginResponse, Payload, Pdu, Text, MAX_TEXT_BYTES};

const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL: u8 = 3;
/// Steps that a login may take before it counts as going in circles.
const MAX_STEPS: u32 = 32;

impl Initiator {
    pub(super) fn begin_login(&mut self, now: Time, index: usize) {
        let itt = self.tag();
        let settings = self.config.settings;
        let negotiation = if index == 0 {
            Negotiation::new(settings, self.config.target.is_none())
        } else {
            Negotiation::joining(settings, &self.negotiated)
        };
        let stage = if self.config.chap.is_some() { SECURITY } else { OPERATIONAL };
        let mut login =
            Login { stage, proof: ChapState::Method, negotiation, offered: false, text: Vec::new(), itt, steps: 0 };
        let mut text = Text::default();
        text.push("InitiatorName", &self.config.name);
        match &self.config.target {
            Some(target) => {
                text.push("SessionType", "Normal");
                text.push("TargetName", target);
            }
            None => text.push("SessionType", "Discovery"),
        }
        if stage == SECURITY {
            text.push("AuthMethod", "CHAP");
        } else {
            login.offer(&mut text);
        }
        self.connections[index].since = now;
        self.send_login(index, &login, &text, stage == OPERATIONAL);
        self.connections[index].phase = Phase::Login(Box::new(login));
    }

    fn send_login(&mut self, index: usize, login: &Login, text: &Text, transit: bool) {
        let nsg = if login.stage == SECURITY { OPERATIONAL } else { FULL };
        let request = LoginRequest {
            immediate: true,
            transit,
            csg: login.stage,
            nsg: if transit { nsg } else { 0 },
            isid: self.config.isid,
            tsih: self.tsih,
            itt: login.itt,
            cid: index as u16,
            cmd_sn: self.cmd_sn,
            ..LoginRequest::default()
        };
        self.connections[index].out.push_back(QueuedPdu::Pdu(Pdu::with(request, text.emit())));
    }

    /// The target's answer to a step.
    pub(super) fn login_answered(&mut self, now: Time, index: usize, response: &LoginResponse, data: &Payload) {
        if self.connections[index].exp_stat_sn == 0 || response.status_class == 0 {
            self.connections[index].exp_stat_sn = response.stat_sn.wrapping_add(1);
        }
        if response.status_class != 0 {
            let (class, detail) = (response.status_class, response.status_detail);
            let why =
                format!("the target refused the login: status {class:02x}{detail:02x}, {}", meaning(class, detail));
            // Class 2 is the initiator's own fault, and stays so (RFC 7143, 11.13.5).
            if class == 2 && index == 0 && !matches!(self.state, SessionState::Up) {
                self.connections[index].phase = Phase::Closing(why.clone());
                return self.give_up(why);
            }
            return self.lose(now, why);
        }
        let Phase::Login(mut login) = std::mem::replace(&mut self.connections[index].phase, Phase::Down) else {
            return;
        };
        match self.login_step(index, &mut login, response, data) {
            Ok(false) => self.connections[index].phase = Phase::Login(login),
            Ok(true) => self.login_done(now, index, response, &login),
            Err(why) => {
                self.connections[index].phase = Phase::Login(login);
                self.lose(now, format!("login: {why}"));
            }
        }
    }

    /// Returns whether full feature phase is reached.
    fn login_step(
        &mut self,
        index: usize,
        login: &mut Login,
        response: &LoginResponse,
        data: &Payload,
    ) -> Result<bool, String> {
        login.steps += 1;
        if login.steps > MAX_STEPS || login.text.len() + data.len() > MAX_TEXT_BYTES {
            return Err(format!("more than {MAX_STEPS} steps or {MAX_TEXT_BYTES} bytes of text"));
        }
        login.text.extend_from_slice(&data.to_bytes());
        if response.cont {
            self.send_login(index, login, &Text::default(), false);
            return Ok(false);
        }
        let text = Text::parse(&std::mem::take(&mut login.text)).map_err(|error| error.to_string())?;
        let mut answer = Text::default();
        if login.stage == SECURITY {
            let done = self.prove(login, &text, &mut answer)?;
            if response.transit && done {
                login.stage = OPERATIONAL;
                let mut offers = Text::default();
                login.offer(&mut offers);
                self.send_login(index, login, &offers, true);
                return Ok(false);
            }
            let last = matches!(login.proof, ChapState::Responded(_));
            self.send_login(index, login, &answer, last);
            return Ok(false);
        }
        for (key, value) in text.pairs() {
            if Negotiation::knows(key) {
                login.negotiation.handle(key, value)?.iter().for_each(|(key, value)| answer.push(key, value));
            }
        }
        if response.transit && response.nsg == FULL {
            return match (login.negotiation.unanswered(), login.negotiation.lacks()) {
                (Some(key), _) => Err(format!("the target did not answer {key}")),
                (_, Some(key)) => Err(format!("{key}: the target does not know it, and CRC32C is needed here")),
                _ => Ok(true),
            };
        }
        self.send_login(index, login, &answer, true);
        Ok(false)
    }

    /// A step of CHAP; whether the target has nothing more to show.
    fn prove(&self, login: &mut Login, text: &Text, answer: &mut Text) -> Result<bool, String> {
        let Some(credentials) = &self.config.chap else { return Ok(true) };
        let (challenge, identifier) = (&self.config.entropy[..CHALLENGE_BYTES], self.config.entropy[CHALLENGE_BYTES]);
        match login.proof {
            ChapState::Method => {
                if text.get("AuthMethod") != Some("CHAP") {
                    return Err("AuthMethod=CHAP was offered, and not taken".to_owned());
                }
                answer.push("CHAP_A", Algorithm::OFFER);
                login.proof = ChapState::Challenge;
                Ok(false)
            }
            ChapState::Challenge => {
                let algorithm = text.get("CHAP_A").and_then(Algorithm::of);
                let theirs = text.get("CHAP_C").and_then(chap::from_text).filter(|bytes| !bytes.is_empty());
                let number = text.get("CHAP_I").and_then(|text| text.parse().ok());
                let (Some(algorithm), Some(theirs), Some(number)) = (algorithm, theirs, number) else {
                    return Err("CHAP_A, CHAP_I from 0 to 255 and CHAP_C are needed".to_owned());
                };
                let response = algorithm.response(number, &credentials.initiator.secret, &theirs);
                answer.push("CHAP_N", &credentials.initiator.name);
                answer.push("CHAP_R", &chap::to_text(&response));
                if credentials.target.is_some() {
                    answer.push("CHAP_I", &identifier.to_string());
                    answer.push("CHAP_C", &chap::to_text(challenge));
                }
                login.proof = ChapState::Responded(algorithm);
                Ok(false)
            }
            ChapState::Responded(algorithm) => {
                let Some(target) = &credentials.target else { return Ok(true) };
                let own = algorithm.response(identifier, &target.secret, challenge);
                let shown = text.get("CHAP_R").and_then(chap::from_text).unwrap_or_default();
                if text.get("CHAP_N") != Some(&target.name) || !chap::same(&own, &shown) {
                    return Err("the target did not show that it knows its secret".to_owned());
                }
                Ok(true)
            }
        }
    }

    fn login_done(&mut self, now: Time, index: usize, response: &LoginResponse, login: &Login) {
        let negotiated = login.negotiation.negotiated();
        let link = &mut self.connections[index];
        link.phase = Phase::Up;
        link.since = now;
        link.negotiated = negotiated;
        link.framing_in.header_digest = negotiated.header_digest;
        link.framing_in.data_digest = negotiated.data_digest;
        link.framing_in.max_data_bytes = negotiated.max_recv_bytes;
        link.framing_out.header_digest = negotiated.header_digest;
        link.framing_out.data_digest = negotiated.data_digest;
        self.note_window(response.exp_cmd_sn, response.max_cmd_sn);
        if index > 0 {
            self.events.push_back(Event::Joined(index));
            self.note_whole();
            return self.issue();
        }
        (self.negotiated, self.tsih, self.state) = (negotiated, response.tsih, SessionState::Up);
        self.max_cmd_sn = response.max_cmd_sn;
        self.events.push_back(Event::Up(negotiated));
        if self.config.target.is_none() {
            return self.ask_for_targets(index);
        }
        for other in 1..self.connections.len().min(negotiated.max_connections as usize) {
            self.want(other);
        }
        self.note_whole();
        self.issue();
    }

    /// Attempts count anew once all connections are there: a session that is lost for want of one would else begin
    /// without end.
    fn note_whole(&mut self) {
        let whole = self.connections.len().min(self.negotiated.max_connections as usize);
        if self.connections.iter().filter(|link| link.is_up()).count() == whole {
            self.failures = 0;
        }
    }
}

/// Words for a login's status (RFC 7143, 11.13.5).
fn meaning(class: u8, detail: u8) -> &'static str {
    match (class, detail) {
        (1, _) => "the target has moved",
        (2, 1) => "the secret was not right, or one is needed, or the target has none",
        (2, 2) => "not allowed",
        (2, 3) => "there is no such target",
        (2, 6) => "too many connections",
        (2, 10) => "there is no such session",
        (2, _) => "the initiator did something wrong",
        (3, 2) => "out of resources",
        _ => "the target has a fault",
    }
}
