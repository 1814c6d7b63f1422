internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Reads and decodes a file on threads of its own, and hands out batches in the file's order.
///
/// One thread reads and splits, some decode, the caller commits. What is under way is bounded:
/// the reader waits while there is too much.
final class DecodePipeline: Sendable {
  /// The lines under way may hold so many bytes, and one chunk more.
  private static let budgetBytes = 8 << 20
  private static let mostDecoders = 4

  private struct Chunk: Sendable {
    var index: Int
    var lines: LineChunk
    var bytesRead: Int
  }

  private enum Result: Sendable {
    case batch(PreparedBatch)
    /// A line that is too long to be split off.
    case badLine(LineError)
    case failure(any Error)
  }

  private struct State: Sendable {
    var chunks: [Chunk] = []
    var results: [Int: Result] = [:]
    var spare: [PreparedBatch] = []
    var pendingBytes = 0
    /// How many chunks there are; known at the end.
    var total: Int?
    var isCancelled = false
    var next = 0
  }

  private let monitor = Monitor(State())
  private let skipsBad: Bool
  private let isInterrupted: @Sendable () -> Bool
  private let threads = Lock<[WorkerThread]>([])

  /// Starts reading.
  /// - Parameters:
  ///   - skipsBad: whether bad lines are left out, rather than ending everything.
  ///   - isInterrupted: whether the user wants to stop.
  init(
    _ input: InputStream, skipsBad: Bool, isInterrupted: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) {
    self.skipsBad = skipsBad
    self.isInterrupted = isInterrupted
    var started: [WorkerThread] = []
    do {
      started.append(try WorkerThread(name: "import-read") { self.read(input) })
      for _ in 0..<max(1, min(Processors.count - 1, Self.mostDecoders)) {
        started.append(try WorkerThread(name: "import-decode") { self.decodeAll() })
      }
    } catch {
      cancel()
      for thread in started { thread.join() }
      throw error
    }
    let all = started
    threads.withLock { $0 = all }
  }

  /// Stops all threads and waits for them.
  func finish() {
    cancel()
    for thread in threads.withLock({ $0 }) { thread.join() }
  }

  private func cancel() {
    monitor.withLock { $0.isCancelled = true }
    monitor.broadcast()
  }

  /// The next batch; nil at the end, and when the user wants to stop.
  /// - Parameter spare: a batch that is done with, whose memory can be used again.
  /// - Throws: the first thing that is wrong with the file.
  func next(reusing spare: PreparedBatch?) throws -> PreparedBatch? {
    if let spare {
      monitor.withLock { state in
        state.pendingBytes -= spare.cost
        if state.spare.count < 4 { state.spare.append(spare) }
      }
      monitor.broadcast()
    }
    while !isInterrupted() {
      let found: Result?? = monitor.wait(timeoutNanoseconds: 100_000_000) { state in
        if let result = state.results.removeValue(forKey: state.next) {
          state.next += 1
          return .some(.some(result))
        }
        return state.total == state.next ? .some(.none) : nil
      }
      guard let found else { continue }
      guard let result = found else { return nil }
      switch result {
      case .batch(let batch): return batch
      case .badLine(let error):
        guard skipsBad else { throw error }
        var batch = PreparedBatch()
        batch.bad = [error]
        return batch
      case .failure(let error): throw error
      }
    }
    return nil
  }

  // MARK: - Threads

  private func read(_ input: InputStream) {
    var source = LineSource(input) { [self] in
      isInterrupted() || monitor.withLock { $0.isCancelled }
    }
    var index = 0
    while true {
      let result: Result
      do {
        guard let chunk = try source.next() else { break }
        guard submit(Chunk(index: index, lines: chunk, bytesRead: source.bytesRead)) else { break }
        index += 1
        continue
      } catch let error as LineError {
        result = .badLine(error)
      } catch {
        result = .failure(error)
      }
      let position = index
      monitor.withLock { $0.results[position] = result }
      index += 1
      if case .failure = result { break }
    }
    let total = index
    monitor.withLock { $0.total = total }
    monitor.broadcast()
  }

  /// - Returns: false when nobody wants more.
  private func submit(_ chunk: Chunk) -> Bool {
    let cost = chunk.lines.bytes.count
    monitor.wait { state in
      state.isCancelled || state.pendingBytes < Self.budgetBytes
    }
    let goesOn = monitor.withLock { state in
      guard !state.isCancelled else { return false }
      state.pendingBytes += cost
      state.chunks.append(chunk)
      return true
    }
    monitor.broadcast()
    return goesOn
  }

  private func decodeAll() {
    while true {
      let work: (Chunk, PreparedBatch)? = monitor.wait { state in
        if state.isCancelled { return .some(nil) }
        if !state.chunks.isEmpty {
          return .some((state.chunks.removeFirst(), state.spare.popLast() ?? PreparedBatch()))
        }
        return state.total != nil ? .some(nil) : nil
      }
      guard let (chunk, spare) = work else { return }
      let result = decode(chunk, spare)
      monitor.withLock { $0.results[chunk.index] = result }
      monitor.broadcast()
    }
  }

  private func decode(_ chunk: Chunk, _ spare: PreparedBatch) -> Result {
    var batch = spare
    do {
      try batch.decode(chunk.lines, skipsBad: skipsBad)
    } catch { return .failure(error) }
    batch.bytesRead = chunk.bytesRead
    batch.cost = chunk.lines.bytes.count
    return .batch(batch)
  }
}
