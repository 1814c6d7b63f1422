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

/// A write whose fate is told: a put by what it gave its key, a delete by its sequence.
struct Fate: Sendable, Hashable {
  var key: [UInt8]
  var content: Content
  var sequence: UInt64

  init(_ key: [UInt8], _ content: Content, _ sequence: UInt64) {
    self.key = key
    self.content = content
    self.sequence = content == .deleted ? sequence : 0
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

/// The facts seen of a device's log.
final class DeviceBook {
  /// The facts that decide whether a write is pending.
  struct Standing: Equatable {
    var progress: PeerProgress
    var batchUnderWay: BatchID?
    var head: UInt64
  }

  /// Which one it is.
  let device: Int
  var lastSeen: UInt64 = 0
  var newest: [[UInt8]: Seen] = [:]
  /// The keys whose values it asked for last.
  var asked: [[UInt8]] = []
  /// The remote versions of keys that it knew when it deleted them.
  var knewRemote: [UInt64: (Bool, isCopy: Bool)] = [:]
  /// The contents that a key has shown, in order.
  var shown: [[UInt8]: [Content]] = [:]
  /// The contents that it knows keys to have held, here or in the feed.
  var known: [[UInt8]: Set<Content>] = [:]
  /// The same, with what it knew before it was restored from an older copy.
  var everKnown: [[UInt8]: Set<Content>] = [:]
  /// Own writes that waited when it was looked at last.
  private(set) var pending: Set<UInt64> = []
  /// The facts that `pending` was found out from.
  private var standing: Standing?
  /// Own writes of which the end is known for good.
  var told: Set<UInt64> = []
  /// Own deletes that were made before the scope was changed from another one than everything.
  var outside: Set<UInt64> = []
  /// Own operations that the server has said to be in the feed, and where.
  var counting: [OperationID: Position] = [:]
  /// The same by sequence, of batches that the device has sent itself and not a former life or a
  /// copy of it: what it goes on with under another name.
  var countingHere: [UInt64: Position] = [:]
  var sent: Set<SyncOracle.BatchName> = []
  /// The feed that they went to.
  var feed: ReplicaID?
  /// Whether it has ever replicated less than everything.
  var wasScoped = false
  /// The range of the feed that the server told last.
  var range: FeedRange?
  /// A program was told that everything up to here is durable.
  var durableThrough: UInt64 = 0

  init(_ device: Int) { self.device = device }
}

extension DeviceBook {
  func learn(_ key: [UInt8], _ content: Content) {
    if known[key, default: []].insert(content).inserted {
      everKnown[key, default: []].insert(content)
    }
  }

  func knows(_ key: [UInt8], _ content: Content) -> Bool {
    known[key]?.contains(content) ?? false
  }

  func hasEverKnown(_ key: [UInt8], _ content: Content) -> Bool {
    everKnown[key]?.contains(content) ?? false
  }

  /// Looks which own writes wait, unless nothing can have changed since the last time.
  func lookAtPending(_ session: SyncSession) {
    let now = Standing(
      progress: session.progress, batchUnderWay: session.formed?.batchID, head: lastSeen)
    guard standing != now else { return }
    standing = now
    pending = Set(
      newest.values.lazy.filter { $0.isOwn && session.isPending($0.sequence) }.map(\.sequence))
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
    let head = engine.lastSequence
    guard head > sequence else { return [] }
    var result: [ObservedEntry] = []
    var cursor = LogCursor(
      engine, from: sequence + 1, through: head, includesRecords: includesLosers)
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
        let value = try engine.withValue(of: entry.sequence) { (value, _) in
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
