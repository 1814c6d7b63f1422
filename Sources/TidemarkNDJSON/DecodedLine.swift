package import TidemarkEngine

/// One entry of an import, with its bytes in the arena of a ``DecodedLines``.
package struct DecodedLine: Sendable, Hashable {
  /// The operation of the entry.
  package enum Operation: UInt8, Sendable, Hashable {
    case put, delete, touch
  }

  /// The number of the line in its file, from 1.
  package var number: Int
  /// The operation of the entry.
  package var operation = Operation.put
  /// The owner of the entry; owned when the line does not say.
  package var entryClass = EntryAttributes.Class.owned
  /// Where the key lies in the arena.
  package var key = 0..<0
  /// Where the value lies in the arena; empty for a delete or touch.
  package var value = 0..<0
  /// Where the validator hash lies in the arena; empty when there is none.
  package var hash = 0..<0
  /// The labels, as a number of the table of label sets; 0 for none.
  package var labelSet = 0
  /// The entry's own time.
  package var time: Timestamp?
  /// The attachment that the entry names.
  package var attachment: AttachmentID?
  /// How long the entry stays valid, in seconds.
  package var maxAge: UInt32?

  package init(number: Int) { self.number = number }
}
