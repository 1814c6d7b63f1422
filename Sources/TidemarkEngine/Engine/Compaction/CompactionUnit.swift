/// Rewrites one group of segments into one, sorted by key and sequence, or leaves it as it is.
struct CompactionUnit: Sendable {
  struct Outcome {
    var tally = CompactionTally()
    /// Nil where the segments are best left as they are.
    var swap: CompactionSwap?
  }

  let compactor: Compactor
  let group: CompactionPlan.Group
  let floor: CompactionFloor
  var pinned: PinnedVersions?
  let options: CompactionOptions
  /// Whether it is left as it is where nothing goes.
  var onlyDrops = false

  /// - Parameter fates: has seen the segments before.
  func run(_ fates: inout CompactionFates) throws(TidemarkError) -> Outcome {
    // A segment that is laid out already gains by a drop alone, and the heads tell of one.
    let isLaidOut = try isLaidOut()
    if isLaidOut, !mayDrop { return Outcome() }
    fates.begin(group.range)
    let mayStay = onlyDrops ? try hasCurrentKey() : isLaidOut
    if options.dryRun || mayStay {
      let forecast = try forecast(&fates)
      if options.dryRun || forecast.keepsAll { return Outcome(tally: forecast) }
    }
    let room = compactor.room(for: group, floor)
    do throws(TidemarkError) {
      try compactor.check(room, isAutomatic: options.automatic.map { $0.stepBytes != 0 } ?? false)
      return try rewrite(&fates)
    } catch {
      // It is looked for again when a compaction is due the next time.
      if error.code == .noSpace, options.automatic != nil {
        compactor.compacting.withLock { $0.neededBytes = room.most }
      }
      throw error
    }
  }

  /// Leaves the group as it is: what is deleted in newer segments still hides something in it.
  func passOver(_ fates: inout CompactionFates) throws(TidemarkError) {
    fates.begin(group.range)
    _ = try forecast(&fates)
    fates.keepDeletes()
  }

  /// Writes the group anew, unless that gains nothing. Small blocks, of which single reads are
  /// cheap, are not worth more space than the group has had.
  private func rewrite(_ fates: inout CompactionFates) throws(TidemarkError) -> Outcome {
    let before = fates
    let cachedBefore = compactor.reader.snapshot.usage.cached(in: group.segments)
    var rewrite = try CompactionRewrite(compactor, group, pinned: pinned, options: options)
    var (tally, row) = try rewrite.run(&fates)
    if rewrite.hasSmallBlocks, row?.length ?? 0 > usedBytes {
      rewrite.discard()
      fates = before
      rewrite = try CompactionRewrite(
        compactor, group, pinned: pinned, options: options, allowsSmallBlocks: false)
      (tally, row) = try rewrite.run(&fates)
    }
    var outcome = Outcome(tally: tally)
    let swap = CompactionSwap(
      inputs: group.segments, rows: row.map { [$0] } ?? [],
      superseded: row == nil
        ? [] : [SpaceUsage.Row(superseded: tally.superseded, cached: tally.cached)],
      cachedBefore: cachedBefore,
      droppedThrough: tally.droppedThrough, evictedThrough: fates.cached.droppedThrough)
    do throws(TidemarkError) {
      guard try isGain(swap, tally) else {
        rewrite.discard()
        if !options.dense { compactor.reader.leaveAlone(group.segments) }
        return outcome
      }
      if !PlantedBug.isOn(.compactedNameNotSynced) {
        let directory = compactor.path + "/" + StoreLayout.logDirectory
        do { try compactor.fileSystem.syncDirectory(directory) } catch {
          throw TidemarkError(error, while: "compacting the log")
        }
      }
    } catch {
      rewrite.discard()
      throw error
    }
    outcome.swap = swap
    return outcome
  }

  /// Counts the entries that would be dropped, without a look at values.
  private func forecast(
    _ fates: inout CompactionFates
  ) throws(TidemarkError) -> CompactionTally {
    var tally = CompactionTally()
    for segment in group.segments {
      let frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
      for (number, record) in try segment.frames().enumerated() {
        try options.checkStop(at: number)
        let front = try frames.front(record)
        for head in front.entries {
          let fate = try fates.fate(
            of: head, key: front.key(of: head), isCached: front.isCached(head)
          ) { () throws(TidemarkError) in
            do throws(FormatError) {
              return RecordType(rawValue: try front.attributes(of: head).recordType)
            } catch {
              throw segment.damage(.format(error), offset: front.offset)
            }
          }
          tally.count(fate, of: head)
        }
      }
    }
    return tally
  }

  /// Whether anything may have to go.
  private var mayDrop: Bool {
    let usage = compactor.reader.snapshot.usage.rows
    return floor.drops || options.isSuperseded != nil
      || group.segments.contains { usage[$0.id]?.cached ?? 1 > 0 }
  }

  /// Whether the group is one segment as a compaction leaves it, and nothing else is asked for.
  private func isLaidOut() throws(TidemarkError) -> Bool {
    let segment = group.segments[0]
    guard group.segments.count == 1, !options.dense, try hasCurrentKey() else { return false }
    return segment.kind == .compacted
      || compactor.reader.snapshot.leftAlone.contains(segment.id)
  }

  /// Whether what was written is worth its place: one segment that loses nothing, keeps its key and
  /// gets no smaller stays as it is, and several do where nobody has asked for another order.
  private func isGain(
    _ swap: CompactionSwap, _ tally: CompactionTally
  ) throws(TidemarkError) -> Bool {
    guard tally.keepsAll, group.segments.count == 1 || options.automatic != nil,
      try hasCurrentKey()
    else { return true }
    return swap.rows.reduce(0) { $0 + $1.length } < usedBytes
  }

  /// Bytes of the group on the disk.
  private var usedBytes: Int { group.segments.reduce(0) { $0 + $1.usedLength() } }

  private func hasCurrentKey() throws(TidemarkError) -> Bool {
    let key = try compactor.keys.current()
    return group.segments.allSatisfy { $0.keyID == key }
  }
}
