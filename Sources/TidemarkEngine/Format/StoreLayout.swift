/// The names of a store's files.
package enum StoreLayout {
  package static let lock = "LOCK"
  package static let manifests = ["MANIFEST.0", "MANIFEST.1"]
  package static let logDirectory = "log"
  package static let indexDirectory = "index"
  package static let quarantineDirectory = "quarantine"
  package static let ballast = "BALLAST"
  package static let attachmentDirectory = "attachments"
  package static let hintDirectory = "hints"

  /// Everything that may stand in a store's directory.
  package static let known: Set<String> = [
    lock, manifests[0], manifests[1], logDirectory, indexDirectory, quarantineDirectory, ballast,
    attachmentDirectory, hintDirectory,
  ]

  /// `log/00000000000000000001-0000002a.seg`: first sequence, then segment id, so that a
  /// listing is in the log's order and a compacted segment never takes its input's name.
  package static func segmentName(id: UInt64, firstSequence: UInt64) -> String {
    var name: [UInt8] = []
    append(firstSequence, radix: 10, atLeast: 20, to: &name)
    name.append(UInt8(ascii: "-"))
    append(id, radix: 16, atLeast: 8, to: &name)
    return String(decoding: name, as: UTF8.self) + ".seg"
  }

  /// `log/0000002a-3.run`: what a compaction has put in order, until it is merged into the segment
  /// of that id.
  package static func runName(id: UInt64, number: Int) -> String {
    var name: [UInt8] = []
    append(id, radix: 16, atLeast: 8, to: &name)
    return String(decoding: name, as: UTF8.self) + "-\(number).run"
  }

  /// `index/0000002a.idx`.
  package static func imageName(id: UInt64) -> String {
    var name: [UInt8] = []
    append(id, radix: 16, atLeast: 8, to: &name)
    return String(decoding: name, as: UTF8.self) + ".idx"
  }

  /// Appends digits, with zeros before them; an opening makes the names of all files, some twice.
  private static func append(
    _ number: UInt64, radix: UInt64, atLeast count: Int, to name: inout [UInt8]
  ) {
    let start = name.count
    var rest = number
    while rest > 0 || name.count - start < count {
      let digit = UInt8(truncatingIfNeeded: rest % radix)
      name.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + (digit - 10))
      rest /= radix
    }
    name[start...].reverse()
  }
}
