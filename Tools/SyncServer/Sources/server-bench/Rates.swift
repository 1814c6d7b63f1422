internal import Foundation
internal import Synchronization
internal import Tidemark

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

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

/// Measures the disk and the engine alone, for comparison with the server.
struct BareRates {
  let place: Place
  let seconds: Double

  /// The rate of syncs of a few bytes, by threads with a file each.
  ///
  /// SAFETY: C calls get bytes that live until they return, and files that are open.
  func syncs(_ threads: Int) throws -> Double {
    let directory = try place.make("disk")
    let files = (0..<threads).map { unsafe open("\(directory)/\($0)", O_CREAT | O_RDWR, 0o600) }
    defer { for file in files { close(file) } }
    // The space is allocated before, as in a log.
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    for file in files {
      guard unsafe pwrite(file, zeros, zeros.count, 0) == zeros.count, fsync(file) == 0 else {
        throw BenchError("the disk cannot be written to")
      }
    }
    let bytes = [UInt8](repeating: 7, count: 128)
    return try rate(threads, seconds) { index, number in
      let offset = Int(number) * bytes.count % (1 << 20)
      guard unsafe pwrite(files[index], bytes, bytes.count, off_t(offset)) == bytes.count else {
        throw BenchError("the disk cannot be written to")
      }
      #if canImport(Darwin)
        let result = fsync(files[index])
      #else
        let result = fdatasync(files[index])
      #endif
      guard result == 0 else { throw BenchError("the disk cannot be synced") }
    }
  }

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
