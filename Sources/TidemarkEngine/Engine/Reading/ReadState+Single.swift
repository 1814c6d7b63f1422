/// A put or delete that is committed alone: the fast path of small writes.
struct SingleEntry {
  var kind: EntryKind
  var sequence: UInt64
  var commitTime: HybridTime
  /// Sorted and without repetition.
  var labels: [[UInt8]]
  /// The durable sequence at this moment, which the frame's header tells recovery.
  var durableThrough: UInt64
}

extension ReadState {
  enum SingleOutcome {
    case staged
    /// The key to be deleted is absent; no sequence was used.
    case notFound
    /// The index is damaged or full; no key and no frame was changed.
    case failed
  }

  /// Makes an entry visible before it is written. The writer's and the readers' lock are held.
  /// - Parameter appender: gets a frame of the entry, which the caller writes next; nil stages it.
  mutating func stage(
    _ entry: SingleEntry, _ key: RawSpan, _ value: RawSpan?, into appender: SegmentAppender?,
    _ hotCache: HotCache
  ) -> SingleOutcome {
    let hash = index.hash(key)
    var slot = Slot(
      sequence: entry.sequence, labelSet: 0,
      size: .ofEntry(key: key.byteCount, value: value?.byteCount ?? 0))
    if entry.kind == .delete { slot.size = .deleted }
    let link: UInt64?
    do throws(IndexError) {
      if !entry.labels.isEmpty { slot.labelSet = try index.labelTable.intern(entry.labels) }
      link = try replace(key, hash: hash, by: slot, needsKey: entry.kind == .delete, hotCache)
    } catch { return .failed }
    guard let link else { return .notFound }
    if let appender {
      let value = appender.fillSingle(
        entry.kind, sequence: entry.sequence, previous: link,
        commitTime: entry.commitTime.rawValue, durableThrough: entry.durableThrough, key: key,
        labels: entry.labels, value: value)
      // Until the frame is written readers find the value here.
      singleInFlight = (entry.sequence, value)
    } else {
      addToStaged(entry, link, slot.labelSet, key, value)
    }
    visible = entry.sequence
    return .staged
  }

  /// Makes an entry its key's newest, in the index, hot cache and counts of superseded bytes.
  /// - Parameters:
  ///   - needsKey: whether nothing is done if the key is absent or deleted.
  ///   - hotCache: forgets the key, under the same lock that makes the new entry visible.
  /// - Returns: the new entry's `previous` (the key's entry before it, maybe a tombstone); 0 for
  ///   none; nil if nothing was done.
  mutating func replace(
    _ key: RawSpan, hash: UInt64, by slot: Slot, needsKey: Bool, _ hotCache: HotCache
  ) throws(IndexError) -> UInt64? {
    let previous = try index.upsert(key, hash: hash, slot, ifPresent: needsKey)
    if needsKey, previous?.isDeleted ?? true { return nil }
    // The slot of a tombstone has no size that could be counted.
    if let previous, !previous.isDeleted {
      usage.supersede(previous, in: segment(covering: previous.sequence))
    }
    if !PlantedBug.isOn(.cacheNotInvalidated) { hotCache.remove(key, hash: hash) }
    if PlantedBug.isOn(.linkEndsAtDelete), previous?.isDeleted == true { return 0 }
    return previous?.sequence ?? 0
  }

  private mutating func addToStaged(
    _ single: SingleEntry, _ link: UInt64, _ labelSet: UInt32, _ key: RawSpan, _ value: RawSpan?
  ) {
    // Sequences of a frame are dense.
    let last = staged.count - 1
    if last < 0 || staged[last].isFull || single.sequence != staged[last].lastSequence + 1 {
      staged.append(nextFrame)
      nextFrame = FrameBuilder()
    }
    var entry = FrameBuilder.Entry(
      kind: single.kind, endsBatch: true, sequence: single.sequence,
      commitTime: single.commitTime.rawValue)
    entry.previous = link
    entry.labelSetID = labelSet
    let none: [UInt8] = []
    staged[staged.count - 1].add(entry, key: key, value: value, attributes: none.rawSpan) { _ in
      single.labels
    }
  }
}
