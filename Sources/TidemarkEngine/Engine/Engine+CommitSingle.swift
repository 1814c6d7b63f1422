extension Engine {
  /// Commits a put or delete of bytes alone, without labels, attributes and conditions, up to
  /// `buffered`; `durable` remains to be awaited by `sync(through:of:)`.
  ///
  /// The entry goes from the caller's bytes into the log's frame, or into the one that waits in
  /// memory, with nothing in between.
  /// - Parameters:
  ///   - kind: a put or a delete.
  ///   - key: 1 to 65,535 bytes.
  ///   - value: of a put.
  ///   - durability: nil takes the store's.
  ///   - waitsForRoom: see `stage`.
  /// - Returns: nil when nothing was done, and a batch has to be made of it: it is long, or what
  ///   was staged before waits for company, or the log is encrypted, or the index is damaged, or
  ///   the disk is full, or hardly larger than its caches.
  package func stageSingle(
    _ kind: EntryKind, key: RawSpan, value: RawSpan? = nil, durability: Durability? = nil,
    waitsForRoom: Bool = true
  ) throws(TidemarkError) -> CommitResult? {
    try OperationBatch.check(key: key.byteCount, value: value?.byteCount ?? 0, kind: kind)
    let version = derivationVersion
    guard SingleFrame.fits(keyBytes: key.byteCount, valueBytes: value?.byteCount ?? 0),
      derivation.object.map({ $0.isIdle(at: version) || !$0.concerns(key) }) ?? true
    else { return nil }
    let durability = durability ?? configuration.durability
    while true {
      let turn = try writer.withLock {
        (state: inout WriterState) throws(TidemarkError) -> SingleTurn in
        if waitsForRoom, let goal = state.goalForRoom { return .wait(goal.sequence) }
        guard version == derivationVersion else { return .done(nil) }
        return try .done(stageSingle(kind, key, value, durability, &state))
      }
      switch turn {
      case .wait(let goal): try sync(through: goal)
      case .done(let result):
        if result != nil {
          listener.object?.note(key)
          afterCommit()
        }
        return result
      }
    }
  }

  private enum SingleTurn {
    case wait(UInt64)
    case done(CommitResult?)
  }

  private func stageSingle(
    _ kind: EntryKind, _ key: RawSpan, _ value: RawSpan?, _ durability: Durability,
    _ state: inout WriterState
  ) throws(TidemarkError) -> CommitResult? {
    try checkWritable(state)
    guard durability == .async || state.stagedBytes == 0, !state.compactor.keepsReserve else {
      return nil
    }
    let rawBytes = key.byteCount + (value?.byteCount ?? 0)
    do throws(TidemarkError) {
      try makeRoom(for: OperationBatch.storedBound(bytes: rawBytes, operations: 1), &state)
    } catch {
      guard error.code == .noSpace else { throw error }
      return nil
    }
    guard let appender = state.appender, appender.takesSingleFrames else { return nil }
    let commitTime = state.commitTime.next(wallClock: environment.clock.now())
    let next = state.sequence + 1
    let entry = SingleEntry(
      kind: kind, sequence: next, commitTime: commitTime, durableThrough: state.durable)
    let outcome = reading.withLock { read in
      read.stage(entry, key, value, into: durability == .async ? nil : appender, hotCache)
    }
    switch outcome {
    case .notFound: return CommitResult(of: next..<next, in: state, at: commitTime)
    case .failed: return nil
    case .staged: break
    }
    state.sequence = next
    state.commitTime = commitTime
    appender.note(
      rawBytes: rawBytes + 16, time: commitTime.timestamp, commitTime: commitTime.rawValue)
    if durability == .async {
      if state.stagedBytes == 0 { state.stagedSince = environment.clock.monotonicNanoseconds() }
      state.stagedBytes += rawBytes + 16
      if state.stagedBytes >= Limits.stagedBytes {
        try writeStaged(&state, mayCompress: true, keepsFrame: true)
      }
    } else {
      try writeSingle(appender, &state)
    }
    return CommitResult(of: next..<(next + 1), in: state)
  }

  private func writeSingle(
    _ appender: SegmentAppender, _ state: inout WriterState
  ) throws(TidemarkError) {
    if state.unsyncedBytes == 0 { try checkLock(&state) }
    let before = appender.length
    do { try appender.writeSingle() } catch {
      throw poison(&state, describe(error), reason: "writing to the log failed midway")
    }
    reading.withLock { $0.underWay = nil }
    noteWritten(appender.length - before, &state)
  }
}

/// The facts known of an entry before the index is asked.
private struct SingleEntry {
  var kind: EntryKind
  var sequence: UInt64
  var commitTime: HybridTime
  var durableThrough: UInt64
}

extension ReadState {
  fileprivate enum SingleOutcome {
    case staged
    /// A delete of a key that is not there.
    case notFound
    /// Nothing has changed.
    case failed
  }

  /// Makes an entry visible.
  /// - Parameter appender: gets it as a frame of its own; nil leaves it in memory.
  fileprivate mutating func stage(
    _ entry: SingleEntry, _ key: RawSpan, _ value: RawSpan?, into appender: SegmentAppender?,
    _ hotCache: HotCache
  ) -> SingleOutcome {
    let hash = index.hash(key)
    var slot = Slot(
      sequence: entry.sequence, labelSet: 0,
      size: .ofEntry(key: key.byteCount, value: value?.byteCount ?? 0))
    let previous: Slot?
    do throws(IndexError) {
      if entry.kind == .delete { slot.size = .deleted }
      previous = try index.upsert(key, hash: hash, slot, ifPresent: entry.kind == .delete)
    } catch { return .failed }
    if entry.kind == .delete, previous?.isDeleted ?? true { return .notFound }
    if let previous, !previous.isDeleted {
      usage.supersede(previous, in: segment(covering: previous.sequence))
    }
    Staging.forget(key, hash: hash, hotCache)
    let link = Staging.link(to: previous)
    if let appender {
      let value = appender.fillSingle(
        entry.kind, sequence: entry.sequence, previous: link,
        commitTime: entry.commitTime.rawValue, durableThrough: entry.durableThrough, key: key,
        value: value)
      underWay = (entry.sequence, value)
    } else {
      addToStaged(entry, link, key, value)
    }
    visible = entry.sequence
    return .staged
  }

  private mutating func addToStaged(
    _ single: SingleEntry, _ link: UInt64, _ key: RawSpan, _ value: RawSpan?
  ) {
    let last = staged.count - 1
    if last < 0 || staged[last].isFull || single.sequence != staged[last].lastSequence + 1 {
      staged.append(nextFrame)
      nextFrame = FrameBuilder()
    }
    var entry = FrameBuilder.Entry(
      kind: single.kind, endsBatch: true, sequence: single.sequence,
      commitTime: single.commitTime.rawValue)
    entry.previous = link
    let none: [UInt8] = []
    staged[staged.count - 1].add(entry, key: key, value: value, attributes: none.rawSpan) { _ in
      []
    }
  }
}
