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

  /// So many keys are asked of the memory at once.
  private static let keysAtOnce = 64

  private func state(of key: [UInt8]) throws(TidemarkError) -> FeedState? {
    // A compaction may drop the entry between the two looks.
    for _ in 0..<3 {
      guard (1...Limits.keyBytes).contains(key.count),
        let slot = try engine.reader.slot(ofKey: key.rawSpan)
      else { return nil }
      guard let entry = try engine.reader.entryIfKept(at: slot.sequence) else {
        // A delete may go before the index forgets the key.
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
  ) throws(TidemarkError) -> FeedState? {
    // For most entries this look is all that there is.
    guard let slot = try engine.reader.slot(ofKey: head.key.rawSpan), slot.sequence > head.offset,
      let state = try state(of: head.key), state.position.offset > head.offset,
      state.position.offset <= last
    else { return nil }
    return state
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
        // A compaction may have dropped it, superseded, since its head was read.
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

  /// Readers that are kept between two pages.
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
    return (rows, used.through)
  }

  /// The labels that a key had before an entry: those that are stored with it, or, for one that was
  /// written without a handler, by the program that owns the store, as far as the log tells.
  /// - Parameter isKept: whether the entry before it will be read as well by whoever needs it.
  private func former(of head: FeedHead, isKept: Bool) throws(TidemarkError) -> FormerLabels {
    if let former = head.attributes.former { return former.placed(at: head.offset) }
    guard head.previous > 0 else { return FormerLabels() }
    guard let entry = try engine.reader.entryIfKept(at: head.previous) else {
      // Above where history is kept from, only deletes can be gone.
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
    epoch = (try? engine.reader.bounds())?.epochs.last?.epoch
    cursor = LogCursor(engine.reader, from: offset + 1, through: last)
  }

  /// Whether somebody may go on with it.
  var isOfUse: Bool { through < last || !latest.heads.isEmpty }

  /// Whether it can go on behind an offset, and not beyond where its reader wants to end.
  func continues(_ offset: UInt64, through end: UInt64) -> Bool {
    guard last <= end, epoch == (try? engine.reader.bounds())?.epochs.last?.epoch else {
      return false
    }
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
        replica: ReplicaID(padding: engine.reader.replicaID), sequence: entry.sequence)
    }
    received = entry.head.commitTime
    commitTime = attributes.writerTime != 0 ? attributes.writerTime : received
    self.attributes = attributes
    previous = entry.head.previous
  }
}
