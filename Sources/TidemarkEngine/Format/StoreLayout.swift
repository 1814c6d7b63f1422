/// The names of a store's files.
package enum StoreLayout {
  package static let lock = "LOCK"
  package static let manifests = ["MANIFEST.0", "MANIFEST.1"]
  package static let logDirectory = "log"
  package static let indexDirectory = "index"
  package static let quarantineDirectory = "quarantine"
  /// A file that only takes up space: the store gives the space back when the disk is full, and can
  /// still close and compact.
  package static let ballast = "BALLAST"
  package static let attachmentDirectory = "attachments"
  /// The directory of files that make the next opening faster, such as the order in which a cache's
  /// entries were used. Deleting it loses no data.
  package static let hintDirectory = "hints"

  /// Everything that may stand in a store's directory; one with other names is never taken for a
  /// store whose creation was interrupted.
  package static let known: Set<String> = [
    lock, manifests[0], manifests[1], logDirectory, indexDirectory, quarantineDirectory, ballast,
    attachmentDirectory, hintDirectory,
  ]

  /// `log/00000000000000000001-0000002a.seg`: first sequence, then segment id, so that a
  /// listing is in the log's order and a compacted segment never takes its input's name.
  package static func segmentName(id: UInt64, firstSequence: UInt64) -> String {
    digits(firstSequence, radix: 10, atLeast: 20) + "-" + digits(id) + ".seg"
  }

  /// `log/0000002a-3.run`: entries that a compaction has sorted and spilled, until it merges them
  /// into the segment of that id. Not a run of the index.
  package static func runName(id: UInt64, number: Int) -> String { digits(id) + "-\(number).run" }

  /// `index/0000002a.idx`: a sorted run of the index.
  package static func sortedRunName(id: UInt64) -> String {
    digits(id) + ".idx"
  }

  private static func digits(_ number: UInt64, radix: Int = 16, atLeast count: Int = 8) -> String {
    let digits = String(number, radix: radix)
    return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
  }
}
