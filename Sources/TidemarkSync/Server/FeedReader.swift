internal import TidemarkEngine

/// Reads a store's log as heads of a feed, and goes on from where it stopped: in a compacted
/// segment every beginning costs a look at the whole segment.
struct FeedReader: Sendable {
  private let engine: Engine
  private let last: UInt64
  private var cursor: LogCursor
  /// Everything up to here was read.
  private(set) var through: UInt64

  init(_ engine: Engine, after offset: UInt64, through last: UInt64) {
    self.engine = engine
    self.last = last
    through = offset
    cursor = LogCursor(engine, from: offset + 1, through: last)
  }

  /// Whether there may be more up to where the reader was made to read.
  var isAtEnd: Bool { through >= last }

  /// The next heads.
  /// - Parameter limit: how many entries to look at.
  mutating func next(limit: Int) throws(TidemarkError) -> [FeedHead] {
    var heads: [FeedHead] = []
    for _ in 0..<limit {
      guard let entry = try cursor.next() else {
        through = last
        break
      }
      through = entry.sequence
      if let head = try FeedHead(entry, in: engine) { heads.append(head) }
    }
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
    labels = entry.labels
    valueLength = entry.head.hasValue ? entry.head.valueLength : 0
    operation = OperationID(attributes, at: entry.sequence, in: engine)
    commitTime = attributes.writerTime != 0 ? attributes.writerTime : entry.head.commitTime
    self.attributes = attributes
    previous = entry.head.previous
  }
}

extension OperationID {
  /// Who wrote an entry first: whoever it says, else the store that it stands in.
  init(_ attributes: EntryAttributes, at sequence: UInt64, in engine: Engine) {
    if let origin = attributes.origin {
      self.init(replica: StoreFeed.replica(origin.replica), sequence: origin.sequence)
    } else {
      self.init(replica: StoreFeed.replica(engine.replicaID), sequence: sequence)
    }
  }
}
