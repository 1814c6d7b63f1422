// SAFETY: keys lie in the memtable's store or in the buffers of the runs' readers, which the stream
// keeps; a span ends before the next step.

/// The keys of a merge's result in byte order, each with the slot of the newest layer that has it.
/// The layers are the frozen memtable and the merged runs, newest first.
struct MergeStream {
  /// A key in a layer: the number of its slot in the memtable, which is layer 0, or its ordinal in
  /// a run.
  typealias Place = (layer: Int, number: Int)

  /// Where the present key stands, newest layer first.
  private(set) var places: [Place] = []
  private(set) var slot = Slot(sequence: 0, labelSet: 0, size: .deleted)

  private static let lookahead = 8

  private let store: SlotStore
  private let order: [UInt32]
  private var position = 0
  private let runs: [RunReader]

  init(_ input: MergeInput) {
    store = input.frozen.store
    // The memtable may have slots that were not in its order yet when that was copied.
    var order = input.frozenOrder
    order.append(order.count..<store.count)
    self.order = order.sorted(store)
    runs = input.runs.map(RunReader.init)
  }

  /// The present key.
  var key: RawSpan {
    @_lifetime(borrow self)
    get {
      let place = places[0]
      if place.layer == 0 {
        return unsafe _overrideLifetime(store.key(place.number), borrowing: self)
      }
      let run = runs[place.layer - 1]
      return unsafe _overrideLifetime(run.key, borrowing: self)
    }
  }

  /// Goes to the next key.
  /// - Returns: false if there is none.
  mutating func next() throws(IndexError) -> Bool {
    // Every layer that had the last key; at first none.
    for place in places {
      if place.layer == 0 { position += 1 } else { runs[place.layer - 1].advance() }
    }
    places.removeAll(keepingCapacity: true)
    prefetch()
    if position < order.count { places.append((layer: 0, number: Int(order[position]))) }
    for layer in runs.indices {
      let run = runs[layer]
      guard let ordinal = try run.loadPresent() else { continue }
      let comparison = places.isEmpty ? -1 : run.key.compare(to: key)
      if comparison < 0 { places.removeAll(keepingCapacity: true) }
      if comparison <= 0 { places.append((layer: layer + 1, number: ordinal)) }
    }
    guard let newest = places.first else { return false }
    slot = newest.layer == 0 ? store.slot(newest.number) : runs[newest.layer - 1].slot
    return true
  }

  /// Asks the processor for keys of the memtable ahead: in key order they lie all over the memory.
  private func prefetch() {
    guard position + Self.lookahead * 2 < order.count else { return }
    store.prefetchRecord(Int(order[position + Self.lookahead * 2]))
    store.prefetchKey(Int(order[position + Self.lookahead]))
  }
}

/// Reads the keys and slots of a run from front to back, without keeping its chunks in memory.
private final class RunReader {
  private let run: SortedRun
  private var window: RunWindow
  private var ordinal = 0
  /// The block in `buffer`, and where the next one must begin.
  private var block = -1
  private var blockOffset = 0
  private let buffer = KeyBuffer()

  init(_ run: SortedRun) {
    self.run = run
    window = RunWindow(run)
  }

  var key: RawSpan {
    @_lifetime(borrow self)
    get {
      let buffer = self.buffer
      return unsafe _overrideLifetime(
        buffer.key(ordinal % RunLayout.keysPerBlock), borrowing: self)
    }
  }

  var slot: Slot { buffer[ordinal % RunLayout.keysPerBlock] }

  /// Reads the present key's block, if it has not been read.
  /// - Returns: the key's ordinal; nil at the end.
  func loadPresent() throws(IndexError) -> Int? {
    guard ordinal < run.count else { return nil }
    if ordinal / RunLayout.keysPerBlock > block { try decodeNextBlock() }
    return ordinal
  }

  func advance() { ordinal += 1 }

  private func decodeNextBlock() throws(IndexError) {
    block += 1
    let (start, end) = try run.blockRange(block)
    // Blocks must follow each other, lest damaged offsets name the same bytes again and again.
    guard start == blockOffset else { throw run.blockDamage(block) }
    blockOffset = end
    // `window` is the only reference to its bytes meanwhile, so loading does not copy them.
    var window = self.window
    self.window = RunWindow(run)
    try window.load(.blocks, start, end - start)
    let keys = min(RunLayout.keysPerBlock, run.count - block * RunLayout.keysPerBlock)
    do throws(FormatError) {
      try buffer.load(try RunBlock(window.bytes(.blocks, start, end - start), count: keys))
    } catch { throw run.blockDamage(block) }
    self.window = window
  }
}
