// SPDX-License-Identifier: Apache-2.0
//! The two ends of a conversation.

use super::body::Body;
use super::seal::{Header, Key, Numbers, Refused, seal, unseal};

/// An agent's end. Its session has one challenge, so that nothing can be repeated: an agent that has no
/// answer for some time, as when the controller was restarted, begins another session.
#[derive(Clone, Debug)]
pub struct Agent {
    key: Key,
    host: u16,
    session: u64,
    challenge: u64,
    sent: u64,
    numbers: Numbers,
}

impl Agent {
    /// The agent of a host; `session` is drawn by chance.
    pub fn new(key: Key, host: u16, session: u64) -> Agent {
        Agent {
            key,
            host,
            session,
            challenge: 0,
            sent: 0,
            numbers: Numbers::default(),
        }
    }

    /// A message to the controller.
    pub fn seal(&mut self, body: &Body) -> Vec<u8> {
        self.sent += 1;
        let header = Header {
            host: self.host,
            session: self.session,
            challenge: self.challenge,
            number: self.sent,
        };
        seal(&self.key, header, body)
    }

    /// The content of a message of the controller. Nothing is changed by one that is refused.
    ///
    /// # Errors
    /// It is not of the controller, or not for this session, or not new.
    pub fn unseal(&mut self, message: &[u8]) -> Result<Body, Refused> {
        let (header, body) = unseal(&self.key, self.host, message)?;
        if !body.is_of_controller() {
            return Err(Refused::Malformed);
        }
        if header.session != self.session {
            return Err(Refused::OtherSession);
        }
        if self.challenge == 0 {
            self.challenge = header.challenge;
        } else if header.challenge != self.challenge {
            return Err(Refused::OtherSession);
        }
        self.numbers.take(header.number)?;
        Ok(body)
    }
}

/// The controller's end of a conversation with one agent.
#[derive(Clone, Debug)]
pub struct Peer {
    key: Key,
    host: u16,
    /// Of the agent; 0: none yet.
    session: u64,
    challenge: u64,
    /// Of the challenges of sessions that begin, drawn by chance for each session that has begun: a challenge
    /// is of use once, and what is sent in the name of other sessions changes none. 0: not drawn yet.
    secret: u64,
    sent: u64,
    numbers: Numbers,
}

/// What a message of an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Its content.
    Body(Body),
    /// This is to be sent back: its session is not known, and a challenge is to show that it is now.
    Answer(Vec<u8>),
}

impl Peer {
    /// Of a host that has sent nothing so far.
    pub fn new(key: Key, host: u16) -> Peer {
        Peer {
            key,
            host,
            session: 0,
            challenge: 0,
            secret: 0,
            sent: 0,
            numbers: Numbers::default(),
        }
    }

    /// A message to the agent, if one of it has been taken.
    pub fn seal(&mut self, body: &Body) -> Option<Vec<u8>> {
        self.sent += 1;
        let header = Header {
            host: self.host,
            session: self.session,
            challenge: self.challenge,
            number: self.sent,
        };
        (self.challenge != 0).then(|| seal(&self.key, header, body))
    }

    /// Takes a message of the agent; `random` is drawn by chance and not 0.
    ///
    /// # Errors
    /// It is not of the agent, or not new.
    pub fn unseal(&mut self, message: &[u8], random: u64) -> Result<Received, Refused> {
        let (header, body) = unseal(&self.key, self.host, message)?;
        if body.is_of_controller() {
            return Err(Refused::Malformed);
        }
        let own = (header.session, header.challenge);
        if own == (self.session, self.challenge) && self.challenge != 0 {
            self.numbers.take(header.number)?;
            return Ok(Received::Body(body));
        }
        if self.secret == 0 {
            self.secret = random;
        }
        let challenge = self.key.challenge(self.secret, header.session);
        if header.challenge == challenge {
            (self.session, self.challenge) = own;
            (self.secret, self.sent) = (random, 0);
            self.numbers = Numbers::default();
            self.numbers.take(header.number)?;
            return Ok(Received::Body(body));
        }
        let challenged = Header {
            host: self.host,
            session: header.session,
            challenge,
            number: 0,
        };
        Ok(Received::Answer(seal(
            &self.key,
            challenged,
            &Body::Notices(Vec::new()),
        )))
    }
}
