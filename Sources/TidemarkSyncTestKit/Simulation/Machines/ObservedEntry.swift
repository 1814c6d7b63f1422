internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// The content of a key, told apart from everything else by a hash; deleted and absent are one.
struct Content: Sendable, Hashable {
  let hash: UInt64

  static let deleted = Content(hash: 0)

  private init(hash: UInt64) { self.hash = hash }

  init(_ value: [UInt8], _ labels: [[UInt8]], _ attachment: AttachmentID? = nil) {
    var bytes = value
    if let attachment { bytes += [0xff, 1] + attachment.hash }
    for label in labels.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      bytes += [0xff, 0] + label
    }
    hash = XXH64.hash(bytes.rawSpan, seed: 77) | 1
  }

  init(_ content: SyncContent?) {
    self =
      content.map {
        Content($0.value, $0.labels.map(\.bytes), $0.attachment?.engineID)
      } ?? .deleted
  }

  init(_ change: PushedChange) {
    self = change.kind == .delete ? .deleted : Content(change.content)
  }
}

/// The newest entry of a key in a log.
struct Seen: Sendable, Hashable {
  var sequence: UInt64
  var content: Content
  var labels: [[UInt8]]
  var attachment: AttachmentID?
  /// Whether the store wrote it itself.
  var isOwn: Bool
  var isEvicted = false
  /// Whether somebody else wrote it, whose server has lost it.
  var isBroughtBack = false
  /// Whether the store knew, when it deleted the key, of a value that it had in the feed.
  var knewRemote = false
  /// Whether that was in a copy of the store, which may not know that it was in the feed.
  var knewCopies = false
  /// When it was written, by the hybrid logical clock of whoever did.
  var commitTime: UInt64 = 0

  init(_ entry: ObservedEntry) {
    sequence = entry.sequence
    content = entry.content
    labels = entry.labels
    attachment = entry.attachment
    isOwn = entry.origin == nil && entry.kind != .evict
    isEvicted = entry.kind == .evict
    isBroughtBack = entry.isBroughtBack
    commitTime = entry.commitTime
  }

  init(sequence: UInt64, content: Content, labels: [[UInt8]], attachment: AttachmentID?) {
    self.attachment = attachment
    self.sequence = sequence
    self.content = content
    self.labels = labels
    isOwn = false
  }
}

/// The entries seen of the feed, in one life of it: a copy of the server's store has a copy of
/// this.
struct FeedLine: Sendable {
  struct Writer: Sendable, Hashable {
    var replica: [UInt8]
    var key: [UInt8]
  }

  var lastSeen: UInt64 = 0
  /// Operations that count.
  var operations: Set<OperationID> = []
  /// The last operation of a replica on a key.
  var last: [Writer: UInt64] = [:]
  var state: [[UInt8]: Content] = [:]
  var shown: [[UInt8]: Set<Content>] = [:]
}

/// An entry of a log as the oracles see it.
struct ObservedEntry {
  enum Kind { case put, delete, evict, loser }

  var sequence: UInt64
  var kind: Kind
  var key: [UInt8]
  var content: Content
  /// The value's first bytes, for people.
  var text = ""
  var labels: [[UInt8]]
  var attachment: AttachmentID?
  var origin: OperationID?
  /// When its writer committed it.
  var commitTime: UInt64
  var isBroughtBack: Bool
  /// Whether it is a cache's and none of a user's.
  var isCached: Bool

  static func short(_ value: [UInt8]) -> String {
    String(decoding: value.prefix(24), as: UTF8.self)
  }

  /// The entries of a log behind a sequence: changes and losers, no touches.
  static func all(
    in engine: Engine, after sequence: UInt64, includesLosers: Bool = false
  ) throws(TidemarkError) -> [ObservedEntry] {
    let head = engine.reader.lastSequence
    guard head > sequence else { return [] }
    var result: [ObservedEntry] = []
    var cursor = LogCursor(
      engine.reader, from: sequence + 1, through: head, includesRecords: includesLosers)
    while let entry = try cursor.next() {
      let attributes = try entry.attributes()
      let kind: Kind
      switch entry.head.kind {
      case .put: kind = .put
      case .delete: kind = .delete
      case .evict: kind = .evict
      case .record where attributes.recordType == RecordType.loser.rawValue: kind = .loser
      default: continue
      }
      var content = Content.deleted
      var text = ""
      if kind == .put {
        let value = try engine.reader.withValue(of: entry.sequence) { (value, _) in
          [UInt8](copying: value)
        }
        content = Content(value, entry.labels, attributes.attachment)
        text = short(value)
      }
      result.append(
        ObservedEntry(
          sequence: entry.sequence, kind: kind, key: entry.key, content: content,
          text: text, labels: entry.labels,
          attachment: kind == .put ? attributes.attachment : nil,
          origin: attributes.origin.flatMap { origin in
            ReplicaID(origin.replica).map { OperationID(replica: $0, sequence: origin.sequence) }
          },
          commitTime: attributes.writerTime != 0 ? attributes.writerTime : entry.head.commitTime,
          isBroughtBack: attributes.origin == nil && attributes.writerTime != 0,
          isCached: attributes.entryClass == .cache))
    }
    return result
  }
}

extension Seen {
  /// Everything that an engine shows but what is cached.
  static func state(_ engine: Engine) throws(TidemarkError) -> [[UInt8]: Seen] {
    var state: [[UInt8]: Seen] = [:]
    let scan = EngineScan(engine.reader, ScanQuery(prefix: []), view: try engine.reader.view())
    while true {
      let page = try scan.nextPage(limit: 200)
      if page.isEmpty { return state }
      for row in page {
        if try engine.reader.slot(ofKey: row.key.rawSpan)?.size.isCached ?? false { continue }
        let info = try engine.reader.info(engine.reader.entry(at: row.sequence))
        let value = try engine.value(ofKey: row.key) ?? []
        state[row.key] = Seen(
          sequence: row.sequence,
          content: Content(value, info.labels, info.attributes.attachment), labels: info.labels,
          attachment: info.attributes.attachment)
      }
    }
  }
}
