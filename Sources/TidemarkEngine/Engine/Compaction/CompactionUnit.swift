/// One step of a compaction: rewrites a group of neighbouring segments into one segment, sorted by
/// key and sequence, or leaves the group as it is where a rewrite gains nothing.
///
/// `CompactionDecisions` decides which entries stay. `Compactor` puts the outcome into MANIFEST.
struct CompactionUnit: Sendable {
  /// The swap is of the new segment for its inputs; nil where the inputs stay as they are.
  typealias Outcome = (tally: CompactionTally, swap: CompactionSwap?)

  let compactor: Compactor
  let group: CompactionPlan.Group
  /// Up to which sequences entries may be dropped.
  let floor: CompactionFloor
  /// Versions that stay for peers of replication, whatever the floor says.
  var pinned: PinnedVersions?
  let options: CompactionOptions
  /// Whether the group is rewritten only if that drops an entry, or changes its encryption key.
  var onlyDrops = false

  /// - Parameter decisions: has been asked about all older groups.
  func run(_ decisions: inout CompactionDecisions) throws(TidemarkError) -> Outcome {
    // Such a segment gains only if an entry is dropped, which the entry headers tell (`forecast`).
    let isLaidOut = try isLaidOut()
    if isLaidOut, !mayDrop { return (CompactionTally(), nil) }
    decisions.begin(group.range)
    let mayStay = onlyDrops ? try hasCurrentKey() : isLaidOut
    if options.dryRun || mayStay {
      let forecast = try forecast(&decisions)
      if options.dryRun || forecast.keepsAll { return (forecast, nil) }
    }
    let room = compactor.room(for: group, floor)
    do throws(TidemarkError) {
      // `stepBytes` 0 is for a nearly full disk: it begins with the least room that may do.
      try compactor.check(
        room, isAutomatic: options.automatic.map { $0.stepBytes != 0 } ?? false,
        isAskedFor: options.automatic == nil)
      return try rewrite(&decisions)
    } catch {
      // While `neededBytes` is set, `AutoCompactor` seals no segment just to purge it.
      if error.code == .noSpace, options.automatic != nil {
        compactor.compacting.withLock { $0.neededBytes = room.most }
      }
      throw error
    }
  }

  /// Leaves the group as it is. From here on all deletes stay: one may hide a version in this
  /// group, which would come back if the index was made anew from the log.
  func passOver(_ decisions: inout CompactionDecisions) throws(TidemarkError) {
    decisions.begin(group.range)
    _ = try forecast(&decisions)
    decisions.keepDeletes()
  }

  /// Writes the group anew; an output without gain is removed again. Small blocks, for cheap single
  /// reads, are given up where they make the output longer than the group.
  private func rewrite(_ decisions: inout CompactionDecisions) throws(TidemarkError) -> Outcome {
    let before = decisions
    // Taken first: the new segment must be charged with what caches give up during the rewrite.
    let cachedBefore = compactor.reader.snapshot.usage.cached(in: group.segments)
    var rewrite = try CompactionRewrite(compactor, group, pinned: pinned, options: options)
    var (tally, row) = try rewrite.run(&decisions)
    if rewrite.hasSmallBlocks, row?.length ?? 0 > usedBytes {
      rewrite.discard()
      decisions = before
      rewrite = try CompactionRewrite(
        compactor, group, pinned: pinned, options: options, allowsSmallBlocks: false)
      (tally, row) = try rewrite.run(&decisions)
    }
    let swap = CompactionSwap(
      inputs: group.segments, row: row,
      superseded: SpaceUsage.Row(superseded: tally.superseded, cached: tally.cached),
      cachedBefore: cachedBefore,
      droppedThrough: tally.droppedThrough, evictedThrough: decisions.cached.droppedThrough)
    do throws(TidemarkError) {
      guard try isGain(swap, tally) else {
        rewrite.discard()
        // Spares later compactions the same attempt; dense ones make it all the same (`isLaidOut`).
        if !options.dense { compactor.reader.leaveAlone(group.segments) }
        return (tally, nil)
      }
      // MANIFEST must not list a file whose name a power cut can take away.
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
    return (tally, swap)
  }

  /// Counts the entries that would be dropped, from entry headers alone.
  private func forecast(_ decisions: inout CompactionDecisions) throws(TidemarkError)
    -> CompactionTally
  {
    var tally = CompactionTally()
    for segment in group.segments {
      let frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
      for (number, record) in try segment.frames().enumerated() {
        try options.checkStop(at: number)
        let front = try frames.front(record)
        for head in front.entries {
          let fate = try decisions.fate(
            of: head, key: front.key(of: head), isCached: front.isCached(head)
          ) { () throws(TidemarkError) in
            do throws(FormatError) {
              return RecordType(rawValue: try front.attributes(of: head).recordType)
            } catch { throw segment.damage(.format(error), offset: front.offset) }
          }
          tally.count(fate, of: head)
        }
      }
    }
    return tally
  }

  /// Whether any entry may be dropped. A segment without a count (`?? 1`) may hold cached data.
  private var mayDrop: Bool {
    let usage = compactor.reader.snapshot.usage.rows
    return floor.drops || options.isSuperseded != nil
      || group.segments.contains { usage[$0.id]?.cached ?? 1 > 0 }
  }

  /// Whether the group is one segment as a compaction leaves it, and neither dense blocks nor
  /// another key are asked for. `leftAlone` has segments that a rewrite made no smaller.
  private func isLaidOut() throws(TidemarkError) -> Bool {
    let segment = group.segments[0]
    guard group.segments.count == 1, !options.dense, try hasCurrentKey() else { return false }
    return segment.kind == .compacted
      || compactor.reader.snapshot.leftAlone.contains(segment.id)
  }

  /// Whether the output is worth its place: it drops an entry or tells what a dropped one told, has
  /// another key, is shorter, or merges several segments as somebody asked.
  private func isGain(
    _ swap: CompactionSwap, _ tally: CompactionTally
  ) throws(TidemarkError) -> Bool {
    guard tally.keepsAll, group.segments.count == 1 || options.automatic != nil,
      try hasCurrentKey()
    else { return true }
    return swap.row?.length ?? 0 < usedBytes
  }

  /// Bytes of the group on the disk.
  private var usedBytes: Int { group.segments.reduce(0) { $0 + $1.usedLength() } }

  /// Whether all of the group is encrypted with the key that new files get.
  private func hasCurrentKey() throws(TidemarkError) -> Bool {
    let key = try compactor.keys.current()
    return group.segments.allSatisfy { $0.keyID == key }
  }
}
