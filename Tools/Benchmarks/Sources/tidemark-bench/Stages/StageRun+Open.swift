import Foundation

extension StageRun {
  /// Opens another database first, so that code and libraries are in memory.
  private func warmUp() throws {
    let path = order.path + "-warm"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try? FileManager.default.removeItem(atPath: path)
    for _ in 0..<2 {
      var options = options()
      options.path = path
      options.n = 1000
      let engine = try order.engine.open(options)
      let records = Records(values, indices: [0, 1, 2], revision: 0)
      for place in 0..<3 { try engine.put(records.key(place), records.value(place), 0) }
      let reader = try engine.reader()
      var check = Check(values)
      try reader.get(records.key(1), &check)
      reader.close()
      try engine.close()
    }
  }

  /// Opening and the first read, in milliseconds.
  private func openingTime(_ key: Int) throws -> (cost: Cost, engine: any BenchEngine) {
    let buffer = KeyBuffer()
    let bytes = buffer.key(key)
    var opened: (any BenchEngine)?
    let cost = try Cost {
      let engine = try order.engine.open(options())
      opened = engine
      let reader = try engine.reader()
      var check = Check(values)
      try reader.get(bytes, &check)
      try check.expect(1)
      reader.close()
    }
    guard let opened else { throw BenchError("nothing was opened") }
    return (cost, opened)
  }

  /// After a clean close; then again after closing once more, and with a cold page cache.
  func open() throws {
    try warmUp()
    var random = SeededRandom(seed: seed())
    let first = try openingTime(random.below(n))
    show(settings: first.engine.settings)
    show(Measure("P8", first.cost.wall * 1e3, processor: first.cost.processor * 1e6))
    try first.engine.close()
    func times(_ count: Int, _ before: () -> Void) throws -> [Double] {
      try (0..<count).map { _ in
        before()
        let (cost, engine) = try openingTime(random.below(n))
        try engine.close()
        return cost.wall * 1e3
      }
    }
    show(Measure("P8r", Statistics.median(try times(5) {})))
    show(Measure("P8c", Statistics.median(try times(3) { Disk.forget(order.path) })))
  }

  static let killedBytes = 64 << 20

  /// Writes 64 MiB in batches after everything else was closed cleanly, and is killed.
  func kill() throws {
    let engine = try engine()
    let count = min(Self.killedBytes / (values.mean + KeyText.byteCount), max(1000, n))
    let records = Records(
      values, indices: Order.shuffled(n, count: count, seed: seed()), revision: revision)
    for first in stride(from: 0, to: count, by: Self.batch) {
      try engine.load(records, first..<min(count, first + Self.batch))
    }
    Foundation.kill(getpid(), SIGKILL)
  }

  func reopen(_ row: String) throws {
    try warmUp()
    let (cost, engine) = try openingTime(n / 2)
    show(Measure(row, cost.wall * 1e3, processor: cost.processor * 1e6))
    try engine.close()
  }

  /// Opens without the sorted runs, which are derived from the log.
  func rebuild() throws {
    let runs = order.path + "/index"
    for name in try FileManager.default.contentsOfDirectory(atPath: runs)
    where name.hasSuffix(".idx") {
      try FileManager.default.removeItem(atPath: runs + "/" + name)
    }
    try reopen("P9r")
  }
}
