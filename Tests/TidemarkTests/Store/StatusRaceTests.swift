import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Status and explanations beside writers", .timeLimit(.minutes(20)))
struct StatusRaceTests {
  private static let writers = 4
  private static let puts = 120

  /// Runs bodies on threads of their own.
  /// - Returns: the first error of each that failed.
  private func together(_ bodies: [@Sendable () throws -> Void]) throws -> [any Error] {
    let failures = Lock<[any Error]>([])
    let threads = try bodies.map { body in
      try WorkerThread(name: "together") {
        do { try body() } catch { failures.withLock { $0.append(error) } }
      }
    }
    for thread in threads { thread.join() }
    return failures.withLock { $0 }
  }

  @Test(
    "the figures of a status are of one moment, whatever is written, compacted and checkpointed")
  func figures() throws {
    let store = try Machine().open().blocking
    let left = Lock(Self.writers)
    let isOver: @Sendable () -> Bool = { left.withLock { $0 == 0 } }
    var bodies: [@Sendable () throws -> Void] = []
    for writer in 0..<Self.writers {
      bodies.append {
        defer { left.withLock { $0 -= 1 } }
        // A new key with each sequence, so that there are as many of the ones as of the others.
        for i in 0..<Self.puts {
          try store.put("w\(writer)/\(i)", "\(i)", labels: [EntryLabel("l\(i % 40)")])
        }
      }
    }
    for _ in 0..<2 {
      bodies.append {
        repeat {
          let status = try store.store.status
          #expect(UInt64(status.keys) == status.sequence)
          #expect(status.memoryBytes > 0 || status.sequence == 0)
        } while !isOver()
      }
    }
    bodies.append {
      repeat {
        let found = try store.store.explain("w0/0")
        #expect(found.map { $0.isPresent && $0.versions.count == 1 } ?? true)
      } while !isOver()
    }
    bodies.append {
      repeat { try store.compact() } while !isOver()
    }
    bodies.append {
      repeat { try store.snapshot() } while !isOver()
    }
    #expect(try together(bodies).isEmpty)
    #expect(try store.store.status.keys == Self.writers * Self.puts)
    try store.close()
  }
}
