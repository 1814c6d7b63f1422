internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

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

/// The facts seen of a device's log.
final class DeviceLedger {
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
  var counting: [OperationID: FeedPosition] = [:]
  /// The same by sequence, of batches that the device has sent itself and not a former life or a
  /// copy of it: what it goes on with under another name.
  var countingHere: [UInt64: FeedPosition] = [:]
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

extension DeviceLedger {
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
      progress: session.progress, batchUnderWay: session.batchInFlight?.batchID, head: lastSeen)
    guard standing != now else { return }
    standing = now
    pending = Set(
      newest.values.lazy.filter { $0.isOwn && session.isPending($0.sequence) }.map(\.sequence))
  }
}
