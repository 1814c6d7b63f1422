internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Reads a store's log as heads of a feed, and goes on from where it stopped: in a compacted
/// segment every beginning costs a look at the whole segment.
struct FeedReader: Sendable {
  private let engine: Engine
  private let last: UInt64
  /// Nil at the end: it holds what it has unpacked.
  private var cursor: LogCursor?
  /// Everything up to here was read.
  private(set) var through: UInt64
  /// The heads that were read last, from behind which offset: whoever asked may not have taken all
  /// of it.
  private var latest: (after: UInt64, heads: [FeedHead])
  /// Sequences may be given out anew in another one.
  private let epoch: UInt64?
  /// Most bytes of keys and labels that are kept for the next page.
  private static let keptBytes = 4 << 20

  init(_ engine: Engine, after offset: UInt64, through last: UInt64) {
    self.engine = engine
    self.last = last
    through = offset
    latest = (offset, [])
    epoch = (try? engine.bounds())?.epochs.last?.epoch
    cursor = LogCursor(engine, from: offset + 1, through: last)
  }

  /// Whether somebody may go on with it.
  var isOfUse: Bool { through < last || !latest.heads.isEmpty }

  /// Whether it can go on behind an offset, and not beyond where its reader wants to end.
  func continues(_ offset: UInt64, through end: UInt64) -> Bool {
    guard last <= end, epoch == (try? engine.bounds())?.epochs.last?.epoch else { return false }
    if offset == through { return through < last }
    return offset >= latest.after && offset < through && !latest.heads.isEmpty
  }

  /// The heads behind an offset that it continues.
  /// - Parameter limit: how many entries to look at, where they were not looked at before.
  mutating func heads(after offset: UInt64, limit: Int) throws(TidemarkError) -> [FeedHead] {
    if offset < through { return latest.heads.filter { $0.offset > offset } }
    var heads: [FeedHead] = []
    var bytes = 0
    for _ in 0..<limit {
      guard let entry = try cursor?.next() else {
        through = last
        break
      }
      through = entry.sequence
      guard let head = try FeedHead(entry, in: engine) else { continue }
      bytes += head.key.count + head.labels.reduce(0) { $0 + $1.count }
      heads.append(head)
    }
    if through >= last { cursor = nil }
    latest = (offset, bytes <= Self.keptBytes ? heads : [])
    return heads
  }
}

extension FeedHead {
  /// - Returns: nil for what is no part of a feed.
  init?(_ entry: LogEntry, in engine: Engine) throws(TidemarkError) {
    let attributes = try entry.attributes()
    switch entry.head.kind {
    case .put where attributes.entryClass == .owned: kind = .put
    case .delete: kind = .delete
    default: return nil
    }
    offset = entry.sequence
    key = entry.key
    labels = kind == .put ? entry.labels : []
    valueLength = entry.head.hasValue ? entry.head.valueLength : 0
    // An origin that no answer can tell of counts as none. Earlier versions took such from whoever
    // pushed them, and the others' entries must stay readable beside it.
    if let origin = attributes.origin, origin.sequence < WireLimits.counts {
      operation = OperationID(
        replica: ReplicaID(padding: origin.replica), sequence: origin.sequence)
    } else {
      operation = OperationID(
        replica: ReplicaID(padding: engine.replicaID), sequence: entry.sequence)
    }
    commitTime = attributes.writerTime != 0 ? attributes.writerTime : entry.head.commitTime
    self.attributes = attributes
    previous = entry.head.previous
  }
}
