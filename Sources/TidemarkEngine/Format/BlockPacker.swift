/// Compresses the blocks of a batch on two threads: the one that writes it, and one that helps.
///
/// A block is offered as soon as it is whole, while the rest of the batch is still being staged.
/// The helper takes blocks in the order in which they came; once all are there the writer takes
/// those that nobody has begun, from the end, until the two meet. Nobody waits for the helper: a
/// block that it is still at by then is compressed again. So a busy machine costs a writer hardly
/// more than there being no helper, and the bytes of a block do not depend on who compresses it.
///
/// One writer at a time, who holds the lock of all writers; the lock in here is the last that
/// anybody takes, and nobody holds it while compressing.
package final class BlockPacker: Sendable {
  /// How a block is stored.
  struct Packed: Sendable, Hashable {
    var codec: Codec
    /// Empty when the block is stored raw.
    var bytes: [UInt8]
  }

  private enum Block {
    case waiting([UInt8])
    /// Somebody is at it, or has fetched it.
    case taken
    case packed(Packed)
  }

  private struct Queue {
    /// Counts the batches: the helper may bring a block of one that is written already.
    var batch: UInt64 = 0
    /// Blocks of the batch, in the order in which they were offered.
    var blocks: [Block] = []
    /// Raw bytes of all of them.
    var bytes = 0
    /// The helper has taken those before it.
    var front = 0
    /// The writer has taken those from here on.
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
        // The writer may have taken some before others were offered.
        if let taken = take(front - 1) { return taken }
      }
      return nil
    }

    mutating func takeLast() -> Taken? {
      guard front < end else { return nil }
      end -= 1
      return take(end)
    }

    mutating func note(_ packed: Packed, of taken: Taken) {
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

  /// zstd's level.
  static let level = FrameCodecs.fastLevel

  private let queue = Monitor(Queue())
  // Appended segments have no dictionary, and encryption comes after.
  private let codecs: FrameCodecs

  package init(contexts: ZstdContexts) { codecs = FrameCodecs(contexts: contexts) }

  deinit { end() }

  /// Whether there is a thread; it starts with the first block.
  package var isStarted: Bool { queue.withLock { $0.thread != nil } }

  /// Blocks that nobody has begun; for tests.
  var waiting: Int { queue.withLock { $0.end - $0.front } }

  /// Begins a batch; ``finish()`` ends it.
  /// - Returns: what its frames are given.
  func begin() -> BatchPacking {
    BatchPacking(
      packer: self,
      batch: queue.withLock { queue in
        queue.removeAll()
        return queue.batch
      })
  }

  /// Lets go of all blocks.
  func finish() { queue.withLock { $0.removeAll() } }

  /// Takes a block of the batch.
  /// - Returns: its number among those of the batch; nil when there are enough of them, or there
  ///   is no thread to be had.
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

  /// Starts the thread, if need be; where the system gives none, the next frame tries again.
  private func start(_ queue: inout Queue) -> Bool {
    guard !queue.isStopping else { return false }
    guard queue.thread == nil else { return true }
    let (monitor, codecs) = (self.queue, codecs)
    queue.thread = try? WorkerThread(name: "tidemark-blocks") { Self.help(monitor, codecs) }
    return queue.thread != nil
  }

  private static func help(_ queue: Monitor<Queue>, _ codecs: FrameCodecs) {
    while true {
      let taken = queue.wait { (queue: inout Queue) -> Taken?? in
        if queue.isStopping { return .some(nil) }
        if let taken = queue.takeFirst() { return taken }
        queue.isAsleep = true
        return nil
      }
      guard let taken else { return }
      // The writer compresses the block itself if this fails.
      guard let packed = try? pack(taken.raw.rawSpan, codecs) else { continue }
      queue.withLock { $0.note(packed, of: taken) }
    }
  }

  private static func pack(
    _ raw: RawSpan, _ codecs: FrameCodecs
  ) throws(FormatError) -> Packed {
    var bytes: [UInt8] = []
    let codec = try codecs.encode(raw, level: level, appendingTo: &bytes)
    return Packed(codec: codec, bytes: codec == .raw ? [] : bytes)
  }

  /// Compresses what nobody has begun, until everything that was offered is done but what the
  /// helper is at.
  fileprivate func complete() throws(FormatError) {
    while let taken = queue.withLock({ $0.takeLast() }) {
      let packed = try Self.pack(taken.raw.rawSpan, codecs)
      queue.withLock { $0.note(packed, of: taken) }
    }
  }

  /// A block that is done; nil if it is not, and for good.
  fileprivate func fetch(_ number: Int, of batch: UInt64) -> Packed? {
    queue.withLock { queue in
      guard queue.batch == batch, case .packed(let packed) = queue.blocks[number] else {
        return nil
      }
      queue.blocks[number] = .taken
      return packed
    }
  }

  /// Lets the thread end after the block that it is at, and waits for that.
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

/// A batch whose blocks go through a packer.
struct BatchPacking: Sendable {
  fileprivate let packer: BlockPacker
  fileprivate let batch: UInt64

  /// For the next frame of the batch.
  var frame: FramePacking { FramePacking(batch: self) }
}

/// The blocks of one frame that were offered to a packer: all of them, or the first ones.
struct FramePacking: Sendable {
  private let batch: BatchPacking
  /// Their numbers among those of the batch. They need not be in a row: the last block of a frame
  /// is whole when the frame is finished, and that may be after others.
  private var numbers: [Int] = []
  /// Raw bytes of them.
  private var bytes = 0
  private var isFull = false

  fileprivate init(batch: BatchPacking) { self.batch = batch }

  /// Offers blocks that became whole.
  /// - Parameters:
  ///   - values: the values of the frame.
  ///   - lengths: of its blocks that are whole, from the first on.
  mutating func offer(_ values: [UInt8], _ lengths: [Int]) {
    while !isFull, numbers.count < lengths.count {
      let end = bytes + lengths[numbers.count]
      guard let number = batch.packer.offer(values.rawSpan.extracting(bytes..<end)) else {
        isFull = true
        return
      }
      numbers.append(number)
      bytes = end
    }
  }

  /// Sees to it that as good as all blocks of the batch are done.
  func complete() throws(FormatError) { try batch.packer.complete() }

  /// A block of the frame; nil if it is to be compressed by the one who asks.
  func fetch(_ block: Int) -> BlockPacker.Packed? {
    block < numbers.count ? batch.packer.fetch(numbers[block], of: batch.batch) : nil
  }
}
