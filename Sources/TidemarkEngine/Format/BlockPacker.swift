/// Compresses the blocks of a batch on two threads: the writer's, and a helper's.
///
/// The writer offers a block as soon as it is whole, while it stages the rest of the batch. The
/// helper takes blocks in that order. Once all are offered the writer takes blocks that are still
/// waiting, from the end, until the two meet. It does not wait for the helper: the block that the
/// helper works on by then is compressed by the writer too. So a busy machine costs a writer little
/// more than no helper, and the bytes of a block do not depend on which thread compresses it.
///
/// One batch at a time: its writer holds the lock of `LogWriter`. The queue's lock is taken last.
package final class BlockPacker: Sendable {
  /// How a block is stored.
  struct Packed: Sendable, Hashable {
    var codec: Codec
    /// Empty when the block is stored raw.
    var bytes: [UInt8]
  }

  private enum Block {
    case waiting([UInt8])
    /// A thread compresses it, or the writer has fetched the result.
    case taken
    case packed(Packed)
  }

  private struct Queue {
    /// The number of the batch: the helper may finish a block of an earlier one, which is dropped.
    var batch: UInt64 = 0
    /// Blocks of the batch, in the order in which they were offered.
    var blocks: [Block] = []
    /// Raw bytes of all of them.
    var bytes = 0
    /// The helper has taken the blocks below `front`.
    var front = 0
    /// The writer has taken the blocks from `end` on; those in between are waiting.
    var end = 0
    var isAsleep = false
    var isStopping = false
    var thread: WorkerThread?

    mutating func take(_ number: Int) -> Taken? {
      guard case .waiting(let raw) = blocks[number] else { return nil }
      blocks[number] = .taken
      return Taken(batch: batch, number: number, raw: raw)
    }

    mutating func takeFirst() -> Taken? {
      while front < end {
        front += 1
        // The writer may have taken this one, before others were offered and `end` grew again.
        if let taken = take(front - 1) { return taken }
      }
      return nil
    }

    mutating func takeLast() -> Taken? {
      guard front < end else { return nil }
      end -= 1
      return take(end)
    }

    mutating func store(_ packed: Packed, of taken: Taken) {
      guard taken.batch == batch else { return }
      blocks[taken.number] = .packed(packed)
    }

    mutating func removeAll() {
      batch += 1
      blocks.removeAll()
      (bytes, front, end) = (0, 0, 0)
    }
  }

  private struct Taken {
    var batch: UInt64
    var number: Int
    var raw: [UInt8]
  }

  static let level = FrameCodecs.fastLevel

  private let queue = Monitor(Queue())
  // Without dictionary, as appended segments are; a block is encrypted after it is compressed.
  private let codecs: FrameCodecs

  package init(contexts: ZstdContexts) { codecs = FrameCodecs(contexts: contexts) }

  // The helper holds the queue and not the packer, so that a packer which is let go ends it.
  deinit { end() }

  /// Whether there is a thread; it starts with the first block.
  package var isStarted: Bool { queue.withLock { $0.thread != nil } }

  /// Blocks that nobody has begun; for tests.
  var waiting: Int { queue.withLock { $0.end - $0.front } }

  /// Begins a batch; ``finish()`` ends it.
  /// - Returns: what each of its frames is given a copy of.
  func begin() -> FramePacking {
    queue.withLock { queue in
      queue.removeAll()
      return FramePacking(packer: self, batch: queue.batch)
    }
  }

  /// Lets go of all blocks.
  func finish() { queue.withLock { $0.removeAll() } }

  /// Takes a block of the current batch into the queue.
  /// - Returns: its number in the queue; nil when there are enough blocks, or no helper.
  fileprivate func offer(_ raw: RawSpan) -> Int? {
    let copy = [UInt8](copying: raw)
    let (number, wakes) = queue.withLock { queue -> (Int?, Bool) in
      guard queue.bytes + copy.count <= Limits.bytesToPack, start(&queue) else {
        return (nil, false)
      }
      queue.blocks.append(.waiting(copy))
      queue.bytes += copy.count
      queue.end = queue.blocks.count
      defer { queue.isAsleep = false }
      return (queue.end - 1, queue.isAsleep)
    }
    if wakes { queue.signal() }
    return number
  }

  /// Starts the helper unless it runs; if the system gives no thread, the next frame tries again.
  private func start(_ queue: inout Queue) -> Bool {
    guard !queue.isStopping else { return false }
    guard queue.thread == nil else { return true }
    let (monitor, codecs) = (self.queue, codecs)
    queue.thread = try? WorkerThread(name: "tidemark-blocks") { Self.help(monitor, codecs) }
    return queue.thread != nil
  }

  private static func help(_ queue: Monitor<Queue>, _ codecs: FrameCodecs) {
    while true {
      // Inner nil: the helper ends. Outer nil: nothing to do, so it waits on.
      let taken = queue.wait { (queue: inout Queue) -> Taken?? in
        if queue.isStopping { return .some(nil) }
        if let taken = queue.takeFirst() { return taken }
        queue.isAsleep = true
        return nil
      }
      guard let taken else { return }
      // If this fails, the writer does not find the block packed and compresses it itself.
      guard let packed = try? pack(taken.raw.rawSpan, codecs) else { continue }
      queue.withLock { $0.store(packed, of: taken) }
    }
  }

  private static func pack(_ raw: RawSpan, _ codecs: FrameCodecs) throws(FormatError) -> Packed {
    var bytes: [UInt8] = []
    let codec = try codecs.encode(raw, level: level, appendingTo: &bytes)
    return Packed(codec: codec, bytes: codec == .raw ? [] : bytes)
  }

  /// Compresses waiting blocks on this thread, until all are done or taken by the helper.
  fileprivate func complete() throws(FormatError) {
    while let taken = queue.withLock({ $0.takeLast() }) {
      let packed = try Self.pack(taken.raw.rawSpan, codecs)
      queue.withLock { $0.store(packed, of: taken) }
    }
  }

  /// The result for a block, once. Nil if there is none: the caller then compresses the block.
  fileprivate func fetch(_ number: Int, of batch: UInt64) -> Packed? {
    queue.withLock { queue in
      guard queue.batch == batch, case .packed(let packed) = queue.blocks[number] else {
        return nil
      }
      queue.blocks[number] = .taken
      return packed
    }
  }

  /// Ends the helper after its current block, and waits for that.
  package func stop() { end()?.join() }

  @discardableResult
  private func end() -> WorkerThread? {
    let thread = queue.withLock { queue in
      queue.isStopping = true
      return queue.thread
    }
    queue.broadcast()
    return thread
  }
}

/// The blocks of one frame that were offered to a packer: all of them, or the first ones.
struct FramePacking: Sendable {
  fileprivate let packer: BlockPacker
  fileprivate let batch: UInt64
  /// The queue's number of each block of the frame. They need not be consecutive: the last block of
  /// a frame is whole only when the frame is finished, after blocks of later frames.
  fileprivate var numbers: [Int] = []
  /// Raw bytes of the blocks offered so far.
  fileprivate var bytes = 0
  /// Whether a block was refused. Later ones then stay out: `numbers[n]` is that of block n.
  fileprivate var isFull = false

  /// Offers blocks that became whole.
  /// - Parameter lengths: of the frame's blocks that are whole, from the first on.
  mutating func offer(_ values: [UInt8], _ lengths: [Int]) {
    while !isFull, numbers.count < lengths.count {
      let end = bytes + lengths[numbers.count]
      guard let number = packer.offer(values.rawSpan.extracting(bytes..<end)) else {
        isFull = true
        return
      }
      numbers.append(number)
      bytes = end
    }
  }

  /// Compresses what is waiting; the helper may still work on one block.
  func complete() throws(FormatError) { try packer.complete() }

  /// A block of the frame; nil if it is to be compressed by the one who asks.
  func fetch(_ block: Int) -> BlockPacker.Packed? {
    block < numbers.count ? packer.fetch(numbers[block], of: batch) : nil
  }
}
