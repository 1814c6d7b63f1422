/// The meaning of an engine record; with the record's key, its name.
///
/// Types below 256 are *listed*: a ``RecordTable`` finds the newest record of each of their names.
/// Of the others there may be as many as there are entries; they are met only by who reads the
/// log.
package struct RecordType: RawRepresentable, Sendable, Hashable {
  package var rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Where the newest records of all names stand; the key is empty.
  package static let checkpoint = RecordType(rawValue: 2)
  /// From where on history must stay for somebody; the key is his name. See ``RetentionPin``.
  package static let pin = RecordType(rawValue: 3)

  /// Whether record tables know records of the type.
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
