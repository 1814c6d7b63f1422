/// The header of one entry: all but its value. A frame's *heads* are those of all its entries, in
/// one compressed piece. A *touch* renews the validity of an older put and has no value itself.
///
/// ```
/// u8      kind (bits 0-3), end of batch (bit 4); the rest zero
/// u8      fields present, see EntryFields
/// zigzag  sequence less the sequence before it in the frame (frames with explicit sequences)
/// varint  key length, then the key
/// varint  label set, an index into the frame's table          (labels)
/// varint  value length                                        (value)
/// varint  sequence less the key's previous sequence           (previous)
/// zigzag  commit time less that of the entry before, or in a frame with explicit sequences
///         (of a compacted segment) less that of the first     (commitTime)
/// varint  sequence less that of the put a touch refers to     (valueSequence)
/// u64     commit time of the oldest version since the key was last absent  (created)
/// varint  length of the attributes, then the attributes       (attributes)
/// ```
package struct EntryHead: Sendable {
  package var kind: EntryKind
  package var endsBatch: Bool
  package var sequence: UInt64
  /// Where the key begins in the frame's raw heads.
  package var keyStart: Int
  package var keyLength: Int
  /// Index into the frame's table of label sets; -1 for none.
  package var labelSet: Int
  package var hasValue: Bool
  /// Where the value begins in the frame's raw values, one behind the other.
  package var valueOffset: Int
  package var valueLength: Int
  /// The key's previous sequence; 0 for none.
  package var previous: UInt64
  /// For a touch, the sequence of the put that holds the value; else 0.
  package var valueSequence: UInt64
  /// Hybrid logical clock: 48 bits of milliseconds since 1970, 16 bits of counter.
  package var commitTime: UInt64
  /// Commit time of the oldest version since the key was last absent; 0 when not recorded.
  package var created: UInt64
  package var attributesStart: Int
  package var attributesLength: Int
}

/// Which fields an entry's head carries.
package struct EntryFields: OptionSet, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let labels = EntryFields(rawValue: 1)
  package static let value = EntryFields(rawValue: 2)
  package static let previous = EntryFields(rawValue: 4)
  package static let commitTime = EntryFields(rawValue: 8)
  package static let valueSequence = EntryFields(rawValue: 16)
  package static let created = EntryFields(rawValue: 32)
  package static let attributes = EntryFields(rawValue: 64)
  package static let known: UInt8 = 0x7f
}
