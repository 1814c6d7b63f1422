import Foundation

extension StageRun {
  /// Random single puts to keys that are there, from one thread.
  func puts(_ row: String, _ level: PutLevel) throws {
    let count = max(1000, n * 31 / 100)
    let records = Records(
      values, indices: Order.shuffled(n, count: count, seed: seed()), revision: revision)
    let engine = try engine(level: level)
    let cost = try Cost {
      for place in 0..<count {
        try engine.put(records.key(place), records.value(place), records.indices[place])
      }
    }
    show(Measure(row, rate: count, cost))
    try engine.close()
  }

  static let writers = 8
  /// Nanoseconds after which durable puts end, however few there were: disks differ by far.
  private static let longestDurable: UInt64 = 20_000_000_000

  /// The same, each on the disk before the next: by one thread, then by eight at a time.
  func durable() throws {
    let count = min(15_000, max(800, n * 15 / 1000)) / Self.writers * Self.writers
    let records = Records(
      values, indices: Order.shuffled(n, count: count * 2, seed: seed()), revision: revision)
    let engine = try engine(level: .durable)
    let alone = try durable(engine, records, first: 0, share: count, threads: 1)
    show("P3", alone)
    let share = count / Self.writers
    show("P4", try durable(engine, records, first: count, share: share, threads: Self.writers))
    try engine.close()
  }

  private func show(_ row: String, _ result: (puts: Int, cost: Cost)) {
    var measure = Measure(row, rate: result.puts, result.cost)
    // The disk of this very moment, since neighbours on a shared one come and go.
    measure.more = ["disk": (try? Limits.syncRate(order.path + "/../disk", count: 200)) ?? 0]
    show(measure)
  }

  private func durable(
    _ engine: any BenchEngine, _ records: Records, first: Int, share: Int, threads: Int
  ) throws -> (puts: Int, cost: Cost) {
    let deadline = nanoseconds() + Self.longestDurable
    let done = Counter()
    let cost = try Cost {
      try Threads.run(threads) { thread in
        let begin = first + thread * share
        for place in begin..<begin + share where nanoseconds() < deadline {
          try engine.put(records.key(place), records.value(place), records.indices[place])
          done.add()
        }
      }
    }
    return (done.count, cost)
  }

  private static let rounds = 4

  /// Rounds of puts to a quarter of the keys, each with all that the engine does because of it, and
  /// the first with what it has put off of the load before.
  func settled(_ first: String, _ next: String, _ level: PutLevel) throws {
    let loaded = try self.engine(level: level)
    _ = try loadAll(loaded)
    try loaded.close()
    let engine = try engine(level: level)
    var costs: [Double] = []
    for round in 0..<Self.rounds {
      let records = Records(
        values, indices: Order.shuffled(n, count: n / 4, seed: seed(UInt64(round))),
        revision: revision + round)
      let cost = try Cost {
        for place in 0..<records.count {
          try engine.put(records.key(place), records.value(place), records.indices[place])
        }
        Self.waitUntilIdle()
      }
      costs.append(cost.microseconds(records.count))
    }
    show(Measure(first, costs[0]))
    show(Measure(next, costs.dropFirst().reduce(0, +) / Double(Self.rounds - 1)))
    try engine.close()
  }

  /// Waits until the process has used next to no processor time for some seconds: what an engine
  /// puts off may begin late, and may pause meanwhile.
  private static func waitUntilIdle() {
    var quiet = 0
    for _ in 0..<600 where quiet < 10 {
      let before = Cost.processorSeconds()
      usleep(500_000)
      quiet = Cost.processorSeconds() - before < 0.005 ? quiet + 1 : 0
    }
  }

  /// Puts a millisecond while upkeep runs: a rate that everybody keeps up with, so that a stall is
  /// not hidden among the many puts of a faster time.
  private static let putsAtOnce = 20
  private static let tick: UInt64 = 1_000_000
  private static let longestUpkeep: UInt64 = 120_000_000_000

  /// Puts at a steady rate while a sorted run is written and everything is compacted.
  func stalls() throws {
    let ahead = min(2_000_000, max(200_000, n))
    let records = Records(
      values, indices: Order.shuffled(n, count: ahead, seed: seed()), revision: revision)
    let engine = try engine()
    let upkeep = Upkeep()
    upkeep.start(engine)
    var times = Histogram()
    var late = Histogram()
    let cost = try Cost {
      var due = nanoseconds()
      let deadline = due + Self.longestUpkeep
      while !upkeep.isDone || times.count < 20_000, due < deadline {
        for _ in 0..<Self.putsAtOnce {
          let at = times.count % ahead
          let begin = nanoseconds()
          try engine.put(records.key(at), records.value(at), records.indices[at])
          let end = nanoseconds()
          times.add(end - begin)
          late.add(end - due)
        }
        due += Self.tick
        let now = nanoseconds()
        if now < due { usleep(UInt32((due - now) / 1000)) }
      }
    }
    try upkeep.wait()
    let more = [
      "puts": Double(times.count), "p50": Double(times.quantile(0.5)) / 1e6,
      "p99": Double(times.quantile(0.99)) / 1e6,
      "late p99.9": Double(late.quantile(0.999)) / 1e6,
    ]
    show(
      Measure(
        "P15", Double(times.quantile(0.999)) / 1e6, processor: cost.microseconds(times.count),
        more: more))
    show(Measure("P15m", Double(times.largest) / 1e6))
    try engine.close()
  }
}

/// An engine's upkeep on a thread of its own.
private final class Upkeep: @unchecked Sendable {
  private let lock = NSLock()
  private let finished = DispatchSemaphore(value: 0)
  private var done = false
  private var failure: (any Error)?

  var isDone: Bool { lock.withLock { done } }

  func start(_ engine: any BenchEngine) {
    Thread.detachNewThread {
      let result = Result {
        if let engine = engine as? TidemarkEngine { try engine.snapshot() }
        try engine.compact(dense: false)
      }
      self.lock.withLock {
        self.done = true
        if case .failure(let error) = result { self.failure = error }
      }
      self.finished.signal()
    }
  }

  func wait() throws {
    finished.wait()
    if let failure { throw failure }
  }
}
