import Foundation

extension StageRun {
  /// Single reads, each timed; the figure is half of them in microseconds.
  /// - Parameter isWhole: whether all that is kept of a record is read.
  private func timed(
    _ row: String, _ reader: any BenchReader, _ indices: [UInt32], isWhole: Bool = false
  ) throws {
    var times = Histogram()
    var check = Check(values)
    let key = KeyBuffer()
    let cost = try Cost {
      var last = nanoseconds()
      for index in indices {
        let key = key.key(Int(index))
        if isWhole { try reader.whole(key, &check) } else { try reader.get(key, &check) }
        let now = nanoseconds()
        times.add(now - last)
        last = now
      }
    }
    try check.expect(indices.count)
    let more = [
      "p90": Double(times.quantile(0.9)) / 1e3, "p99": Double(times.quantile(0.99)) / 1e3,
      "mean": cost.wall / Double(indices.count) * 1e6,
    ]
    show(
      Measure(
        row, Double(times.quantile(0.5)) / 1e3, processor: cost.microseconds(indices.count),
        more: more))
  }

  /// Single reads without a look at the clock between them.
  private static func get(
    _ reader: any BenchReader, _ indices: ArraySlice<UInt32>, _ check: inout Check
  ) throws {
    let key = KeyBuffer()
    for index in indices { try reader.get(key.key(Int(index)), &check) }
  }

  private var readCount: Int { min(Self.reads, max(n * 5, 50_000)) }

  /// Everything was read before, one by one.
  func hot() throws {
    let engine = try engine()
    let reader = try engine.reader()
    let warm = Order.shuffled(n, count: min(n, Self.warmed), seed: seed(1))
    var check = Check(values)
    try Self.get(reader, warm[...], &check)
    var random = SeededRandom(seed: seed(2))
    let indices = (0..<readCount).map { _ in warm[random.below(warm.count)] }
    try timed("P5", reader, indices)
    try twoThreads(engine, reader, indices)
    reader.close()
    try engine.close()
  }

  private func twoThreads(
    _ engine: any BenchEngine, _ reader: any BenchReader, _ indices: [UInt32]
  ) throws {
    var check = Check(values)
    let alone = try Cost { try Self.get(reader, indices[...], &check) }
    let values = values
    let both = try Cost {
      try Threads.run(2) { thread in
        let reader = try engine.reader()
        var check = Check(values)
        // Each begins elsewhere, so that they do not warm caches for each other.
        let start = thread * indices.count / 2
        try Self.get(reader, indices[start...], &check)
        try Self.get(reader, indices[..<start], &check)
        try check.expect(indices.count)
        reader.close()
      }
    }
    let more = ["one": alone.thousands(indices.count), "two": both.thousands(indices.count * 2)]
    show(
      Measure(
        "P5t", alone.wall * 2 / both.wall, processor: both.microseconds(indices.count * 2),
        more: more))
  }

  /// Everything was seen by a scan, and nothing read by its key.
  func scanned() throws {
    let engine = try engine()
    let reader = try engine.reader()
    var check = Check(values)
    let key = KeyBuffer()
    try reader.scan(from: key.key(0), count: .max, &check)
    try check.expect(n)
    try timed("P5s", reader, Order.shuffled(n, count: readCount, seed: seed()))
    reader.close()
    try engine.close()
  }

  /// With a cache that is far too small, so that the data come from the kernel's.
  /// - Parameter wholeRow: the row for reads of all that is kept of a record.
  func small(_ row: String, whole wholeRow: String? = nil) throws {
    let engine = try engine(cache: Self.smallCache, labelled: true)
    let reader = try engine.reader()
    let indices = Order.shuffled(n, count: readCount, seed: seed())
    var check = Check(values)
    // Brings files into the page cache and what engines hold of their indexes into memory.
    let key = KeyBuffer()
    try reader.scan(from: key.key(0), count: .max, &check)
    try check.expect(n)
    try Self.get(reader, indices.suffix(readCount / 3), &check)
    try timed(row, reader, indices)
    if let wholeRow {
      try timed(wholeRow, reader, Array(indices.prefix(readCount / 10)), isWhole: true)
    }
    reader.close()
    try engine.close()
  }

  static let coldReads = 4000

  /// Nothing is in memory, neither here nor in the kernel's cache, as after a start of the machine.
  func cold() throws {
    Disk.forget(order.path)
    let engine = try engine(labelled: true)
    let reader = try engine.reader()
    let indices = Order.shuffled(n, count: min(n, Self.coldReads), seed: seed())
    var check = Check(values)
    let cost = try Cost { try Self.get(reader, indices[...], &check) }
    try check.expect(indices.count)
    show(
      Measure(
        "P18", cost.wall / Double(indices.count) * 1e6,
        processor: cost.microseconds(indices.count)))
    reader.close()
    try engine.close()
  }

  /// Some keys are read far more often than others, and a tenth of the data fits into the cache.
  func zipf(_ row: String, labelled: Bool) throws {
    let libraries = Memory.now().mapped
    let engine = try engine(
      cache: max(Self.smallCache, options().rawBytes / 10), labelled: labelled)
    let reader = try engine.reader()
    let count = readCount * 4 / 3
    let indices = Order.zipf(n, count: count, theta: 0.99, seed: seed())
    var check = Check(values)
    try Self.get(reader, indices[..<(count / 4)], &check)
    let cost = try Cost { try Self.get(reader, indices[(count / 4)...], &check) }
    try check.expect(count)
    let memory = Memory.now()
    show(Measure(row, rate: count - count / 4, cost))
    let more = ["libraries": Double(libraries) / 1e6, "own": Double(memory.own) / 1e6]
    show(Measure(row + "m", Double(memory.resident - libraries) / 1e6, more: more))
    reader.close()
    try engine.close()
  }

  /// Memory that an engine takes to be read at random, its cache apart.
  func memory() throws {
    let indices = Order.shuffled(n, count: n, seed: seed())
    let before = Memory.now()
    let engine = try engine(cache: Self.smallCache, labelled: true)
    let reader = try engine.reader()
    var check = Check(values)
    // One key in four touches every part of an index.
    try Self.get(reader, indices.prefix(max(1000, n / 4)), &check)
    // The order of the reads stays until here: it was there before, too.
    let memory = withExtendedLifetime(indices) { Memory.now() - before }
    let more = ["mapped": Double(memory.mapped) / 1e6]
    show(Measure("P14", Double(memory.own) / 1e6, more: more))
    reader.close()
    try engine.close()
  }

  /// The same database packed for least space.
  func dense() throws {
    let engine = try engine(labelled: true)
    let cost = try Cost { try engine.compact(dense: true) }
    try engine.close()
    let bytes = Double(Disk.bytes(order.path)) / 1e6
    show(Measure("P13d", bytes, processor: cost.microseconds(n), more: ["seconds": cost.wall]))
    try small("P6d")
  }
}
