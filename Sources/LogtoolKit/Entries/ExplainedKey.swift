internal import Tidemark
internal import TidemarkEngine

/// All that a store knows about a key.
struct ExplainedKey {
  private let key: [UInt8]
  private let info: EntryInfo
  private let origin: EntryOrigin
  private let isForeign: Bool
  private let file: String
  private let frameOffset: Int
  private let olderVersions: Int
  private let olderBytes: Int
  private let oldestSequence: UInt64
  private let reasons: [String]

  /// - Returns: nil when the store knows nothing of the key.
  init?(of key: [UInt8], in store: Store) throws(TidemarkError) {
    let engine = store.engine
    var walk = try VersionWalk(engine.reader, ofKey: key.rawSpan)
    guard let newest = try walk.next() else { return nil }
    self.key = key
    info = try engine.reader.info(newest)
    isForeign = info.attributes.origin != nil
    origin =
      info.attributes.origin.map { EntryOrigin($0) }
      ?? EntryOrigin(replica: engine.reader.replicaID, sequence: newest.sequence)
    file = newest.segment.fileName
    frameOffset = newest.front.offset
    var older = (versions: 0, bytes: 0, oldest: newest.sequence)
    var sequences = [newest.sequence]
    while let version = try walk.next() {
      if sequences.count < Self.mostVersions { sequences.append(version.sequence) }
      older.versions += 1
      older.bytes += version.head.keyLength + version.head.valueLength
      older.oldest = version.sequence
    }
    olderVersions = older.versions
    olderBytes = older.bytes
    oldestSequence = older.oldest
    reasons =
      Self.reasons(info, olderVersions: older.versions, try engine.status())
      + (try engine.compactor.peersHolding(sequences)).map { held in
        let name = HumanText.escaped(Array(held.peer.utf8), keepingBackslashes: true)
        return "the peer \(name) has yet to acknowledge a change of the key: what that was made "
          + "upon stays until then, or until peers forget \(name)"
      }
  }

  /// So many versions are looked up among those that are kept for peers.
  private static let mostVersions = 10_000

  private static func reasons(
    _ info: EntryInfo, olderVersions: Int, _ status: EngineStatus
  ) -> [String] {
    var reasons: [String] = []
    if info.kind.removes {
      reasons.append(
        "a tombstone: it keeps older versions from coming back, and goes when a compaction "
          + "reaches it that keeps nothing before it")
    } else if info.kind == .touch {
      reasons.append("live: the newest entry renews the put at sequence \(info.valueSequence)")
    } else {
      reasons.append("live: the newest version of the key")
    }
    if olderVersions > 0 {
      reasons.append(
        status.manifest.retention == .everything
          ? "older versions are kept since the retention keeps everything; "
            + "compact --drop-history drops them"
          : "older versions are kept until a compaction finds them outside the retention")
    }
    let pins = status.pins.filter { $0 < info.sequence }
    if olderVersions > 0, let pin = pins.first {
      reasons.append("a view at sequence \(pin) still needs what was there then")
    }
    return reasons
  }

  private var entry: Entry { Entry(key: key, value: [], info: info, created: nil) }

  var lines: [(name: String, text: String)] {
    var lines: [(name: String, text: String)] = [
      ("key", HumanText.escaped(key)),
      ("state", info.kind.removes ? "deleted" : "present, \(HumanText.size(info.valueLength))"),
      (
        "entry",
        "\(entry.kind.name) at sequence \(info.sequence), committed \(entry.committed.text)"
      ),
      (
        "written",
        (isForeign
          ? "by replica \(origin.replica.hexadecimal), there at sequence "
          : "here, by replica \(origin.replica.hexadecimal), at sequence ") + "\(origin.sequence)"
      ),
    ]
    let attributes = info.attributes
    if let time = attributes.time { lines.append(("time", time.text)) }
    if info.created > 0 {
      lines.append(("created", HybridTime(info.created).timestamp.text))
    }
    if !info.labels.isEmpty {
      lines.append(("labels", HumanText.escaped(EntryPrinter.labels(entry))))
    }
    if let hash = attributes.hash { lines.append(("hash", HumanText.escaped(hash))) }
    if let age = attributes.maxAge { lines.append(("valid", "for \(age) s from its validation")) }
    if attributes.entryClass == .cache { lines.append(("class", "cache")) }
    if let base { lines.append(("base", base)) }
    lines.append(("lies in", "\(file), in the frame at offset \(frameOffset)"))
    lines.append(
      (
        "versions",
        olderVersions == 0
          ? "no older one kept"
          : "\(HumanText.count(olderVersions, "older one", "older ones")) kept, "
            + "\(HumanText.size(olderBytes)), back to sequence \(oldestSequence)"
      ))
    for reason in reasons { lines.append(("on disk", reason)) }
    return lines
  }

  private var base: String? {
    switch info.attributes.base {
    case .position(let epoch, let offset): "feed position \(offset) of \(String(epoch, radix: 16))"
    case .operation(let replica, let sequence): "operation \(replica.hexadecimal).\(sequence)"
    case nil: nil
    }
  }

  var json: JSONValue {
    .object([
      .init(
        "entry",
        EntryPrinter.json(
          entry, namesOperation: true, values: false)),
      .init("present", .bool(!info.kind.removes)),
      .init("value_sequence", .unsigned(info.valueSequence)),
      .init("op_id", .string(origin.text)),
      .init("written_here", .bool(!isForeign)),
      .init("base", .optional(base)),
      .init("file", .string(file)),
      .init("frame_offset", .integer(frameOffset)),
      .init("older_versions", .integer(olderVersions)),
      .init("older_bytes", .integer(olderBytes)),
      .init("oldest_sequence", .unsigned(oldestSequence)),
      .init("reasons", .array(reasons.map { .string($0) })),
    ])
  }
}
