/// The findings of a verification.
public struct VerifyReport: Sendable {
  /// The faults, in the order of files, then offsets.
  public var findings: [VerifyFinding] = []
  /// Segments looked at.
  public var segments = 0
  /// Entries whose heads and values are intact.
  public var entries = 0
  /// Bytes read of the log and the index.
  public var bytes = 0
  /// Index images looked at.
  public var images = 0
  /// Attachments looked at, and their bytes.
  public var attachments = 0
  public var attachmentBytes = 0
  /// Attachments whose content was released: a peer has it.
  public var attachmentsReleased = 0
  /// The highest sequence that was given out, as far as the store still knows.
  public var lastSequence: UInt64 = 0
  /// Sequences that an earlier repair has given up; reads that need them fail.
  public var holes: [ClosedRange<UInt64>] = []
  /// Files that belong to nothing; the next opening for writing clears them away.
  public var leftovers: [String] = []
  /// Whether damage to acknowledged data is on record in MANIFEST now, so that opening for
  /// writing refuses.
  public var isRecorded = false
  /// Whether the store is encrypted and was checked without its key: only checksums were.
  public var isOpaque = false

  package init() {}

  /// Whether there is nothing to mend.
  public var isHealthy: Bool { findings.isEmpty }
}

/// One thing that is not as it should be.
public struct VerifyFinding: Sendable, Hashable {
  /// The file, relative to the store's directory.
  public var file: String
  /// Where the damaged structure begins.
  public var offset: Int
  /// The entries concerned; nil where none are.
  public var sequences: ClosedRange<UInt64>?
  /// The fault, in words.
  public var message: String
  /// The command that mends it, or what does so by itself.
  public var remedy: String
  /// Whether the log itself is damaged; what else is damaged can be made from it.
  public var isDamageToAcknowledged: Bool
  /// Bytes of the damaged structure, where that is known.
  public var length: Int
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
