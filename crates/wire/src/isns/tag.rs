//! Tags of attributes (RFC 4171, 6.1) that iFCP gateways use, and the bits of two of them.

/// Tag of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag(pub u32);

impl Tag {
    /// Delimiter between keys and operating attributes.
    pub const DELIMITER: Tag = Tag(0);
    /// Entity identifier (EID): the gateway.
    pub const ENTITY: Tag = Tag(1);
    /// Protocol of the entity.
    pub const ENTITY_PROTOCOL: Tag = Tag(2);
    /// Time, seconds since 1970.
    pub const TIMESTAMP: Tag = Tag(4);
    /// Time after which the server forgets an entity of which it hears nothing, s.
    pub const REGISTRATION_PERIOD: Tag = Tag(6);
    /// Address of a portal.
    pub const PORTAL_ADDRESS: Tag = Tag(16);
    /// TCP or UDP port of a portal: where peers connect.
    pub const PORTAL_PORT: Tag = Tag(17);
    /// Symbolic name of a portal.
    pub const PORTAL_NAME: Tag = Tag(18);
    /// Time between the server's inquiries, s.
    pub const STATUS_INQUIRY_INTERVAL: Tag = Tag(19);
    /// Port to which the server's inquiries come.
    pub const STATUS_INQUIRY_PORT: Tag = Tag(20);
    /// Port to which notifications come.
    pub const CHANGE_PORT: Tag = Tag(23);
    /// Name of an iSCSI node: who speaks for a gateway where a server takes no N_Port for that.
    pub const ISCSI_NAME: Tag = Tag(32);
    /// Type of an iSCSI node, with the bits of [`port_role`].
    pub const ISCSI_NODE_TYPE: Tag = Tag(33);
    /// Changes that an iSCSI node wants to hear of: [`scn_bitmap`].
    pub const ISCSI_CHANGES: Tag = Tag(35);
    /// Name of an N_Port (WWPN).
    pub const PORT_NAME: Tag = Tag(64);
    /// Address of an N_Port in its gateway's fabric.
    pub const PORT_ID: Tag = Tag(65);
    /// Type of port, such as [`Tag::N_PORT`].
    pub const PORT_TYPE: Tag = Tag(66);
    /// Symbolic name of an N_Port.
    pub const PORT_SYMBOLIC_NAME: Tag = Tag(67);
    /// Name of the F_Port to which an N_Port is attached.
    pub const FABRIC_PORT_NAME: Tag = Tag(68);
    /// IP address of an N_Port.
    pub const PORT_ADDRESS: Tag = Tag(70);
    /// Classes of service.
    pub const CLASS_OF_SERVICE: Tag = Tag(71);
    /// FC-4 types, 32 bytes as in FC-GS.
    pub const FC4_TYPES: Tag = Tag(72);
    /// FC-4 features, 128 bytes as in FC-GS.
    pub const FC4_FEATURES: Tag = Tag(74);
    /// Changes that an N_Port wants to hear of, or that happened: [`scn_bitmap`].
    pub const CHANGES: Tag = Tag(75);
    /// Role of an N_Port: [`port_role`].
    pub const PORT_ROLE: Tag = Tag(76);
    /// Name of a node (WWNN).
    pub const NODE_NAME: Tag = Tag(96);
    /// Symbolic name of a node.
    pub const NODE_SYMBOLIC_NAME: Tag = Tag(97);

    /// Value of [`Tag::PORT_TYPE`]: an N_Port.
    pub const N_PORT: u32 = 1;
    /// Bit of [`Tag::CLASS_OF_SERVICE`]: class 3.
    pub const CLASS_3: u32 = 1 << 3;
    /// Bit of a port for inquiries or notifications: it is UDP's, not TCP's (6.3.5).
    pub const UDP: u32 = 1 << 16;
}

/// Bits of [`Tag::PORT_ROLE`] (6.6.13).
pub mod port_role {
    /// A target.
    pub const TARGET: u32 = 1;
    /// An initiator.
    pub const INITIATOR: u32 = 2;
    /// A gateway or a management station; only the server's administrator gives it.
    pub const CONTROL: u32 = 4;
}

/// Bits of [`Tag::CHANGES`] (6.6.12).
pub mod scn_bitmap {
    /// A control node wants to hear of all domains.
    pub const MANAGEMENT: u32 = 1 << 5;
    /// An object was updated.
    pub const UPDATED: u32 = 1 << 2;
    /// An object was added.
    pub const ADDED: u32 = 1 << 3;
    /// An object was removed.
    pub const REMOVED: u32 = 1 << 4;
}
