/// What ``StoreVerifier`` has found in a store.
public struct VerifyReport: Sendable {
  /// The faults, in the order of files, then offsets.
  public var findings: [VerifyFinding] = []
  /// Segments looked at.
  public var segments = 0
  /// Entries whose heads and values are intact.
  public var entries = 0
  /// Bytes read of the log and the index.
  public var bytes = 0
  /// Sorted runs of the index ("images") that were read.
  public var images = 0
  /// Attachments (files beside the log) that were read, and their bytes.
  public var attachments = 0
  public var attachmentBytes = 0
  /// Attachments whose content was released: a peer has it.
  public var attachmentsReleased = 0
  /// The highest sequence that was given out, as far as the store still knows.
  public var lastSequence: UInt64 = 0
  /// Sequences that an earlier repair has given up; reads that need them fail.
  public var holes: [ClosedRange<UInt64>] = []
  /// Files that MANIFEST does not list; the next opening for writing removes them.
  public var leftovers: [String] = []
  /// Whether MANIFEST records damage to acknowledged data, so that opening for writing refuses.
  public var isRecorded = false
  /// Whether the store is encrypted and was checked without its key: only checksums were.
  public var isOpaque = false

  /// Whether nothing was found.
  public var isHealthy: Bool { findings.isEmpty }
}

/// One fault of a store.
public struct VerifyFinding: Sendable, Hashable {
  /// The file, relative to the store's directory.
  public var file: String
  /// Where the damaged structure begins.
  public var offset: Int
  /// Bytes of the damaged structure, where that is known.
  public var length = 0
  /// The entries concerned; nil where none are.
  public var sequences: ClosedRange<UInt64>?
  /// The fault, in words.
  public var message: String
  /// The command that mends the fault, or the step of normal use that does.
  public var remedy: String
  /// Whether entries of the log are damaged or lost; the index can be made from the log again.
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
