extension LogWriter {
  /// The fast path of a commit: a *single*, one put or delete without attributes and conditions. It
  /// does all but the sync: for `durable` the caller then calls `sync(through:of:)`. The caller's
  /// bytes are copied once, into a frame of their own or the last staged one.
  /// - Returns: nil when nothing was done and the entry must be committed as a batch: it is too
  ///   long for a frame of its own, index rows are derived from it, it is not `async` and `async`
  ///   writes are staged before it, the disk is full or hardly larger than its caches, the log is
  ///   encrypted, or the index is damaged.
  func stage(
    _ kind: EntryKind, key: RawSpan, value: RawSpan?, labels: [[UInt8]], _ durability: Durability,
    waitsForRoom: Bool
  ) throws(TidemarkError) -> CommitResult? {
    try OperationBatch.check(key: key.byteCount, value: value?.byteCount ?? 0, kind: kind)
    let labels = try OperationBatch.sorted(labels)
    let version = derivationVersion
    let keyBytes = key.byteCount + SingleFrame.bytes(ofLabels: labels)
    guard SingleFrame.fits(keyBytes: keyBytes, valueBytes: value?.byteCount ?? 0),
      derivation.object.map({ $0.isIdle(at: version) || !$0.concerns(key) }) ?? true
    else { return nil }
    if waitsForRoom { try waitForRoom() }
    return try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      // An index over the key may have been declared since `derivation` was asked above.
      guard version == derivationVersion else { return nil }
      return try stage(kind, key, value, labels, durability, &state)
    }
  }

  private func stage(
    _ kind: EntryKind, _ key: RawSpan, _ value: RawSpan?, _ labels: [[UInt8]],
    _ durability: Durability, _ state: inout WriterState
  ) throws(TidemarkError) -> CommitResult? {
    try state.checkWritable()
    // Staged frames hold lower sequences, which must be in the log before this entry.
    guard durability == .async || state.stagedBytes == 0, !state.limits.keepsReserve else {
      return nil
    }
    let bytes = key.byteCount + (value?.byteCount ?? 0)
    let labelBytes = SingleFrame.bytes(ofLabels: labels)
    do throws(TidemarkError) {
      try makeRoom(
        for: OperationBatch.storedBound(bytes: bytes, operations: 1, labelBytes: labelBytes),
        &state)
    } catch {
      guard error.code == .noSpace else { throw error }
      return nil
    }
    guard let appender = state.appender, appender.takesSingleFrames else { return nil }
    let commitTime = state.commitTime.next(wallClock: environment.clock.now())
    let next = state.sequence + 1
    let entry = SingleEntry(
      kind: kind, sequence: next, commitTime: commitTime, labels: labels,
      durableThrough: state.durable)
    // The reader changes its index and fills the frame in one hold of its lock: the frame names the
    // key's previous sequence, which the index tells. `failed` has changed no key.
    switch reader.stage(entry, key, value, into: durability == .async ? nil : appender) {
    case .notFound: return CommitResult(of: next..<next, in: state, at: commitTime)
    case .failed: return nil
    case .staged: break
    }
    state.sequence = next
    state.commitTime = commitTime
    let rawBytes = bytes + Limits.entryOverheadBytes
    appender.note(rawBytes: rawBytes, time: commitTime.timestamp, commitTime: commitTime.rawValue)
    if durability == .async {
      if state.stagedBytes == 0 { state.stagedSince = environment.clock.monotonicNanoseconds() }
      state.stagedBytes += rawBytes + labelBytes
      if state.stagedBytes >= Limits.stagedBytes {
        try writeStaged(&state, mayCompress: true, keepsFrameMemory: true)
      }
    } else {
      try writeSingle(appender, &state)
    }
    return CommitResult(of: next..<(next + 1), in: state)
  }

  private func writeSingle(
    _ appender: SegmentAppender, _ state: inout WriterState
  ) throws(TidemarkError) {
    // `checkLock` asks the file system, too slowly for each put. The first after a sync is enough:
    // nothing counts as durable before `checkLock` is asked once more, after the next sync.
    if state.unsyncedBytes == 0 { try checkLock(&state) }
    let before = appender.length
    do { try appender.writeSingle() } catch {
      throw poison(&state, TidemarkError(error), reason: "writing to the log failed midway")
    }
    reader.noteSingleWritten()
    noteWritten(appender.length - before, &state)
  }
}
