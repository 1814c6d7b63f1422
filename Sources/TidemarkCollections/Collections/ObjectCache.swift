internal import TidemarkEngine

/// A decoded object of whichever type.
typealias AnyBox = any AnyObject & Sendable

/// Decoded objects of one collection, bounded by the bytes that they were decoded from.
final class ObjectCache<Object: Sendable>: Sendable {
  /// The same without the type: what is done for each of many objects is not done by generic code,
  /// which would be compiled for no type.
  let boxes: BoxCache

  init(limit: Int) { boxes = BoxCache(limit: limit) }

  /// An object, if it is the one of an entry.
  /// - Parameter key: the hash of its key.
  func object(_ key: UInt64, at sequence: UInt64, lineage: Int) -> Object? {
    let box = boxes.box(KeyedEntry(hash: key, sequence: sequence), lineage: lineage)
    return (box as? ObjectBox<Object>)?.object
  }

  /// Keeps an object.
  /// - Parameter bytes: the length of its value.
  func keep(_ object: Object, _ key: UInt64, at sequence: UInt64, bytes: Int, lineage: Int) {
    let entry = KeyedEntry(hash: key, sequence: sequence)
    boxes.keep([BoxCache.New(entry: entry, box: ObjectBox(object), bytes: bytes)], lineage: lineage)
  }
}

/// Decoded objects by the hashes of their keys, bounded by the bytes that they were decoded from.
/// An entry's sequence says which key it is about, so that keys with one hash only displace each
/// other.
///
/// There are two generations: new objects and those that are asked for come into the younger one;
/// when it is full, it becomes the older one, and what nobody asked for meanwhile goes.
final class BoxCache: Sendable {
  /// A decoded object that is to be kept.
  struct New: Sendable {
    var entry: KeyedEntry
    var box: AnyBox
    /// The length of its value.
    var bytes: Int
  }

  private struct Row {
    var sequence: UInt64
    var box: AnyBox
    var bytes: Int
  }

  private struct State {
    var young: [UInt64: Row] = [:]
    var old: [UInt64: Row] = [:]
    var youngBytes = 0
    /// Sequences mean the same in one lineage of the engine only.
    var lineage = 0

    mutating func find(_ entry: KeyedEntry, limit: Int) -> AnyBox? {
      if let row = young[entry.hash] { return row.sequence == entry.sequence ? row.box : nil }
      guard !old.isEmpty, let row = old.removeValue(forKey: entry.hash),
        row.sequence == entry.sequence
      else { return nil }
      add(entry.hash, row, limit: limit)
      return row.box
    }

    mutating func add(_ key: UInt64, _ row: Row, limit: Int) {
      if let before = young.updateValue(row, forKey: key) { youngBytes -= before.bytes }
      youngBytes += row.bytes
      guard youngBytes > limit / 2 else { return }
      old = young
      young = [:]
      youngBytes = 0
    }
  }

  /// Bytes beside the value that an object is counted with.
  private static let overhead = 64
  /// So many objects are looked up or added while the lock is held.
  private static let heldFor = 256

  private let state = Lock(State())
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  /// An object, if it is the one of an entry.
  func box(_ entry: KeyedEntry, lineage: Int) -> AnyBox? {
    guard limit > 0 else { return nil }
    return state.withLock { state in
      guard state.lineage == lineage else {
        state = State(lineage: lineage)
        return nil
      }
      return state.find(entry, limit: limit)
    }
  }

  /// The objects of many entries; nil for what is not here.
  func boxes(_ entries: [KeyedEntry], lineage: Int) -> [AnyBox?] {
    var boxes: [AnyBox?] = []
    boxes.reserveCapacity(entries.count)
    while limit > 0, boxes.count < entries.count {
      let isEmpty = state.withLock { state in
        guard state.lineage == lineage, !state.young.isEmpty || !state.old.isEmpty else {
          return true
        }
        for entry in entries[boxes.count...].prefix(Self.heldFor) {
          boxes.append(state.find(entry, limit: limit))
        }
        return false
      }
      if isEmpty { break }
    }
    boxes.append(contentsOf: repeatElement(nil, count: entries.count - boxes.count))
    return boxes
  }

  /// Keeps objects.
  func keep(_ news: [New], lineage: Int) {
    var next = 0
    while limit > 0, next < news.count {
      let part = news[next...].prefix(Self.heldFor)
      next = part.endIndex
      state.withLock { state in
        if state.lineage != lineage { state = State(lineage: lineage) }
        // A table that grows step by step is copied at each.
        state.young.reserveCapacity(state.young.count + news.count - next + part.count)
        for new in part {
          let bytes = new.bytes + Self.overhead
          guard bytes <= limit / 4 else { continue }
          if !state.old.isEmpty { state.old[new.entry.hash] = nil }
          state.add(
            new.entry.hash, Row(sequence: new.entry.sequence, box: new.box, bytes: bytes),
            limit: limit)
        }
      }
    }
  }
}

/// An object that several lists share.
final class ObjectBox<Object: Sendable>: Sendable {
  let object: Object

  init(_ object: Object) { self.object = object }
}
