import Foundation
import Tidemark
import TidemarkHTTP
import TidemarkSync

extension StageRun {
  /// Sends everything that a store has to a sync server on the loopback interface, in a process of
  /// its own.
  func replay() throws {
    let engine = try engine()
    let indices = (0..<n).map { UInt32($0) }
    try Self.fill(engine, Records(values, indices: indices, revision: 0))
    try engine.close()
    let server = try ServerProcess(path: order.path + "-server")
    defer { server.stop() }
    let store = try Store.openBlocking(at: order.path)
    let peer = try HTTPPeer("http://127.0.0.1:\(server.port)/bench")
    let replicator = try store.replicator(
      named: "bench", peer: peer, configuration: .init(direction: .push))
    let memory = MemoryWatch()
    var complete = false
    let cost = try Cost {
      complete = try Blocking.wait { try await replicator.syncOnce().isComplete }
    }
    let largest = memory.stop()
    guard complete else { throw BenchError("not everything was sent") }
    show(Measure("P16", rate: n, cost))
    let more = [
      "before": Double(memory.first.own) / 1e6, "quarter": Double(memory.quarter(largest)) / 1e6,
    ]
    show(Measure("P16m", Double(largest) / 1e6, more: more))
    try store.blocking.close()
  }

  private static func fill(_ engine: any BenchEngine, _ records: Records) throws {
    for first in stride(from: 0, to: records.count, by: batch) {
      try engine.load(records, first..<min(records.count, first + batch))
    }
  }
}

/// Waits for something asynchronous on a thread that has nothing else to do.
enum Blocking {
  private final class Box<R: Sendable>: @unchecked Sendable {
    var result: Result<R, any Error>?
  }

  static func wait<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
    let box = Box<R>()
    let finished = DispatchSemaphore(value: 0)
    Task {
      do {
        box.result = .success(try await body())
      } catch {
        box.result = .failure(error)
      }
      finished.signal()
    }
    finished.wait()
    guard let result = box.result else { throw BenchError("nothing was answered") }
    return try result.get()
  }
}

/// Looks at the memory of this process every now and then.
final class MemoryWatch: @unchecked Sendable {
  let first = Memory.now()
  private let lock = NSLock()
  private var samples: [Int] = []
  private var isStopped = false

  init() {
    Thread.detachNewThread { [self] in
      while true {
        let own = Memory.now().own
        let stop = lock.withLock {
          samples.append(own)
          return isStopped
        }
        if stop { return }
        usleep(50_000)
      }
    }
  }

  /// - Returns: the most that was seen.
  func stop() -> Int {
    lock.withLock {
      isStopped = true
      return samples.max() ?? first.own
    }
  }

  /// The most within the first quarter of the time; memory is constant when this is the most.
  func quarter(_ otherwise: Int) -> Int {
    lock.withLock { samples.prefix(max(1, samples.count / 4)).max() ?? otherwise }
  }
}
