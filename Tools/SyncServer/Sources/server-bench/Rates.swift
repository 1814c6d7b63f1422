internal import Foundation
internal import Synchronization
internal import Tidemark

/// How many calls a second some threads make together, each in a loop.
func rate(
  _ threads: Int, _ seconds: Double, _ body: @escaping @Sendable (Int, UInt64) throws -> Void
) throws -> Double {
  let calls = Mutex<UInt64>(0)
  let failure = Mutex<(any Error)?>(nil)
  let done = DispatchSemaphore(value: 0)
  let end = Date() + seconds
  for index in 0..<threads {
    let thread = Thread {
      var number: UInt64 = 0
      while Date() < end {
        number += 1
        do { try body(index, number) } catch {
          failure.withLock { $0 = error }
          break
        }
      }
      let made = number
      calls.withLock { $0 += made }
      done.signal()
    }
    thread.start()
  }
  for _ in 0..<threads { done.wait() }
  if let error = failure.withLock({ $0 }) { throw error }
  return Double(calls.withLock { $0 }) / seconds
}

/// Measures the engine alone, for comparison with the server.
struct BareRates {
  let place: Place
  let seconds: Double

  /// The rate of durable puts by threads, each into one of some stores.
  func puts(_ threads: Int, stores count: Int) throws -> Double {
    let directory = try place.make("engine")
    let stores = try (0..<count).map {
      try Store.openBlocking(
        at: "\(directory)/\($0).tidemark",
        configuration: Store.Configuration(durability: .durable, compaction: .onRequest))
    }
    let result = try rate(threads, seconds) { index, number in
      _ = try stores[index % count].blocking.put(
        "key/\(index)/\(number)", "value \(number)", durability: .durable)
    }
    for store in stores { try store.blocking.close() }
    return result
  }
}
