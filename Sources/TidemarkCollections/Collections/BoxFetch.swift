internal import TidemarkEngine

/// Reads and decodes many objects of a collection together, apart from their type.
///
/// Keys are looked up many at a time. What no cache has is read in the order of the log, so that
/// each block is decoded once, and on two threads where there is enough of it.
struct BoxFetch: Sendable {
  /// So few objects are read one by one, which uses the cache of values.
  static let least = 64
  /// So many objects are worth another thread.
  private static let leastShared = 256
  private static let partMost = 256

  /// The objects that were asked for, in their order.
  struct Found {
    /// Entries that are newer than the view have no box.
    var entries: [KeyedEntry]
    var boxes: [AnyBox?]
  }

  private struct Wanted {
    var id: [UInt8]
    var entry: KeyedEntry
  }

  let store: Store
  let prefix: [UInt8]
  let view: EngineView
  let cache: BoxCache
  /// Whether the version that an object was written with matters.
  let needsVersions: Bool
  let decode: @Sendable (RawSpan, _ version: UInt32, _ id: [UInt8]) throws -> AnyBox

  /// Reads objects.
  /// - Parameter ids: the ends of their keys.
  /// - Returns: nil when they cannot be read like this, and nothing for an object that cannot be
  ///   decoded: who asks reads it by itself then, and comes to its error.
  func fetch(_ ids: [[UInt8]]) -> Found? {
    guard !ids.contains([]),
      let entries = try? store.engine.newestEntries(ofKeysWith: prefix, ids),
      store.engine.lineage == view.lineage
    else { return nil }
    var found = Found(entries: entries, boxes: cache.boxes(entries, lineage: view.lineage))
    var missing: [Int] = []
    for number in entries.indices {
      let sequence = entries[number].sequence
      if sequence > view.sequence { found.boxes[number] = nil }
      guard found.boxes[number] == nil else { continue }
      if sequence > 0, sequence <= view.sequence { missing.append(number) }
    }
    guard !missing.isEmpty else { return found }
    missing.sort { entries[$0].sequence < entries[$1].sequence }
    guard let read = read(missing.map { Wanted(id: ids[$0], entry: entries[$0]) }),
      store.engine.lineage == view.lineage
    else { return nil }
    for (number, new) in zip(missing, read) { found.boxes[number] = new?.box }
    cache.keep(read.compactMap(\.self), lineage: view.lineage)
    return found
  }

  /// - Parameter entries: in the order of their sequences.
  private func read(_ entries: [Wanted]) -> [BoxCache.New?]? {
    guard entries.count >= Self.leastShared else { return read(entries[...]) }
    let size = min(Self.partMost, entries.count / 4)
    let count = (entries.count + size - 1) / size
    let parts = Lock<[[BoxCache.New?]?]>(Array(repeating: nil, count: count))
    let failed = Lock(false)
    SharedWork.forEach(count, usesThread: store.usesThreads) { number in
      if failed.withLock({ $0 }) { return }
      let part = read(entries[(number * size)...].prefix(size))
      if part == nil { failed.withLock { $0 = true } }
      parts.withLock { $0[number] = part }
    }
    var all: [BoxCache.New?] = []
    all.reserveCapacity(entries.count)
    for part in parts.withLock({ $0 }) {
      guard let part else { return nil }
      all += part
    }
    return all
  }

  private func read(_ entries: ArraySlice<Wanted>) -> [BoxCache.New?]? {
    let engine = store.engine
    // The schema stands in the entry's attributes.
    var versions = [UInt32](repeating: 0, count: entries.count)
    do {
      if needsVersions {
        try engine.forEachInfo(at: entries.map(\.entry.sequence)) {
          (index, _, info) throws(TidemarkError) in
          versions[index] = info.attributes.schemaVersion
        }
      }
    } catch { return nil }
    var reader = RowReader(engine)
    var prepared = entries.startIndex
    var news: [BoxCache.New?] = []
    news.reserveCapacity(entries.count)
    for number in entries.indices {
      let entry = entries[number].entry
      if number == prepared {
        prepared += reader.prepare(entries.endIndex - number) {
          (entries[number + $0].entry.sequence, entries[number + $0].entry.isTouch)
        }
      }
      do {
        let version = versions[number - entries.startIndex]
        try reader.read(entry.sequence, isTouch: entry.isTouch) { value in
          let box = try? decode(value, version, entries[number].id)
          news.append(
            box.map { BoxCache.New(entry: entry, box: $0, bytes: value.byteCount) })
        }
      } catch { return nil }
      guard news.count == number - entries.startIndex + 1 else { return nil }
    }
    return news
  }
}
