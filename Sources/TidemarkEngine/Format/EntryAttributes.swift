/// The attributes of an entry beside key, value and labels; most entries have none. Those of
/// replication speak of a *feed*, the log of changes of a peer.
///
/// ```
/// varint  fields present, see Field; then, in this order:
/// time          zigzag seconds, varint nanoseconds
/// hash          varint (length << 1 | hex), bytes; with hex set, half the bytes of lower-case text
/// maxAge        varint seconds
/// class         u8
/// basePosition  u64 epoch, varint offset        baseOperation   16 bytes replica, varint sequence
/// origin        16 bytes replica, varint sequence
/// priority      zigzag
/// after         varint count, per edge: varint sequence
/// attachment    32 bytes hash, varint length
/// alias         varint length, bytes
/// schema        varint
/// generation    varint length, bytes
/// atomicGroup   varint
/// recordType    varint
/// writerTime    varint, a commit time
/// former        see `FormerLabels`
/// ```
package struct EntryAttributes: Sendable, Hashable {
  /// `owned` is the user's own data; `cache` is a copy of what a server has, which may be evicted.
  package enum Class: UInt8, Sendable { case owned = 0, cache = 1 }

  /// The version that a change was made upon: its position in the feed, or its operation id.
  package enum Base: Sendable, Hashable {
    case position(epoch: UInt64, offset: UInt64)
    case operation(replica: [UInt8], sequence: UInt64)
  }

  /// The operation id: the replica that wrote the entry first, and its sequence there.
  package struct Origin: Sendable, Hashable {
    package var replica: [UInt8]
    package var sequence: UInt64
    package init(replica: [UInt8], sequence: UInt64) {
      self.replica = replica
      self.sequence = sequence
    }
  }

  /// The entry's own time, given by the caller.
  package var time: Timestamp?
  /// Validator hash given by the caller, opaque.
  package var hash: [UInt8]?
  /// Seconds for which the value counts as valid.
  package var maxAge: UInt32?
  package var entryClass = Class.owned
  package var base: Base?
  package var origin: Origin?
  package var priority: Int64 = 0
  /// Sequences that must be replicated before this entry.
  package var after: [UInt64] = []
  package var attachment: AttachmentID?
  package var alias: [UInt8]?
  package var schemaVersion: UInt32 = 0
  package var generation: [UInt8]?
  package var atomicGroup: UInt64 = 0
  package var recordType: UInt32 = 0
  /// When the writer committed an entry that came from another store; 0 where that is this one.
  package var writerTime: UInt64 = 0
  /// In a feed: labels that the key has lost; nil where that was not looked up.
  package var former: FormerLabels?

  package init() {}

  /// More than the largest encoding of all fields together.
  package static let maximumBytes = 6144

  struct Field: OptionSet {
    var rawValue: UInt64
    static let time = Field(rawValue: 1 << 0)
    static let hash = Field(rawValue: 1 << 1)
    static let maxAge = Field(rawValue: 1 << 2)
    static let entryClass = Field(rawValue: 1 << 3)
    static let basePosition = Field(rawValue: 1 << 4)
    static let baseOperation = Field(rawValue: 1 << 5)
    static let origin = Field(rawValue: 1 << 6)
    static let priority = Field(rawValue: 1 << 7)
    static let after = Field(rawValue: 1 << 8)
    static let attachment = Field(rawValue: 1 << 9)
    static let alias = Field(rawValue: 1 << 10)
    static let schema = Field(rawValue: 1 << 11)
    static let generation = Field(rawValue: 1 << 12)
    static let atomicGroup = Field(rawValue: 1 << 13)
    static let recordType = Field(rawValue: 1 << 14)
    static let writerTime = Field(rawValue: 1 << 15)
    static let former = Field(rawValue: 1 << 16)
    static let known: UInt64 = 0x1_ffff
  }

  package var isEmpty: Bool { fields.rawValue == 0 }

  var fields: Field {
    var fields: Field = []
    if time != nil { fields.insert(.time) }
    if hash != nil { fields.insert(.hash) }
    if maxAge != nil { fields.insert(.maxAge) }
    if entryClass != .owned { fields.insert(.entryClass) }
    switch base {
    case .position: fields.insert(.basePosition)
    case .operation: fields.insert(.baseOperation)
    case nil: break
    }
    if origin != nil { fields.insert(.origin) }
    if priority != 0 { fields.insert(.priority) }
    if !after.isEmpty { fields.insert(.after) }
    if attachment != nil { fields.insert(.attachment) }
    if alias != nil { fields.insert(.alias) }
    if schemaVersion != 0 { fields.insert(.schema) }
    if generation != nil { fields.insert(.generation) }
    if atomicGroup != 0 { fields.insert(.atomicGroup) }
    if recordType != 0 { fields.insert(.recordType) }
    if writerTime != 0 { fields.insert(.writerTime) }
    if former != nil { fields.insert(.former) }
    return fields
  }
}
