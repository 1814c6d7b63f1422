/// The facts known of an entry before the index is asked.
struct SingleEntry {
  var kind: EntryKind
  var sequence: UInt64
  var commitTime: HybridTime
  var durableThrough: UInt64
}

extension ReadState {
  enum SingleOutcome {
    case staged
    /// The key to be deleted is absent; no sequence was used.
    case notFound
    /// The index is damaged or full; neither it nor the frame was changed.
    case failed
  }

  /// Makes an entry visible.
  /// - Parameter appender: gets it as a frame of its own; nil leaves it in memory.
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
      link = try replace(key, hash: hash, by: slot, needsKey: entry.kind == .delete, hotCache)
    } catch { return .failed }
    guard let link else { return .notFound }
    if let appender {
      let value = appender.fillSingle(
        entry.kind, sequence: entry.sequence, previous: link,
        commitTime: entry.commitTime.rawValue, durableThrough: entry.durableThrough, key: key,
        value: value)
      singleInFlight = (entry.sequence, value)
    } else {
      addToStaged(entry, link, key, value)
    }
    visible = entry.sequence
    return .staged
  }

  /// Points the index at a key's new entry, counts the former one as superseded, and drops the key
  /// from the hot cache.
  /// - Parameters:
  ///   - key: the key.
  ///   - hash: its hash.
  ///   - slot: the new entry's.
  ///   - needsKey: whether nothing is done where the key is absent.
  ///   - hotCache: forgets the key.
  /// - Returns: the sequence that the new entry names as the one before, 0 for none; nil where
  ///   nothing was done.
  mutating func replace(
    _ key: RawSpan, hash: UInt64, by slot: Slot, needsKey: Bool, _ hotCache: HotCache
  ) throws(IndexError) -> UInt64? {
    let previous = try index.upsert(key, hash: hash, slot, ifPresent: needsKey)
    if needsKey, previous?.isDeleted ?? true { return nil }
    if let previous, !previous.isDeleted {
      usage.supersede(previous, in: segment(covering: previous.sequence))
    }
    if !PlantedBug.isOn(.cacheNotInvalidated) { hotCache.remove(key, hash: hash) }
    if PlantedBug.isOn(.linkEndsAtDelete), previous?.isDeleted == true { return 0 }
    return previous?.sequence ?? 0
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
