package import TidemarkEngine
package import TidemarkSyncProtocol

extension StoreFeed {
  // MARK: Keys

  func states(of keys: [[UInt8]]) throws(TidemarkError) -> [FeedState?] {
    var states: [FeedState?] = []
    states.reserveCapacity(keys.count)
    while states.count < keys.count {
      let next = keys[states.count...].prefix(Self.keysAtOnce)
      engine.reader.prefetchSlots(
        next.map { KeyHash.hash($0.rawSpan, seed: engine.reader.hashSeed) })
      for key in next { states.append(try state(of: key)) }
    }
    return states
  }

  /// Keys whose index slots are prefetched together, so that cache misses overlap.
  private static let keysAtOnce = 64

  private func state(of key: [UInt8]) throws(TidemarkError) -> FeedState? {
    // A compaction may drop the entry after its slot was read: then the slot is read again.
    for _ in 0..<3 {
      guard (1...Limits.keyBytes).contains(key.count),
        let slot = try engine.reader.slot(ofKey: key.rawSpan)
      else { return nil }
      guard let entry = try engine.reader.entryIfKept(at: slot.sequence) else {
        // A compaction may drop a tombstone before the index forgets the key.
        if slot.isDeleted, try engine.reader.bounds().droppedThrough >= slot.sequence { return nil }
        continue
      }
      guard entry.key == key else { break }
      return try state(entry)
    }
    throw TidemarkError(.damaged, "the log does not hold what the index says of a key; run verify")
  }

  private func laterState(
    than head: FeedHead, through last: UInt64
  ) throws(TidemarkError) -> FeedHead? {
    // Most entries are the newest of their keys, and end with this read of the index.
    guard let slot = try engine.reader.slot(ofKey: head.key.rawSpan), slot.sequence > head.offset,
      let state = try state(of: head.key), state.position.offset > head.offset,
      state.position.offset <= last
    else { return nil }
    return state.head
  }

  private func state(_ entry: LogEntry) throws(TidemarkError) -> FeedState? {
    let info = try engine.reader.info(entry)
    let isTouched = info.kind == .touch
    let written = isTouched ? try engine.reader.entry(at: info.valueSequence) : entry
    guard info.attributes.entryClass == .owned, var head = try FeedHead(written, in: engine) else {
      return nil
    }
    head.attributes = info.attributes
    if !isTouched, head.attributes.former == nil {
      head.attributes.former = try former(of: head, isKept: false)
    }
    return FeedState(
      head: head, position: try position(of: head.offset), revision: info.sequence)
  }

  package func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]] {
    var values: [UInt64: [UInt8]] = [:]
    for offset in offsets {
      do throws(TidemarkError) {
        values[offset] = try engine.reader.withValue(of: offset) {
          (value, _) throws(TidemarkError) in
          [UInt8](copying: value)
        }
      } catch {
        if engine.reader.isClosed { throw TidemarkError(.closed, "the store is closed") }
        // A compaction may have dropped the superseded entry since its head was read.
        guard error.code == .damaged, try engine.reader.entryIfKept(at: offset) == nil else {
          throw error
        }
      }
    }
    return values
  }

  package func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead] {
    var heads: [UInt64: FeedHead] = [:]
    for offset in offsets {
      guard let entry = try engine.reader.entryIfKept(at: offset) else { continue }
      heads[offset] = try FeedHead(entry, in: engine)
    }
    return heads
  }

  // MARK: The log

  /// Most readers that are kept for following pages.
  private static let keptReaders = 4

  package func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage {
    let kept = readers.withLock { readers in
      let index = readers.firstIndex { $0.continues(query.after, through: query.through) }
      return index.map { readers.remove(at: $0) }
    }
    var reader = kept ?? FeedReader(engine, after: query.after, through: query.through)
    let heads = try reader.heads(after: query.after, limit: query.limit)
    let used = reader
    if used.isOfUse {
      readers.withLock { readers in
        readers.append(used)
        if readers.count > Self.keptReaders { readers.removeFirst() }
      }
    }
    let rows = try heads.map { (head) throws(TidemarkError) in
      var row = FeedRow(head: head)
      if query.wantsLater(head) { row.later = try laterState(than: head, through: query.through) }
      if query.wantsFormer(head) { row.former = try former(of: head, isKept: true) }
      return row
    }
    return FeedPage(rows: rows, through: used.through)
  }

  /// The labels that a key had before an entry: those stored in the entry, or, where the store's
  /// program wrote it without a handler, those derived from the key's previous entry.
  /// - Parameter isKept: whether the reader of the labels reads the previous entry as well.
  private func former(of head: FeedHead, isKept: Bool) throws(TidemarkError) -> FormerLabels {
    if let former = head.attributes.former { return former.placed(at: head.offset) }
    guard head.previous > 0 else { return FormerLabels() }
    guard let entry = try engine.reader.entryIfKept(at: head.previous) else {
      // After `historyFrom` all versions are kept, so what is gone was a tombstone, without labels.
      return try engine.reader.bounds().historyFrom < head.offset
        ? FormerLabels() : FormerLabels(forgottenThrough: head.offset)
    }
    let info = try engine.reader.info(entry)
    let isValue = !info.kind.removes && info.attributes.entryClass == .owned
    let unknown =
      isKept || info.attributes.entryClass != .owned
      ? FormerLabels() : FormerLabels(forgottenThrough: info.valueSequence)
    return FormerLabels(
      after: info.attributes.former ?? unknown, isValue ? info.labels : [], at: info.valueSequence,
      next: head.labels
    ).placed(at: head.offset)
  }

  // MARK: All keys

  package func scan(
    into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
  ) throws(TidemarkError) -> UInt64 {
    let view = try engine.reader.view()
    try table.add(view, wants: wants)
    return view.sequence
  }
}

/// A cursor over a store's log that reads heads of a feed and can go on for the next page: to start
/// in the middle of a compacted segment costs a read of the whole segment.
struct FeedReader: Sendable {
  private let engine: Engine
  private let last: UInt64
  /// Nil at the end, as it holds an unpacked block.
  private var cursor: LogCursor?
  /// The offset up to which the log was read.
  private(set) var through: UInt64
  /// The heads that were read last, and the offset they come after. They are kept because the page
  /// may have ended before them.
  private var latest: (after: UInt64, heads: [FeedHead])
  /// The newest epoch of the log at the start: in a later one offsets may mean other entries.
  private let epoch: UInt64?
  /// Most bytes of keys and labels in `latest`.
  private static let keptBytes = 4 << 20

  init(_ engine: Engine, after offset: UInt64, through last: UInt64) {
    self.engine = engine
    self.last = last
    through = offset
    latest = (offset, [])
    epoch = (try? engine.reader.bounds())?.epochs.last?.epoch
    cursor = LogCursor(engine.reader, from: offset + 1, through: last)
  }

  /// Whether a following page may use it.
  var isOfUse: Bool { through < last || !latest.heads.isEmpty }

  /// Whether it can read on after an offset, without reading beyond an end.
  func continues(_ offset: UInt64, through end: UInt64) -> Bool {
    guard last <= end, epoch == (try? engine.reader.bounds())?.epochs.last?.epoch else {
      return false
    }
    if offset == through { return through < last }
    return offset >= latest.after && offset < through && !latest.heads.isEmpty
  }

  /// The heads after an offset for which ``continues(_:through:)`` holds.
  /// - Parameter limit: how many entries of the log to read, unless `latest` has the heads.
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
  /// - Returns: nil for an entry that is not part of a feed: records, touches, class `cache`.
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
    // An origin with a sequence that no message can have counts as none. Earlier versions accepted
    // such pushes, and the pages that contain them must stay readable.
    if let origin = attributes.origin, origin.sequence < WireLimits.counts {
      operation = OperationID(
        replica: ReplicaID(padding: origin.replica), sequence: origin.sequence)
    } else {
      operation = OperationID(
        replica: ReplicaID(padding: engine.reader.replicaID), sequence: entry.sequence)
    }
    received = entry.head.commitTime
    commitTime = attributes.writerTime != 0 ? attributes.writerTime : received
    self.attributes = attributes
    previous = entry.head.previous
  }
}
