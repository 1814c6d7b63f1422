/// The meaning of a record, an entry of the engine's own. Type and key together are its name.
/// Types below 256 are *listed*: a ``RecordTable`` finds the newest record of each of their names.
/// Of other types there may be as many records as entries: only a walk over the log finds them.
package struct RecordType: RawRepresentable, Sendable, Hashable {
  package var rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// A list of the newest records of all names, see ``RecordCheckpoint``; the key is empty.
  package static let checkpoint = RecordType(rawValue: 2)
  /// The history that compaction keeps for a peer, see ``RetentionPin``; the key names the peer.
  package static let pin = RecordType(rawValue: 3)

  /// Whether record tables know records of the type. Checkpoints are found by the walk instead.
  package var isListed: Bool { rawValue < 256 && self != .checkpoint }
}

/// The name of a record: of those with the same name only the newest counts.
package struct RecordName: Sendable, Hashable {
  package var type: RecordType
  package var key: [UInt8]

  package init(_ type: RecordType, key: [UInt8]) {
    self.type = type
    self.key = key
  }
}
