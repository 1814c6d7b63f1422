internal import TidemarkEngine

/// Decoded objects by id, bounded by the bytes that they were decoded from.
///
/// There are two generations: new objects and those that are asked for come into the younger one;
/// when it is full, it becomes the older one, and what nobody asked for meanwhile goes.
final class ObjectCache<ID: Hashable & Sendable, Object: Sendable>: Sendable {
  private struct Row {
    var sequence: UInt64
    var object: Object
    var bytes: Int
  }

  private struct State {
    var young: [ID: Row] = [:]
    var old: [ID: Row] = [:]
    var youngBytes = 0
    /// Sequences mean the same in one lineage of the engine only.
    var lineage = 0

    mutating func add(_ id: ID, _ row: Row, limit: Int) {
      if let before = young.updateValue(row, forKey: id) { youngBytes -= before.bytes }
      youngBytes += row.bytes
      guard youngBytes > limit / 2 else { return }
      old = young
      young = [:]
      youngBytes = 0
    }
  }

  /// Bytes beside the value that an object is counted with.
  private static var overhead: Int { 64 }

  private let state = Lock(State())
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  /// An object, if it is the one of an entry.
  func object(_ id: ID, at sequence: UInt64, lineage: Int) -> Object? {
    guard limit > 0 else { return nil }
    return state.withLock { state in
      guard state.lineage == lineage else {
        state = State(lineage: lineage)
        return nil
      }
      if let row = state.young[id] { return row.sequence == sequence ? row.object : nil }
      guard let row = state.old.removeValue(forKey: id), row.sequence == sequence else {
        return nil
      }
      state.add(id, row, limit: limit)
      return row.object
    }
  }

  /// Keeps an object.
  /// - Parameter bytes: the length of its value.
  func keep(_ object: Object, _ id: ID, at sequence: UInt64, bytes: Int, lineage: Int) {
    let bytes = bytes + Self.overhead
    guard bytes <= limit / 4 else { return }
    state.withLock { state in
      if state.lineage != lineage { state = State(lineage: lineage) }
      state.old[id] = nil
      state.add(id, Row(sequence: sequence, object: object, bytes: bytes), limit: limit)
    }
  }
}
