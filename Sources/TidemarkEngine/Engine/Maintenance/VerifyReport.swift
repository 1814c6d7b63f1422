/// The result of a store's verification: the faults that were found, and counts of the data that
/// was read.
public struct VerifyReport: Sendable {
  /// The faults, in the order of files, then offsets; empty in a sound store.
  public var findings: [VerifyFinding] = []
  /// The number of log segments that were checked.
  public var segments = 0
  /// The number of entries whose headers and values are intact.
  public var entries = 0
  /// The bytes of log and index that were read.
  public var bytes = 0
  /// The number of the index's sorted runs that were read.
  public var runs = 0
  /// The number of attachments (files beside the log) that were read.
  public var attachments = 0
  /// The bytes of the attachments that were read.
  public var attachmentBytes = 0
  /// The number of attachments whose content was released because a peer has it.
  public var attachmentsReleased = 0
  /// The highest sequence that the store is known to have given out.
  public var lastSequence: UInt64 = 0
  /// The sequences that an earlier repair has given up; reads that need them fail.
  public var holes: [ClosedRange<UInt64>] = []
  /// The files in the directory that MANIFEST does not list. The next opening for writing removes
  /// them.
  public var leftovers: [String] = []
  /// Whether MANIFEST records damage to acknowledged data, so that opening for writing refuses.
  public var isRecorded = false
  /// Whether an encrypted store was checked without its key, so that only checksums were compared.
  public var isOpaque = false

  /// Whether the verification found no faults.
  public var isHealthy: Bool { findings.isEmpty }
}

/// One fault that the verification of a store has found.
public struct VerifyFinding: Sendable, Hashable {
  /// The file with the fault, relative to the store's directory.
  public var file: String
  /// The offset in ``file``, in bytes, at which the damaged structure begins.
  public var offset: Int
  /// The length of the damaged structure in bytes; 0 where that is unknown.
  public var length = 0
  /// The sequences of the entries that the fault concerns; nil when it concerns none.
  public var sequences: ClosedRange<UInt64>?
  /// A description of the fault, for people.
  public var message: String
  /// The command that mends the fault, or the step of normal use that does.
  public var remedy: String
  /// Whether entries of the log are damaged or lost. False for faults of the index, which the store
  /// can rebuild from the log.
  public var isDamageToAcknowledged: Bool
  /// The segment concerned; 0 for none.
  package var segmentID: UInt64 = 0
}

/// The commands that findings name.
enum VerifyRemedy {
  static func repair(_ path: String) -> String { "logtool repair \(path) --into DIR" }
  static func rebuild(_ path: String) -> String { "logtool rebuild \(path)" }
  static let opening = "the next opening for writing heals it"
}
