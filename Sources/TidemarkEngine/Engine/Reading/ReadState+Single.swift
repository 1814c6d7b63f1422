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
    /// A delete of a key that is not there.
    case notFound
    /// Nothing has changed.
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
