//! A client and a server of a few lines.

use super::{Client, CloseReason, Connection, Event, LocalPort, Settings, Source};
use bytes::BytesMut;
use proptest::prelude::*;
use wire::fc::name_server::TypeMap;
use wire::fc::{FcId, Wwn};
use wire::isns::{flags, port_role, Assembler, Attribute, Function, IpAddress, Message, Status, Tag};

const MS: u64 = 1_000_000;
const HERE: IpAddress = IpAddress([1; 16]);
const THERE: IpAddress = IpAddress([2; 16]);

fn settings() -> Settings {
    Settings { change_port: 3206, status_inquiry_s: 5, ..Settings::new("here", HERE, 3420) }
}

fn port(name: u64) -> LocalPort {
    LocalPort {
        name: Wwn(name),
        id: FcId::of(1, 1, name as u8),
        node: Wwn(name | 1 << 60),
        fabric_port: Wwn(0xfa),
        types: TypeMap::of(8),
        role: port_role::INITIATOR,
        symbolic: String::new(),
    }
}

fn bytes_of(message: &Message) -> BytesMut {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes);
    bytes
}

/// Messages that the client sends through a connection.
fn sent(client: &mut Client, to: Connection) -> Vec<Message> {
    let mut assembler = Assembler::default();
    while let Some((connection, bytes)) = client.poll_transmit() {
        assert_eq!(connection, to);
        assembler.push(&bytes);
    }
    std::iter::from_fn(|| assembler.next_message().unwrap()).collect()
}

fn events(client: &mut Client) -> Vec<Event> {
    std::iter::from_fn(|| client.poll_event()).collect()
}

/// A server that does everything but what it is told to refuse.
struct Server {
    /// Names of the remote ports that it lists.
    ports: Vec<u64>,
    refuses: Option<(Function, Status)>,
    requests: Vec<Message>,
}

impl Server {
    fn new(ports: &[u64]) -> Server {
        Server { ports: ports.to_vec(), refuses: None, requests: Vec::new() }
    }

    fn answer(&self, request: &Message) -> Message {
        let status = match self.refuses {
            Some((function, status)) if function == request.function => status,
            _ => Status::SUCCESS,
        };
        let mut attributes = vec![Attribute::DELIMITER];
        let for_ports = request.keys().iter().any(|key| *key == Attribute::wanted(Tag::PORT_NAME));
        if request.function == Function::QUERY && status == Status::SUCCESS && for_ports {
            for name in &self.ports {
                attributes.push(Attribute::text(Tag::ENTITY, "there"));
                attributes.push(Attribute::wwn(Tag::PORT_NAME, Wwn(*name)));
                attributes.push(Attribute::fc_id(Tag::PORT_ID, FcId::of(2, 1, 1)));
            }
        } else if request.function == Function::QUERY {
            attributes.push(Attribute::text(Tag::ENTITY, "there"));
            attributes.push(Attribute::address(Tag::PORTAL_ADDRESS, THERE));
            attributes.push(Attribute::word(Tag::PORTAL_PORT, 3421));
        }
        request.response(flags::SERVER, status, attributes)
    }

    /// Answers until the client asks nothing more.
    fn serve(&mut self, client: &mut Client, now_ns: u64) {
        loop {
            let requests = sent(client, Connection::Server);
            if requests.is_empty() {
                return;
            }
            for request in requests {
                client.handle_bytes(Connection::Server, &bytes_of(&self.answer(&request)), now_ns);
                self.requests.push(request);
            }
        }
    }

    fn functions(&mut self) -> Vec<Function> {
        std::mem::take(&mut self.requests).iter().map(|request| request.function).collect()
    }
}

/// A client with two ports and a server that lists some.
fn connected(ports: &[u64]) -> (Client, Server) {
    let mut client = Client::new(settings());
    assert_eq!(client.poll_timeout(), None);
    assert!(client.register(port(0x11), 0) && client.register(port(0x12), 0));
    assert_eq!(client.poll_timeout(), Some(0));
    client.handle_timeout(0);
    assert_eq!(events(&mut client), [Event::Connect]);
    client.handle_connected(0);
    let mut server = Server::new(ports);
    server.serve(&mut client, 0);
    (client, server)
}

fn names(client: &Client) -> Vec<u64> {
    client.remote_ports().map(|port| port.name.0).collect()
}

#[test]
fn a_gateway_registers_its_ports_and_asks_for_those_of_others() {
    let (mut client, mut server) = connected(&[0x21, 0x22]);
    let requests = std::mem::take(&mut server.requests);
    let functions: Vec<Function> = requests.iter().map(|request| request.function).collect();
    let [register, changes, query] = [Function::REGISTER, Function::REGISTER_CHANGES, Function::QUERY];
    assert_eq!(functions, [register, changes, changes, query, query, query]);
    let registered = requests[0].operating();
    assert!(registered.contains(&Attribute::text(Tag::ENTITY, "here")));
    assert!(registered.contains(&Attribute::word(Tag::STATUS_INQUIRY_PORT, 3206)));
    for name in [0x11, 0x12] {
        assert!(registered.contains(&Attribute::wwn(Tag::PORT_NAME, Wwn(name))));
        assert!(registered.contains(&Attribute::wwn(Tag::NODE_NAME, Wwn(name | 1 << 60))));
    }
    assert_ne!(requests[0].flags & flags::REPLACE, 0);
    // Each port asks for itself.
    assert_eq!(requests[4].keys()[0], Attribute::wwn(Tag::PORT_NAME, Wwn(0x12)));
    let events = events(&mut client);
    assert_eq!(events[0], Event::Registered);
    assert_eq!(events.len(), 3);
    assert_eq!(names(&client), [0x21, 0x22]);
    let first = client.remote_ports().next().unwrap();
    assert_eq!((first.portal, first.id), (Some((THERE, 3421)), Some(FcId::of(2, 1, 1))));
}

#[test]
fn a_control_node_speaks_for_a_gateway_where_that_is_wanted() {
    let settings = Settings { source: Source::ControlNode("iqn.2026-11.example:gw".to_string()), ..settings() };
    let mut client = Client::new(settings);
    client.register(port(0x11), 0);
    client.handle_timeout(0);
    client.handle_connected(0);
    let mut server = Server::new(&[0x21]);
    server.serve(&mut client, 0);
    let name = Attribute::text(Tag::ISCSI_NAME, "iqn.2026-11.example:gw");
    assert!(server.requests.iter().all(|request| request.keys()[0] == name));
    assert!(server.requests[0].operating().contains(&Attribute::word(Tag::ISCSI_NODE_TYPE, port_role::CONTROL)));
    assert_eq!(names(&client), [0x21]);
}

fn control_node() -> Client {
    Client::new(Settings { source: Source::ControlNode("naa.1000000000000001".to_string()), ..settings() })
}

#[test]
fn a_control_node_registers_its_gateway_without_ports() {
    let mut client = control_node();
    assert_eq!(client.poll_timeout(), Some(0));
    client.handle_timeout(0);
    client.handle_connected(0);
    let mut server = Server::new(&[0x21]);
    server.serve(&mut client, 0);
    assert!(client.is_registered());
    assert_eq!(names(&client), [0x21]);
    assert!(!server.requests[0].operating().iter().any(|attribute| attribute.tag == Tag::PORT_NAME));
    // A port that comes is registered, and goes with a registration without ports.
    client.register(port(0x11), MS);
    server.serve(&mut client, MS);
    server.requests.clear();
    server.refuses = Some((Function::DEREGISTER, Status(22)));
    client.deregister(Wwn(0x11), 2 * MS);
    server.serve(&mut client, 2 * MS);
    let again = &server.requests[1];
    assert_eq!(again.function, Function::REGISTER);
    assert!(!again.operating().iter().any(|attribute| attribute.tag == Tag::PORT_NAME));
    assert_eq!(names(&client), [0x21]);
}

#[test]
fn the_last_port_that_speaks_for_itself_takes_itself_away_and_the_client_rests() {
    let (mut client, mut server) = connected(&[]);
    server.requests.clear();
    client.deregister(Wwn(0x11), MS);
    client.deregister(Wwn(0x12), MS);
    server.serve(&mut client, MS);
    let sources: Vec<&Attribute> = server.requests.iter().map(|request| &request.keys()[0]).collect();
    assert_eq!(*sources[sources.len() - 1], Attribute::wwn(Tag::PORT_NAME, Wwn(0x12)));
    // Nothing is due, although the time of the next query comes.
    assert_eq!(client.poll_timeout(), None);
    client.handle_timeout(120_000 * MS);
    assert!(sent(&mut client, Connection::Server).is_empty());
}

#[test]
fn a_client_that_is_stopped_takes_its_gateway_away_and_speaks_no_more() {
    let (mut client, mut server) = connected(&[0x21]);
    server.requests.clear();
    client.stop(MS);
    assert!(!client.is_stopped());
    server.serve(&mut client, MS);
    assert!(client.is_stopped());
    let [request] = &server.requests[..] else { panic!("{:?}", server.requests) };
    assert_eq!(request.function, Function::DEREGISTER);
    assert!(request.operating().contains(&Attribute::text(Tag::ENTITY, "here")));
    client.register(port(0x13), 2 * MS);
    client.deregister(Wwn(0x11), 2 * MS);
    assert!(sent(&mut client, Connection::Server).is_empty());
    client.handle_closed(Connection::Server, 3 * MS);
    assert_eq!(client.poll_timeout(), None);
    // One that is not connected has nothing to take away.
    let mut lonely = control_node();
    lonely.stop(0);
    assert!(lonely.is_stopped() && lonely.poll_timeout().is_none());
}

#[test]
fn the_wait_for_a_lost_server_doubles_up_to_a_bound_until_it_answers() {
    let (mut client, mut server) = connected(&[0x21]);
    assert_eq!(client.listed_ns(), Some(0));
    let mut now_ns = 0;
    client.handle_closed(Connection::Server, now_ns);
    let mut waits = Vec::new();
    for _ in 0..6 {
        let due_ns = client.poll_timeout().unwrap();
        waits.push((due_ns - now_ns) / MS / 1000);
        now_ns = due_ns;
        client.handle_timeout(now_ns);
        client.handle_closed(Connection::Server, now_ns);
        assert!(!client.is_registered());
    }
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    now_ns = client.poll_timeout().unwrap();
    client.handle_timeout(now_ns);
    // A connection alone proves nothing.
    client.handle_connected(now_ns);
    client.handle_closed(Connection::Server, now_ns);
    assert_eq!(client.poll_timeout(), Some(now_ns + 60_000 * MS));
    now_ns += 60_000 * MS;
    client.handle_timeout(now_ns);
    client.handle_connected(now_ns);
    server.serve(&mut client, now_ns);
    assert_eq!((client.is_registered(), client.listed_ns()), (true, Some(now_ns)));
    client.handle_closed(Connection::Server, now_ns);
    assert_eq!(client.poll_timeout(), Some(now_ns + 5_000 * MS));
}

#[test]
fn a_notification_is_answered_and_followed_by_one_query_for_many() {
    let (mut client, mut server) = connected(&[0x21]);
    server.requests.clear();
    events(&mut client);
    client.handle_accepted(1);
    let destination = Attribute::wwn(Tag::PORT_NAME, Wwn(0x11));
    let change = Message {
        function: Function::CHANGE,
        flags: flags::SERVER,
        transaction: 77,
        status: None,
        attributes: vec![destination.clone(), Attribute::word(Tag::CHANGES, 8)],
    };
    for _ in 0..10 {
        client.handle_bytes(Connection::Inbound(1), &bytes_of(&change), MS);
    }
    let answers = sent(&mut client, Connection::Inbound(1));
    assert_eq!(answers.len(), 10);
    assert_eq!(answers[0], change.response(flags::CLIENT, Status::SUCCESS, vec![destination]));
    server.ports = vec![0x22];
    assert_eq!(client.poll_timeout(), Some(101 * MS));
    client.handle_timeout(101 * MS);
    server.serve(&mut client, 101 * MS);
    assert_eq!(server.functions(), [Function::QUERY; 3]);
    assert_eq!(events(&mut client)[0], Event::Disappeared(Wwn(0x21)));
    assert_eq!(names(&client), [0x22]);
}

#[test]
fn an_inquiry_is_answered_for_this_gateway_alone_and_a_heartbeat_not_at_all() {
    let (mut client, _) = connected(&[]);
    client.handle_accepted(1);
    let inquiry = |entity| Message {
        function: Function::STATUS_INQUIRY,
        flags: flags::SERVER,
        transaction: 5,
        status: None,
        attributes: vec![Attribute::text(Tag::ENTITY, entity), Attribute::word(Tag::PORTAL_PORT, 3420)],
    };
    for (entity, status) in [("here", Status::SUCCESS), ("elsewhere", Status::NO_SUCH_ENTRY)] {
        client.handle_bytes(Connection::Inbound(1), &bytes_of(&inquiry(entity)), 0);
        let expected = inquiry(entity).response(flags::CLIENT, status, inquiry(entity).attributes);
        assert_eq!(sent(&mut client, Connection::Inbound(1)), [expected]);
    }
    let heartbeat = Message { function: Function::HEARTBEAT, attributes: Vec::new(), ..inquiry("here") };
    client.handle_bytes(Connection::Inbound(1), &bytes_of(&heartbeat), 0);
    assert!(sent(&mut client, Connection::Inbound(1)).is_empty());
}

#[test]
fn remote_ports_stay_while_the_server_is_lost_and_all_is_registered_anew() {
    let (mut client, mut server) = connected(&[0x21, 0x22]);
    events(&mut client);
    server.functions();
    client.handle_closed(Connection::Server, 1000 * MS);
    assert_eq!(client.poll_timeout(), Some(6000 * MS));
    client.handle_timeout(5999 * MS);
    assert!(events(&mut client).is_empty());
    client.handle_timeout(6000 * MS);
    assert_eq!(events(&mut client), [Event::Connect]);
    assert_eq!(names(&client), [0x21, 0x22]);
    server.ports = vec![0x21];
    client.handle_connected(6000 * MS);
    server.serve(&mut client, 6000 * MS);
    assert_eq!(server.functions()[0], Function::REGISTER);
    assert_eq!(events(&mut client), [Event::Registered, Event::Disappeared(Wwn(0x22))]);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let mut client = Client::new(settings());
    client.register(port(0x11), 0);
    client.handle_timeout(0);
    client.handle_connected(0);
    events(&mut client);
    assert_eq!(client.poll_timeout(), Some(10_000 * MS));
    client.handle_timeout(10_000 * MS);
    assert_eq!(events(&mut client), [Event::Close(Connection::Server, CloseReason::NoResponse)]);
    assert_eq!(client.poll_timeout(), Some(15_000 * MS));
}

#[test]
fn a_server_that_forgot_the_gateway_is_told_again() {
    let (mut client, mut server) = connected(&[0x21]);
    events(&mut client);
    server.refuses = Some((Function::QUERY, Status::SOURCE_UNKNOWN));
    client.handle_timeout(60_000 * MS);
    server.serve(&mut client, 60_000 * MS);
    let refused = Event::Refused(Function::QUERY.response(), Status::SOURCE_UNKNOWN);
    assert_eq!(events(&mut client), [refused, Event::Close(Connection::Server, CloseReason::Unexpected)]);
    // Nothing was proved about ports.
    assert_eq!(names(&client), [0x21]);
    server.refuses = None;
    client.handle_timeout(65_000 * MS);
    client.handle_connected(65_000 * MS);
    server.functions();
    server.serve(&mut client, 65_000 * MS);
    assert_eq!(server.functions()[0], Function::REGISTER);
}

#[test]
fn a_refused_query_proves_no_absence() {
    let (mut client, mut server) = connected(&[0x21]);
    events(&mut client);
    server.refuses = Some((Function::QUERY, Status(12)));
    client.handle_timeout(60_000 * MS);
    server.serve(&mut client, 60_000 * MS);
    assert!(!events(&mut client).contains(&Event::Disappeared(Wwn(0x21))));
    assert_eq!(names(&client), [0x21]);
}

#[test]
fn a_port_that_a_server_does_not_take_away_leaves_with_a_new_registration() {
    let (mut client, mut server) = connected(&[]);
    server.functions();
    server.refuses = Some((Function::DEREGISTER, Status(22)));
    client.deregister(Wwn(0x11), MS);
    server.serve(&mut client, MS);
    let again = &server.requests[1];
    assert_eq!((server.requests[0].function, again.function), (Function::DEREGISTER, Function::REGISTER));
    assert_ne!(again.flags & flags::REPLACE, 0);
    assert!(!again.operating().contains(&Attribute::wwn(Tag::PORT_NAME, Wwn(0x11))));
}

#[test]
fn the_list_of_remote_ports_is_bounded_and_its_end_proves_no_absence() {
    let (mut client, mut server) = connected(&[]);
    client.settings_mut().remote_ports_max = 3;
    server.ports = vec![0x21, 0x22, 0x23];
    client.handle_timeout(60_000 * MS);
    server.serve(&mut client, 60_000 * MS);
    events(&mut client);
    // A smaller name pushes the largest out of the answer; the port with it is still there.
    server.ports = vec![0x20, 0x21, 0x22, 0x23];
    client.handle_timeout(120_000 * MS);
    server.serve(&mut client, 120_000 * MS);
    assert_eq!(events(&mut client), [Event::TooManyPorts]);
    assert_eq!(names(&client), [0x21, 0x22, 0x23]);
    // One that is missing before the end is gone.
    server.ports = vec![0x20, 0x22, 0x23, 0x24];
    client.handle_timeout(180_000 * MS);
    server.serve(&mut client, 180_000 * MS);
    assert!(events(&mut client).contains(&Event::Disappeared(Wwn(0x21))));
    assert_eq!(names(&client), [0x20, 0x22, 0x23]);
}

#[test]
fn own_ports_are_no_remote_ports() {
    let (client, _) = connected(&[0x11, 0x21]);
    assert_eq!(names(&client), [0x21]);
}

#[test]
fn a_response_to_nothing_closes_the_connection_it_came_through() {
    for connection in [Connection::Server, Connection::Inbound(1)] {
        let (mut client, _) = connected(&[]);
        client.handle_accepted(1);
        events(&mut client);
        let request = Message::request(Function::QUERY, 999, Attribute::DELIMITER, Vec::new(), Vec::new());
        let response = request.response(flags::SERVER, Status::SUCCESS, Vec::new());
        client.handle_bytes(connection, &bytes_of(&response), 0);
        assert_eq!(events(&mut client), [Event::Close(connection, CloseReason::Unexpected)]);
    }
}

#[test]
fn a_connection_is_idle_between_whole_messages() {
    let (mut client, _) = connected(&[]);
    client.handle_accepted(1);
    let (connection, bytes) = (
        Connection::Inbound(1),
        bytes_of(&Message {
            function: Function::HEARTBEAT,
            flags: flags::SERVER,
            transaction: 5,
            status: None,
            attributes: Vec::new(),
        }),
    );
    assert!(!client.is_idle(connection), "it has shown nothing");
    client.handle_bytes(connection, &bytes[..5], 0);
    assert!(!client.is_idle(connection));
    client.handle_bytes(connection, &bytes[5..], 0);
    assert!(client.is_idle(connection));
    client.handle_bytes(connection, &bytes[..1], 0);
    assert!(!client.is_idle(connection));
    client.handle_closed(connection, 0);
    assert!(!client.is_idle(connection));
}

#[test]
fn connections_and_answers_from_outside_are_bounded() {
    let (mut client, _) = connected(&[]);
    events(&mut client);
    for number in 0..6 {
        client.handle_accepted(number);
    }
    assert_eq!(events(&mut client).len(), 2);
    let unknown = Message::request(Function(0x0123), 1, Attribute::DELIMITER, Vec::new(), Vec::new());
    for _ in 0..1000 {
        client.handle_bytes(Connection::Inbound(0), &bytes_of(&unknown), 0);
    }
    assert_eq!(events(&mut client), [Event::Close(Connection::Inbound(0), CloseReason::TooMany)]);
    assert!(client.poll_transmit().is_none());
}

proptest! {
    #[test]
    fn any_bytes_leave_the_client_bounded(
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40),
        framed: bool,
    ) {
        let (mut client, _) = connected(&[0x21]);
        client.handle_accepted(1);
        for (of_server, piece) in pieces {
            let connection = if of_server { Connection::Server } else { Connection::Inbound(1) };
            let mut bytes = BytesMut::new();
            if framed {
                // A right header, so that the payload is looked at.
                let function = piece.first().copied().unwrap_or(1) & 0x0f;
                let length = piece.len() as u16 / 4 * 4;
                for half in [1, u16::from(function) + 0x8000 * u16::from(of_server), length, 0x4c00, 7, 0] {
                    bytes.extend_from_slice(&half.to_be_bytes());
                }
                bytes.extend_from_slice(&piece[..usize::from(length)]);
            } else {
                bytes.extend_from_slice(&piece);
            }
            client.handle_bytes(connection, &bytes, 0);
            prop_assert!(client.remote_ports().count() <= 1);
            prop_assert!(std::iter::from_fn(|| client.poll_transmit()).count() <= 64);
            events(&mut client);
        }
    }
}
