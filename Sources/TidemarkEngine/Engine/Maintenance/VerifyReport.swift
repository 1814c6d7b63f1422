/// The findings of a verification.
package struct VerifyReport: Sendable {
  /// In the order of files, then offsets.
  package var findings: [VerifyFinding] = []
  /// Segments looked at.
  package var segments = 0
  /// Entries whose heads and values are intact.
  package var entries = 0
  /// Bytes read of the log and the index.
  package var bytes = 0
  /// Index images looked at.
  package var images = 0
  /// Attachments looked at, and their bytes.
  package var attachments = 0
  package var attachmentBytes = 0
  /// Attachments whose content was released: a peer has it.
  package var attachmentsReleased = 0
  /// The highest sequence that was given out, as far as the store still knows.
  package var lastSequence: UInt64 = 0
  /// Sequences that an earlier repair has given up; reads that need them fail.
  package var holes: [ClosedRange<UInt64>] = []
  /// Files that belong to nothing; the next opening for writing clears them away.
  package var leftovers: [String] = []
  /// Whether damage to acknowledged data is on record in MANIFEST now, so that opening for
  /// writing refuses.
  package var isRecorded = false
  /// Whether the store is encrypted and was checked without its key: only checksums were.
  package var isOpaque = false

  package init() {}

  /// Whether there is nothing to mend.
  package var isHealthy: Bool { findings.isEmpty }
}

/// One thing that is not as it should be.
package struct VerifyFinding: Sendable, Hashable {
  /// Relative to the store's directory.
  package var file: String
  /// Where the damaged structure begins.
  package var offset: Int
  /// The entries concerned; nil where none are.
  package var sequences: ClosedRange<UInt64>?
  /// The fault, in words.
  package var message: String
  /// The command that mends it, or what does so by itself.
  package var remedy: String
  /// Whether the log itself is damaged; what else is damaged can be made from it.
  package var isDamageToAcknowledged: Bool
  /// Bytes of the damaged structure, where that is known.
  package var length: Int
  /// The segment concerned; 0 for none.
  package var segmentID: UInt64

  package init(
    file: String, offset: Int, length: Int = 0, sequences: ClosedRange<UInt64>? = nil,
    message: String, remedy: String, isDamageToAcknowledged: Bool, segmentID: UInt64 = 0
  ) {
    self.file = file
    self.offset = offset
    self.length = length
    self.sequences = sequences
    self.message = message
    self.remedy = remedy
    self.isDamageToAcknowledged = isDamageToAcknowledged
    self.segmentID = segmentID
  }
}

/// The commands that findings name.
enum VerifyRemedy {
  static func repair(_ path: String) -> String { "logtool repair \(path) --into DIR" }
  static func rebuild(_ path: String) -> String { "logtool rebuild \(path)" }
  static let opening = "the next opening for writing heals it"
}
