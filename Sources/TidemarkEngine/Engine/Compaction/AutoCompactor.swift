/// Decides when a store compacts by itself, and which segments: those with much *cached data* (of
/// caches, which a server has too), with much *superseded* data (replaced by newer entries), or
/// small ones that a *merge* puts in the order of keys. ``Compactor`` owns the state, `compacting`,
/// and does the work; ``compactIfWorthwhile()`` runs on a background thread or a waiting writer's.
package final class AutoCompactor: StateOwner {
  package var store: StoreContext { compactor.store }
  let compactor: Compactor
  let reader: Reader
  let writer: LogWriter
  var compacting: Monitor<CompactorState> { compactor.compacting }

  init(_ compactor: Compactor) {
    self.compactor = compactor
    reader = compactor.reader
    writer = compactor.writer
  }

  /// Whether to look if a compaction pays: a segment was sealed, or much time has passed.
  package func isDue() -> Bool {
    recheckBoundAfterNewSegments()
    // Before the first write of an opening MANIFEST says "closed cleanly", and is to stay so.
    guard let active = writer.active, compacting.withLock({ $0.isIdle }) else { return false }
    if compacting.withLock({ $0.isOverBound }) || isToPurge(active.id, active.rawBytes) {
      return true
    }
    let sealed = reader.manifest.segments.last { $0.state == .sealed }
    let now = environment.clock.monotonicNanoseconds()
    return sealed.map { last in compacting.withLock { $0.isDue(at: last.id, now) } } ?? false
  }

  /// Switches automatic compactions on or off. Off breaks off one that is running.
  package func setAutomatic(_ isOn: Bool) {
    compacting.withLock { $0.setAutomatic(isOn) }
    compacting.broadcast()
  }

  /// Breaks off a running automatic compaction; does not wait for its end.
  func stop() {
    _ = compacting.withLock { $0.makeRoom() }
    compacting.broadcast()
  }

  /// Compacts once if that pays.
  /// - Returns: whether segments were rewritten.
  @discardableResult
  package func compactIfWorthwhile() throws(TidemarkError) -> Bool {
    guard isDue() else { return false }
    var isBusy = false
    var freed = 0
    // Writers wait no longer for the log to come within its caches' bound until a segment is added,
    // unless much was freed. Where another compaction runs (`busy`) they wait for that one.
    defer { if !isBusy { compacting.withLock { $0.acceptExcess(after: freed) } } }
    // Only sealed segments are compacted: this seals one with much cached data that can go.
    if compacting.withLock({ $0.isIdle }) {
      try writer.sealSegments { isToPurge($0, $1) }
    } else {
      try writer.checkWritable()
    }
    let id = reader.manifest.segments.last { $0.state == .sealed }?.id
    var isDone = false
    var (isMerge, isOvertaken) = (false, false)
    // Makes `isDue` false until another segment is sealed or a delay is over; but after a merge
    // that was stopped for a drop (`isOvertaken`) the drop is due at once.
    defer {
      let now = environment.clock.monotonicNanoseconds()
      compacting.withLock {
        $0.decided(at: isOvertaken ? nil : id, inVain: !isDone && !isOvertaken, now)
      }
    }
    do throws(TidemarkError) {
      guard let (first, gain) = try firstWorthCompacting() else { return false }
      isMerge = gain == .order
      // `CompactionUnit` sets this where the disk has too little room for a rewrite.
      compacting.withLock { $0.neededBytes = nil }
      let report =
        switch gain {
        case .cached: try purge(from: first)
        case .superseded: try compactor.compact(automaticOptions(from: first))
        case .order: try merge(from: first)
        }
      isDone = report.segmentsRewritten > 0
      freed = report.bytesFreed
      compacting.withLock { $0.count(hasRewritten: isDone, bytesFreed: freed) }
    } catch {
      // Passed over: another compaction runs, the store closes or suspends, the disk lacks room, or
      // `shouldStop` has said yes, which throws `closed`, too, though the store may be open.
      let isLacking = error.code == .noSpace && compacting.withLock { $0.neededBytes != nil }
      guard isLacking || [.closed, .suspended, .busy].contains(error.code) else { throw error }
      isBusy = error.code == .busy
      isOvertaken = isMerge && error.code == .closed && dropSeemsToPay()
    }
    return isDone
  }

  /// Drops superseded cached data. A log with a ``CacheBound`` is compacted in steps, which remove
  /// their files before the next; where the disk has no room for a step, segment by segment.
  private func purge(from first: UInt64) throws(TidemarkError) -> CompactionReport {
    var options = automaticOptions(from: first)
    let (bound, isOver, keepsReserve) = compacting.withLock {
      ($0.bound, $0.isOverBound, $0.keepsReserve)
    }
    guard let bound else { return try compactor.compact(options) }
    // A step's output must fit into what is free: on a tight disk that is the reserve of puts.
    let stepBytes = min(
      bound.stepBytes, keepsReserve ? Limits.cacheReserveBytes : freeBytes ?? .max)
    if isOver { options.automatic?.pace = nil }
    var report = CompactionReport()
    // 0: one segment at a time, each tried if the disk may have room for it at best.
    for (attempt, bytes) in [stepBytes, 0].enumerated() {
      options.automatic?.stepBytes = bytes
      do throws(TidemarkError) {
        let part = try compactor.compact(options)
        report.segmentsRewritten += part.segmentsRewritten
        report.bytesFreed += part.bytesFreed
        // Set where a step found too little room and was passed over, though others succeeded.
        if compacting.withLock({ $0.neededBytes == nil }) { break }
      } catch {
        // Where the steps before have gained something, that counts as success.
        let isRest = attempt == 0 || report.segmentsRewritten > 0
        guard error.code == .noSpace, isRest else { throw error }
      }
    }
    return report
  }

  /// Merges segments into the order of keys. Gives back no space, so it runs on a thread of low
  /// priority, more slowly while somebody writes, and is stopped where a drop would pay.
  private func merge(from first: UInt64) throws(TidemarkError) -> CompactionReport {
    let chosen = mergeOptions(from: first)
    let merging = Deferred(
      name: "tidemark-merge", usesThread: !configuration.doesBackgroundWorkInline, yields: true
    ) { [self] () throws(TidemarkError) in try compactor.compact(chosen) }
    return try merging.value()
  }

  func mergeOptions(from first: UInt64) -> CompactionOptions {
    var options = automaticOptions(from: first)
    options.automatic?.pace?.lastSequence = { [reader] in reader.lastSequence }
    let mustStop = options.shouldStop
    options.shouldStop = { [self] in mustStop?() ?? false || dropSeemsToPay() }
    return options
  }

  /// Whether a drop might pay by the counts of bytes, and none was looked for in vain lately.
  private func dropSeemsToPay() -> Bool {
    let choice = choice()
    return choice.firstToDrop() != nil && mayDrop(by: choice)
  }

  /// Whether enough of the active segment is cached data that can go, so that it is to be sealed.
  private func isToPurge(_ id: UInt64, _ rawBytes: Int) -> Bool {
    // A disk that has no room to compact has none to spare for sealing either.
    guard compacting.withLock({ $0.neededBytes == nil }) else { return false }
    let cached = reader.snapshot.usage.rows[id]?.cached ?? 0
    return CompactionChoice.paysToPurge(cached, of: rawBytes, from: purgeFromBytes)
  }

  func automaticOptions(from first: UInt64, dryRun: Bool = false) -> CompactionOptions {
    var options = CompactionOptions(dryRun: dryRun, waits: false) { [self] in
      compacting.withLock { $0.mustStop } || writer.isShut
    }
    var pace: CompactionPace?
    if !configuration.doesBackgroundWorkInline {
      pace = CompactionPace(
        bytesPerSecond: compactionRate(), clock: environment.clock
      ) { [self] nanoseconds in pauseCompaction(nanoseconds) }
    }
    options.automatic = CompactionOptions.Automatic(first: first, pace: pace)
    return options
  }

  /// Sleeps in slices until the time is over or the compaction is to end. Waits on a monitor of its
  /// own: on one that writers use each commit would wake this thread.
  private func pauseCompaction(_ nanoseconds: UInt64) {
    let asleep = Monitor(())
    var left = nanoseconds
    while left > 0, !compacting.withLock({ $0.mustStop }), !writer.isShut {
      let slice = min(left, Limits.compactionPauseNanoseconds)
      _ = asleep.wait(timeoutNanoseconds: slice, until: { _ in false })
      left -= slice
    }
  }

  /// Raw bytes a second for an automatic compaction: more, the more wait, above all of cached data.
  private func compactionRate() -> Int {
    let log = reader.snapshot
    let rows = log.manifest.segments.filter { $0.kind == .appended && $0.state == .sealed }
    let waiting = choice().waitingBytes
    let cached = rows.reduce(0) { $0 + (log.usage.rows[$1.id]?.cached ?? 0) }
    return Limits.compactionBytesPerSecond
      * (1 + waiting / (4 * mergeFromBytes) + cached / purgeFromBytes)
  }

  /// A merge rewrites at least so many raw bytes: half of what a full segment has at least.
  private var mergeFromBytes: Int { max(1, configuration.segmentBytes / 2) }

  /// Cached data that was replaced is dropped once it has so many raw bytes.
  var purgeFromBytes: Int { max(1, configuration.segmentBytes / 8) }

  // MARK: Choice

  /// What a compaction gains: space of cached data or of all superseded data, or the order of keys.
  private enum Gain {
    case cached, superseded, order
  }

  /// The id of the segment from which on it pays to compact, and for what; nil where nothing pays.
  /// Drops come before merges, and cached data first: it grows as fast as programs write.
  private func firstWorthCompacting() throws(TidemarkError) -> (first: UInt64, gain: Gain)? {
    try compactor.countMissingUsage()
    let choice = choice()
    func id(_ index: Int) -> UInt64 { choice.rows[index].segment.id }
    let (isOver, mayMerge) = compacting.withLock { ($0.isOverBound, $0.mayMerge) }
    if isOver, let first = reader.snapshot.firstWithCached { return (first, .cached) }
    // Where open views or damage keep cached data (`keepsCached`), less can go than was counted.
    if !reader.snapshot.keepsCached, let first = choice.firstToPurge() {
      return (id(first), .cached)
    }
    if let first = choice.firstToDrop(), try paysToDrop(from: first, choice) {
      return (id(first), .superseded)
    }
    return mayMerge ? choice.firstToMerge().map { (id($0), .order) } : nil
  }

  private func choice() -> CompactionChoice {
    let log = reader.snapshot
    let sealed = log.manifest.segments.filter { $0.state == .sealed }
    let decoded = Dictionary(log.segments.map { ($0.id, Int(clamping: $0.decodedBytes.value)) }) {
      first, _ in first
    }
    let rows = sealed.map { row in
      // `leftAlone`: a compaction has found that the segment would get no smaller.
      CompactionChoice.Row(
        segment: row, superseded: log.usage.rows[row.id] ?? SpaceUsage.Row(),
        isLeftAlone: log.leftAlone.contains(row.id), decodedBytes: decoded[row.id] ?? 0)
    }
    return CompactionChoice(
      rows: rows, mergeFromBytes: mergeFromBytes, dropFromBytes: mergeFromBytes,
      purgeFromBytes: purgeFromBytes, keepsAll: log.manifest.retention == .everything)
  }

  private func mayDrop(by choice: CompactionChoice) -> Bool {
    let now = environment.clock.monotonicNanoseconds()
    return compacting.withLock {
      $0.mayDrop(of: choice.supersededBytes, from: choice.purgeFromBytes, now)
    }
  }

  /// Whether at least a third of the bytes from a segment on would go now, by a dry run. Counts of
  /// superseded bytes do not tell: views, peers and the retention may still need some of them.
  private func paysToDrop(
    from first: Int, _ choice: CompactionChoice
  ) throws(TidemarkError) -> Bool {
    guard mayDrop(by: choice) else { return false }
    let forecast = try compactor.compact(
      automaticOptions(from: choice.rows[first].segment.id, dryRun: true))
    let raw = choice.rows[first...].reduce(0) { $0 + $1.segment.rawBytes }
    let pays = forecast.droppedBytes >= choice.purgeFromBytes && 3 * forecast.droppedBytes >= raw
    compacting.withLock { $0.lookedForDrops(among: choice.supersededBytes, inVain: !pays) }
    return pays
  }
}
