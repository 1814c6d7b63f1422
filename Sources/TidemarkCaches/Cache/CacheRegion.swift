internal import TidemarkEngine

/// The entries of one cache: which there are, in which order they were used, what makes room.
///
/// Every cached write of a store goes through its regions, one after the other, so that evictions
/// are in the same commit as the insert that exceeds a bound. Reads note their use in memory alone;
/// the order is written beside the log now and then, so that a crash takes the uses since then.
final class CacheRegion: Sendable {
  struct State {
    /// Nil until somebody asks for it: reading values does not.
    var order: UseOrder?
    /// The count of takeovers by other processes (`Engine.takeovers`) when the order was loaded:
    /// after another one its sequences may name other entries.
    var takeovers: UInt64 = 0
    /// Uses since the order was written last.
    var unsaved = 0
    /// When that was, in milliseconds since 1970.
    var saved = Int64.min / 2
    /// Whether the counts of earlier openings are among the counts.
    var hasLoaded = false
    /// Where the search for entries that are to expire goes on.
    var hand = 0
    /// Whether somebody is about to read or write the order.
    fileprivate var isSaving = false
    /// Room for the uses of the next turn.
    fileprivate var spare: [(sequence: UInt64, time: Int64)] = []

    /// Whether the caller is to write the order, which takes as long as thousands of reads: one
    /// caller within some seconds is told so.
    /// - Parameter now: milliseconds since 1970.
    mutating func takesSave(now: Int64) -> Bool {
      guard unsaved >= max(CacheReads.usesPerTurn, (order?.count ?? 0) / 8),
        !(saved..<saved + CacheRegion.millisecondsPerSave).contains(now)
      else { return false }
      saved = now
      return true
    }
  }

  /// The order is written no more often than that.
  private static let millisecondsPerSave: Int64 = 10_000
  /// The order is read once so many uses of a thread wait for it.
  private static let mostEarlyUses = 1_024

  let engine: Engine
  /// The engine's: to reach it there would cost every read two changes of a count of references.
  let reader: Reader
  let prefix: [UInt8]
  private let state = Lock(State())
  /// Locked while `state` is locked, or alone.
  let reads: CacheReads
  private let hints: HintFile
  /// Whether the order is written aside, and not by the reader whose use makes it due.
  private let usesThreads: Bool
  /// The store's; readers on several cores would wait for each other to reach it through the store.
  private let clock: any WallClock
  /// Serializes writing and erasing the file of the use order: a write that is under way must not
  /// bring an erased file back.
  private let saving = Lock(())
  /// Questions to the sources behind the cache.
  let flights: Flights
  /// The sync of the collection that the cache is to equal.
  let gate = CollectionGate()

  init(
    _ engine: Engine, prefix: [UInt8], policy: CachePolicy, questions: Questions? = nil,
    usesThreads: Bool = false
  ) {
    (self.engine, reader) = (engine, engine.reader)
    self.usesThreads = usesThreads
    flights = Flights(questions ?? Questions(engine))
    self.prefix = prefix
    clock = engine.environment.clock
    reads = CacheReads(policy, isTimed: clock is SystemClock)
    hints = HintFile(engine.writer, name: UseOrder.fileName(prefix))
  }

  /// Calls `body` with the order, which has all uses so far.
  func withState<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    try state.withLock { (state: inout State) throws(E) in
      takeUses(into: &state)
      return try body(&state)
    }
  }

  private func takeUses(into state: inout State) {
    guard state.order != nil else { return }
    reads.takeUses(into: &state.spare)
    if engine.takeovers == state.takeovers {
      state.unsaved += state.order?.note(state.spare) ?? 0
    } else {
      // Another process may have given the sequences to other entries.
      state.order = nil
    }
    state.spare.removeAll(keepingCapacity: state.spare.count <= Self.mostEarlyUses)
  }

  /// Finds the entries of the cache and the order in which they were used, unless that was done.
  ///
  /// Writers hold the lock of all caches; readers may find the same at the same time.
  /// - Throws: what reading the index and the log throws.
  func load() throws(TidemarkError) {
    let takeovers = engine.takeovers
    if state.withLock({ $0.order != nil && $0.takeovers == takeovers }) { return }
    guard withState({ $0.order == nil }) else { return }
    let (order, saved) = try findOrder()
    state.withLock { state in
      guard state.order == nil else { return }
      (state.order, state.takeovers) = (order, takeovers)
      // An order that could not be kept up is found anew; then the counts are there already.
      if !state.hasLoaded, let saved { count { $0.add(saved.counts) } }
      state.hasLoaded = true
      if saved?.policy != policy { state.unsaved += 1 }
      takeUses(into: &state)
    }
  }

  private func findOrder() throws(TidemarkError) -> (UseOrder, SavedCache?) {
    let hint = hints.read()
    let view = try reader.view()
    defer { withExtendedLifetime(view) {} }
    let scan = EngineScan(reader, ScanQuery(prefix: prefix), view: view)
    var present: [UInt64: Int] = [:]
    while true {
      let rows = try scan.nextPage(limit: 1_000)
      if rows.isEmpty { break }
      for row in rows {
        guard let slot = try reader.slot(ofKey: row.key.rawSpan), slot.isLiveCached else {
          continue
        }
        present[slot.sequence] = slot.size.approximateBytes
      }
    }
    let saved = hint.flatMap { bytes in
      SavedOrder(decoding: bytes.rawSpan, of: prefix) { present[$0] != nil }
    }
    let known = saved?.uses ?? []
    var order = UseOrder()
    let listed = Set(known.map(\.sequence))
    let rest = present.keys.filter { !listed.contains($0) }.sorted()
    // Entries that were written since the order was saved were used later than all that it lists.
    let split = rest.firstIndex { $0 > saved?.through ?? 0 } ?? rest.count
    for sequence in rest[..<split] { order.add(try firstUse(sequence, present[sequence] ?? 0)) }
    for use in known { order.add(use) }
    for sequence in rest[split...] { order.add(try firstUse(sequence, present[sequence] ?? 0)) }
    return (order, saved?.cache)
  }

  /// Bytes that an attachment takes on the disk, in blocks of 4 KiB; 0 for none.
  static func diskBytes(ofAttachment length: Int) -> Int {
    let block = 4_096
    return length == 0 ? 0 : min(length, .max / 2) / block * block + block
  }

  /// An entry of which nothing is remembered: its length is in the log.
  private func firstUse(
    _ sequence: UInt64, _ bytes: Int
  ) throws(TidemarkError) -> UseOrder.Use {
    guard let entry = try reader.entryIfKept(at: sequence) else {
      return UseOrder.Use(sequence: sequence, bytes: bytes, time: 0)
    }
    let info = try reader.info(entry)
    return UseOrder.Use(
      sequence: sequence,
      bytes: entry.key.count + info.valueLength + info.labels.reduce(0) { $0 + $1.count + 2 }
        + Self.diskBytes(ofAttachment: Int(clamping: info.attributes.attachment?.length ?? 0)),
      time: HybridTime(info.commitTime).timestamp.milliseconds)
  }

  var policy: CachePolicy {
    get { reads.policy }
    set { reads.setPolicy(newValue) }
  }

  var now: Timestamp { clock.now() }

  func status() throws(TidemarkError) -> CacheStatus {
    try load()
    return withState { state in
      CacheStatus(
        policy: policy, entries: state.order?.count ?? 0, bytes: state.order?.bytes ?? 0,
        counts: counts,
        leastRecentUse: state.order?.last.map { Timestamp(milliseconds: $0.time) })
    }
  }

  var counts: CacheCounts { reads.counts }

  func contains(_ key: RawSpan) -> Bool {
    let prefix = prefix
    return key.byteCount >= prefix.count
      && key.extracting(first: prefix.count).isEqual(to: prefix.rawSpan)
  }

  func count(_ body: (inout CacheCounts) -> Void) { reads.count(body) }

  // MARK: Uses

  /// Notes that an entry was read.
  /// - Parameter isValid: whether its value was valid, for what counts as a hit.
  func noteUse(of sequence: UInt64, at now: Timestamp, isValid: Bool? = nil) {
    if let waiting = reads.noteUse(of: sequence, at: now, isValid: isValid) {
      takeTurn(waiting, now)
    }
  }

  /// Notes a hit and a use of an entry.
  /// - Parameter onlyValid: whether a value that is valid no more is left to the caller.
  /// - Returns: whether it was noted.
  func noteHit(_ sequence: UInt64, _ validity: Validity, onlyValid: Bool) -> Bool {
    let now = now
    let (isNoted, waiting) = reads.noteHit(sequence, validity, at: now, onlyValid: onlyValid)
    if let waiting { takeTurn(waiting, now) }
    return isNoted
  }

  /// Lets the order take in the uses that wait, and writes it if that is due.
  private func takeTurn(_ waiting: Int, _ now: Timestamp) {
    let isDue = withState { state in
      guard !state.isSaving else { return false }
      state.isSaving =
        state.order == nil
        ? waiting >= Self.mostEarlyUses : state.takesSave(now: now.milliseconds)
      return state.isSaving
    }
    guard isDue else { return }
    if usesThreads {
      Task.detached(priority: .utility) { self.loadAndSave() }
    } else {
      loadAndSave()
    }
  }

  private func loadAndSave() {
    do throws(TidemarkError) {
      try load()
      save()
    } catch {
      // Uses that cannot be noted are none.
      var none: [(sequence: UInt64, time: Int64)] = []
      reads.takeUses(into: &none)
    }
    state.withLock { $0.isSaving = false }
  }

  /// Whether an entry's value is valid; nil where that is not known by heart.
  func isValid(_ sequence: UInt64) -> Bool? {
    validity(of: sequence)?.isValid(at: now, defaultAge: reads.defaultAge)
  }

  /// How long an entry's value is valid; nil where that is not known by heart.
  func validity(of sequence: UInt64) -> Validity? {
    let takeovers = engine.takeovers
    return state.withLock { state in
      takeovers == state.takeovers ? state.order?[sequence]?.validity : nil
    }
  }

  /// Writes the order beside the log. Where that fails, the next opening knows an older one.
  func save() {
    let now = now.milliseconds
    saving.withLock { _ in
      let bytes = withState { state in
        (state.unsaved, state.saved) = (0, now)
        return state.order?.encoded(SavedCache(prefix: prefix, policy: policy, counts: counts))
      }
      if let bytes { try? hints.write(bytes) }
    }
  }

  /// Removes the file of the order, which names the prefix, where no entry is left.
  func eraseOrder() throws(TidemarkError) {
    try load()
    try saving.withLock { (_) throws(TidemarkError) in
      let isEmpty = withState { state in
        guard state.order?.count == 0 else { return false }
        state.unsaved = 0
        return true
      }
      if isEmpty { try hints.remove() }
    }
  }

  /// Writes the order if anything was read since it was written last.
  func saveIfUsed() {
    if reads.hasUses { try? load() }
    if withState({ $0.unsaved > 0 }) { save() }
  }

  /// The entries that make room next, the first of them first.
  func leastRecent(_ limit: Int = .max) throws(TidemarkError) -> [UseOrder.Use] {
    try load()
    return withState { state in
      var found: [UseOrder.Use] = []
      state.order?.forEach { use in
        guard found.count < limit else { return false }
        found.append(use)
        return true
      }
      return found
    }
  }

  /// An upper bound of the disk space that evicting all entries frees, in bytes.
  func heldBytes() throws(TidemarkError) -> Int {
    try load()
    return withState { state in
      state.order.map { $0.bytes + Self.entryBytes * $0.count } ?? 0
    }
  }

  /// The use of an entry; nil when it is none of the cache's.
  func use(of sequence: UInt64) -> UseOrder.Use? { withState { $0.order?[sequence] } }

  // MARK: Validity

  /// Whether an entry has been valid no more for so many milliseconds.
  func isStale(
    _ use: UseOrder.Use, at now: Timestamp, for duration: Int64, _ policy: CachePolicy
  ) throws(TidemarkError) -> Bool {
    var validity = use.validity
    if validity == nil, let entry = try reader.entryIfKept(at: use.sequence) {
      validity = try Validity(of: entry, reader.info(entry))
    }
    guard let validity else { return false }
    // The next look need not read the entry.
    withState { $0.order?.note(validity, of: use.sequence) }
    let defaultAge = policy.maxAgeMilliseconds
    guard !validity.isValid(at: now, defaultAge: defaultAge) else { return false }
    return validity.end(defaultAge).addingClamped(duration) <= now.milliseconds
  }

  /// Remembers how long an entry is valid that was read.
  /// - Parameter isUse: whether reading it counts as a hit and a use.
  /// - Returns: the end in milliseconds since 1970; nil where nothing ends the validity.
  func noteReading(
    _ validity: Validity?, of sequence: UInt64, isUse: Bool
  ) -> (isValid: Bool, end: Int64?, use: UseOrder.Use?) {
    let (now, defaultAge) = (now, reads.defaultAge)
    let isValid = validity?.isValid(at: now, defaultAge: defaultAge) ?? true
    if isUse { noteUse(of: sequence, at: now, isValid: isValid) }
    return withState { state in
      if let validity { state.order?.note(validity, of: sequence) }
      return (isValid, validity?.end(defaultAge), state.order?[sequence])
    }
  }
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
