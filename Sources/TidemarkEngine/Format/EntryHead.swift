/// The header of one entry: all but its value. The *heads* of a frame are those of all its entries,
/// kept in columns, see ``HeadsDecoder``. A *touch* renews the validity of an older put and has no
/// value itself.
package struct EntryHead: Sendable {
  package var kind = EntryKind.put
  /// Whether it is the last entry of its batch.
  package var endsBatch = true
  package var sequence: UInt64
  /// Where the key begins in the text of the frame's heads.
  package var keyStart = 0
  package var keyLength = 0
  /// Index into the frame's table of label sets; -1 for none.
  package var labelSet = -1
  package var hasValue = false
  /// Where the value begins in the frame's raw values, one behind the other.
  package var valueOffset = 0
  package var valueLength = 0
  /// The key's previous sequence; 0 for none.
  package var previous: UInt64 = 0
  /// For a touch, the sequence of the put that holds the value; else 0.
  package var valueSequence: UInt64 = 0
  /// Hybrid logical clock: 48 bits of milliseconds since 1970, 16 bits of counter.
  package var commitTime: UInt64 = 0
  /// Commit time of the oldest version since the key was last absent; 0 when not recorded.
  package var created: UInt64 = 0
  package var attributesStart = 0
  package var attributesLength = 0
}
