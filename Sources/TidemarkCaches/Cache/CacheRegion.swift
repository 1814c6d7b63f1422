internal import TidemarkEngine

/// The entries of one cache: which there are, in which order they were used, what makes room.
///
/// Every cached write of a store goes through its regions, one after the other, so that evictions
/// are in the same commit as the insert that exceeds a bound. Reads note their use in memory alone;
/// the order is written beside the log now and then, so that a crash takes the uses since then.
final class CacheRegion: Sendable {
  struct State {
    var policy: CachePolicy { didSet { defaultAge = policy.maxAgeMilliseconds } }
    private(set) var defaultAge: Int64
    /// Nil until somebody asks for it: reading values does not.
    var order: UseOrder?
    /// The count of takeovers by other processes (`Engine.takeovers`) when the order was loaded:
    /// after another one its sequences may name other entries.
    var takeovers: UInt64 = 0
    /// Uses that were noted before.
    var early: [(sequence: UInt64, time: Int64)] = []
    var counts = CacheCounts()
    /// Uses since the order was written last.
    var unsaved = 0
    /// When that was, in milliseconds since 1970.
    var saved = Int64.min / 2
    /// Whether the counts of earlier openings are among the counts.
    var hasLoaded = false
    /// Where the search for entries that are to expire goes on.
    var hand = 0

    init(policy: CachePolicy) {
      self.policy = policy
      defaultAge = policy.maxAgeMilliseconds
    }

    /// Notes a hit and a use of an entry whose validity is remembered.
    /// - Parameter onlyValid: whether one that is valid no more is left to the caller, uncounted.
    /// - Returns: whether it was noted.
    mutating func noteHit(_ sequence: UInt64, at now: Timestamp, onlyValid: Bool) -> Bool {
      guard let (place, validity) = order?.known(sequence) else { return false }
      let isValid = validity.isValid(at: now, defaultAge: defaultAge)
      guard isValid || !onlyValid else { return false }
      order?.use(place, at: now.milliseconds)
      if isValid { counts.hits += 1 } else { counts.staleHits += 1 }
      if onlyValid { counts.requestsAvoided += 1 }
      unsaved += 1
      return true
    }

    /// Whether the caller is to write the order, which takes as long as thousands of reads: one
    /// caller within some seconds is told so.
    /// - Parameter now: milliseconds since 1970.
    mutating func takesSave(now: Int64) -> Bool {
      guard unsaved >= max(CacheRegion.usesPerSave, (order?.count ?? 0) / 8),
        !(saved..<saved + CacheRegion.millisecondsPerSave).contains(now)
      else { return false }
      saved = now
      return true
    }
  }

  /// The order is written after so many uses, or an eighth of the entries if that is more; and not
  /// again within so many milliseconds.
  static let usesPerSave = 64
  private static let millisecondsPerSave: Int64 = 10_000
  /// The order is read once so many uses wait for it.
  private static let mostEarlyUses = 1_024

  let engine: Engine
  let prefix: [UInt8]
  let state: Lock<State>
  private let hints: HintFile
  /// Serializes writing and erasing the file of the use order: a write that is under way must not
  /// bring an erased file back.
  private let saving = Lock(())
  /// Questions to the sources behind the cache.
  let flights: Flights
  /// The sync of the collection that the cache is to equal.
  let gate = CollectionGate()

  init(_ engine: Engine, prefix: [UInt8], policy: CachePolicy, questions: Questions? = nil) {
    self.engine = engine
    flights = Flights(questions ?? Questions(engine))
    self.prefix = prefix
    state = Lock(State(policy: policy))
    hints = HintFile(engine.writer, name: UseOrder.fileName(prefix))
  }

  /// Finds the entries of the cache and the order in which they were used, unless that was done.
  ///
  /// Writers hold the lock of all caches; readers may find the same at the same time.
  /// - Throws: what reading the index and the log throws.
  func load() throws(TidemarkError) {
    guard state.withLock({ $0.order == nil }) else { return }
    let takeovers = engine.takeovers
    let (order, saved) = try Self.load(engine, prefix, hints.read())
    state.withLock { state in
      guard state.order == nil else { return }
      (state.order, state.takeovers) = (order, takeovers)
      // An order that could not be kept up is found anew; then the counts are there already.
      if !state.hasLoaded, let saved { state.counts.add(saved.counts) }
      state.hasLoaded = true
      if saved?.policy != state.policy { state.unsaved += 1 }
      for use in state.early where state.order?.use(use.sequence, at: use.time) == true {
        state.unsaved += 1
      }
      state.early = []
    }
  }

  private static func load(
    _ engine: Engine, _ prefix: [UInt8], _ saved: [UInt8]?
  ) throws(TidemarkError) -> (UseOrder, SavedCache?) {
    let view = try engine.reader.view()
    defer { withExtendedLifetime(view) {} }
    let scan = EngineScan(engine.reader, ScanQuery(prefix: prefix), view: view)
    var present: [UInt64: Int] = [:]
    while true {
      let rows = try scan.nextPage(limit: 1_000)
      if rows.isEmpty { break }
      for row in rows {
        guard let slot = try engine.reader.slot(ofKey: row.key.rawSpan), slot.isLiveCached else {
          continue
        }
        present[slot.sequence] = slot.size.approximateBytes
      }
    }
    let saved = saved.flatMap { bytes in
      SavedOrder(decoding: bytes.rawSpan, of: prefix) { present[$0] != nil }
    }
    let known = saved?.uses ?? []
    var order = UseOrder()
    let listed = Set(known.map(\.sequence))
    // Entries that were written since the order was saved were used later than all that it lists.
    let savedThrough = saved?.through ?? 0
    var rest = present.keys.filter { !listed.contains($0) }.sorted()
    let split = rest.firstIndex { $0 > savedThrough } ?? rest.count
    let newer = Array(rest[split...])
    rest.removeSubrange(split...)
    for sequence in rest { order.add(try use(engine, sequence, present[sequence] ?? 0)) }
    for use in known { order.add(use) }
    for sequence in newer { order.add(try use(engine, sequence, present[sequence] ?? 0)) }
    return (order, saved?.cache)
  }

  /// Bytes that an attachment takes on the disk, in blocks of 4 KiB; 0 for none.
  static func diskBytes(ofAttachment length: Int) -> Int {
    let block = 4_096
    return length == 0 ? 0 : min(length, .max / 2) / block * block + block
  }

  /// An entry of which nothing is remembered: its length is in the log.
  private static func use(
    _ engine: Engine, _ sequence: UInt64, _ bytes: Int
  ) throws(TidemarkError) -> UseOrder.Use {
    guard let entry = try engine.reader.entryIfKept(at: sequence) else {
      return UseOrder.Use(sequence: sequence, bytes: bytes, time: 0)
    }
    let info = try engine.reader.info(entry)
    return UseOrder.Use(
      sequence: sequence,
      bytes: entry.key.count + info.valueLength + info.labels.reduce(0) { $0 + $1.count + 2 }
        + diskBytes(ofAttachment: Int(clamping: info.attributes.attachment?.length ?? 0)),
      time: HybridTime(info.commitTime).timestamp.milliseconds)
  }

  var policy: CachePolicy {
    get { state.withLock { $0.policy } }
    set { state.withLock { $0.policy = newValue } }
  }

  var now: Timestamp { engine.environment.clock.now() }

  /// The facts about the cache now.
  func status() throws(TidemarkError) -> CacheStatus {
    try load()
    return state.withLock { state in
      CacheStatus(
        policy: state.policy, entries: state.order?.count ?? 0, bytes: state.order?.bytes ?? 0,
        counts: state.counts,
        leastRecentUse: state.order?.last.map { Timestamp(milliseconds: $0.time) })
    }
  }

  var counts: CacheCounts { state.withLock { $0.counts } }

  /// Whether a key belongs to the cache.
  func contains(_ key: RawSpan) -> Bool {
    let prefix = prefix
    return key.byteCount >= prefix.count
      && key.extracting(first: prefix.count).isEqual(to: prefix.rawSpan)
  }

  /// The length of a key's value, in bytes.
  func valueLength(_ key: [UInt8]) throws(TidemarkError) -> Int {
    guard let slot = try engine.reader.slot(ofKey: key.rawSpan), !slot.isDeleted,
      let entry = try engine.reader.entryIfKept(at: slot.sequence)
    else { return 0 }
    return try engine.reader.info(entry).contentLength
  }

  func count(_ body: (inout CacheCounts) -> Void) { state.withLock { body(&$0.counts) } }

  // MARK: Uses

  /// Notes that an entry was read.
  func noteUse(of sequence: UInt64, at now: Timestamp? = nil) {
    let time = (now ?? self.now).milliseconds
    let isDue = state.withLock { state in
      guard state.order != nil else {
        state.early.append((sequence, time))
        return state.early.count >= Self.mostEarlyUses
      }
      guard state.order?.use(sequence, at: time) == true else { return false }
      state.unsaved += 1
      return state.takesSave(now: time)
    }
    guard isDue else { return }
    do throws(TidemarkError) {
      try load()
      save()
    } catch {
      // A use that cannot be noted is none.
      state.withLock { $0.early = [] }
    }
  }

  /// Whether an entry's value is valid; nil where that is not known by heart.
  func isValid(_ sequence: UInt64) -> Bool? {
    let (now, takeovers) = (now, engine.takeovers)
    return state.withLock { state in
      guard takeovers == state.takeovers else { return nil }
      return state.order?.known(sequence)?.validity.isValid(at: now, defaultAge: state.defaultAge)
    }
  }

  /// Writes the order beside the log. Where that fails, the next opening knows an older one.
  func save() {
    let now = now.milliseconds
    saving.withLock { _ in
      let bytes = state.withLock { state in
        (state.unsaved, state.saved) = (0, now)
        return state.order?.encoded(
          SavedCache(prefix: prefix, policy: state.policy, counts: state.counts))
      }
      if let bytes { try? hints.write(bytes) }
    }
  }

  /// Removes the file of the order, which names the prefix, where no entry is left.
  func eraseOrder() throws(TidemarkError) {
    try load()
    try saving.withLock { (_) throws(TidemarkError) in
      let isEmpty = state.withLock { state in
        guard state.order?.count == 0 else { return false }
        state.unsaved = 0
        return true
      }
      if isEmpty { try hints.remove() }
    }
  }

  /// Writes the order if anything was read since it was written last.
  func saveIfUsed() {
    if state.withLock({ !$0.early.isEmpty }) { try? load() }
    if state.withLock({ $0.unsaved > 0 }) { save() }
  }

  /// The entries that make room next, the first of them first.
  func leastRecent(_ limit: Int) throws(TidemarkError) -> [UInt64] {
    try load()
    return state.withLock { state in
      var found: [UInt64] = []
      state.order?.forEach { use in
        guard found.count < limit else { return false }
        found.append(use.sequence)
        return true
      }
      return found
    }
  }

  /// An upper bound of the disk space that evicting all entries frees, in bytes.
  func heldBytes() throws(TidemarkError) -> Int {
    try load()
    return state.withLock { state in
      state.order.map { $0.bytes + Self.entryBytes * $0.count } ?? 0
    }
  }

  /// The use of an entry; nil when it is none of the cache's.
  func use(of sequence: UInt64) -> UseOrder.Use? { state.withLock { $0.order?[sequence] } }

  // MARK: Validity

  /// Entries that have been stale for so many milliseconds, oldest use first.
  func stale(at now: Timestamp, for duration: Int64) throws(TidemarkError) -> [UInt64] {
    try load()
    let policy = policy
    var found: [UInt64] = []
    for use in uses() where try isStale(use, at: now, for: duration, policy) {
      found.append(use.sequence)
    }
    return found
  }

  /// Whether an entry has been valid no more for so many milliseconds.
  func isStale(
    _ use: UseOrder.Use, at now: Timestamp, for duration: Int64, _ policy: CachePolicy
  ) throws(TidemarkError) -> Bool {
    var validity = use.validity
    if validity == nil, let entry = try engine.reader.entryIfKept(at: use.sequence) {
      validity = try Validity(of: entry, engine.reader.info(entry))
    }
    guard let validity else { return false }
    note(validity, of: use.sequence)
    guard !validity.isValid(at: now, policy) else { return false }
    let (limit, overflow) = validity.end(policy).addingReportingOverflow(duration)
    return overflow ? limit < 0 : limit <= now.milliseconds
  }

  /// Remembers how long an entry is valid.
  func note(_ validity: Validity, of sequence: UInt64) {
    state.withLock { $0.order?.note(validity, of: sequence) }
  }

  /// The facts that the region adds to an entry that was read.
  struct Reading {
    var isValid: Bool
    /// Milliseconds since 1970; nil where nothing ends the validity.
    var end: Int64?
    var use: UseOrder.Use?
  }

  /// Remembers how long an entry is valid that was read.
  /// - Parameter isUse: whether reading it counts as a hit and a use.
  func noteReading(_ validity: Validity?, of sequence: UInt64, isUse: Bool) -> Reading {
    let now = now
    if isUse { noteUse(of: sequence, at: now) }
    return state.withLock { state in
      if let validity { state.order?.note(validity, of: sequence) }
      let isValid = validity?.isValid(at: now, defaultAge: state.defaultAge) ?? true
      if isUse, isValid { state.counts.hits += 1 }
      if isUse, !isValid { state.counts.staleHits += 1 }
      return Reading(
        isValid: isValid, end: validity?.end(state.defaultAge), use: state.order?[sequence])
    }
  }

  /// All entries, oldest use first.
  private func uses() -> [UseOrder.Use] {
    var uses: [UseOrder.Use] = []
    state.withLock { state in
      state.order?.forEach { use in
        uses.append(use)
        return true
      }
    }
    return uses
  }
}

extension EntryInfo {
  /// Bytes of the value and of the attachment.
  var contentLength: Int { valueLength + Int(clamping: attributes.attachment?.length ?? 0) }
}

extension Validity {
  /// - Parameter info: the facts about the entry.
  init(of entry: LogEntry, _ info: EntryInfo) throws(TidemarkError) {
    // A touch says itself when it was made, and has all else from the put that it renews.
    let own = info.kind == .touch ? try entry.attributes().time : info.attributes.time
    validated = own ?? HybridTime(info.commitTime).timestamp
    maxAge = info.attributes.maxAge
  }
}
