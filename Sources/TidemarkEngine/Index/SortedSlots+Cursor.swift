extension SortedSlots {
  /// A place in `chunks`.
  private typealias Position = (chunk: Int, index: Int)

  /// Walks the slot numbers whose keys lie in a range. Keeps a copy of the sorted chunks, so
  /// numbers that wait in the tail, or are added later, are not met.
  struct Cursor {
    /// How many keys ahead the processor is asked for a key's bytes; twice as far for its record.
    private static let lookahead = 8

    private let slots: SortedSlots
    private let store: SlotStore
    private let step: Int
    private var chunk: [UInt32] = []
    private var chunkIndex = 0
    private var index = 0
    private var remaining = 0
    /// The slot number that the cursor stands at; nil at the end.
    private(set) var head: Int?

    init(_ slots: SortedSlots, _ store: SlotStore, _ range: KeyRange) {
      self.slots = slots
      self.store = store
      step = range.descending ? -1 : 1
      let first = slots.position(after: range.lower, store)
      let end = slots.position(after: range.upper, store)
      remaining = slots.distance(first, end)
      guard remaining > 0 else { return }
      chunkIndex = range.descending ? end.chunk : first.chunk
      index = range.descending ? end.index - 1 : first.index
      enterChunk()
    }

    @inline(__always)
    mutating func advance() {
      remaining -= 1
      index += step
      if remaining > 0, index >= 0, index < chunk.count {
        head = Int(chunk[index])
        prefetch()
      } else {
        enterChunk()
      }
    }

    /// Goes to the next chunk of the walk if `index` is outside of the present one.
    private mutating func enterChunk() {
      head = nil
      guard remaining > 0 else { return }
      if index < 0 {
        chunkIndex -= 1
        index = slots.chunks[chunkIndex].count - 1
      } else if index >= slots.chunks[chunkIndex].count {
        chunkIndex += 1
        index = 0
      }
      chunk = slots.chunks[chunkIndex]
      head = Int(chunk[index])
    }

    private func prefetch() {
      let near = index + step * Self.lookahead
      let far = near + step * Self.lookahead
      if far >= 0, far < chunk.count {
        store.prefetchRecord(Int(chunk[far]))
        store.prefetchKey(Int(chunk[near]))
      }
    }
  }

  /// The place of the first key behind `cut`, or the end of the chunk before it.
  private func position(after cut: KeyCut, _ store: SlotStore) -> Position {
    // The boundary lies in the last chunk whose first key is not behind the cut.
    let end = chunks.indices.partitioningIndex { cut.precedes(store.key(Int(chunks[$0][0]))) }
    guard end > 0 else { return (chunk: 0, index: 0) }
    let index = chunks[end - 1].partitioningIndex { cut.precedes(store.key(Int($0))) }
    return (chunk: end - 1, index: index)
  }

  /// How many numbers lie between two places; zero or less if the second is not behind.
  private func distance(_ a: Position, _ b: Position) -> Int {
    guard a.chunk <= b.chunk else { return 0 }
    var count = b.index - a.index
    for chunk in a.chunk..<b.chunk { count += chunks[chunk].count }
    return count
  }
}
