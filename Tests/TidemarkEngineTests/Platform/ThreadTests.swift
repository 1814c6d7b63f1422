import Testing
import TidemarkEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

@Suite struct ThreadTests {
  @Test("a lock lets one thread in at a time")
  func exclusion() throws {
    let counter = Lock(0)
    let threads = try (0..<4).map { number in
      try WorkerThread(name: "counter \(number)") {
        for _ in 0..<20_000 { counter.withLock { $0 += 1 } }
      }
    }
    for thread in threads { thread.join() }
    #expect(counter.withLock { $0 } == 80_000)
  }

  @Test("an error thrown under the lock gives the lock back")
  func thrownError() {
    let lock = Lock(1)
    #expect(throws: FormatError("no")) {
      try lock.withLock { (_: inout Int) throws(FormatError) in throw FormatError("no") }
    }
    #expect(lock.withLock { $0 } == 1)
    let monitor = Monitor(2)
    #expect(throws: FormatError("no")) {
      try monitor.withLock { (_: inout Int) throws(FormatError) in throw FormatError("no") }
    }
    #expect(monitor.withLock { $0 } == 2)
  }

  @Test("two threads hand numbers over through a monitor, in order and complete")
  func handOver() throws {
    let box = Monitor<Int?>(nil)
    let producer = try WorkerThread(name: "producer") {
      for i in 0..<2_000 {
        box.wait(until: { $0 == nil })
        box.withLock { $0 = i }
        box.broadcast()
      }
    }
    var received: [Int] = []
    for _ in 0..<2_000 {
      received.append(
        box.wait(for: { slot -> Int? in
          defer { slot = nil }
          return slot
        }))
      box.broadcast()
    }
    producer.join()
    #expect(received == Array(0..<2_000))
  }

  @Test("waiting with a time-out ends without a signal, and at once when it is ready")
  func timeout() {
    let monitor = Monitor(0)
    let clock = SystemClock()
    let start = clock.monotonicNanoseconds()
    #expect(!monitor.wait(timeoutNanoseconds: 20_000_000, until: { $0 == 1 }))
    #expect(clock.monotonicNanoseconds() - start >= 20_000_000)
    monitor.withLock { $0 = 1 }
    #expect(monitor.wait(timeoutNanoseconds: .max, until: { $0 == 1 }))
  }

  @Test("a signal ends a long wait")
  func signal() throws {
    let monitor = Monitor((isWaiting: false, isReady: false))
    let waiter = try WorkerThread(name: "waiter") {
      let ready = monitor.wait(timeoutNanoseconds: .max) { state in
        state.isWaiting = true
        return state.isReady
      }
      monitor.withLock { $0.isWaiting = !ready }
    }
    while !monitor.withLock({ $0.isWaiting }) {}
    monitor.withLock { $0.isReady = true }
    monitor.signal()
    waiter.join()
    #expect(!monitor.withLock { $0.isWaiting })
  }

  @Test("joining twice, from two threads, and not at all does no harm")
  func joins() throws {
    let ran = Lock(0)
    let thread = try WorkerThread(name: "joined by two, with a name that is too long") {
      ran.withLock { $0 += 1 }
    }
    let other = try WorkerThread(name: "joiner") { thread.join() }
    thread.join()
    thread.join()
    other.join()
    #expect(ran.withLock { $0 } == 1)
    let done = Monitor(false)
    do {
      _ = try WorkerThread(name: "detached") {
        done.withLock { $0 = true }
        done.broadcast()
      }
    }
    done.wait(until: { $0 })
  }

  @Test("the work of a thread is released when it has run")
  func released() throws {
    final class Witness: Sendable {}
    weak var witness: Witness?
    do {
      let held = Witness()
      witness = held
      try WorkerThread(name: "holder") { [held] in _ = held }.join()
    }
    #expect(witness == nil)
  }

  #if !canImport(Darwin)
    /// The number by which the calling thread lets others go first. The first 0 is `PRIO_PROCESS`,
    /// whose type differs between C libraries.
    private static func niceness() -> Int32 { getpriority(0, 0) }

    @Test("a thread that yields lets others go first, and so do the threads that it starts")
    func yields() throws {
      let seen = Lock<[Int32]>([])
      try WorkerThread(name: "usual") { seen.withLock { $0.append(Self.niceness()) } }.join()
      try WorkerThread(name: "yielding", yields: true) {
        seen.withLock { $0.append(Self.niceness()) }
        try? WorkerThread(name: "its own") { seen.withLock { $0.append(Self.niceness()) } }.join()
      }.join()
      let own = Self.niceness()
      #expect(seen.withLock { $0 } == [own, min(own + 10, 19), min(own + 10, 19)])
    }
  #endif
}
